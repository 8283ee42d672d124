"""Totals kept up to date row by row are those that would be computed from scratch."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster import nodes
from koordpolicy.language.cel.lower.columns import kept, program
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node, Taint
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.table.access_path import AccessPath
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.evaluation import Evaluation, EvaluationCache, cache, evaluate
from tests.unit.scheduler.world import START, policies

GRAPH = policies()


def a_node(name: str, chance: random.Random) -> Node:
    taints = [Taint("soft", "PreferNoSchedule", "")] if chance.random() < 0.3 else []
    room = {"cpu": chance.choice((2, 4, 8)) * 1000, "memory": chance.choice((4, 8)) << 30, "pods": 6}
    return Node(name, labels={"disk": chance.choice(("ssd", "hdd"))}, allocatable=room, taints=tuple(taints))


def a_pod(name: str, kind: int) -> Pod:
    asked = {"cpu": 300 + 200 * kind, "memory": (256 + 128 * kind) << 20}
    preferred = {"preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, **preferred}]}
    }
    return Pod(
        name,
        uid=name,
        scheduler_name="koord-scheduler",
        priority=9500,
        containers=(Container("main", requests=asked, limits=asked),),
        raw={"spec": {"affinity": affinity} if kind % 2 else {}},
    )


Step = Callable[[Scheduler, random.Random, int], None]


def node_changes(scheduler: Scheduler, chance: random.Random, at: int) -> None:
    scheduler.set_node(a_node(f"n{chance.randrange(12)}", chance))


def pod_goes(scheduler: Scheduler, chance: random.Random, at: int) -> None:
    placed = [view.pod.key for view, *_ in scheduler.cache.pods()]
    if placed:
        scheduler.remove_pod(chance.choice(placed))


def load_changes(scheduler: Scheduler, chance: random.Random, at: int) -> None:
    usage = {"cpu": chance.randrange(6_000), "memory": chance.randrange(6) << 30}
    scheduler.set_metric(NodeMetric(f"n{chance.randrange(12)}", updated_at=START, node_usage=usage))


def nothing(scheduler: Scheduler, chance: random.Random, at: int) -> None:
    pass


STEPS: tuple[Step, ...] = (node_changes, pod_goes, load_changes, nothing, nothing, nothing)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, AccessPath.ONE_BY_ONE, AccessPath.GATHER]))
def test_what_is_kept_is_what_would_be_computed(seed: int, path: AccessPath | None) -> None:
    """However rows are read: as is quickest with so few nodes (None), or as with very many."""
    with pytest.MonkeyPatch.context() as patch:
        if path is not None:
            for module in (cache, nodes, program, kept):
                patch.setattr(module, "access_path", lambda *_, **__: path)
        keep_up(random.Random(seed))


def keep_up(chance: random.Random) -> None:
    """Let a cluster change, and compare what is kept about each pod with what would be computed."""
    scheduler = Scheduler(GRAPH, lambda: START, draw=chance.randrange, explained=0, refusals=False)
    for at in range(12):
        scheduler.set_node(a_node(f"n{at}", chance))
    for at in range(40):
        chance.choice(STEPS)(scheduler, chance, at)
        pod = a_pod(f"p{at}", chance.randrange(3))
        scheduler.set_pod(pod)
        decided = scheduler.schedule_next()
        if decided is None:
            continue
        cycle = scheduler.framework.cycle(pod)
        scheduler.framework.decide(pod)
        known = scheduler.framework.evaluation(cycle)
        evaluation = evaluate(cycle, scheduler.cache.table)
        assert_equal(known, evaluation)
        ranking, fresh = known.ranking(), evaluation.ranking()
        assert ranking is not None
        assert fresh is not None
        assert ranking.count == fresh.count
        np.testing.assert_array_equal(ranking.totals, fresh.totals)


def assert_equal(known: Evaluation, evaluation: Evaluation) -> None:
    for filtered, again in zip(known.filters, evaluation.filters, strict=True):
        one, other = filtered.verdicts, again.verdicts
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.reasons == other.reasons
            np.testing.assert_array_equal(one.refused, other.refused)
            np.testing.assert_array_equal(one.unresolvable, other.unresolvable)
        assert_same(filtered.accepted, again.accepted)
    for scored, anew in zip(known.scores, evaluation.scores, strict=True):
        assert scored.weight == anew.weight
        assert_same(scored.scores, anew.scores)


def assert_same(array: Scores | None, fresh: Scores | None) -> None:
    assert (array is None) == (fresh is None)
    if array is not None and fresh is not None:
        np.testing.assert_array_equal(array, fresh)


def test_equal_pods_are_followed_node_by_node() -> None:
    chance = random.Random(1)
    scheduler = Scheduler(GRAPH, lambda: START, draw=chance.randrange, explained=0, refusals=False)
    for at in range(12):
        scheduler.set_node(a_node(f"n{at}", chance))
    for at in range(4):
        scheduler.set_pod(a_pod(f"p{at}", 0))
        assert scheduler.schedule_next() is not None
    assert [entry.incremental is not None for entry in scheduler.framework._evaluations._entries] == [True]


def test_another_table_or_profile_has_answers_of_its_own() -> None:
    large, small = (Scheduler(GRAPH, lambda: START, explained=0, refusals=False) for _ in range(2))
    for at in range(12):
        for scheduler, cpu in ((large, 8000), (small, 100)):
            scheduler.set_node(Node(f"n{at}", allocatable={"cpu": cpu, "memory": 8 << 30, "pods": 6}))
    assert large.cache.table.version == small.cache.table.version
    cycle, evaluations = large.framework.cycle(a_pod("p", 0)), EvaluationCache()
    for scheduler, feasible in ((large, 12), (large, 12), (small, 0), (large, 12)):
        ranking = evaluations.get(cycle, scheduler.cache.table).ranking()
        assert ranking is not None
        assert ranking.count == feasible


def test_scores_count_on_nodes_that_become_feasible_when_none_was() -> None:
    scheduler = Scheduler(GRAPH, lambda: START, explained=0, refusals=False)
    for at in range(12):
        room = {"cpu": 1000 * (1 + at), "memory": 8 << 30, "pods": 6}
        scheduler.set_node(Node(f"n{at}", allocatable=room))
        whole = Container("main", requests={"cpu": room["cpu"]}, limits={"cpu": room["cpu"]})
        scheduler.set_pod(Pod(f"big{at}", uid=f"big{at}", node_name=f"n{at}", containers=(whole,)))
    pod = a_pod("p", 0)
    for _ in range(2):
        assert not scheduler.framework.decide(pod).placed
    for at in (3, 7):
        scheduler.remove_pod(("default", f"big{at}"))
    decided = scheduler.framework.decide(pod)
    scheduler.framework.forget_answers()
    assert decided.node == scheduler.framework.decide(pod).node == "n7"
