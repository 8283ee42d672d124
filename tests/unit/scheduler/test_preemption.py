"""Who goes for whom: cases as data (see `preemption.yaml`), pods that wait, and a plain oracle."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.model.disruption import read_budget
from koordpolicy.model.pod import PodKey
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Preempt, plan
from koordpolicy.scheduler.plugins.preemption.search import Search
from tests.unit.scheduler.world import START, World, node, pod, policies

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("preemption.yaml").read_text())

GRAPH = policies()


def placed(name: str, where: str, said: Mapping[str, Any]) -> Any:
    """A pod on a node; `started` seconds after the beginning."""
    given = {"node": where, "phase": "Running", **said}
    started = given.pop("started", None)
    found = pod(name, given)
    return found if started is None else replace(found, started_at=START + started * NANOSECONDS)


def budget(app: str, allowed: int) -> Any:
    return read_budget(
        {
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        }
    )


def build(world: World, case: Mapping[str, Any]) -> None:
    for name, said in case["nodes"].items():
        world.build({"nodes": {name: {key: value for key, value in said.items() if key != "pods"}}})
        for one, asked in said.get("pods", {}).items():
            world.scheduler.set_pod(placed(one, name, asked))
    for app, allowed in case.get("budgets", {}).items():
        world.scheduler.cache.state.budgets.set(budget(app, allowed))


def shown(decision: PodDecision) -> dict[str, Any]:
    found = decision.preemption
    if found is None:
        return {"remark": decision.remark}
    answer: dict[str, Any] = {"node": found.node, "victims": [victim.pod[1] for victim in found.victims]}
    return answer | ({"violations": found.violations} if found.violations else {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_who_goes_for_whom(case: dict[str, Any]) -> None:
    own = case.get("policies", ())
    world = World(policies(*own) if own else GRAPH)
    build(world, case)
    before = {name: dict(world.scheduler.cache.pods_on(name)) for name in case["nodes"]}
    decision = world.place("pod", case["pod"])
    assert not decision.placed
    assert shown(decision) == case["expect"]
    assert decision.promised == case["expect"].get("node", "")
    after = {name: dict(world.scheduler.cache.pods_on(name)) for name in case["nodes"]}
    assert before == after, "nobody is gone before the cluster says so"
    assert [list(pods) for pods in before.values()] == [list(pods) for pods in after.values()]


def test_who_may_go_can_change_though_the_node_is_as_full_as_before() -> None:
    world = World(GRAPH)
    large = {"request": {"cpu": 6}, "labels": {"app": "large"}}
    world.build({
        "nodes": {"a": {"labels": {"zone": "z"}, "pods": {"small": {"priority": 10, "request": {"cpu": 4}},
                                 "large": {"priority": 9900, **large}}}},
    })  # fmt: skip
    apart = {"labelSelector": {"matchLabels": {"app": "large"}}, "topologyKey": "zone"}
    wanted = {
        "request": {"cpu": 7},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    }
    assert world.place("first", wanted).preemption is None
    # Another pod of the same name, heard of in one.
    world.scheduler.set_pod(placed("large", "a", {"priority": 20, **large}))
    assert shown(world.place("second", wanted))["victims"] == ["large", "small"]


# --- pods that wait for their victims to go ---------------------------------------------------------


def crowded(**more: Any) -> World:
    world = World(GRAPH, **more)
    world.build({"nodes": {"a": {"pods": {"low": {"priority": 10, "request": {"cpu": 8}}}}}})
    return world


def test_a_pod_gets_the_node_once_its_victims_are_gone() -> None:
    world = crowded()
    assert shown(world.place("pod", {"request": {"cpu": 5}}))["victims"] == ["low"]
    world.pass_time(5)
    assert world.names() == [], "nothing has happened"
    world.scheduler.remove_pod(("default", "low"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "a"


def test_nobody_else_goes_while_victims_are_leaving() -> None:
    world = crowded()
    world.build({"nodes": {"b": {"pods": {"other": {"priority": 10, "request": {"cpu": 8}}}}}})
    first = world.place("pod", {"request": {"cpu": 5}}).preemption
    assert first is not None
    world.pass_time(600)
    again = world.scheduler.schedule_one()
    assert again is not None
    assert (again.preemption, again.promised) == (None, first.node)
    assert again.remark == "preemption: not eligible due to a terminating pod on the nominated node"


def test_victims_that_could_not_be_sent_away_are_looked_for_again() -> None:
    world = crowded()
    decision = world.place("pod", {"request": {"cpu": 5}})
    world.scheduler.call_off(decision)
    world.pass_time(5)
    again = world.scheduler.schedule_one()
    assert again is not None
    assert again.preemption == decision.preemption


def test_a_node_is_kept_for_the_pod_that_waits_for_it() -> None:
    world = crowded()
    world.place("pod", {"request": {"cpu": 5}})
    world.scheduler.remove_pod(("default", "low"))
    small = world.scheduler.framework.decide(pod("small", {"priority": 9000, "request": {"cpu": 6}}))
    assert not small.placed
    assert small.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert world.scheduler.framework.decide(pod("tiny", {"priority": 9000, "request": {"cpu": 5}})).placed
    assert world.scheduler.framework.decide(pod("dearer", {"priority": 9900, "request": {"cpu": 6}})).placed


def test_a_dearer_pod_takes_the_place_of_one_that_waits() -> None:
    world = crowded()
    world.place("pod", {"request": {"cpu": 5}})
    decision = world.place("dearer", {"priority": 9900, "request": {"cpu": 8}})
    assert decision.preemption is not None
    assert decision.preemption.cleared == (("default", "pod"),)
    world.scheduler.remove_pod(("default", "low"))
    world.pass_time(5)
    assert {one.pod[1]: one.node for one in everything(world)} == {"dearer": "a", "pod": ""}


def everything(world: World) -> Iterator[PodDecision]:
    while (decision := world.scheduler.schedule_one()) is not None:
        yield decision


def test_what_a_pod_waits_for_is_known_after_a_restart() -> None:
    world = World(GRAPH)
    world.build({"nodes": {"a": {}, "b": {}}})
    waiting = pod("pod", {"request": {"cpu": 6}, "schedulingGates": [{"name": "not yet"}]})
    world.scheduler.set_pod(replace(waiting, nominated_node="a"))
    assert world.scheduler.framework.decide(pod("other", {"request": {"cpu": 6}})).node == "b"
    world.scheduler.remove_pod(("default", "pod"))
    assert world.scheduler.framework.decide(pod("other", {"request": {"cpu": 6}})).feasible == 2


def test_another_revision_keeps_what_was_promised() -> None:
    world = crowded()
    world.place("pod", {"request": {"cpu": 5}})
    world.scheduler.replace_graph(policies({"ties": "First"}))
    world.scheduler.remove_pod(("default", "low"))
    assert not world.scheduler.framework.decide(
        pod("small", {"priority": 9000, "request": {"cpu": 6}})
    ).placed


def test_who_is_on_its_way_already_may_be_chosen_and_is_not_sent_away_again() -> None:
    world = crowded()
    low = placed("low", "a", {"priority": 10, "request": {"cpu": 8}})
    world.scheduler.set_pod(replace(low, deleted_at=world.now))
    found = world.place("pod", {"request": {"cpu": 5}})
    assert found.preemption is not None
    assert [victim.pod[1] for victim in found.preemption.victims] == ["low"]
    planned = plan(found, pod("pod"), world.now)
    assert isinstance(planned, Preempt)
    assert (planned.victims, planned.report.nominated) == ((), "a")


# --- what brings a pod back that may displace others ------------------------------------------------

DEAR = {"priority": 9900}
LOW = {"priority": 10}
EIGHT = {"request": {"cpu": 8}}


def refused(nodes: Mapping[str, Any], asked: Mapping[str, Any], *specs: Mapping[str, Any]) -> World:
    """A world in which a pod waits for which nobody goes, its back-off over."""
    world = World(policies(*specs) if specs else GRAPH)
    world.build({"nodes": nodes})
    decision = world.place("pod", asked)
    assert not decision.placed
    assert decision.preemption is None
    world.pass_time(20)
    assert world.names() == []
    return world


def again(world: World) -> list[str] | None:
    """Who goes for the pod, if it is tried again."""
    decision = world.scheduler.schedule_one()
    return None if decision is None or decision.preemption is None else shown(decision)["victims"]


MIXED = {"pods": {"dear": {**DEAR, "request": {"cpu": 5}}, "low": {**LOW, "request": {"cpu": 4}}}}


def test_a_pod_that_leaves_helps_who_may_displace_the_rest() -> None:
    world = refused({"a": MIXED}, EIGHT)
    world.scheduler.remove_pod(("default", "dear"))
    assert again(world) == ["low"], "six CPUs are free, and two more can be"


@pytest.mark.parametrize(
    ("asked", "labels"),
    [({"preemptionPolicy": "Never"}, {}), (LOW, {}), ({"nodeSelector": {"zone": "x"}}, {"zone": "y"})],
    ids=["displaces-nobody", "no-weaker-pod", "elsewhere"],
)
def test_a_pod_that_leaves_helps_nobody_else(asked: dict[str, Any], labels: dict[str, str]) -> None:
    full = {"labels": {"zone": "x"}, "pods": {"full": {**DEAR, "request": {"cpu": 9}}}}
    world = refused({"a": {**MIXED, "labels": labels}, "b": full}, {**EIGHT, **asked})
    world.scheduler.remove_pod(("default", "dear"))
    assert world.names() == []


def test_a_label_helps_where_it_says_who_may_go() -> None:
    eligible = {"cel": "victim.?priority.orValue(0) < pod.?priority.orValue(0) && !('kept' in victim.labels)"}
    low = {**LOW, "request": {"cpu": 4}}
    kept = {"a": {"pods": {"low": {**low, "labels": {"kept": "yes"}}}}}
    world = refused(kept, EIGHT, {"preemption": {"eligible": eligible}})
    world.scheduler.set_pod(placed("low", "a", {**low, "labels": {"kept": "yes", "other": "x"}}))
    assert world.names() == []
    world.scheduler.set_pod(placed("low", "a", low))
    assert again(world) == ["low"]


def promised() -> World:
    """A pod waits for a victim to leave the node `a`, while there is a weak one on `b`, too, its back-off over."""
    world = crowded()
    assert shown(world.place("pod", EIGHT))["victims"] == ["low"]
    world.build({"nodes": {"b": {"pods": {"other": {**LOW, "request": {"cpu": 9}}}}}})
    world.pass_time(20)
    assert again(world) is None, "it waits for its victim"
    world.pass_time(20)
    return world


def test_nobody_is_brought_back_by_what_leaves_another_node_while_a_victim_is_leaving() -> None:
    world = promised()
    world.scheduler.set_pod(placed("third", "b", {**DEAR, "request": {"cpu": 1}}))
    world.scheduler.remove_pod(("default", "third"))
    assert world.names() == []


def test_a_pod_whose_room_somebody_else_took_looks_for_other_victims() -> None:
    world = promised()
    world.scheduler.set_pod(placed("dear", "a", {**DEAR, "request": {"cpu": 9}}))
    assert world.names() == []
    world.scheduler.remove_pod(("default", "low"))
    assert again(world) == ["other"]


def test_a_pod_whose_node_is_another_ones_now_looks_for_other_victims() -> None:
    world = promised()
    assert world.place("dear", {**DEAR, "request": {"cpu": 9}}).promised == "a"
    assert again(world) == ["other"]


def test_a_pod_whose_node_is_gone_looks_for_other_victims() -> None:
    world = promised()
    world.scheduler.remove_node("a")
    assert again(world) == ["other"]


# --- searches in vain -------------------------------------------------------------------------------

OTHER_LABELS = {**DEAR, "request": {"cpu": 5}, "labels": {"app": "other"}}
APART = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": "zone"}
AWAY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}


def searched(monkeypatch: pytest.MonkeyPatch) -> list[PodKey]:
    """The pods for which nodes are searched from now on."""
    found: list[PodKey] = []
    best = Search._best

    def noted(search: Search, run: Any, look: Any) -> Any:
        found.append(run.view.pod.key)
        return best(search, run, look)

    monkeypatch.setattr(Search, "_best", noted)
    return found


@pytest.mark.parametrize(
    ("between", "asked", "searches"),
    [
        ({}, EIGHT, 1),
        ({}, {**EIGHT, "request": {"cpu": 9}}, 2),
        ({}, {**EIGHT, "priority": 8999}, 2),
        ({}, {**EIGHT, "labels": {"app": "x"}}, 2),
        ({"dear": OTHER_LABELS}, EIGHT, 2),
        ({"dear": {**LOW, "request": {"cpu": 5}}}, EIGHT, 2),
        ({"more": {**DEAR, "request": {"cpu": 1}}}, EIGHT, 2),
    ],
    ids=["nothing", "size", "priority", "labels", "other-labels", "who-may-go", "placed"],
)
def test_who_is_like_a_pod_that_nobody_goes_for_does_not_search_again(
    monkeypatch: pytest.MonkeyPatch, between: dict[str, Any], asked: dict[str, Any], searches: int
) -> None:
    found = searched(monkeypatch)
    nodes = {"a": {"pods": {"dear": {**DEAR, "request": {"cpu": 5}}, "low": {**LOW, "request": {"cpu": 3}}}}}
    world, alone = World(GRAPH), World(GRAPH)
    for one in (world, alone):
        one.build({"nodes": nodes})
    assert world.place("first", EIGHT).preemption is None
    for one in (world, alone):
        for name, said in between.items():
            one.scheduler.set_pod(placed(name, "a", said))
    decision = world.place("second", asked)
    assert len(found) == searches
    assert shown(decision) == shown(alone.place("second", asked))


@pytest.mark.parametrize("asked", [{**EIGHT, "affinity": AWAY}, EIGHT], ids=["looks-beyond", "other-second"])
def test_what_is_seen_beyond_rows_or_later_is_searched_for_again(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    found = searched(monkeypatch)
    world = World(GRAPH)
    world.build({"nodes": {"a": {"labels": {"zone": "z"}, **MIXED}}})
    first = world.place("first", asked)
    if "affinity" not in asked:
        world.pass_time(1)
    assert shown(world.place("second", asked)) == shown(first)
    assert len(found) == 2


# --- searches that may ask no more ---------------------------------------------------------------------


def zoned(most: int, *, dear: bool) -> World:
    """Six nodes in one zone, with a pod on each that may go and that keeps others away; and one that may not, perhaps."""
    world = World(policies({"preemption": {"search": {"most": most}}}))
    low = {**LOW, "request": {"cpu": 1}, "labels": {"app": "other"}}
    pods = [
        {f"low{at}": low, **({"dear": {**low, "priority": 9900}} if dear and not at else {})}
        for at in range(6)
    ]
    for at, there in enumerate(pods):
        zone = "z" if dear else f"z{at}"
        world.build({"nodes": {f"n{at}": {"labels": {"zone": zone}, "pods": there}}})
    return world


@pytest.mark.parametrize(("most", "nodes"), [(1, 1), (2, 1), (3, 2), (5000, 6)])
def test_a_search_ends_with_the_best_of_what_it_found(
    monkeypatch: pytest.MonkeyPatch, most: int, nodes: int
) -> None:
    asked: list[str] = []
    exact = Search._exact

    def noted(search: Search, run: Any, node: str) -> Any:
        asked.append(node)
        return exact(search, run, node)

    monkeypatch.setattr(Search, "_exact", noted)
    decision = zoned(most, dear=False).place("pod", {**EIGHT, "affinity": AWAY})
    assert decision.preemption is not None
    assert decision.promised in asked
    assert len(asked) == nodes, "a node that has been begun with is asked about to the end"


def test_nodes_that_a_search_did_not_come_to_are_named_as_such() -> None:
    wanted = {**EIGHT, "affinity": AWAY}
    many, few = (zoned(most, dear=True).place("pod", wanted) for most in (5000, 8))
    assert (
        many.remark == "preemption: 0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules"
    )
    assert few.preemption is None
    assert few.remark == (
        "preemption: 0/6 nodes are available: 2 node(s) didn't match pod anti-affinity rules, 4 node(s) not asked about:"
        " the search had come to its end (preemption.search.most)"
    )


# --- against an oracle ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    name: str
    priority: int
    cpu: int
    started: int
    app: str


PLACED = st.builds(
    Placed,
    st.just(""),
    st.integers(0, 3).map(lambda number: number * 10),
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from(["", "web", "db"]),
)


def documented(
    nodes: Mapping[str, list[Placed]], cpus: int, wanted: int, priority: int, budgets: Mapping[str, int]
) -> tuple[str, list[str], int] | None:
    """What the scheduler's documentation says, in the plainest words: node, victims and broken budgets."""
    candidates = []
    for name, pods in nodes.items():
        lower = [one for one in pods if one.priority < priority]
        staying = [one for one in pods if one.priority >= priority]
        if not lower or wanted > cpus - sum(one.cpu for one in staying):
            continue
        lower.sort(key=lambda one: (-one.priority, one.started))
        left = dict(budgets)
        breaking: list[Placed] = []
        fine: list[Placed] = []
        for one in lower:
            broken = False
            if one.app in left:
                left[one.app] -= 1
                broken = left[one.app] < 0
            (breaking if broken else fine).append(one)
        victims, violations = [], 0
        for one in [*breaking, *fine]:
            if wanted <= cpus - sum(other.cpu for other in staying) - one.cpu:
                staying.append(one)
            else:
                victims.append(one)
                violations += one in breaking
        if victims:
            victims.sort(key=lambda one: (-one.priority, one.started))
            highest = victims[0].priority
            rank = (
                violations,
                highest,
                sum(one.priority + 2**31 for one in victims),
                len(victims),
                -min(one.started for one in victims if one.priority == highest),
            )
            candidates.append((rank, name, victims, violations))
    if not candidates:
        return None
    best = min(candidates, key=lambda one: one[0])
    return best[1], [one.name for one in best[2]], best[3]


@settings(max_examples=60)
@given(
    st.lists(st.lists(PLACED, max_size=5), min_size=1, max_size=4),
    st.integers(1, 8),
    st.sampled_from([5, 15, 25, 100]),
    st.dictionaries(st.sampled_from(["web", "db"]), st.integers(0, 2)),
    st.booleans(),
)
def test_it_is_as_documented(
    said: list[list[Placed]], wanted: int, priority: int, budgets: dict[str, int], by_filters: bool
) -> None:
    cpus = 8
    nodes: dict[str, list[Placed]] = {}
    for at, pods in enumerate(said):
        kept: list[Placed] = []
        for number, one in enumerate(pods):
            if sum(other.cpu for other in kept) + one.cpu <= cpus:
                # Every pod began at a moment of its own, so that importance has no ties.
                began = one.started * 100 + at * 10 + number
                kept.append(Placed(f"p{at}-{number}", one.priority, one.cpu, began, one.app))
        nodes[f"n{at}"] = kept
    # With a filter beside, the same follows from the filters and not from arithmetic.
    world = World(BY_FILTERS if by_filters else GRAPH)
    for name, pods in nodes.items():
        world.scheduler.set_node(node(name, {"allocatable": {"cpu": cpus, "memory": "80Gi"}}))
        for one in pods:
            labels = {"app": one.app} if one.app else {}
            asked = {
                "priority": one.priority,
                "request": {"cpu": one.cpu},
                "labels": labels,
                "started": one.started,
            }
            world.scheduler.set_pod(placed(one.name, name, asked))
    for app, allowed in budgets.items():
        world.scheduler.cache.state.budgets.set(budget(app, allowed))
    decision = world.place("pod", {"priority": priority, "request": {"cpu": wanted}})
    if decision.placed:
        assert any(wanted <= cpus - sum(one.cpu for one in pods) for pods in nodes.values())
        return
    found = decision.preemption
    expected = documented(nodes, cpus, wanted, priority, budgets)
    got = None if found is None else (found.node, [one.pod[1] for one in found.victims], found.violations)
    assert got == expected


BY_FILTERS = policies(
    {
        "filters": [
            {"name": "NodeResourcesFit", "enabled": False},
            {"name": "room", "require": {"cel": "pod.request.cpu <= node.free.cpu"}},
        ]
    }
)
