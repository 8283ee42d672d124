"""ClusterColocationProfile objects and pods that exist, on the in-memory cluster: which are written, once, and how fast."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from koordpolicy.kube.errors import Conflict, KubeError, NotFound, Rejected
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, NAMESPACES, NODES, PODS, Resource
from koordpolicy.manager.controllers.profile_reconciliation import (
    PatchClock,
    PodProfilePlan,
    ProfileReconciler,
)
from koordpolicy.manager.serving import MirroredObjects
from koordpolicy.model.reading import ObjectError
from tests.hostile.objects import each_spoiled
from tests.unit.manager.clusters import START
from tests.vectors.policies import document, graph

FOLLOWED = {"enabled": True, "burst": 2, "mostPerSecond": 4}
WEB = {"selector": {"matchLabels": {"app": "web"}}, "labels": {"tier": "front"}}


class Site:
    """Two namespaces on a clock that stands, and the controller beside them; a wait moves the clock."""

    def __init__(self, policy: Mapping[str, Any] | None = None, *policies: Any) -> None:
        self.graph = graph(document("ProfileReconciliation", "own", dict(policy or FOLLOWED)), *policies)
        self.seconds = 100.0
        self.waits: list[float] = []
        self.plans: list[PodProfilePlan] = []
        self.store = Store(lambda: START)
        for name in ("shop", "lab"):
            self.store.create(NAMESPACES, {"metadata": {"name": name, "labels": {"team": name}}})
        self.controller = self.reconciler()

    def reconciler(self) -> ProfileReconciler:
        return ProfileReconciler(
            lambda: self.graph,
            self.store,
            PatchClock(lambda: START * 10**9, lambda: self.seconds, self._sleep),
            lambda _, plan: self.plans.append(plan),
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def profile(self, name: str = "web", spec: Mapping[str, Any] = WEB, **metadata: Any) -> Object:
        body = {"metadata": {"name": name, **metadata}, "spec": dict(spec)}
        return self.store.create(CLUSTER_COLOCATION_PROFILES, body)

    def pod(self, name: str = "p", namespace: str = "shop", node: str = "", **metadata: Any) -> Object:
        spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
        body = {"metadata": {"name": name, "labels": {"app": "web"}, **metadata}, "spec": spec}
        return self.store.create(PODS, body, namespace=namespace)

    def metadata(self, name: str = "p", namespace: str = "shop") -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.store.get(PODS, name, namespace=namespace)["metadata"]
        return found

    def round(self, cluster: MemoryCluster | None = None) -> list[str]:
        """The pods that were written."""
        server = cluster or MemoryCluster(self.store)
        return [
            key[1] for key in self.controller.waiting() if asyncio.run(self.controller.reconcile(server, key))
        ]

    @property
    def problems(self) -> str:
        return "; ".join(problem for plan in self.plans for problem in plan.problems)


class Unwilling(MemoryCluster):
    """Answers each patch with an error."""

    def __init__(self, store: Store, error: KubeError) -> None:
        super().__init__(store)
        self.error = error

    async def patch(self, *_: Any, **__: Any) -> Any:
        raise self.error


EVERYTHING = {
    "selector": {"matchLabels": {"app": "web"}},
    "labels": {"tier": "front"},
    "annotations": {"note": "kept"},
    "labelKeysMapping": {"app": "copied"},
    "annotationKeysMapping": {"missing": "empty"},
    "labelSuffixes": {"app": "-x", "tier": "-y"},
    "qosClass": "BE",
    "koordinatorPriority": 7,
    "priorityClassName": "nobody-has-it",
    "schedulerName": "koord-scheduler",
    "patch": {
        "metadata": {"labels": {"patched": "yes"}, "annotations": {"gone": None}},
        "spec": {"schedulerName": "other"},
    },
}


def test_a_pod_gets_labels_and_annotations_once_and_keeps_the_rest() -> None:
    site = Site()
    site.pod(annotations={"gone": "soon", "own": "stays"})
    before = site.store.get(PODS, "p", namespace="shop")
    site.profile(spec=EVERYTHING)
    assert site.round() == ["p"]
    after = site.store.get(PODS, "p", namespace="shop")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == {
        "app": "web-x",
        "tier": "front-y",
        "copied": "web",
        "patched": "yes",
        "koordinator.sh/qosClass": "BE",
        "koordinator.sh/priority": "7",
    }
    assert after["metadata"]["annotations"] == {"own": "stays", "note": "kept", "empty": ""}
    assert site.problems == ""
    version = after["metadata"]["resourceVersion"]
    assert site.round() == []
    assert site.metadata()["resourceVersion"] == version


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"labelSuffixes": {"app": "-x"}}, {"labelSuffixes": {"app": "-y"}}),
        ({"labelSuffixes": {"kind": "-x"}, "labelKeysMapping": {"kind": "copied"}}, {"labels": {"z": "1"}}),
        ({"labels": {"z": "1"}}, {"labels": {"z": "2"}, "labelSuffixes": {"z": "-x"}}),
    ],
)
def test_no_round_writes_twice_though_another_manager_takes_over(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    site = Site()
    anyone = {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    site.pod(labels={"app": "web", "kind": "big"})
    site.profile("a", {**anyone, **first})
    site.profile("b", {**anyone, **second})
    assert site.round() == ["p"]
    once = site.metadata()["labels"]
    for _ in range(3):
        site.controller = site.reconciler()
        assert site.round() == []
    assert site.metadata()["labels"] == once


OTHERS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "another label": ({}, {"selector": {"matchLabels": {"app": "db"}}, "labels": {"tier": "front"}}),
    "no selector": ({}, {"labels": {"tier": "front"}}),
    "another namespace": ({}, {**WEB, "namespaceSelector": {"matchLabels": {"team": "lab"}}}),
    "a selector that makes no sense": ({}, {**WEB, "selector": {"matchExpressions": [{"operator": "Near"}]}}),
    "namespaces that make no sense": ({}, {**WEB, "namespaceSelector": {"matchLabels": 3}}),
    "a node": ({"node": "n"}, WEB),
    "no share": ({}, {**WEB, "probability": 0}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_others_are_left_alone(case: str) -> None:
    site = Site()
    pod, profile = OTHERS[case]
    site.store.create(NODES, {"metadata": {"name": "n"}})
    site.pod(**pod)
    site.profile(spec=profile)
    assert site.round() == []


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_pods_that_run_or_have_ended_are_left_alone(phase: str) -> None:
    site = Site()
    site.pod()
    site.profile()
    status = MergePatch({"status": {"phase": phase}})
    site.store.patch(PODS, "p", status, namespace="shop", subresource="status")
    assert site.controller.waiting() == []
    assert not asyncio.run(site.controller.reconcile(MemoryCluster(site.store), ("shop", "p")))


def test_pods_of_the_namespaces_that_are_selected_alone() -> None:
    site = Site()
    site.pod("here", "lab")
    site.pod("there", "shop")
    site.profile(spec={**WEB, "namespaceSelector": {"matchLabels": {"team": "lab"}}})
    assert site.round() == ["here"]


def test_policy_says_which_and_takes_the_place_of_its_namesake() -> None:
    eligible = "colocationProfile.labels[?'follow'].orValue('') == 'yes' && pod.name != 'fixed'"
    own = document("ColocationProfile", "replaced", {"enabled": False})
    site = Site({"enabled": {"cel": eligible}}, own)
    site.pod()
    site.pod("fixed")
    site.profile("followed", labels={"follow": "yes"})
    site.profile("other", {**WEB, "labels": {"tier": "other"}})
    site.profile("replaced", {**WEB, "labels": {"tier": "replaced"}}, labels={"follow": "yes"})
    assert site.round() == ["p"]
    assert site.metadata()["labels"]["tier"] == "front"


def test_nothing_is_written_unless_policy_wants_it() -> None:
    site = Site()
    site.graph = graph()
    site.pod()
    site.profile(labels={"config.koordinator.sh/controller-managed": "true"})
    assert site.round() == []


def test_what_others_undo_comes_back_after_a_while_and_at_once_with_another_profile() -> None:
    site = Site({**FOLLOWED, "againAfter": "5m"})
    site.pod()
    site.profile()
    assert site.round() == ["p"]
    undo = MergePatch({"metadata": {"labels": {"tier": None}}})
    site.store.patch(PODS, "p", undo, namespace="shop")
    site.seconds += 299
    assert site.round() == []
    site.seconds += 1
    assert site.round() == ["p"]
    site.store.patch(CLUSTER_COLOCATION_PROFILES, "web", MergePatch({"spec": {"labels": {"tier": "back"}}}))
    assert site.round() == ["p"]
    assert site.metadata()["labels"]["tier"] == "back"


def test_no_more_are_written_in_a_second_than_policy_says() -> None:
    site = Site()
    site.profile()
    for at in range(10):
        site.pod(f"p{at}")
    began = site.seconds
    assert len(site.round()) == 10
    assert site.waits == [0.0, 0.0, *[0.25] * 8]
    assert site.seconds - began == 2.0
    site.seconds += 3600
    for at in range(3):
        site.pod(f"q{at}")
    assert len(site.round()) == 3
    assert site.waits[10:] == [0.0, 0.0, 0.25], "a rest is worth a burst, no more"


def test_pods_that_need_nothing_cost_no_turn() -> None:
    site = Site()
    site.profile()
    for at in range(10):
        site.pod(f"p{at}", labels={"app": "web", "tier": "front"})
    assert site.round() == []
    assert site.waits == []


def test_a_share_is_drawn_once() -> None:
    site = Site({**FOLLOWED, "againAfter": "0s", "burst": 1000})
    site.profile(spec={**WEB, "probability": "30%"})
    for at in range(60):
        site.pod(f"p{at}", uid=f"uid-{at}")
    first = site.round()
    assert 0 < len(first) < 60
    assert site.round() == []
    site.controller = site.reconciler()
    assert site.round() == []


def test_a_pod_that_changed_meanwhile_is_looked_at_again() -> None:
    site = Site()
    site.pod()
    site.profile()
    old = FixedObjects(
        {one: list(site.store.every(one)) for one in (PODS, NAMESPACES, CLUSTER_COLOCATION_PROFILES)}
    )
    late = ProfileReconciler(lambda: site.graph, old, PatchClock(lambda: 0, lambda: 0.0))
    site.store.patch(PODS, "p", MergePatch({"metadata": {"labels": {"app": "db"}}}), namespace="shop")
    with pytest.raises(Conflict):
        asyncio.run(late.reconcile(MemoryCluster(site.store), ("shop", "p")))
    assert site.round() == [], "it is another pod now"
    site.store.delete(PODS, "p", namespace="shop")
    assert not asyncio.run(late.reconcile(MemoryCluster(site.store), ("shop", "p")))


def test_errors_of_the_server() -> None:
    site = Site()
    site.pod()
    site.profile()
    assert site.round(Unwilling(site.store, NotFound("gone"))) == []
    with pytest.raises(Conflict):
        site.round(Unwilling(site.store, Conflict("changed")))
    with pytest.raises(Rejected):
        site.round(Unwilling(site.store, Rejected("an admission rule says no")))
    assert site.round() == [], "what was refused is not asked for again at once"
    site.seconds += 300
    assert site.round() == ["p"]


BROKEN: dict[str, tuple[Mapping[str, Any], str]] = {
    "share": ({"probability": "many"}, "`many` is no percentage"),
    "labels": ({"labels": {"a": 3}}, "spec.labels"),
    "patch": ({"patch": {"metadata": {"labels": "none"}}}, "labels"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_profile_that_cannot_be_followed_is_told_of_and_others_hold(case: str) -> None:
    more, words = BROKEN[case]
    site = Site()
    site.pod()
    site.profile("broken", {**WEB, "labels": {"broken": "1"}, **more})
    site.profile("whole")
    assert site.round() == ["p"]
    assert words in site.problems
    assert site.metadata()["labels"] == {"app": "web", "tier": "front"}


def test_a_condition_that_fails_is_told_of() -> None:
    site = Site({"enabled": {"cel": "colocationProfile.labels['missing'] == 'x'"}})
    site.pod()
    site.profile()
    assert site.round() == []
    assert "missing" in site.problems


def test_what_was_done_for_pods_that_are_gone_is_forgotten() -> None:
    site = Site({**FOLLOWED, "burst": 100})
    site.profile()
    for at in range(20):
        site.pod(f"p{at}")
    assert len(site.round()) == 20
    assert len(site.controller._done) == 20
    for at in range(20):
        site.store.delete(PODS, f"p{at}", namespace="shop")
    assert site.controller.waiting() == []
    assert site.controller._done == {}


@pytest.mark.parametrize("resource", [CLUSTER_COLOCATION_PROFILES, PODS], ids=str)
def test_whatever_a_profile_or_a_pod_holds_costs_no_more_than_itself(resource: Resource) -> None:
    site = Site()
    site.profile(spec=EVERYTHING)
    site.pod()
    real = {
        one: json.loads(json.dumps(next(iter(site.store.every(one)))))
        for one in (CLUSTER_COLOCATION_PROFILES, PODS)
    }
    namespaces = Mirror()
    namespaces.replace(tuple(site.store.every(NAMESPACES)), "1")
    outcomes = set()
    for number, (_, obj) in enumerate(each_spoiled(real[resource])):
        mirrors = {NAMESPACES: namespaces, CLUSTER_COLOCATION_PROFILES: Mirror(), PODS: Mirror()}
        controller = ProfileReconciler(
            lambda: site.graph, MirroredObjects(mirrors), PatchClock(lambda: 0, lambda: 0.0)
        )
        for one, whole in real.items():
            mirrors[one].replace([obj if one is resource else whole], str(number))
        controller.waiting()
        try:
            plan = controller.plan(("shop", "p"))
        except ObjectError:
            outcomes.add("malformed")
            continue
        outcomes.add("none" if plan is None else "told" if plan.problems else "written")
        json.dumps(plan and plan.patch)
    assert {"none", "written"} < outcomes
