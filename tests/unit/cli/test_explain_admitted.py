"""What admission made of pods that are there: by what was submitted where that is known, else by what stands on the pod."""

import json
from functools import cache
from typing import Any

from koordpolicy.cli.explain_admission import READ
from koordpolicy.cli.explain_admitted import plain_admitted
from koordpolicy.cli.pod_policies import Policies
from koordpolicy.graph import Layer, RuleGraph
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES
from koordpolicy.manager.webhooks.rehearsal import PictureObjects, Rehearsal
from koordpolicy.model.protocol import BATCH_CPU, DEVICE_ALLOCATED, EXTENDED_RESOURCE_SPEC
from koordpolicy.runtime.policies.pack_cache import pack_remembering

API = "apiVersion: koordpolicy.io/v1alpha1\n"
BUNDLE = f"{API}kind: PolicyBundle\nmetadata: {{name: ours}}\nspec: {{extends: [koordinator]}}\n"
SPARK = f"""{API}kind: ColocationProfile
metadata: {{name: spark}}
spec:
  match: {{pods: {{matchLabels: {{app: spark}}}}}}
  qosClass: BE
  band: batch
  schedulerName: koord-scheduler
  labels: {{who: spark}}
  labelSuffixes: {{team: "-batch"}}
"""
TEAM = f"""{API}kind: AdmissionRule
metadata: {{name: team}}
spec: {{require: {{cel: "'team' in pod.labels"}}, message: say whose it is}}
"""
QOS = "koordinator.sh/qosClass"


@cache
def graph(*own: str) -> RuleGraph:
    files = {"koordpolicy.yaml": BUNDLE, **{f"own{at}.yaml": text for at, text in enumerate(own)}}
    compilation = pack_remembering().compile(Layer("bundle", files))
    assert compilation.graph is not None, compilation.found
    return compilation.graph


def template(**labels: str) -> dict[str, Any]:
    """With limits alone, which API servers make requests of."""
    container = {"name": "main", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "metadata": {"labels": {"app": "spark", "team": "a", **labels}},
        "spec": {"containers": [container], "schedulerName": "default-scheduler"},
    }


def as_admitted(by: RuleGraph, submitted: dict[str, Any]) -> dict[str, Any]:
    """The pod as a cluster has it once webhooks were through with it, and it runs."""
    container = submitted["spec"]["containers"][0]
    limits = container["resources"]["limits"]
    asked = {**container, "resources": {"limits": limits, "requests": limits}}
    given = {
        "metadata": {"name": "p-1", "namespace": "shop", "uid": "u", **submitted["metadata"]},
        "spec": {**submitted["spec"], "containers": [asked]},
    }
    found = Rehearsal(by, PictureObjects(by, {}), 0).of(given)
    assert not found.refused
    made: dict[str, Any] = json.loads(json.dumps(found.mutation.pod, default=dict))
    made["metadata"]["uid"] = "u"
    made["spec"]["nodeName"] = "n"
    return made


def told(
    by: RuleGraph, pod: dict[str, Any], submitted: dict[str, Any] | None, profiles: tuple[Any, ...] = ()
) -> dict[str, Any]:
    objects = PictureObjects(by, {**dict.fromkeys(READ, ()), CLUSTER_COLOCATION_PROFILES: profiles})
    source = "the template of ReplicaSet p" if submitted else ""
    policies = Policies(by, "ours", "r", None, "")
    found = plain_admitted(Rehearsal(by, objects, 0), policies, pod, submitted, source)
    return json.loads(json.dumps(found, default=dict))  # type: ignore[no-any-return]


def set_by(found: dict[str, Any]) -> dict[str, str]:
    """The decision behind each line, by its path."""
    return {line["path"]: step["decision"] for step in found["changes"] for line in step["lines"]}


def test_each_line_is_told_with_its_document_and_stands_on_the_pod() -> None:
    by = graph(SPARK)
    pod = as_admitted(by, template())
    found = told(by, pod, template())
    assert (found["same"], found["source"]) == (True, "the template of ReplicaSet p")
    assert found["profiles"]["applied"] == ["spark"]
    lines = set_by(found)
    assert lines[f'metadata.labels["{QOS}"]'] == "ColocationProfile/spark.qosClass"
    assert lines["metadata.labels.who"] == "ColocationProfile/spark.labels[who]"
    assert lines["spec.schedulerName"] == "ColocationProfile/spark.schedulerName"
    assert lines[f'spec.containers[0].resources.requests["{BATCH_CPU}"]'].startswith("PriorityBand/batch")
    assert {place["file"] for place in found["changes"][0]["places"]} == {"own0.yaml"}
    states = {line["state"] for step in found["changes"] for line in step["lines"]}
    assert (states, found["beside"]) == ({"there"}, [])


def test_what_policies_make_otherwise_now_is_told_line_by_line() -> None:
    pod = as_admitted(graph(SPARK), template())
    later = SPARK.replace("who: spark", "who: others, new: line").replace(
        "schedulerName: koord", "schedulerName: own"
    )
    found = told(graph(later), pod, template())
    assert found["same"] is False
    lines = {line["path"]: line for step in found["changes"] for line in step["lines"]}
    who, new = lines["metadata.labels.who"], lines["metadata.labels.new"]
    assert (who["state"], who["value"], who["actual"]) == ("other", "others", "spark")
    assert (new["state"], "actual" in new) == ("missing", False)
    assert lines["spec.schedulerName"]["actual"] == "koord-scheduler"
    assert lines[f'metadata.labels["{QOS}"]']["state"] == "there"

    # Where no profile is left that made it so, that stands beside.
    gone = told(graph(), pod, template())
    beside = {one["path"]: one for one in gone["beside"]}
    assert gone["same"] is False
    assert beside[f'metadata.labels["{QOS}"]']["actual"] == "BE"
    assert beside["spec.schedulerName"]["value"] == "default-scheduler"
    assert f'metadata.annotations["{EXTENDED_RESOURCE_SPEC}"]' in beside
    assert "metadata.labels.who" not in beside  # which means nothing to policies


def test_what_is_written_later_is_known_by_its_writer() -> None:
    by = graph(SPARK)
    pod = as_admitted(by, template())
    pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), DEVICE_ALLOCATED: "{}"}
    found = told(by, pod, template())
    (one,) = found["beside"]
    assert (found["same"], one["by"]) == (True, "the scheduler, as it chose the node")
    pod["spec"]["containers"].insert(0, {"name": "proxy", "resources": {"requests": {"cpu": "1"}}})
    found = told(by, pod, template())
    assert found["same"] is False
    assert {one["actual"] for one in found["beside"]} == {"{}", "proxy"}
    assert {line["state"] for step in found["changes"] for line in step["lines"]} == {"there"}


def test_amounts_are_compared_and_not_their_texts() -> None:
    by = graph(SPARK)
    pod = as_admitted(by, template())
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    requests[BATCH_CPU] = "1k"  # as an API server writes 1000
    assert told(by, pod, template())["same"] is True
    requests[BATCH_CPU] = "999"
    assert told(by, pod, template())["same"] is False


def test_where_nobody_has_what_was_submitted_it_is_taken_from_the_pod() -> None:
    by = graph(SPARK)
    pod = as_admitted(by, template())
    assert pod["metadata"]["labels"]["team"] == "a-batch"
    found = told(by, pod, None)
    assert (found["same"], found["source"]) == (True, None)
    lines = set_by(found)
    assert lines["metadata.labels.who"] == "ColocationProfile/spark.labels[who]"
    assert lines["metadata.labels.team"] == "ColocationProfile/spark.labelSuffixes[team]"
    assert lines["spec.priorityClassName"] == "ColocationProfile/spark.band"
    pod["metadata"]["labels"]["who"] = "somebody"
    assert told(by, pod, None)["same"] is False
    plain = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"containers": [{"name": "main"}]}}
    found = told(by, plain, None)
    assert (found["same"], found["changes"], found["beside"]) == (True, [], [])


def test_a_pod_that_would_be_refused_today_says_by_which_rule() -> None:
    by = graph(TEAM)
    pod = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"containers": [{"name": "main"}]}}
    found = told(by, pod, None)
    assert (found["same"], found["allowed"]) == (False, False)
    (violation,) = found["violations"]
    assert (violation["rule"], violation["places"][0]["file"]) == ("AdmissionRule/team", "own0.yaml")


def test_a_profile_that_is_an_object_of_the_cluster_is_named() -> None:
    profile = {
        "metadata": {"name": "theirs"},
        "spec": {"selector": {"matchLabels": {"app": "spark"}}, "labels": {"theirs.koordinator.sh/x": "1"}},
    }
    pod = as_admitted(graph(), template())
    found = told(graph(), pod, template(), (profile,))
    (step,) = found["changes"]
    assert step["decision"].startswith("ClusterColocationProfile/theirs.labels")
    assert (step["places"], step["lines"][0]["state"], found["same"]) == ([], "missing", False)
