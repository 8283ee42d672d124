"""How much of what is free of devices usual pods could not use, and what a pod changes of that, node by node in columns.

The measure and its use as a score are those of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (Weng et al., USENIX ATC 2023). Amounts of devices are in the unit in which they are measured, percent of a
device as a rule; CPU in millicores. Shapes: N nodes, W devices at most on one, M sorts of usual pods, L levels of CPU.

Nothing is worked out twice: what is lost on a node follows from what its devices have free, whichever of them, their model, and
which usual pods its CPU would do for. Most nodes are alike in that, so it is kept by the state that they are in.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.usual_pod import UsualPod, usual_pod
from koordpolicy.model.distinct import distinct

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Texts = NDArray[np.object_]

_AT_ONCE: Final = 1 << 20
"""Combinations of states, devices and sorts of pods that are held in memory at once."""

_KEPT: Final = 1 << 23
"""Numbers that are kept of states: 64 MiB."""


def usual_pods(listed: Mapping[str, int]) -> "UsualPods | None":
    """Sorts of pods with their weights; None where there are none. Raises ValueError."""
    found = [usual_pod(text, weight) for text, weight in listed.items()]
    return UsualPods(found) if any(one.weight for one in found) else None


class UsualPods:
    """What pods usually ask for. All that is `lost` is to be divided by `weight`, the sum of theirs: up to there, whole weights and
    amounts give whole numbers, and what does not change fragmentation changes it by 0, not by what rounding leaves.
    """

    __slots__ = ("_able", "_counts", "_each", "_levels", "_pods", "weight")

    def __init__(self, pods: Sequence[UsualPod]) -> None:
        self._pods = tuple(
            one for one in pods if one.devices
        )  # others can use no device: all of it is lost to them
        self._each = np.array([one.each for one in self._pods], np.int64)
        self._counts = np.array([one.devices for one in self._pods], np.int64)
        self.weight: Final = sum(one.weight for one in pods) or 1
        cpus = np.array([one.cpu for one in self._pods], np.int64)
        self._levels = distinct(cpus)
        enough = np.searchsorted(self._levels, cpus)[:, None] < np.arange(len(self._levels) + 1)
        weights = np.array([one.weight for one in self._pods], np.float64)
        self._able = np.where(enough, weights[:, None], 0.0)
        """The weight of each sort of pods where its CPU is there (M, L)."""

    @property
    def levels(self) -> int:
        """How many levels of CPU there are: below what any of the pods asks for, ..., enough for each of them."""
        return len(self._levels) + 1

    def level(self, cpu: Any) -> Whole:
        """The level of so much CPU (N)."""
        found: Whole = np.searchsorted(self._levels, cpu, side="right")
        return found

    def allowed(self, model: str) -> tuple[bool, ...]:
        """Which sorts of pods can use devices of a model."""
        return tuple(not one.models or model in one.models for one in self._pods)

    def lost(self, free: Whole, allowed: NDArray[np.bool_]) -> Real:
        """How much of what is free (N, W) is lost to usual pods, by the level of CPU (N, L). `allowed` (N, M)."""
        enough = free[:, None, :] >= self._each[None, :, None]  # (N, M, W)
        usable = np.where(enough, free[:, None, :], 0).sum(axis=2)
        usable[(enough.sum(axis=2) < self._counts) | ~allowed] = 0
        whole = free.sum(axis=1)[:, None] * float(self.weight)
        found: Real = whole - usable.astype(np.float64) @ self._able
        return found

    def lost_after(self, free: Whole, allowed: NDArray[np.bool_], each: int) -> Real:
        """The same once one device has so much less (N, W, L), device by device; infinite where it has not so much."""
        enough = free[:, None, :] >= self._each[None, :, None]  # (N, M, W)
        amounts = np.where(enough, free[:, None, :], 0)
        less = free - each
        still = less[:, None, :] >= self._each[None, :, None]
        counts = enough.sum(axis=2)[:, :, None] - enough + still
        usable = amounts.sum(axis=2)[:, :, None] - amounts + np.where(still, less[:, None, :], 0)
        usable[(counts < self._counts[None, :, None]) | ~allowed[:, :, None]] = 0
        found: Real = (free.sum(axis=1) - each)[:, None, None] * float(self.weight) - (
            usable.transpose(0, 2, 1).astype(np.float64) @ self._able
        )
        found[less < 0] = np.inf
        return found


class KeptFragmentation:
    """What is lost on nodes as they are, and with one more pod. `follow` says which state the devices of nodes are in.

    Of several devices a pod is supposed to get those with least free that will do.
    """

    __slots__ = (
        "_after", "_allowed", "_free", "_kinds", "_lost", "_models", "_number_of", "_of_one", "_states", "usual",
    )  # fmt: skip

    def __init__(self, usual: UsualPods) -> None:
        self.usual: Final = usual
        self._states: Whole = np.zeros(0, np.int64)
        """The number of each node's state."""
        self._models: dict[str, int] = {}
        self._kinds: dict[tuple[bool, ...], int] = {}
        self._clear(0)

    def _clear(self, width: int) -> None:
        self._number_of: dict[tuple[int, bytes], int] = {}
        self._free: Whole = np.zeros((0, width), np.int64)
        self._allowed: NDArray[np.bool_] = np.zeros((0, len(self.usual.allowed(""))), np.bool_)
        self._lost: Real = np.zeros((0, self.usual.levels))
        self._after: dict[tuple[int, int], Real] = {}
        self._of_one: dict[tuple[int, int], Real] = {}

    def follow(self, free: Whole, models: Texts, rows: "Sequence[int] | None" = None) -> None:
        """What the devices of nodes have free now, and their models; only these rows differ from before (None: any may)."""
        if rows is None or free.shape != (len(self._states), self._free.shape[1]) or self._full:
            if free.shape[1] != self._free.shape[1] or self._full:
                self._clear(free.shape[1])
            self._states = np.zeros(len(free), np.int64)
            rows = range(len(free))
        if not rows:
            return
        where = np.fromiter(rows, np.int64)
        ordered = np.sort(free[where], axis=1)
        self._states[where] = self._numbers(ordered, models[where].tolist())

    @property
    def _full(self) -> bool:
        return self._lost.size * (1 + len(self._after)) > _KEPT

    def _numbers(self, ordered: Whole, models: Sequence[str]) -> list[int]:
        numbers, fresh = [], []
        for row, model in zip(ordered, models, strict=True):
            kind = self._models.get(model)
            if kind is None:
                allowed = self.usual.allowed(model)
                kind = self._models[model] = self._kinds.setdefault(allowed, len(self._kinds))
            key = kind, row.tobytes()
            number = self._number_of.get(key)
            if number is None:
                number = self._number_of[key] = len(self._number_of)
                fresh.append((row, self.usual.allowed(model)))
            numbers.append(number)
        if fresh:
            self._grow([row for row, _ in fresh], [allowed for _, allowed in fresh])
        return numbers

    def _grow(self, rows: Sequence[Whole], allowed: Sequence[tuple[bool, ...]]) -> None:
        """New states have come."""
        first, count = len(self._number_of) - len(rows), len(self._number_of)
        if count > len(self._free):
            size = max(64, 2 * count)
            self._free, self._allowed = _longer(self._free, size), _longer(self._allowed, size)
            self._lost = _longer(self._lost, size)
            self._after = {asked: _longer(known, size, np.nan) for asked, known in self._after.items()}
        self._free[first:count], self._allowed[first:count] = rows, allowed
        for part in self._parts(range(first, count)):
            self._lost[part] = self.usual.lost(self._free[part], self._allowed[part])

    def _parts(self, numbers: Sequence[int]) -> Iterable[Any]:
        """So many states at a time as are to be in memory at once."""
        step = max(1, _AT_ONCE // max(1, self._free.shape[1] * self._allowed.shape[1]))
        for at in range(0, len(numbers), step):
            yield np.array(numbers[at : at + step], np.int64)

    def drops(self, cpu: Whole, asked_cpu: int, each: int, count: int, rows: "Whole | None" = None) -> Real:
        """How much fragmentation falls on each node, or on some, if a pod comes there that asks so much of so many devices; -inf
        where they have not that much. `cpu` is what those nodes have to spare.
        """
        states = self._states if rows is None else self._states[rows]
        level, left = self.usual.level(cpu), self.usual.level(cpu - asked_cpu)
        before = self._lost[states, level]
        if count == 0:
            return self._shares(before - self._lost[states, left])
        asked = each, count
        known = self._after.get(asked)
        if known is None:
            known = self._after[asked] = np.full(self._lost.shape, np.nan)
        after = known[states, left]
        missing = np.isnan(after)
        if missing.any():
            for part in self._parts(distinct(states[missing]).tolist()):
                known[part] = self._lost_after(part, each, count)
            after = known[states, left]
        return self._shares(before - after)

    def _shares(self, weighted: Real) -> Real:
        """What it is of the weight of all usual pods."""
        found: Real = weighted / self.usual.weight
        return found

    def _lost_after(self, states: Whole, each: int, count: int) -> Real:
        free, allowed = self._free[states], self._allowed[states]
        if count == 1:
            best: Real = self.usual.lost_after(free, allowed, each).min(axis=1, initial=np.inf)
            return best
        fits = free >= each
        taken = fits & (np.cumsum(fits, axis=1) <= count)
        found = self.usual.lost(np.where(taken, free - each, free), allowed)
        found[fits.sum(axis=1) < count] = np.inf
        return found

    def fragmentation(self, cpu: Whole) -> float:
        """How much is lost on all nodes together. `cpu` is what they have to spare (N)."""
        return float(self._lost[self._states, self.usual.level(cpu)].sum() / self.usual.weight)

    def drops_of_devices(
        self, row: int, free: Sequence[int], cpu: int, asked_cpu: int, each: int
    ) -> list[float]:
        """The same of each device of one node of which a pod asks one; `free` is what they have."""
        state = int(self._states[row])
        known = self._of_one.get((state, each))
        if known is None:
            if len(self._of_one) >= len(self._lost):
                self._of_one.clear()
            one = np.array([state])
            known = self.usual.lost_after(self._free[one], self._allowed[one], each)[0]
            self._of_one[state, each] = known
        levels = self.usual.level(np.array([cpu, cpu - asked_cpu]))
        before = self._lost[state, levels[0]]
        falls = self._shares(before - known[:, levels[1]]).tolist()
        by_free = dict(zip(self._free[state].tolist(), falls, strict=True))
        return [by_free[one] for one in free]


def _longer(known: NDArray[Any], size: int, filled: float = 0) -> NDArray[Any]:
    """The same array with more rows."""
    found = np.full((size, *known.shape[1:]), filled, known.dtype)
    found[: len(known)] = known
    return found


def gradient(drop: Real, scale: float) -> Whole:
    """Whole scores from 0 to 100 of drops: 50 where nothing changes. `scale` is the drop that counts as one step."""
    with np.errstate(over="ignore"):
        found: Whole = np.floor(100.0 / (1.0 + np.exp(-drop / scale))).astype(np.int64)
    return found
