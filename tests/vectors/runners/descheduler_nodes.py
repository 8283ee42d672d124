"""Runners of which nodes are too full, or too dear, and which pods they give away for that."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms.descheduling.fragmentation import NodeRequests
from koordpolicy.algorithms.descheduling.merge import merged_plugins
from koordpolicy.algorithms.descheduling.node_levels import (
    LevelNode,
    LevelPod,
    moves_by_node,
    moves_one_by_one,
)
from koordpolicy.algorithms.descheduling.overuse_reason import overuse_reason
from koordpolicy.algorithms.descheduling.scale_down import (
    ScaleDownNode,
    ScaleDownPod,
    ScaleDownRole,
    scale_down_ranking,
)
from tests.vectors.compare import Comparison
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_PLACES: Final = Comparison(absolute=1e-6, relative=1e-6)
_ELSEWHERE: Final = frozenset({"cpu", "memory"})
"""What the other node of the vectors about fragmentation has. They do not show it; `random-fragmentation-37` has pods that ask for
`gpu` stay where they would help most, and no vector has such a pod go.
"""


def _eviction_reason(given: Given) -> Given:
    text = overuse_reason(
        given["usage"],
        given["allocatable"],
        given["high_absolute"],
        given["high_percent"],
        prod=given["prod"],
    )
    return {"text": text}


def _fragmentation(given: Given) -> Given:
    pods = given["pods"]
    requested: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod["request"].items():
            requested[name] = requested.get(name, 0) + amount
    node = NodeRequests(given["allocatable"], requested, given["resources"])
    candidates = [
        pod
        for pod in pods
        if pod.get("evictable", True)
        and pod.get("fits_elsewhere", True)
        and not any(amount and name not in _ELSEWHERE for name, amount in pod["request"].items())
    ]
    best = node.best(
        [pod["request"] for pod in candidates],
        given["imbalance_threshold"],
        given["min_improvement_threshold"],
    )
    answer: dict[str, Any] = {"score": node.imbalance(), "evicted": None}
    if best is not None:
        answer |= {"evicted": candidates[best.candidate]["name"], "gain": best.gain}
    return answer


def _scale_down_rank(given: Given) -> Given:
    nodes = [
        ScaleDownNode(node["name"], node["allocatable"], [_scaled(pod) for pod in node["pods"]])
        for node in given["nodes"]
    ]
    ranking = scale_down_ranking(nodes, given["weights"])
    return {
        "ranked": [{"pod": one.pod.name, "node": one.node, "rank": one.rank} for one in ranking.ranked],
        "node_scores": {name: "inf" if np.isinf(score) else score for name, score in ranking.scores.items()},
    }


def _scaled(pod: Given) -> ScaleDownPod:
    return ScaleDownPod(
        pod["namespace"], pod["name"], ScaleDownRole(pod["role"]), pod["request"], pod["created_at"]
    )


def _custom_priority(given: Given) -> Given:
    levels: list[list[LevelNode]] = [[] for _ in given["levels"]]
    for node in given["nodes"]:
        labels = node["labels"]
        fitting = [at for at, one in enumerate(given["levels"]) if labels.get(one["key"]) == one["value"]]
        if fitting:
            levels[fitting[0]].append(_level_node(node))
    assert all(one["name"] for one in given["levels"])
    if given["mode"] == "BestEffort":
        found = moves_one_by_one(levels, _fits)
    else:
        found = moves_by_node(levels, _fits)
    answer: dict[str, Any] = {"evicted": [one.pod.name for one in found.moves]}
    return answer | ({"drained_nodes": list(found.drained)} if found.drained else {})


def _level_node(node: Given) -> LevelNode:
    pods = [LevelPod("", pod["name"], pod["request"]) for pod in node["pods"]]
    free = {
        name: amount - sum(pod.requests.get(name, 0) for pod in pods)
        for name, amount in node["allocatable"].items()
    }
    return LevelNode(node["name"], free, pods)


def _fits(pod: LevelPod, node: LevelNode) -> bool:
    return all(amount <= node.free.get(name, 0) for name, amount in pod.requests.items())


def _plugin_merge(given: Given) -> Given:
    return {"result": merged_plugins(given["defaults"], given["enabled"], given["disabled"])}


RUNNERS: Mapping[str, Runner] = {
    "eviction_reason": Runner(_eviction_reason),
    "fragmentation": Runner(_fragmentation, _PLACES),
    "scale_down_rank": Runner(_scale_down_rank, _PLACES),
    "custom_priority": Runner(_custom_priority),
    "plugin_merge": Runner(_plugin_merge),
}
