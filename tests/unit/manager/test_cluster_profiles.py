"""ClusterColocationProfile objects beside policies: which apply, in which order, and who is asked about."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.memory import Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES as PROFILES
from koordpolicy.kube.resources import PODS
from koordpolicy.manager.webhooks.cluster_profiles import BothProfiles, ClusterProfiles
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.pods import PodMutation
from koordpolicy.manager.webhooks.profiles import Profiles
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.reading import ObjectError
from tests.unit.manager.clusters import SmallCluster
from tests.unit.manager.test_profiles import LABELS, SELECTORS, holds
from tests.vectors.policies import document, graph


def profile(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def pod(**labels: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": containers}}


def labels_of(cluster: SmallCluster, **labels: str) -> dict[str, str]:
    """The labels of a pod that is created."""
    made = cluster.create(PODS, pod(**labels))
    cluster.store.delete(PODS, "p", namespace="default", grace_seconds=0)
    return dict(made["metadata"].get("labels", {}))


def policy(name: str, **spec: Any) -> dict[str, Any]:
    match = {"pods": {"matchLabels": {"app": "spark"}}}
    return document("ColocationProfile", name, {"match": match, **spec})


SPARK: Any = {"matchLabels": {"app": "spark"}}


def test_policies_and_objects_apply_in_one_order_of_names() -> None:
    cluster = SmallCluster(
        graph(policy("b", labels={"by": "b", "b": ""}), policy("d", labelSuffixes={"by": "-d"}))
    )
    for name in ("a", "c", "e"):
        cluster.create(PROFILES, profile(name, selector=SPARK, labelSuffixes={"by": f"-{name}"}))
    assert labels_of(cluster, app="spark", by="x") == {"app": "spark", "by": "b-c-d-e", "b": ""}
    assert labels_of(cluster, app="flink", by="x") == {"app": "flink", "by": "x"}


def test_a_policy_takes_the_place_of_the_object_of_its_name() -> None:
    cluster = SmallCluster(graph(policy("batch", labels={"from": "policy"}), policy("off", enabled=False)))
    for name in ("batch", "off"):
        cluster.create(PROFILES, profile(name, selector=SPARK, labels={"from": "object", name: ""}))
    assert labels_of(cluster, app="spark") == {"app": "spark", "from": "policy"}


def test_objects_are_followed() -> None:
    cluster = SmallCluster(graph())
    assert labels_of(cluster) == {}
    cluster.create(PROFILES, profile("a", labels={"a": "1"}))
    assert labels_of(cluster) == {"a": "1"}
    cluster.store.patch(PROFILES, "a", MergePatch({"spec": {"selector": SPARK, "labels": {"a": "2"}}}))
    assert labels_of(cluster) == {}
    assert labels_of(cluster, app="spark") == {"app": "spark", "a": "2"}
    cluster.store.delete(PROFILES, "a")
    assert labels_of(cluster, app="spark") == {"app": "spark"}


def test_resources_are_renamed_as_the_object_says() -> None:
    cluster = SmallCluster(graph())
    batch = {
        "selector": SPARK,
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "koordinatorPriority": 7,
    }
    cluster.create(PROFILES, profile("batch", **batch))
    made = cluster.create(PODS, pod(app="spark"))
    assert made["metadata"]["labels"] == {
        "app": "spark", "koordinator.sh/qosClass": "BE", "koordinator.sh/priority": "7",
    }  # fmt: skip
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"kubernetes.io/batch-cpu": "1k"}
    cluster.store.delete(PODS, "p", namespace="default", grace_seconds=0)
    skip = {"metadata": {"annotations": {"config.koordinator.sh/skip-update-resources": ""}}}
    cluster.store.patch(PROFILES, "batch", MergePatch(skip))
    made = cluster.create(PODS, pod(app="spark"))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"probability": "half"}, "profile `ClusterColocationProfile/a`: `half` is no percentage"),
        ({"probability": "50"}, "`50` is no percentage"),
        ({"priorityClassName": "none"}, "there is no PriorityClass `none`"),
        ({"labels": ["x"]}, "spec.labels: expected a mapping"),
    ],
)
def test_what_cannot_be_applied_fails_the_request(spec: dict[str, Any], problem: str) -> None:
    cluster = SmallCluster(graph())
    cluster.create(PROFILES, profile("a", **spec))
    with pytest.raises(KubeError, match="profile `ClusterColocationProfile/a`") as refusal:
        cluster.create(PODS, pod())
    assert problem in refusal.value.message


@pytest.mark.parametrize(("said", "draw", "taken"), [
    (None, 99.0, True), (0, 0.0, False), ("50%", 50.0, True), ("50%", 51.0, False), (-5, 0.0, False), (250, 99.0, True),
])  # fmt: skip
def test_shares_of_pods(said: Any, draw: float, *, taken: bool) -> None:
    cluster = SmallCluster(graph(), draw)
    cluster.create(
        PROFILES, profile("a", labels={"a": ""}, **({} if said is None else {"probability": said}))
    )
    assert ("a" in labels_of(cluster)) == taken


def test_a_selector_that_makes_no_sense_matches_all() -> None:
    cluster = SmallCluster(graph())
    broken = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}
    cluster.create(PROFILES, profile("a", selector=broken, labels={"a": ""}))
    assert labels_of(cluster) == {"a": ""}


@given(st.lists(st.tuples(st.none() | SELECTORS, st.none() | SELECTORS), max_size=6), LABELS, LABELS)
def test_the_index_finds_all_that_match(
    selectors: list[tuple[Any, Any]], labels: dict[str, str], namespace: dict[str, str]
) -> None:
    objects = [
        profile(
            f"p{at}",
            **{
                key: one
                for key, one in (("selector", pods), ("namespaceSelector", namespaces))
                if one is not None
            },
        )
        for at, (pods, namespaces) in enumerate(selectors)
    ]
    compiled = graph()
    known = BothProfiles(Profiles(compiled), ClusterProfiles(FixedObjects({PROFILES: objects})))
    roots = {"pod": {"labels": labels}, "namespaceObject": {"labels": namespace}}
    found = [
        one.name for one in known.candidates(roots) if one.name.startswith("Cluster") and one.matches(roots)
    ]
    assert found == [
        f"ClusterColocationProfile/p{at}"
        for at, (pods, namespaces) in enumerate(selectors)
        if holds(pods or {}, labels) and holds(namespaces or {}, namespace)
    ]


def test_api_servers_ask_about_pods_that_objects_select() -> None:
    compiled = graph(
        policy("own", labels={"a": ""}), document("DeviceSharing", "gpu", {"requests": {"enabled": False}})
    )
    store = Store(lambda: 0)
    (mutating,) = [one for one in WEBHOOKS if one.name == "mutate-pod"]
    here = mutating.here(WebhookContext(lambda: compiled, store, lambda: 0, lambda: 50.0))
    before = here.scope(compiled)
    assert before is not None
    assert "flink" not in before.condition
    store.create(PROFILES, profile("other", selector={"matchLabels": {"app": "flink"}}))
    store.create(PROFILES, profile("own", selector={"matchLabels": {"app": "ours"}}))
    after = here.scope(compiled)
    assert after is not None
    assert "flink" in after.condition
    assert "ours" not in after.condition  # the policy of that name decides
    assert after.fail_open is False
    store.create(PROFILES, profile("any"))
    widest = here.scope(compiled)
    assert widest is not None
    assert (widest.condition, widest.objects) == ("", ())


@pytest.mark.parametrize(
    ("profiles", "containers", "admitted"), [(50, 1000, True), (120, 1000, False), (120, 1, True)]
)
def test_what_profiles_cost_together_ends(profiles: int, containers: int, admitted: bool) -> None:
    """Each of them may look at every container of the pod, and other reviews wait for it."""
    patch = {"spec": {"containers": [{"name": "c0", "image": "other"}]}}
    objects = [profile(f"p{number}", selector=SPARK, patch=patch) for number in range(profiles)]
    compiled = graph()
    context = WebhookContext(lambda: compiled, FixedObjects({PROFILES: objects}), lambda: 0, lambda: 0.0)
    large = pod(app="spark")
    large["spec"]["containers"] = [{"name": f"c{number}", "image": "i"} for number in range(containers)]
    request = AdmissionRequest(Operation.CREATE, PODS, "", "default", "p", large, None)
    if admitted:
        assert PodMutation(context).answer(request) is not None
        return
    with pytest.raises(ObjectError, match="more than 97 profiles select this pod"):
        PodMutation(context).answer(request)
    spec = {"extends": ["koordinator"], "budgets": {"containersPerReview": 1_000_000}}
    generous = graph(document("PolicyBundle", "ours", spec))
    assert PodMutation(replace(context, policies=lambda: generous)).answer(request) is not None
