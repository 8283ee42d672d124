"""CPU on nodes whose CPU is sold a second time: pods with CPUs of their own take physical ones.

Such a node publishes its CPUs times a ratio, and ordinary pods are content with a share of that. A pod
that owns CPUs takes them whole, and so costs its request times the ratio; so do those that are there.
"""

from typing import Final

import numpy as np

from koordpolicy.mechanism.columns import Column, Mask

INSUFFICIENT: Final = "Insufficient amplified cpu"


def short_of_cpu(
    request: int, *, binds: bool, ratio: "np.ndarray[tuple[int], np.dtype[np.float64]]", allocatable: Column,
    requested: Column, bound: Column,
) -> Mask:  # fmt: skip
    """The nodes without amplified CPU for a pod; amounts in millicores.

    `binds` says whether the pod gets CPUs of its own; `bound` are the CPUs on each node that pods own.
    Nodes with a ratio of 1 or less are not looked at, and a pod without a request fits.
    """
    if request <= 0:
        return np.zeros(len(allocatable), np.bool_)
    wanted = np.ceil(request * ratio).astype(np.int64) if binds else np.full(len(allocatable), request)
    owned = (requested >= bound) & (bound > 0)
    used = np.where(owned, requested - bound + np.ceil(bound * ratio).astype(np.int64), requested)
    return (ratio > 1.0) & (wanted > allocatable - used)
