"""Moving pods from dearer nodes to cheaper ones: CustomPriority of Koordinator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Amounts = Mapping[str, int]

BASIC: Final = ("cpu", "memory")
MOST_MISSES: Final = 5
"""After so many pods in a row that fit nowhere, the others of a node are not tried."""


@dataclass(frozen=True, slots=True)
class LevelPod:
    """A pod that may go; `requests` by resource name."""

    namespace: str
    name: str
    requests: Amounts

    @property
    def sort_key(self) -> tuple[int, int, str, str]:
        """Small pods go first."""
        return (
            self.requests.get("cpu", 0),
            self.requests.get("memory", 0),
            self.namespace,
            self.name,
        )


@dataclass(frozen=True, slots=True)
class LevelNode:
    """A node of a level: what it has left, and the pods on it that may go."""

    name: str
    free: Amounts
    pods: Sequence[LevelPod]


@dataclass(frozen=True, slots=True)
class LevelMove:
    """A pod that is to leave `source`."""

    source: str
    pod: LevelPod


@dataclass(frozen=True, slots=True)
class LevelMoves:
    """What is to be moved, in its order, and the nodes that become empty of pods that may go."""

    moves: Sequence[LevelMove]
    drained: Sequence[str] = ()


Fits = Callable[[LevelPod, LevelNode], bool]
"""Whether a pod may run on a node as it is now, whatever else is to be moved there."""


def moves_one_by_one(
    levels: Sequence[Sequence[LevelNode]], fits: Fits, most_misses: int = MOST_MISSES
) -> LevelMoves:
    """Each pod that fits some node of a later level, each looked at as if it were the only one."""
    moves: list[LevelMove] = []
    for place, sources in enumerate(levels):
        targets = [node for level in levels[place + 1 :] for node in level]
        for source in sources if targets else ():
            misses = 0
            for pod in sorted(source.pods, key=lambda one: one.sort_key):
                if any(fits(pod, target) for target in targets):
                    misses = 0
                    moves.append(LevelMove(source.name, pod))
                    continue
                misses += 1
                if misses == most_misses:
                    break
    return LevelMoves(moves)


def moves_by_node(levels: Sequence[Sequence[LevelNode]], fits: Fits) -> LevelMoves:
    """All pods of a node that fit together on nodes of later levels, or none of it.

    What is to be moved counts at its target from then on.
    """
    left = {node.name: dict(node.free) for level in levels for node in level}
    moves: list[LevelMove] = []
    drained: list[str] = []
    for place, sources in enumerate(levels):
        targets = [node for level in levels[place + 1 :] for node in level]
        for source in sources if targets else ():
            pods = sorted(source.pods, key=lambda one: one.sort_key)
            taken = _placed(pods, targets, left, fits)
            if taken is None or not pods:
                continue
            left = taken
            moves.extend(LevelMove(source.name, pod) for pod in pods)
            drained.append(source.name)
    return LevelMoves(moves, drained)


def _placed(
    pods: Sequence[LevelPod],
    targets: Sequence[LevelNode],
    left: Mapping[str, Mapping[str, int]],
    fits: Fits,
) -> dict[str, dict[str, int]] | None:
    """What nodes have left with all the pods, each on the first target that takes it; None where one fits nowhere."""
    tried = {name: dict(amounts) for name, amounts in left.items()}
    for pod in pods:
        for target in targets:
            room = tried[target.name]
            if fits(pod, target) and all(pod.requests.get(name, 0) <= room[name] for name in room):
                for name in room:
                    room[name] -= pod.requests.get(name, 0)
                break
        else:
            return None
    return tried
