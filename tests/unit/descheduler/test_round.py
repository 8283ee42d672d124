"""One round: which pods go from where to where, and why others stay."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.descheduler.evictor import Check, EvictionResult, Evictor
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.round import (
    Memories,
    RoundReport,
    report_data,
    report_text,
    why_nothing_moves,
)
from koordpolicy.descheduler.rules import ProfileRules
from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.model.disruption import read_budget
from koordpolicy.model.pod import PodKey
from koordpolicy.model.time import NANOSECONDS
from tests.unit.descheduler.clusters import (
    NOW,
    PROFILE,
    full_and_empty,
    node,
    objects,
    one_round,
    pod,
    policies,
    relocations_of,
    report,
)
from tests.vectors.policies import document, graph_of

BY_LOAD: dict[str, Any] = {
    "name": "LowNodeLoad",
    "enabled": True,
    "load": {"high": {"cpu": "70%"}, "low": {"cpu": "40%"}, "anomaly": {"rounds": 1}},
}

ALL: dict[str, Any] = {"name": "all", "candidates": True}


def moved(found: RoundReport) -> list[tuple[str, str, str]]:
    return [(one.pod.name, one.node, one.target) for one in found.moves]


def test_a_node_above_its_threshold_gives_pods_away_until_it_is_not() -> None:
    found = one_round(policies(BY_LOAD), full_and_empty())
    assert moved(found) == [("first", "full", "empty")]  # 9 of 10 CPUs, then 6
    assert found.moves[0].reason == "node is overutilized, node cpu usage(90.00%)>threshold(70.00%)"


def test_the_built_in_profile_moves_nothing_until_it_is_switched_on() -> None:
    assert moved(one_round(policies(), full_and_empty())) == []


def test_one_line_says_for_each_node_when_it_is_too_full() -> None:
    said = {**BY_LOAD["load"], "high": {"cel": "{'cpu': node.name == 'full' ? percent(95) : percent(50)}"}}
    assert moved(one_round(policies({**BY_LOAD, "load": said}), full_and_empty())) == []


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"conditions": [{"name": "own", "require": {"cel": "pod.name != 'first'"}}]}, ["second"]),
        ({"limits": {"total": 0}}, []),
        ({"limits": {"perNode": 0}}, []),
        ({"limits": {"perNamespace": 0}}, []),
        ({"enabled": False}, []),
        ({"leastNodes": 3}, []),
        ({"nodes": {"cel": "node.name != 'empty'"}}, []),
        # A condition that cannot be told keeps everybody.
        (
            {"conditions": [{"name": "own", "require": {"cel": "pod.labels['a'] == 'b'"}}]},
            [],
        ),
    ],
)
def test_policy_keeps_pods(spec: dict[str, Any], names: list[str]) -> None:
    assert [one.pod.name for one in one_round(policies(BY_LOAD, **spec), full_and_empty()).moves] == names


def test_pods_move_within_their_pool() -> None:
    names = ("a", "b", "c")
    heard = objects(
        [node("full"), node("empty"), node("other")],
        [pod(name, "full", "2") for name in names],
        [report("full", dict.fromkeys(names, "3")), report("empty", {}), report("other", {}, system="5")],
    )
    load = {**BY_LOAD["load"], "pool": {"cel": "node.name == 'empty' ? 'one' : 'another'"}}
    assert moved(one_round(policies({**BY_LOAD, "load": load}), heard)) == []


@pytest.mark.parametrize("age", [181.0, 180.0, 179.0])
def test_nodes_whose_metrics_expired_neither_give_nor_take(age: float) -> None:
    heard = full_and_empty()
    for one in (report("full", {"first": "3", "second": "3", "stays": "3"}, age=age),):
        heard = objects(
            [node("full"), node("empty")],
            [pod(name, "full", "2") for name in ("first", "second", "stays")],
            [one, report("empty", {})],
        )
    assert bool(moved(one_round(policies(BY_LOAD), heard))) is (age < 180)


def test_a_node_that_flaps_gives_nothing_away() -> None:
    load = {**BY_LOAD["load"], "anomaly": {"rounds": 2, "forgottenAfter": "5m"}}
    graph, memories = policies({**BY_LOAD, "load": load}), Memories()
    cold = objects([node("full"), node("empty")], [], [report("full", {}), report("empty", {})])
    hot = full_and_empty()

    def seen(heard: ClusterObjects, minute: int) -> list[tuple[str, str, str]]:
        for one in heard.nodes:
            heard.set_metric(_renewed(heard, one, minute))
        return moved(one_round(graph, heard, memories, now=NOW + minute * 60 * NANOSECONDS))

    assert [seen(hot, 0), seen(cold, 1)] == [[], []]
    # Its counts are forgotten five minutes after it was too full last.
    assert [seen(hot, minute) for minute in (7, 9)] == [[], []]
    assert seen(hot, 11) == [("first", "full", "empty")]


def _renewed(heard: ClusterObjects, name: str, minute: int) -> Any:
    sight = heard.sight(name)
    assert sight is not None
    assert sight.metric is not None
    return replace(sight.metric, updated_at=NOW + minute * 60 * NANOSECONDS)


def test_a_strategy_of_expressions_alone() -> None:
    strategy = {
        "name": "spread-requests",
        "release": {"cel": "node.requested.cpu > cpu('2')"},
        "candidates": {"cel": "pod.name != 'first'"},
        "order": [{"cel": "pod.name == 'stays' ? 0 : 1"}],
        "reason": {"cel": "'more than two CPUs are requested of ' + node.name"},
    }
    found = one_round(policies(strategy), full_and_empty())
    assert moved(found) == [("stays", "full", "empty"), ("second", "full", "empty")]  # 6, 4, 2 CPUs
    assert found.moves[0].reason == "more than two CPUs are requested of full"


def test_what_is_to_move_takes_its_room_there() -> None:
    names = ("a", "b", "c")
    heard = objects([node("full"), node("small", "3")], [pod(name, "full", "2") for name in names])
    strategy = ALL
    assert moved(one_round(policies(strategy), heard)) == [("a", "full", "small")]
    anywhere = {**ALL, "fits": False}
    assert moved(one_round(policies(anywhere), heard)) == [(name, "full", "") for name in names]


@pytest.mark.parametrize(
    "other",
    [
        node("other", unschedulable=True),
        node("other", taints=[{"key": "a", "effect": "NoSchedule"}]),
        node("other", "1"),
        node("other", ready="Unknown"),
    ],
)
def test_pods_stay_that_would_find_no_other_node(other: Any) -> None:
    heard = objects([node("full"), other], [pod("a", "full", "2")])
    assert moved(one_round(policies(ALL, leastNodes=1), heard)) == []


def test_a_strategy_without_candidates_moves_nobody() -> None:
    heard = objects([node("a"), node("b")], [pod("p", "a")])
    assert moved(one_round(policies({**ALL, "candidates": False}), heard)) == []


def test_a_pod_goes_once_whoever_wants_it_to() -> None:
    found = one_round(
        policies({**ALL, "name": "one"}, {**ALL, "name": "other"}),
        objects([node("a"), node("b")], [pod("p", "a")]),
    )
    assert [(one.pod.name, one.strategy) for one in found.moves] == [("p", "one")]


def test_the_report_says_what_moves_and_what_is_gained() -> None:
    found = one_round(policies({**BY_LOAD, "dryRun": True}), full_and_empty())
    assert "\n".join(report_text(found)) == (
        "profile koord-descheduler: 2 nodes, 3 pods\n"
        "  LowNodeLoad: 1 high, 1 low\n"
        "    full: cpu 90 % → 60 %, memory 8 % → 5 %\n"
        "  default/first: full → empty by LowNodeLoad (dry run): node is overutilized, node cpu usage(90.00%)>threshold(70.00%)\n"
        "  1 pod to move"
    )
    shown = report_data(found)
    assert shown["moves"][0]["to"] == "empty"
    assert shown["strategies"][0]["relieved"] == {
        "full": {
            "cpu": {"before": 90.0, "after": 60.0},
            "memory": {"before": pytest.approx(7.5), "after": pytest.approx(5.0)},
        }
    }


def test_the_report_says_in_words_why_nothing_moves() -> None:
    for load, why in (
        ({"high": {"cpu": "95%"}}, "nothing moves: no node is above its high thresholds"),
        (
            {"anomaly": {"rounds": 3}},
            "nothing moves: no node has been above its high thresholds for long enough",
        ),
    ):
        found = one_round(policies({**BY_LOAD, "load": {**BY_LOAD["load"], **load}}), full_and_empty())
        assert any(why in line for line in report_text(found)), list(report_text(found))
        assert why_nothing_moves(found) == f"LowNodeLoad: {why.removeprefix('nothing moves: ')}"
    off = one_round(policies(), full_and_empty())
    assert [*report_text(off)][-1] == "  0 pods to move: no strategy is switched on"
    assert why_nothing_moves(off) == "no strategy is switched on"
    assert why_nothing_moves(one_round(policies(BY_LOAD), full_and_empty())) == ""


def test_nodes_are_low_by_prod_pods_only_where_a_threshold_is_about_them() -> None:
    def told(**load: Any) -> str:
        said = {**BY_LOAD["load"], **load}
        heard = objects(
            [node("full"), node("empty"), node("silent")],
            [pod("p", "full")],
            [report("full", {"p": "9"}), report("empty", {})],
        )
        return "\n".join(report_text(one_round(policies({**BY_LOAD, "load": said}), heard)))

    assert "LowNodeLoad: 1 high, 1 low, 1 of unknown use" in told()
    prod = {"prodHigh": {"cpu": "70%"}, "prodLow": {"cpu": "50%"}}
    assert "LowNodeLoad: 1 high, 1 low and prod low, 1 of unknown use" in told(**prod)


# --- letting them go ----------------------------------------------------------------------------------


class NoMigrations:
    """Nobody migrates."""

    def going(self, namespace: str) -> list[PodView]:
        return []

    def migrates(self, pod: PodKey) -> bool:
        return False

    async def migrate(self, move: Move, profile: ProfileRules, check: Check) -> tuple[EvictionResult, str]:
        return EvictionResult.FAILED, ""


def _evicted(
    store: Store, heard: ClusterObjects, found: RoundReport, *, dry: bool = False
) -> tuple[Any, Any]:
    waits: list[float] = []
    told: list[tuple[str, EvictionResult]] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def noted(move: Move, result: EvictionResult, said: str) -> None:
        told.append((move.pod.name, result))

    rules = ProfileRules(policies(migrate=False), PROFILE)
    evictor = Evictor(MemoryCluster(store), heard, lambda: 0.0, noted, NoMigrations(), sleep)
    asyncio.run(evictor.carry_out(found.moves, rules, dry=dry))
    return told, (waits, evictor)


def _store(names: tuple[str, ...]) -> Store:
    store = Store(lambda: 0.0)
    for name in names:
        made = pod(name, "full")
        del made["metadata"]["uid"]
        store.create(resources.PODS, made, namespace="default")
    return store


def _as_stored(store: Store, names: tuple[str, ...]) -> ClusterObjects:
    pods = [store.get(resources.PODS, name, namespace="default") for name in names]
    return objects([node("full"), node("empty")], pods)


def test_pods_are_evicted_at_the_pace_of_the_profile() -> None:
    names = ("a", "b", "c")
    store = _store(names)
    heard = _as_stored(store, names)
    told, (waits, _) = _evicted(store, heard, one_round(policies(ALL), heard))
    assert told == [(name, EvictionResult.EVICTED) for name in names]
    assert waits == pytest.approx([0.1, 0.2])
    assert all(
        one["metadata"].get("deletionTimestamp")
        for one in store.list(resources.PODS, namespace="default").items
    )


def test_nobody_goes_in_a_dry_run() -> None:
    store = _store(("a",))
    heard = _as_stored(store, ("a",))
    told, _ = _evicted(store, heard, one_round(policies(ALL), heard), dry=True)
    assert told == [("a", EvictionResult.DRY_RUN)]
    assert "deletionTimestamp" not in store.get(resources.PODS, "a", namespace="default")["metadata"]


def test_another_pod_of_the_same_name_stays() -> None:
    store = _store(("a",))
    heard = objects([node("full"), node("empty")], [pod("a", "full")])  # of another UID
    told, _ = _evicted(store, heard, one_round(policies(ALL), heard))
    assert told == [("a", EvictionResult.GONE)]


def test_disruption_budgets_count_what_goes_already() -> None:
    labelled = [pod(name, "full", labels={"app": "web"}) for name in ("a", "b")]
    heard = objects([node("full"), node("empty")], labelled)
    budget = read_budget(
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1},
        }
    )
    heard.set_state(lambda state: state.budgets.set(budget), None)
    evictor = Evictor(
        MemoryCluster(Store(lambda: 0.0)), heard, lambda: 0.0, lambda move, result, said: None, NoMigrations()
    )
    found = one_round(policies(ALL), heard, allowed=evictor.allowed)
    assert [one.pod.name for one in found.moves] == ["a"]


def test_rounds_in_which_a_node_is_as_it_should_be_begin_the_count_anew() -> None:
    for consecutive in (True, False):
        load = {**BY_LOAD["load"], "anomaly": {"rounds": 2, "consecutive": consecutive}}
        graph = policies({**BY_LOAD, "load": load})
        memories, moves = Memories(), 0
        for second, used in enumerate("313133"):
            names = ("first", "second", "stays")
            heard = objects(
                [node("full"), node("empty")],
                [pod(name, "full", "2") for name in names],
                [report("full", dict.fromkeys(names, used)), report("empty", {})],
            )
            moves += len(one_round(graph, heard, memories, now=NOW + second * NANOSECONDS).moves)
        assert (moves == 0) == consecutive


# --- whether they end better --------------------------------------------------------------------------


def _scheduled(*strategies: Any, score: str = "0") -> Any:
    said = document("Descheduling", PROFILE, {"strategies": list(strategies)})
    stack = {"name": "own", "weight": 1000, "value": {"cel": score}}
    profile = document(
        "SchedulingProfile", "koord-scheduler", {"schedulerName": "koord-scheduler", "scores": [stack]}
    )
    return graph_of(frozenset({"classes", "descheduling", "scheduling", "quota", "devices"}), said, profile)


@pytest.mark.parametrize("strategy", [BY_LOAD, {**ALL, "release": {"cel": "node.requested.cpu > cpu('4')"}}])
@pytest.mark.parametrize(
    ("score", "relocating", "goes"),
    [
        ("0", {}, True),
        ("node.name == 'full' ? 100 : 0", {}, False),
        ("node.name == 'full' ? 100 : 0", {"better": False}, True),
        ("node.name == 'full' ? 0 : 100", {"byMoreThan": 90_000.0}, True),
        ("node.name == 'full' ? 0 : 100", {"byMoreThan": 110_000.0}, False),
        # Where it cannot be told how much better a node has to be, none is good enough.
        ("0", {"byMoreThan": {"cel": "double(pod.labels['none'])"}}, False),
        ("0", {"better": {"cel": "pod.name != 'first'"}}, True),
    ],
)
def test_a_pod_goes_only_where_the_scheduler_says_it_would_end_better(
    strategy: Any, score: str, relocating: Any, goes: bool
) -> None:
    heard = full_and_empty()
    graph = _scheduled({**strategy, "relocating": relocating}, score=score)
    found = one_round(graph, heard, relocations=relocations_of(heard, graph))
    assert moved(found) == ([("first", "full", "empty")] if goes else [])
    if not goes:
        assert {one.condition for one in found.kept.values()} == {
            f"strategies[{strategy['name']}].relocating"
        }
        assert "stay: the scheduler would put it on" in "\n".join(report_text(found))
        assert report_data(found)["stay"][0]["pod"] == "default/first"


@pytest.mark.parametrize("amount", ["9223372036854775807", "8E"])
def test_pods_that_ask_for_all_there_is_take_no_round_from_others(amount: str) -> None:
    strategy = {
        **BY_LOAD,
        "name": "LowNodeUtilization",
        "load": {"high": {"cpu": "70%"}, "low": {"cpu": "40%"}},
    }
    nodes = [node("full"), node("empty"), node("third")]
    pods = [pod("first", "full", "3"), pod("second", "full", "3"), pod("fourth", "full", "3")]
    rest = [pod(f"huge-{number}", "third", amount) for number in range(2)]
    expected = moved(one_round(policies(strategy), objects(nodes, pods)))
    assert expected
    assert expected == [
        one
        for one in moved(one_round(policies(strategy), objects(nodes, [*pods, *rest])))
        if one[1] == "full"
    ]


def test_a_strategy_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise OverflowError

    monkeypatch.setattr("koordpolicy.descheduler.round.balance", fails)
    found = one_round(policies(BY_LOAD, ALL), full_and_empty())
    assert list(found.failed) == ["LowNodeLoad"]
    assert {one.strategy for one in found.moves} == {"all"}
    assert any("LowNodeLoad failed" in line for line in report_text(found))
    assert report_data(found)["failed"] == ["LowNodeLoad"]
