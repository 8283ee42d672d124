"""What holds a pod back on its node, as policies of a revision and the last report of the node have it."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.explain_holds import ExplainedHolds, hold_lines, holds_of_picture, plain_holds
from koordpolicy.cli.explain_pod import pod_named
from koordpolicy.cli.pod_policies import Policies
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.graph import Layer, RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    BLKIO_QOS,
    CPU_BURST,
    CPU_QOS,
    DRY_RUN_ANNOTATION,
    MEMORY_QOS,
    NETWORK_QOS,
    RESCTRL,
    RESOURCE_STATUS,
    RUNS_ANNOTATION,
)
from koordpolicy.model.time import NANOSECONDS, parse_time
from koordpolicy.runtime.policies.pack_cache import pack_remembering

API = "apiVersion: koordpolicy.io/v1alpha1\n"
BUNDLE = f"{API}kind: PolicyBundle\nmetadata: {{name: ours}}\nspec: {{extends: [koordinator]}}\n"
NOW = parse_time("2026-01-01T00:00:30Z")
REPORTED = "2026-01-01T00:00:29Z"

BURST = f"{API}kind: CPUBurst\nmetadata: {{name: mine}}\nspec: {{policy: auto}}\n"
BY_IDENTITY = f"""{API}kind: Isolation
metadata: {{name: be}}
spec: {{group: BE, cpu: {{enabled: true, identity: -1, idle: true}}}}
---
{API}kind: Isolation
metadata: {{name: ls}}
spec: {{group: LS, cpu: {{enabled: true, identity: 2}}}}
"""
BY_CORES = f"""{BY_IDENTITY.replace("identity: 2", "identity: 2, expels: true")}---
{API}kind: SystemTuning
metadata: {{name: cores}}
spec: {{cpuMechanism: coreSched}}
"""
SLOWED = f"""{API}kind: Isolation
metadata: {{name: ls}}
spec: {{group: LS, memory: {{enabled: true, throttling: 50%}}}}
"""
SHARED = f"""{API}kind: Isolation
metadata: {{name: be}}
spec:
  group: BE
  cache: {{enabled: true, start: 0%, end: 30%, bandwidth: 40%}}
  disk: {{enabled: true}}
  blocks: [{{name: vdb, type: device, readIOPS: 100}}]
  network: {{enabled: true, egress: {{limit: 20%}}}}
---
{API}kind: SystemTuning
metadata: {{name: net}}
spec: {{networkBandwidth: 10G}}
"""
SUFFERS = f"""{API}kind: Interference
metadata: {{name: slow-web}}
spec:
  when: {{cel: "pod.qos == 'LS' && pod.?pressure.cpu.some.orValue(0.0) > 20.0"}}
  reaction: SuppressBestEffort
  share: 15%
"""
EVICTIONS = f"""{API}kind: MemoryEviction
metadata: {{name: mine}}
spec: {{enabled: true, threshold: 70%, lower: 60%, bestEffort: {{enabled: true}}}}
"""
SPEED = "node.koordinator.sh/cpu-normalization-ratio"


@cache
def graph(*own: str) -> RuleGraph:
    files = {"koordpolicy.yaml": BUNDLE, **{f"own{at}.yaml": text for at, text in enumerate(own)}}
    compilation = pack_remembering().compile(Layer("bundle", files))
    assert compilation.graph is not None, compilation.found
    return compilation.graph


def pod(name: str, qos: str, amounts: dict[str, str], node: str = "a", **annotations: str) -> dict[str, Any]:
    labels = {"koordinator.sh/qosClass": qos} if qos else {}
    least = {key: "1" if key == "cpu" else "1Gi" for key in amounts} if qos == "LS" else amounts
    container = {"name": "main", "resources": {"requests": least, "limits": amounts}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


WEB = pod("web", "LS", {"cpu": "4", "memory": "4Gi"})
JOB = pod("job", "BE", {BATCH_CPU: "2000", BATCH_MEMORY: "1Gi"})


def cluster(
    *pods: dict[str, Any], cpu: str = "6", memory: str = "6Gi", labels: Any = None, **annotations: str
) -> Snapshot:
    amounts = {"cpu": "10", "memory": "10Gi", BATCH_CPU: "8000", BATCH_MEMORY: "8Gi"}
    told = [
        {"namespace": "default", "name": name, "podUsage": {"resources": {"cpu": used, "memory": held}}}
        for name, used, held in (("web", "3", "3Gi"), ("job", "1500m", "1Gi"))
    ]
    report = {
        "metadata": {"name": "a", "annotations": annotations},
        "status": {
            "updateTime": REPORTED,
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}},
            "podsMetric": told,
            "bestEffort": {"allowed": {"cpu": "2500m"}},
        },
    }
    node = {
        "metadata": {"name": "a", "annotations": labels or {}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    return Snapshot(NOW, {"nodes": [node], "pods": list(pods), "nodemetrics.slo.koordinator.sh": [report]})


def explained(picture: Snapshot, name: str, *own: str) -> tuple[ExplainedHolds, RuleGraph]:
    policies = Policies(graph(*own), "ours", "r", None, "")
    at = policies.graph.at(Timestamp(picture.taken))
    found = holds_of_picture(policies, at, picture, SnapshotFacts(picture), pod_named(picture, name))
    return found, at


def told(picture: Snapshot, name: str, *own: str) -> dict[str, dict[str, Any]]:
    """Each hold by its title, as JSON values."""
    found = plain_holds(*explained(picture, name, *own))
    json.dumps(found)
    return {one["title"]: one for one in (*found["holds"], *found["evictions"])}


def lines(one: dict[str, Any]) -> dict[str, str]:
    """The decisions behind a hold, with the file of the first rule."""
    return {answer["decision"]: answer["rules"][0]["file"] for answer in one["answers"]}


def test_suppression_holds_best_effort_work_and_nobody_else() -> None:
    picture = cluster(WEB, JOB)
    found = told(picture, "job")["CPU suppression"]
    # 65% of 10 cores, without the 3 of the service and the 1.5 that no pod has.
    assert (found["state"], found["answers"][0]["value"]) == ("holds", 2)
    assert "may use 2 cores of 10 cores, by a set of CPUs" in found["says"]
    assert lines(found)["CPUSuppress.target"].endswith("agent/cpu-suppress.yaml")
    assert {fact["fact"] for fact in found["answers"][0]["facts"]} > {"node.capacity.cpu"}
    other = told(picture, "web")["CPU suppression"]
    assert other["state"] == "spares"
    assert other["says"].startswith("It is no best-effort pod")


def test_where_suppression_is_off_or_nobody_measures_that_is_said() -> None:
    off = f"{API}kind: CPUSuppress\nmetadata: {{name: off}}\nspec: {{enabled: false}}\n"
    found = told(cluster(JOB), "job", off)["CPU suppression"]
    assert (found["state"], lines(found)["CPUSuppress.enabled"]) == ("spares", "own0.yaml")
    assert "suppression is not enabled" in found["says"]
    silent = Snapshot(NOW, {**cluster(JOB).objects, "nodemetrics.slo.koordinator.sh": []})
    long_ago = replace(cluster(JOB), taken=NOW + 600 * NANOSECONDS)
    for picture in (silent, long_ago):
        found = told(picture, "job")["CPU suppression"]
        assert found["state"] == "may"
        assert "not measured lately" in found["says"]
    # Agents measure each second what they report once a minute.
    reported = replace(cluster(JOB), taken=NOW + 59 * NANOSECONDS)
    assert told(reported, "job")["CPU suppression"]["state"] == "holds"


def test_a_quota_is_told_with_whoever_sets_it() -> None:
    found = told(cluster(WEB, JOB), "job")["Quota"]
    assert (found["state"], found["says"]) == ("holds", "`main` has 2 cores by `batch-resources`.")
    assert lines(found)["ContainerHook/batch-resources.container.cpuLimit"].endswith(
        "agent/batch-containers.yaml"
    )
    found = told(cluster(WEB), "web")["Quota"]
    assert (found["state"], found["says"]) == ("holds", "`main` has 4 cores, its limit, from the kubelet.")
    assert found["answers"] == []
    faster = cluster(WEB, labels={SPEED: "1.25"})
    found = told(faster, "web")["Quota"]
    assert found["says"] == "`main` has 3.2 cores by `cpu-normalization`."
    assert "ContainerHook/cpu-normalization.container.cpuLimit" in lines(found)
    free = pod("free", "", {})
    assert told(cluster(free), "free")["Quota"]["state"] == "spares"


def test_own_cpus_are_told_by_number() -> None:
    owner = pod("owner", "LSR", {"cpu": "2", "memory": "1Gi"}, **{RESOURCE_STATUS: '{"cpuset": "2-3"}'})
    found = told(cluster(owner), "owner")
    assert (found["CPU set"]["state"], found["CPU set"]["says"]) == (
        "holds",
        "`main` runs on CPUs 2-3, its own.",
    )
    assert found["Quota"]["says"] == "`main` has no quota by `cpuset`."
    assert lines(found["CPU set"])["ContainerHook/cpus.container.cpus"].endswith("agent/container-cpus.yaml")
    shared = told(cluster(WEB, JOB), "web")["CPU set"]
    assert (shared["state"], "the CPUs that pods share" in shared["says"]) == ("holds", True)
    assert told(cluster(WEB, JOB), "job")["CPU set"]["state"] == "spares"


def test_bursts_give_way_as_far_as_the_node_has_room() -> None:
    assert told(cluster(WEB), "web")["CPU burst"]["state"] == "off"
    found = told(cluster(WEB, cpu="3"), "web", BURST)["CPU burst"]
    assert found["state"] == "spares"
    assert "quota grows up to 300% of its limit" in found["says"]
    assert "have room" in found["says"]
    assert lines(found)["CPUBurst.policy"] == "own0.yaml"
    busy = told(cluster(WEB, cpu="9"), "web", BURST)["CPU burst"]
    assert (busy["state"], "quotas shrink back" in busy["says"]) == ("holds", True)
    job = told(cluster(JOB), "job", BURST)["CPU burst"]
    assert (job["state"], "may not burst" in job["says"]) == ("off", True)
    assert "CPUBurst.eligible" in lines(job)
    own = pod("web", "LS", {"cpu": "4"}, **{CPU_BURST: '{"policy": "none"}'})
    said = told(cluster(own), "web", BURST)["CPU burst"]
    assert (said["state"], said["own"]) == ("off", CPU_BURST)


def test_turns_on_cpus_by_identity_idle_groups_and_cores() -> None:
    found = told(cluster(WEB, JOB), "job", BY_IDENTITY)["Turns on CPUs"]
    assert found["state"] == "holds"
    assert "group identity is -1" in found["says"]
    assert "cpu.idle" in found["says"]
    assert lines(found)["Isolation/BE.cpu.identity"] == "own0.yaml"
    web = told(cluster(WEB, JOB), "web", BY_IDENTITY)["Turns on CPUs"]
    assert (web["state"], "before those of all others" in web["says"]) == ("spares", True)
    assert told(cluster(WEB), "web")["Turns on CPUs"]["state"] == "off"
    cores = told(cluster(WEB, JOB), "job", BY_CORES)["Turns on CPUs"]
    assert "Pods of class LS keep it off the sibling CPUs" in cores["says"]
    assert "group identity" not in cores["says"]
    assert {"SystemTuning.cpuMechanism", "Isolation/LS.cpu.expels"} < lines(cores).keys()
    odd = pod("web", "LS", {"cpu": "4"}, **{CPU_QOS: '{"enable": true, "groupIdentity": 7}'})
    wrong = told(cluster(odd), "web", BY_IDENTITY)["Turns on CPUs"]
    assert (wrong["state"], "7 is outside -1 to 2" in wrong["says"]) == ("unknown", True)


def test_memory_slows_a_container_down_from_a_mark_on() -> None:
    found = told(cluster(WEB), "web", SLOWED)["Memory"]
    # Half way from the request of 1Gi to the limit of 4Gi; 3Gi are used.
    assert (found["state"], "`main` from 2560Mi on" in found["says"]) == ("holds", True)
    assert lines(found)["Isolation/LS.memory.throttling"] == "own0.yaml"
    own = pod("web", "LS", {"cpu": "4", "memory": "4Gi"}, **{MEMORY_QOS: '{"throttlingPercent": 90}'})
    said = told(cluster(own), "web", SLOWED)["Memory"]
    assert (said["state"], said["own"]) == ("spares", MEMORY_QOS)
    assert told(cluster(WEB), "web")["Memory"]["state"] == "off"


def test_caches_disks_and_the_network() -> None:
    found = told(cluster(WEB, JOB), "job", SHARED)
    assert {found[title]["state"] for title in ("Caches and memory bandwidth", "Disks", "Network")} == {
        "holds"
    }
    assert "from 0% to 30% and 40% of the bandwidth" in found["Caches and memory bandwidth"]["says"]
    (blocks,) = found["Disks"]["settings"]
    assert (blocks["decision"], blocks["file"], blocks["line"]) == ("Isolation/BE.blocks", "own0.yaml", 8)
    assert "`vdb`" in found["Disks"]["says"]
    assert "All pods of its class (BE) may send 2,000 Mbit/s at most" in found["Network"]["says"]
    web = told(cluster(WEB, JOB), "web", SHARED)
    assert [web[title]["state"] for title in ("Disks", "Network")] == ["off", "spares"]
    own = {
        RESCTRL: '{"llc": {}}',
        BLKIO_QOS: '{"blocks": [{"name": "vdc", "ioCfg": {"readIOPS": 5}}]}',
        NETWORK_QOS: '{"egressLimit": "100M"}',
    }
    mine = told(cluster(pod("web", "LS", {"cpu": "4"}, **own)), "web", SHARED)
    titles = ("Caches and memory bandwidth", "Disks", "Network")
    assert [(mine[title]["state"], mine[title]["own"]) for title in titles] == [
        ("holds", name) for name in own
    ]
    nothing = told(cluster(JOB), "job")
    assert [nothing[title]["state"] for title in titles] == ["off"] * 3


def test_others_that_suffer_take_from_best_effort_work() -> None:
    found = told(cluster(WEB, JOB), "job", SUFFERS)["Others that suffer"]
    assert (found["state"], "15% of the node's CPU less" in found["says"]) == ("may", True)
    assert lines(found)["Interference/slow-web.reaction"] == "own0.yaml"
    assert told(cluster(WEB, JOB), "web", SUFFERS)["Others that suffer"]["state"] == "spares"
    assert told(cluster(JOB), "job")["Others that suffer"]["state"] == "off"


def test_who_may_be_let_go_and_in_which_turn() -> None:
    others = [pod(f"job{at}", "BE", {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"}) for at in range(2)]
    calm = told(cluster(WEB, JOB, *others), "job", EVICTIONS)["BEMemoryEvict"]
    assert calm["state"] == "may"
    assert "of 3" in calm["says"]
    assert "not so now, 60% by the last report" in calm["says"]
    assert lines(calm)["MemoryEviction.threshold"] == "own0.yaml"
    short = told(cluster(WEB, JOB, memory="9Gi"), "job", EVICTIONS)["BEMemoryEvict"]
    assert (short["state"], "it goes, as the only one" in short["says"]) == ("holds", True)
    web = told(cluster(WEB, JOB, memory="9Gi"), "web", EVICTIONS)
    assert web["BEMemoryEvict"]["state"] == "spares"
    assert web["CPUAllocatableEvict"]["state"] == "off"


def test_what_is_known_of_the_agent() -> None:
    picture = cluster(WEB, JOB)
    agent = plain_holds(*explained(picture, "job"))["agent"]
    assert (agent["revision"], agent["reportAgeSeconds"], agent["bestEffortAllowed"]) == (None, 1.0, 2500)
    assert (agent["used"], agent["bestEffortUsed"]) == (1500, 1500)
    runs = {"revision": "b" * 40, "digest": graph().digest}
    same = cluster(
        JOB, **{RUNS_ANNOTATION: json.dumps(runs), DRY_RUN_ANNOTATION: json.dumps({"revision": "draft"})}
    )
    agent = plain_holds(*explained(same, "job"))["agent"]
    assert (agent["same"], agent["dryRun"]) == (True, "draft")
    other = cluster(JOB, **{RUNS_ANNOTATION: json.dumps({"revision": "c" * 40, "digest": "1"})})
    page = "\n".join(hold_lines(*explained(other, "job"), Page(200)))
    assert f"Its agent decides by {'c' * 40}; what answers here may be another revision." in page
    assert "CPU suppression: By the last report all best-effort pods of the node together may use" in page
    assert "agent/cpu-suppress.yaml:" in page
    assert "Nobody asks for: " in page


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (pod("p", "BE", {}, node=""), "is on no node"),
        (pod("p", "BE", {}, node="lost"), "`lost`, the node of `default/p`, is not there"),
        ({**pod("p", "BE", {}), "status": {"phase": "Succeeded"}}, "has ended"),
    ],
)
def test_a_pod_that_nothing_can_hold(one: dict[str, Any], said: str) -> None:
    with pytest.raises(CannotRunError, match=said):
        explained(cluster(one), "p")
