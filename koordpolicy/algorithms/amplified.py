"""CPU on nodes whose CPU is sold a second time: pods with CPUs of their own take physical ones.

Such a node publishes its CPUs times a ratio, and ordinary pods are content with a share of that. A pod
that owns CPUs takes them whole, and so costs its request times the ratio; so do those that are there.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Column, Mask

INSUFFICIENT: Final = "Insufficient amplified cpu"


Ratios = NDArray[np.float64]

_ALL: Final = 2.0**62
"""More than any node has; what a ratio without measure makes of an amount counts as that."""

ShortOfCpu = Callable[[float, int, int, int], bool]
"""Whether a node is short, of its ratio, what it has, what is requested there, and what pods own of it."""


def short_of_cpu_one(request: int, *, binds: bool) -> ShortOfCpu:
    """`short_of_cpu` of one node after the other, for one pod."""

    def short(ratio: float, allocatable: int, requested: int, bound: int) -> bool:
        if request <= 0 or not ratio > 1.0:
            return False
        wanted = amplified_cpu(request, ratio) if binds else request
        if requested >= bound > 0:
            requested = min(requested, int(_ALL)) + amplified_cpu(bound, ratio) - bound
        return wanted > allocatable - requested

    return short


def amplified_cpu(amount: int, ratio: float) -> int:
    """So many millicores times a ratio, rounded up; a ratio of 1 or less changes nothing."""
    return math.ceil(min(float(amount) * ratio, _ALL)) if ratio > 1.0 else amount


def short_of_cpu(
    request: int, *, binds: bool, ratio: Ratios, allocatable: Column, requested: Column, bound: Column
) -> Mask:  # fmt: skip
    """The nodes without amplified CPU for a pod; amounts in millicores.

    `binds` says whether the pod gets CPUs of its own; `bound` are the CPUs on each node that pods own.
    Nodes with a ratio of 1 or less are not looked at, and a pod without a request fits.
    """
    if request <= 0:
        return np.zeros(len(allocatable), np.bool_)
    wanted = _all_amplified(request, ratio) if binds else np.full(len(allocatable), request)
    owned = (requested >= bound) & (bound > 0)
    most = np.minimum(requested, int(_ALL))
    used = np.where(owned, most - bound + _all_amplified(bound, ratio), requested)
    return (ratio > 1.0) & (wanted > allocatable - used)


def _all_amplified(amount: Column | int, ratio: Ratios) -> Column:
    """Of ratios above 1; the others only have to give some number, as nothing without measure does."""
    finite = np.fmin(np.fmax(ratio, 1.0), _ALL)
    return np.ceil(np.fmin(amount * finite, _ALL)).astype(np.int64)
