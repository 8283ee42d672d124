"""Strategies that look at pods beside each other, and at pods that have ended: who goes, and who stays."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.algorithms.descheduling.uneven_spread import uneven_pods
from koordpolicy.model.time import NANOSECONDS, time_text
from tests.unit.descheduler.clusters import NOW, node, objects, one_round, pod, policies


def moved(graph: Any, nodes: Any, pods: Any) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in one_round(graph, objects(nodes, pods)).moves]


def on(name: str, strategy: Any = None, **parameters: Any) -> Any:
    said = {key: {"value": value} for key, value in parameters.items()}
    return policies({"name": name, "enabled": True, **(strategy or {})}, parameters=said)


def zoned(name: str, zone: str, **spec: Any) -> Any:
    made = node(name, **spec)
    made["metadata"]["labels"]["zone"] = zone
    return made


def spec(made: Any, **said: Any) -> Any:
    return {**made, "spec": {**made["spec"], **said}}


def labelled(name: str, on: str, app: str = "web", **said: Any) -> Any:
    return spec(pod(name, on, labels={"app": app}), **said)


def image(made: Any, name: str) -> Any:
    return spec(made, containers=[{**made["spec"]["containers"][0], "image": name}])


def test_copies_leave_nodes_that_have_more_than_their_part() -> None:
    nodes = [node(name) for name in "abc"]
    pods = [pod(f"p{at}", "a") for at in range(5)] + [pod("other", "b")]
    strategy = {"order": [{"cel": "pod.name"}]}
    # Six copies and three nodes: two each, so that three of five go.
    assert moved(on("RemoveDuplicates", strategy), nodes, pods) == [("p2", "a"), ("p1", "a"), ("p0", "a")]
    assert moved(on("RemoveDuplicates", strategy, excludeOwnerKinds=["ReplicaSet"]), nodes, pods) == []
    # Other images make other pods, and who may be on one node alone has nowhere to go.
    assert moved(on("RemoveDuplicates"), nodes, [image(one, one["metadata"]["name"]) for one in pods]) == []
    bound = [spec(one, nodeSelector={"kubernetes.io/hostname": "a"}) for one in pods[:5]]
    assert moved(on("RemoveDuplicates"), nodes, bound) == []
    assert moved(on("RemoveDuplicates"), [node("a"), node("b", unschedulable=True)], pods[:5]) == []


def apart(key: str, **term: Any) -> Any:
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}


@pytest.mark.parametrize(
    ("affinity", "goes"),
    [
        (apart("kubernetes.io/hostname"), ["one"]),
        (apart("zone"), ["one", "two"]),  # the third may stay where the two have gone
        (apart("none"), []),
        (apart("zone", namespaces=["other"]), []),
        (apart("zone", namespaceSelector={}), ["one", "two"]),
        (apart("zone", namespaceSelector={"matchLabels": {"team": "a"}}), []),
        ({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "no list"}}, []),
    ],
)
def test_pods_leave_that_keep_away_from_pods_near_them(affinity: Any, goes: list[str]) -> None:
    nodes = [zoned("a", "x"), zoned("b", "x"), zoned("c", "y")]
    pods = [
        labelled("one", "a", affinity=affinity, priority=1),
        labelled("two", "a", affinity=affinity, priority=2),
        labelled("three", "b", affinity=affinity, priority=3),
        labelled("far", "c", affinity=affinity),
        labelled("without", "c", "db"),
    ]
    found = moved(on("RemovePodsViolatingInterPodAntiAffinity"), nodes, pods)
    assert [name for name, _ in found] == goes


def spread(**said: Any) -> Any:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            **said,
        }
    ]


@pytest.mark.parametrize(
    ("constraint", "strategy", "goes"),
    [
        ({}, {}, ["p0", "p1"]),
        ({"maxSkew": 3}, {}, ["p0"]),
        ({"maxSkew": 4}, {}, []),
        ({"maxSkew": 2, "minDomains": 2}, {}, ["p0"]),
        ({"maxSkew": 3, "minDomains": 3}, {}, ["p0"]),
        ({"maxSkew": 1, "minDomains": 3}, {}, ["p0"]),  # a second one would make two in the other domain
        ({"topologyKey": "none"}, {}, []),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, {}, []),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, {}, []),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, {"constraints": ["ScheduleAnyway"]}, ["p0", "p1"]),
        ({}, {"total": 1}, ["p0"]),
        ({}, {"most": 1}, ["p0"]),
        ({}, {"candidates": {"cel": "pod.name != 'p0'"}}, ["p1", "p2"]),
    ],
)
def test_pods_leave_domains_that_have_too_many(constraint: Any, strategy: Any, goes: list[str]) -> None:
    nodes = [zoned("a", "x"), zoned("b", "y")]
    pods = [
        labelled(f"p{at}", "a", topologySpreadConstraints=spread(**constraint), priority=at)
        for at in range(4)
    ]
    graph = on("RemovePodsViolatingTopologySpreadConstraint", strategy)
    assert sorted(name for name, _ in moved(graph, nodes, pods)) == goes


def test_with_fewer_domains_than_asked_for_none_has_more_than_the_skew() -> None:
    def leaving(sizes: list[int], skew: int, least: int) -> list[int]:
        domains = [(at, [at] * size) for at, size in enumerate(sizes)]
        return uneven_pods(domains, skew, lambda _pod, _below: True, least)

    assert leaving([3, 1], 2, 2) == []  # even enough
    assert leaving([3, 1], 2, 3) == [0]
    assert leaving([3, 2], 2, 3) == []  # nowhere to go
    assert leaving([5, 4, 0], 3, 4) == [0, 0, 1]
    assert leaving([9, 0], 2, 5) == [0, 0]


def test_who_fits_nowhere_else_stays_in_a_domain_that_has_too_many() -> None:
    pods = [labelled(f"p{at}", "a", topologySpreadConstraints=spread(), priority=at) for at in range(4)]
    graph = on("RemovePodsViolatingTopologySpreadConstraint")
    assert moved(graph, [zoned("a", "x"), zoned("b", "y", cpu="500m")], pods) == []
    only = on("RemovePodsViolatingTopologySpreadConstraint", {"fits": False})
    assert len(moved(only, [zoned("a", "x"), zoned("b", "y", cpu="500m")], pods)) == 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(1, 4))
def test_domains_become_even_enough_in_a_few_rounds(sizes: list[int], skew: int) -> None:
    even = max(sizes) - min(sizes) <= skew
    for rounds in range(10):
        domains = [(at, [(at, number) for number in range(size)]) for at, size in enumerate(sizes)]
        leaving = uneven_pods(domains, skew, lambda _pod, _below: True)
        assert len(leaving) == len(set(leaving))
        if not leaving:
            break
        assert not even or rounds
        sizes = [size - sum(at == home for home, _ in leaving) for at, size in enumerate(sizes)]
        for _ in leaving:  # each goes to where the fewest are
            sizes[sizes.index(min(sizes))] += 1
    assert max(sizes) - min(sizes) <= skew


def failed(name: str, hours: int = 2, reason: str = "Evicted", code: int = 1, init: int = 0) -> Any:
    made = pod(name, "a", creationTimestamp=time_text(NOW - hours * 3600 * NANOSECONDS))
    return {
        **made,
        "status": {
            "phase": "Failed",
            "reason": reason,
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": code}}}],
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": init}}}],
        },
    }


@pytest.mark.parametrize(
    ("parameters", "goes"),
    [
        ({}, ["old", "shut", "killed"]),
        ({"minPodLifetime": "150m"}, ["old"]),
        ({"minPodLifetime": "0s"}, ["old", "shut", "killed", "new"]),
        ({"failedReasons": ["Shutdown"]}, ["shut"]),
        ({"failedExitCodes": [137]}, ["killed"]),
        ({"failedExitCodes": [9]}, []),
        ({"failedExitCodes": [9], "includingInitContainers": True}, ["old"]),
        ({"excludeOwnerKinds": ["ReplicaSet"]}, []),
    ],
)
def test_pods_that_failed_are_deleted(parameters: dict[str, Any], goes: list[str]) -> None:
    pods = [failed("old", 3, init=9), failed("new", 0), failed("shut", reason="Shutdown"), failed("killed", code=137),
            pod("runs", "a"), {**pod("done", "a"), "status": {"phase": "Succeeded"}}]  # fmt: skip
    graph = on("RemoveFailedPods", **parameters)
    assert [name for name, _ in moved(graph, [node("a"), node("b")], pods)] == goes


def test_nodes_become_empty_where_a_workload_shrinks() -> None:
    nodes = [node("a"), node("b"), node("c")]
    pods = [
        pod("a1", "a", "2"), pod("a2", "a", "1"), labelled("rest", "a", "other"),
        pod("b1", "b", "1"), pod("b2", "b", "3"), labelled("other", "c", "other"),
    ]  # fmt: skip
    strategy: Any = {"candidates": {"cel": "!('app' in pod.labels)"}, "total": 3}
    # Node b has none of others: its pods go first, the large one before the small one.
    assert moved(on("ScaleDownBinPack", strategy), nodes, pods) == [("b2", "b"), ("b1", "b"), ("a1", "a")]
    assert moved(on("ScaleDownBinPack", {**strategy, "total": 0}), nodes, pods) == []
