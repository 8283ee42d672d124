"""How much of what is free of devices usual pods could not use, and what a pod changes of that, node by node in columns.

The measure and its use as a score are those of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (Weng et al., USENIX ATC 2023). Amounts of devices are in the unit in which they are measured, percent of a
device as a rule; CPU in millicores. Shapes: N nodes, W devices at most on one, M sorts of usual pods.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask

Whole = NDArray[np.int64]
Texts = NDArray[np.object_]

_AT_ONCE: Final = 1 << 21
"""Combinations of nodes, devices and sorts of pods that are held in memory at once."""


@dataclass(frozen=True, slots=True)
class UsualPod:
    """A sort of pods: its CPU, what it asks of each of so many devices, the models that it can use (none: any), its weight."""

    cpu: int
    each: int
    devices: int
    weight: float
    models: frozenset[str] = frozenset()


_SORT: Final = re.compile(r"([0-9]{1,12})m(?: ([0-9]{1,3})x([0-9]{1,12})(?: (\S+))?)?", re.ASCII)


def usual_pod(text: str, weight: float) -> UsualPod:
    """A sort of pods as policy writes it: `4000m`, `4000m 1x50`, `8000m 2x100 A100|H100`. Raises ValueError."""
    found = _SORT.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is no pod such as `4000m 1x50` or `8000m 2x100 A100|H100`")
    if weight < 0:
        raise ValueError(f"the weight of `{text}` is below 0")
    cpu, count, each, models = found.groups()
    return UsualPod(
        int(cpu),
        int(each or 0),
        int(count or 0),
        weight,
        frozenset(models.split("|")) if models else frozenset(),
    )


def usual_pods(listed: Mapping[str, int]) -> "UsualPods | None":
    """Sorts of pods with their weights; None where there are none. Raises ValueError."""
    found = [usual_pod(text, weight) for text, weight in listed.items()]
    return UsualPods(found) if any(one.weight for one in found) else None


class UsualPods:
    """What pods usually ask for; the weights are brought to a sum of 1."""

    __slots__ = ("_counts", "_cpus", "_each", "_pods", "_weights")

    def __init__(self, pods: Sequence[UsualPod]) -> None:
        self._pods = tuple(pods)
        self._cpus = np.array([one.cpu for one in pods], np.int64)
        self._each = np.array([one.each for one in pods], np.int64)
        self._counts = np.array([one.devices for one in pods], np.int64)
        weights = np.array([one.weight for one in pods], np.float64)
        self._weights = weights / weights.sum() if weights.sum() > 0 else weights

    def fragmentation(self, cpu: Whole, free: Whole, models: Texts) -> NDArray[np.float64]:
        """How much of what is free on each node a usual pod cannot use, on average. `cpu` and `models` (N), `free` (N, W)."""
        found = np.zeros(len(cpu), np.float64)
        step = max(1, _AT_ONCE // max(1, free.shape[1] * len(self._pods)))
        for at in range(0, len(cpu), step):
            part = slice(at, at + step)
            found[part] = self._part(cpu[part], free[part], models[part])
        return found

    def _part(self, cpu: Whole, free: Whole, models: Texts) -> NDArray[np.float64]:
        whole = free.sum(axis=1)
        enough = free[:, None, :] >= self._each[None, :, None]  # (N, M, W)
        usable = (enough.sum(axis=2) >= self._counts) & (cpu[:, None] >= self._cpus) & (self._counts > 0)
        usable &= self._allowed(models)
        rest = np.where(enough, 0, free[:, None, :]).sum(axis=2)
        lost: NDArray[np.float64] = np.where(usable, rest, whole[:, None]) @ self._weights
        return lost

    def _allowed(self, models: Texts) -> Mask:
        """Whether a sort of pods can use the devices of a node (N, M)."""
        known, at = np.unique(models.astype(str), return_inverse=True)
        table = [[not one.models or model in one.models for one in self._pods] for model in known.tolist()]
        found: Mask = np.array(table, np.bool_).reshape(len(known), len(self._pods))[at]
        return found


def drops(
    usual: UsualPods, cpu: Whole, free: Whole, models: Texts, asked_cpu: int, each: int, count: int
) -> NDArray[np.float64]:
    """How much fragmentation falls on each node if a pod gets a device there (N, W); -inf where that device is not free enough.

    Of several devices the first ones that are free enough are taken, so that their first column alone tells. A pod without
    devices (`count` 0) has one column.
    """
    before = usual.fragmentation(cpu, free, models)
    left = cpu - asked_cpu
    if count == 0:
        return (before - usual.fragmentation(left, free, models))[:, None]
    fits = free >= each
    found = np.full(free.shape, -np.inf)
    if count == 1:
        rows, cards = np.nonzero(fits)
        after = free[rows]
        after[np.arange(len(rows)), cards] -= each
        found[rows, cards] = before[rows] - usual.fragmentation(left[rows], after, models[rows])
        return found
    taken = fits & (np.cumsum(fits, axis=1) <= count)
    able = fits.sum(axis=1) >= count
    after = np.where(taken, free - each, free)
    found[able, 0] = (before - usual.fragmentation(left, after, models))[able]
    return found


class KeptDrops:
    """The best drop of each node for equal pods: only nodes that have changed since are worked out again."""

    __slots__ = ("_best", "_cpu", "_free", "_models")

    def __init__(self) -> None:
        self._best: NDArray[np.float64] = np.zeros(0)
        self._cpu: Whole = np.zeros(0, np.int64)
        self._free: Whole = np.zeros((0, 0), np.int64)
        self._models: Texts = np.zeros(0, np.object_)

    def best(
        self, usual: UsualPods, cpu: Whole, free: Whole, models: Texts, asked_cpu: int, each: int, count: int
    ) -> NDArray[np.float64]:
        """The greatest drop on each node (N)."""
        if free.shape != self._free.shape:
            changed: Any = np.arange(len(cpu))
            self._best = np.zeros(len(cpu))
        else:
            differs = (cpu != self._cpu) | (free != self._free).any(axis=1) | (models != self._models)
            changed = np.flatnonzero(differs)
        self._cpu, self._free, self._models = cpu.copy(), free.copy(), models.copy()
        if len(changed):
            found = drops(usual, cpu[changed], free[changed], models[changed], asked_cpu, each, count)
            self._best[changed] = found.max(axis=1, initial=-np.inf)
        return self._best


def gradient(drop: NDArray[np.float64], scale: float) -> NDArray[np.int64]:
    """Whole scores from 0 to 100 of drops: 50 where nothing changes. `scale` is the drop that counts as one step."""
    with np.errstate(over="ignore"):
        found: NDArray[np.int64] = np.floor(100.0 / (1.0 + np.exp(-drop / scale))).astype(np.int64)
    return found
