"""Scheduler and descheduler come to rest: on random clusters a bounded number of moves is enough, whatever the built-in pack would have moved."""

import os
import random
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.round import Memories
from koordpolicy.graph import RuleGraph
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import mapping
from tests.unit.descheduler.clusters import (
    PROFILE,
    node,
    objects,
    one_round,
    pod,
    relocations_of,
    report,
)
from tests.vectors.policies import document, graph_of

CLUSTERS = int(os.environ.get("KOORDPOLICY_CLUSTERS", "6"))
FOLDERS = frozenset({"classes", "descheduling", "scheduling", "quota", "devices"})
ROUNDS = 30
BY_LOAD = {
    "name": "LowNodeLoad",
    "enabled": True,
    "load": {"high": {"cpu": "65%", "memory": "80%"}, "low": {"cpu": "45%", "memory": "55%"}},
}
BY_REQUESTS = {"name": "FragmentationAware", "enabled": True}


SAID = {"load": [BY_LOAD], "fragmentation": [BY_REQUESTS], "both": [BY_LOAD, BY_REQUESTS]}


def with_strategies(name: str) -> RuleGraph:
    return graph_of(FOLDERS, document("Descheduling", PROFILE, {"strategies": SAID[name]}))


AGAINST_EACH_OTHER = [
    {"name": "HighNodeUtilization", "enabled": True},
    {
        "name": "LowNodeUtilization",
        "enabled": True,
        "relocating": {"better": False},
        "load": {"high": {"cpu": "45%"}, "low": {"cpu": "30%"}},
    },
]
"""One empties nodes into those that the other one relieves."""


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_scheduler_and_descheduler_come_to_rest(seed: int, name: str) -> None:
    moves, pods = _moves(seed, with_strategies(name))
    assert moves is not None, f"after {ROUNDS} rounds pods still move"
    assert moves <= 2 * pods


def test_pods_move_at_all_and_two_strategies_against_each_other_never_rest() -> None:
    # Else what is above could not fail.
    assert sum(_moves(seed, with_strategies("both"))[0] or 0 for seed in range(5)) > 5
    said = {"strategies": AGAINST_EACH_OTHER, "parameters": {"packThresholds": {"value": {"cpu": "40%"}}}}
    graph = graph_of(FOLDERS, document("Descheduling", PROFILE, said))
    assert any(_moves(seed, graph)[0] is None for seed in range(10))


def _moves(seed: int, graph: RuleGraph) -> tuple[int | None, int]:
    """How many moves it takes until nothing moves any more, None where that does not come; and how many pods there are."""
    chance = random.Random(seed)
    nodes = [node(f"n{at}", str(chance.choice((8, 10, 16)))) for at in range(chance.randrange(2, 9))]
    used: dict[str, float] = {}
    pods = []
    for at in range(chance.randrange(2, 40)):
        cpu = chance.choice((0.25, 0.5, 1, 2))
        used[f"p{at}"] = cpu * chance.uniform(0.2, 2.0)
        pods.append(
            pod(f"p{at}", f"n{chance.randrange(len(nodes)) if chance.random() < 0.5 else 0}", str(cpu))
        )
    heard, moves = objects(nodes, pods), 0
    for _ in range(ROUNDS):
        _measure(heard, used)
        found = one_round(graph, heard, Memories(impatient=True), relocations=relocations_of(heard, graph))
        if not found.moves:
            return moves, len(pods)
        for move in found.moves:
            # It is let go, and the scheduler places it anew: where its rehearsal says.
            heard.set_pod(_elsewhere(move.pod, move.target))
        moves += len(found.moves)
    return None, len(pods)


def _measure(heard: ClusterObjects, used: dict[str, float]) -> None:
    for name in heard.nodes:
        sight = heard.sight(name)
        assert sight is not None
        mine = {one.name: f"{int(1000 * used[one.name])}m" for one in sight.pods}
        made: Any = report(name, mine)
        whole = sum(int(1000 * used[one]) for one in mine)
        made["status"]["nodeMetric"]["nodeUsage"]["resources"] = {
            "cpu": f"{whole}m",
            "memory": str(len(mine) << 30),
        }
        heard.set_metric(read_node_metric(made))


def _elsewhere(gone: Pod, target: str) -> Pod:
    spec = {**mapping(gone.raw, "spec"), "nodeName": target}
    return replace(gone, node_name=target, raw={**gone.raw, "spec": spec})
