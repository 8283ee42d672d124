"""What policy says of nodes by their devices, asked once of nodes that are alike in them.

What a node is worth follows from how much each of its devices has free and who has the rest, so that in a pool most nodes
share an answer, and after a decision one node has another.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.device_need import WHOLE, DeviceNeed
from koordpolicy.cluster.prepared import PreparedDecision
from koordpolicy.model.distinct import distinct
from koordpolicy.model.facts import Record

_STATES: Final = 16_384
"""States of nodes that are told apart; with more all are forgotten."""

_ASKED: Final = 256
"""Sorts of pods of which answers are kept."""

_UNKNOWN: Final = np.iinfo(np.int64).min

SHARED: Final = "shared"
"""The sort of pods that have a part of a device."""


@dataclass(frozen=True, slots=True)
class DevicesState:
    """The devices of one type on a node: what each healthy one has free in percent, ascending, and how many pods of which sort."""

    free: tuple[int, ...]
    sorts: tuple[tuple[str, int], ...]


def sort_of(count: int, each: int) -> str:
    """The sort of pods that have so many devices, so much of each in percent."""
    return SHARED if each < WHOLE else str(count)


def sorts_of(pods: Sequence[tuple[int, int]]) -> tuple[tuple[str, int], ...]:
    """How many pods there are of each sort; of each pod how many devices it has and how much of each."""
    return tuple(sorted(Counter(sort_of(*one) for one in pods).items()))


def devices_facts(state: DevicesState, count: int, each: int) -> Record:
    """A node's devices, and a pod that asks so much of so many, as facts."""
    taken = [one for one in state.free if one >= each][:count]
    return {
        "count": len(state.free),
        "idle": state.free.count(WHOLE),
        "free": sum(state.free),
        "sorts": dict(state.sorts),
        "asked.count": count,
        "asked.each": each,
        "asked.sort": sort_of(count, each) if count else "",
        "taken.idle": taken.count(WHOLE),
        "taken.free": sum(taken),
    }


@dataclass(slots=True)
class DeviceScores:
    """The answers. `follow` says in which state nodes are."""

    _states: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _numbers: dict[DevicesState, int] = field(default_factory=dict)
    _listed: list[DevicesState] = field(default_factory=list)
    _known: dict[Any, NDArray[np.int64]] = field(default_factory=dict)

    def follow(self, nodes: int, rows: Sequence[int] | None, state_of: Callable[[int], DevicesState]) -> None:
        """So many nodes there are, of which only these may be in another state than before (None: any)."""
        if rows is None or nodes != len(self._states) or len(self._listed) > _STATES:
            self._numbers.clear()
            self._listed.clear()
            self._known.clear()
            self._states, rows = np.zeros(nodes, np.int64), range(nodes)
        for row in rows:
            state = state_of(row)
            number = self._numbers.get(state)
            if number is None:
                number = self._numbers[state] = len(self._listed)
                self._listed.append(state)
            self._states[row] = number

    def of(
        self, decision: PreparedDecision, pod: Record, need: DeviceNeed, each: int, rows: Any
    ) -> NDArray[np.int64]:
        """What policy says of the nodes of these rows for a pod; 0 where it says nothing. Raises CelError."""
        states = self._states[rows]
        known = self._answers(decision, pod, need.count, each)
        found: NDArray[np.int64] = known[states]
        missing = found == _UNKNOWN
        if missing.any():
            for number in distinct(states[missing]).tolist():
                facts = devices_facts(self._listed[number], need.count, each)
                known[number] = _worth(decision, pod, facts)
            found = known[states]
        return found

    def _answers(self, decision: PreparedDecision, pod: Record, count: int, each: int) -> NDArray[np.int64]:
        said = tuple(repr(pod.get(path)) for root, path in sorted(decision.facts) if root == "pod")
        key = count, each, said
        known = self._known.get(key)
        if known is None and len(self._known) >= _ASKED:
            del self._known[next(iter(self._known))]
        if known is None or len(known) < len(self._listed):
            longer = np.full(max(64, 2 * len(self._listed)), _UNKNOWN)
            if known is not None:
                longer[: len(known)] = known
            known = self._known[key] = longer
        return known


def _worth(decision: PreparedDecision, pod: Record, facts: Record) -> int:
    found = decision.value({"pod": pod, "devices": facts})
    return 0 if found is None else int(found)
