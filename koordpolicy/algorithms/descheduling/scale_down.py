"""Which pods of a workload go first when it shrinks, so that nodes become empty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

Amounts = Mapping[str, int]


class ScaleDownRole(StrEnum):
    """What a pod is to a node that might become empty."""

    ELIGIBLE = "eligible"
    SKIPPED = "skipped"
    """Meant, but it may not go."""
    NON_TARGET = "non_target"


@dataclass(frozen=True, slots=True)
class ScaleDownPod:
    """A pod on a node; `created_at` in seconds, bigger is newer."""

    namespace: str
    name: str
    role: ScaleDownRole
    requests: Amounts
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class ScaleDownNode:
    """A node with its pods that have not ended."""

    name: str
    allocatable: Amounts
    pods: Sequence[ScaleDownPod]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A pod with its place among all that may go."""

    rank: int
    node: str
    pod: ScaleDownPod


@dataclass(frozen=True, slots=True)
class ScaleDownRanking:
    """The pods in their order, and how hard it is to empty each node that has some of them."""

    ranked: Sequence[Ranked]
    scores: Mapping[str, float]


def scale_down_ranking(nodes: Sequence[ScaleDownNode], weights: Mapping[str, float]) -> ScaleDownRanking:
    """Nodes on which least stays go first, then those with the fewest pods that may go; on a node its largest pods, the newest
    of equals. `weights`: of the resources by which size is meant.
    """
    scores = {one.name: _staying(one, weights) for one in nodes if _eligible(one)}
    order = sorted(
        (one for one in nodes if one.name in scores),
        key=lambda one: (scores[one.name], len(_eligible(one)), one.name),
    )
    pods = [(node.name, pod) for node in order for pod in _by_size(node, weights)]
    return ScaleDownRanking([Ranked(at, node, pod) for at, (node, pod) in enumerate(pods)], scores)


def _eligible(node: ScaleDownNode) -> list[ScaleDownPod]:
    return [one for one in node.pods if one.role is ScaleDownRole.ELIGIBLE]


def _by_size(node: ScaleDownNode, weights: Mapping[str, float]) -> list[ScaleDownPod]:
    return sorted(
        _eligible(node),
        key=lambda one: (-_size([one], node, weights), -one.created_at, one.namespace, one.name),
    )


def _staying(node: ScaleDownNode, weights: Mapping[str, float]) -> float:
    goes = _size(_eligible(node), node, weights)
    stays = _size([one for one in node.pods if one.role is not ScaleDownRole.ELIGIBLE], node, weights)
    if goes > 0:
        return stays / goes
    return inf if stays > 0 else 0.0


def _size(pods: Sequence[ScaleDownPod], node: ScaleDownNode, weights: Mapping[str, float]) -> float:
    return sum(
        weight * (sum(one.requests.get(name, 0) for one in pods) / of)
        for name, weight in weights.items()
        if (of := node.allocatable.get(name, 0)) > 0
    )
