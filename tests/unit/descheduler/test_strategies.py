"""The strategies of the pack that are expressions alone, on clusters: who goes, from where to where, in which order."""

import random
from typing import Any

import pytest

from koordpolicy.algorithms.descheduling.fragmentation import NodeRequests
from koordpolicy.descheduler.round import RoundReport
from koordpolicy.model.time import NANOSECONDS, time_text
from tests.unit.descheduler.clusters import NOW, node, objects, one_round, pod, policies


def moved(found: RoundReport) -> list[tuple[str, str, str]]:
    return [(one.pod.name, one.node, one.target) for one in found.moves]


def on(name: str, strategy: Any = None, **parameters: Any) -> Any:
    said = {key: {"value": value} for key, value in parameters.items()}
    return policies({"name": name, "enabled": True, **(strategy or {})}, parameters=said)


def in_pool(name: str, pool: str, cpu: str = "10") -> Any:
    made = node(name, cpu)
    return {**made, "metadata": {"name": name, "labels": {"pool": pool}}}


def with_status(made: Any, **status: Any) -> Any:
    return {**made, "status": {**made["status"], **status}}


def with_spec(made: Any, **spec: Any) -> Any:
    return {**made, "spec": {**made["spec"], **spec}}


def test_the_oldest_pods_are_renewed_first_wherever_they_come_again() -> None:
    def aged(name: str, hours: int) -> Any:
        return pod(name, "a", creationTimestamp=time_text(NOW - hours * 3600 * NANOSECONDS))

    heard = objects(
        [node("a"), node("b", "1")], [aged("new", 1), aged("old", 3), aged("older", 5), aged("two", 2)]
    )
    assert [one for one, _, _ in moved(one_round(on("PodLifeTime", maxPodLifeTime="2h"), heard))] == [
        "older",
        "old",
    ]
    assert moved(one_round(on("PodLifeTime"), heard)) == []
    assert moved(one_round(on("PodLifeTime", podLifeTimeStates=["Pending"]), heard)) == []


def test_pods_go_that_were_started_again_too_often() -> None:
    def restarted(name: str, main: int, init: int = 0, reason: str = "") -> Any:
        state = {"waiting": {"reason": reason}} if reason else {"running": {}}
        return with_status(
            pod(name, "a"),
            phase="Pending" if reason else "Running",
            containerStatuses=[{"name": "main", "restartCount": main, "state": state}],
            initContainerStatuses=[{"name": "init", "restartCount": init, "state": {}}],
        )

    heard = objects(
        [node("a"), node("b")],
        [restarted("few", 9), restarted("many", 10), restarted("most", 30), restarted("init", 1, 20),
         restarted("crashing", 12, reason="CrashLoopBackOff"), restarted("pulling", 12, reason="ImagePullBackOff")],
    )  # fmt: skip
    found = one_round(on("RemovePodsHavingTooManyRestarts", podRestartThreshold=10), heard)
    assert [name for name, _, _ in moved(found)] == ["most", "crashing", "many"]
    assert found.moves[0].reason == "it was restarted 30 times"
    both = on("RemovePodsHavingTooManyRestarts", podRestartThreshold=10, includingInitContainers=True)
    assert [name for name, _, _ in moved(one_round(both, heard))] == ["most", "init", "crashing", "many"]


@pytest.mark.parametrize(
    ("parameters", "goes"),
    [
        ({}, ["plain"]),
        ({"excludedTaints": ["team"]}, []),
        ({"excludedTaints": ["team=a"]}, []),
        ({"excludedTaints": ["team=b"]}, ["plain"]),
        ({"includedTaints": ["other"]}, []),
        ({"includedTaints": ["team"]}, ["plain"]),
        ({"includePreferNoSchedule": True}, ["plain", "tolerates"]),
    ],
)
def test_pods_go_that_do_not_tolerate_their_node(parameters: dict[str, Any], goes: list[str]) -> None:
    taints = [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "old", "effect": "PreferNoSchedule"},
    ]
    tolerates = with_spec(pod("tolerates", "a"), tolerations=[{"key": "team", "operator": "Exists"}])
    heard = objects([node("a", taints=taints), node("b")], [pod("plain", "a"), tolerates, pod("there", "b")])
    found = one_round(on("RemovePodsViolatingNodeTaints", **parameters), heard)
    assert moved(found) == [(name, "a", "b") for name in goes]


def test_pods_go_whose_node_is_not_what_they_ask_for_any_more() -> None:
    asks = with_spec(pod("asks", "a"), nodeSelector={"pool": "one"})
    nowhere = with_spec(pod("nowhere", "a"), nodeSelector={"pool": "none"})
    heard = objects([in_pool("a", "other"), in_pool("b", "one")], [asks, nowhere, pod("plain", "a")])
    assert moved(one_round(on("RemovePodsViolatingNodeAffinity"), heard)) == [("asks", "a", "b")]


def _prefers(name: str, on_node: str, cpu: str = "1", **weights: int) -> Any:
    """A pod that prefers pools by weight."""
    terms = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]},
        }
        for pool, weight in weights.items()
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return with_spec(pod(name, on_node, cpu), affinity=affinity)


def test_pods_go_of_whose_preferences_another_node_with_room_has_more() -> None:
    heard = objects(
        [in_pool("a", "one"), in_pool("b", "two", "3"), in_pool("c", "three", "1"), in_pool("d", "four")],
        [
            _prefers("better", "a", two=5, one=1),
            _prefers("best", "b", two=5, one=1),
            _prefers("even", "a", one=5, two=5),
            _prefers("large", "a", "2", three=9),
            _prefers("nowhere", "a", seven=9),
            pod("plain", "a"),
        ],
    )
    assert moved(one_round(on("RemovePodsViolatingNodeAffinity"), heard)) == []
    found = one_round(on("RemovePodsViolatingNodeAffinity", preferredNodeAffinity=True), heard)
    assert [name for name, _, _ in moved(found)] == ["better"]
    assert found.moves[0].reason == "another node has more of what it prefers"


def test_pods_go_to_cheaper_nodes_small_ones_first() -> None:
    heard = objects(
        [in_pool("dear", "dear"), in_pool("middle", "middle", "3"), in_pool("cheap", "cheap", "2"), in_pool("other", "x")],
        [pod("large", "dear", "4"), pod("small", "dear", "1"), pod("third", "dear", "2"), pod("mid", "middle", "1")],
    )  # fmt: skip
    order: Any = {"evictionOrderLabel": "pool", "evictionOrder": ["dear", "middle", "cheap"]}
    assert moved(one_round(on("CustomPriority", **order), heard)) == [
        ("small", "dear", "middle"),
        ("third", "dear", "cheap"),
    ]
    # All or none of a node: the large one fits nowhere, but the node of the middle can be emptied.
    drained = one_round(on("CustomPriority", drainNode=True, **order), heard)
    assert moved(drained) == [("mid", "middle", "cheap")]


def test_a_node_is_emptied_only_where_all_fit_beside_each_other() -> None:
    order: Any = {"evictionOrderLabel": "pool", "evictionOrder": ["dear", "cheap"], "drainNode": True}

    def drained(cheap: str) -> list[str]:
        heard = objects(
            [in_pool("dear", "dear"), in_pool("cheap", "cheap", cheap)],
            [pod(name, "dear", "2") for name in ("a", "b")],
        )
        return [name for name, _, _ in moved(one_round(on("CustomPriority", **order), heard))]

    assert drained("3") == []
    assert drained("4") == ["a", "b"]


def test_nodes_that_are_nearly_empty_give_their_pods_to_fuller_ones() -> None:
    heard = objects(
        [node("full"), node("little"), node("least"), node("none")],
        [pod("f", "full", "5"), pod("l", "little", "2"), pod("m", "least", "1")],
    )
    low = {"cpu": "20%", "memory": "20%"}
    assert moved(one_round(on("HighNodeUtilization", packThresholds=low), heard)) == [
        ("m", "least", "full"),
        ("l", "little", "full"),
    ]
    assert moved(one_round(on("HighNodeUtilization"), heard)) == []
    only = on("HighNodeUtilization", packThresholds={"example.com/x": "20%"}, onlyThresholdingResources=True)
    assert moved(one_round(only, heard)) == []


def test_nodes_of_which_too_much_is_requested_give_pods_away() -> None:
    heard = objects([node("full"), node("empty")], [pod(name, "full", "3") for name in "abc"])
    load = {"load": {"high": {"cpu": "70%"}, "low": {"cpu": "40%"}}}
    assert moved(one_round(on("LowNodeUtilization", load), heard)) == [("a", "full", "empty")]


@pytest.mark.parametrize("seed", range(25))
def test_a_node_whose_resources_are_taken_unevenly_gives_away_who_helps_most(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"p{at}" for at in range(chance.randrange(1, 8))]
    asked = {name: (chance.randrange(0, 2500), chance.randrange(0, 8 << 30)) for name in names}

    def asking(name: str) -> Any:
        cpu, memory = asked[name]
        amounts = {"cpu": f"{cpu}m", "memory": str(memory)}
        return with_spec(
            pod(name, "a"), containers=[{"name": "main", "image": "i", "resources": {"requests": amounts}}]
        )

    heard = objects([node("a"), node("b", "100")], [asking(name) for name in names])
    total = {
        "cpu": sum(cpu for cpu, _ in asked.values()),
        "memory": sum(memory for _, memory in asked.values()),
    }
    best = NodeRequests({"cpu": 10_000, "memory": 40 << 30}, total, ("cpu", "memory")).best(
        [{"cpu": cpu, "memory": memory} for cpu, memory in asked.values()], 0.05, 0.02
    )
    graph = on(
        "FragmentationAware",
        {"nodes": {"cel": "node.name == 'a' || node.name == 'b'"}},
        imbalanceThreshold=0.05,
    )
    expected = [] if best is None else [names[best.candidate]]
    assert [name for name, _, _ in moved(one_round(graph, heard))] == expected
