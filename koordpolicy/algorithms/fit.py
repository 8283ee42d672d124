"""Does a node have room: the resource filter, for one node and for all nodes at once.

A pod without any request only needs a free pod slot. Everything that is short is reported, not just
the first, so that a message can say what would help.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Amount, Columns, Mask
from koordpolicy.model.protocol import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from koordpolicy.model.reading import Amounts

_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Fit:
    """Which nodes have room.

    `resources` names the checks (`pods` first); row i of `short` says for each node whether check i
    fails, `unresolvable` whether one of them would fail on the empty node too. Both are None where all have room.
    """

    resources: tuple[str, ...]
    count: int
    short: Mask | None = None
    unresolvable: Mask | None = None


def shortage_reason(resource: str) -> str:
    """The text for a resource that is short, `pods` standing for the pod count."""
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


def checked_resources(
    request: Amounts, ignored: Collection[str] = (), ignored_groups: Collection[str] = ()
) -> tuple[str, ...]:
    """The resources to check for a pod, in the order of reasons: cpu, memory, storage, then by name.

    Only what is requested above zero. `ignored` names and `ignored_groups` (what stands before `/`)
    skip extended resources; native and `kubernetes.io` ones are always checked.
    """
    found = [resource for resource in _FIRST if request.get(resource, 0) > 0]
    more = [
        resource
        for resource, asked in request.items()
        if asked > 0 and resource not in _FIRST and resource != PODS
    ]
    if more and (ignored or ignored_groups):
        more = [
            resource
            for resource in more
            if not (resource in ignored or resource.partition("/")[0] in ignored_groups)
            or not is_extended(resource)
        ]
    return (*found, *sorted(more))


Lacking = Callable[[Amounts, Amounts, int], tuple[tuple[bool, ...], bool] | None]
"""Of what a node has, what is requested there, and its number of pods: None where the pod fits, else
which checks fail, and whether one of them would on the empty node too."""


def fit_one(
    request: Amounts, ignored: Collection[str] = (), ignored_groups: Collection[str] = ()
) -> tuple[tuple[str, ...], Lacking]:
    """The checks for a pod by resource, `pods` first, and what says which of them a node fails."""
    resources = checked_resources(request, ignored, ignored_groups)
    wanted = [(resource, request[resource]) for resource in resources]

    def lacking(
        allocatable: Amounts, requested: Amounts, pod_count: int
    ) -> tuple[tuple[bool, ...], bool] | None:
        if pod_count < allocatable.get(PODS, 0):
            for resource, amount in wanted:
                if amount > allocatable.get(resource, 0) - requested.get(resource, 0):
                    break
            else:
                return None  # as most nodes, for which nothing is written down
        fails, unresolvable = [pod_count >= allocatable.get(PODS, 0)], False
        for resource, amount in wanted:
            has = allocatable.get(resource, 0)
            lacks = amount > has - requested.get(resource, 0)
            fails.append(lacks)
            if lacks and amount > has:
                unresolvable = True
        return tuple(fails), unresolvable

    return (PODS, *resources), lacking


def fit_all(
    request: Amounts,
    allocatable: Columns,
    requested: Columns,
    pod_count: Amount,
    ignored: Collection[str] = (),
    ignored_groups: Collection[str] = (),
) -> Fit:
    """What each of all nodes lacks for a pod.

    A resource that a node does not publish counts as 0, the number of pods too.
    """
    resources = (PODS, *checked_resources(request, ignored, ignored_groups))
    count = len(pod_count.numbers)
    short: Mask | None = None
    unresolvable: Mask | None = None
    for row, resource in enumerate(resources):
        has = allocatable[resource]
        used, wanted = (pod_count, 1) if resource == PODS else (requested[resource], request[resource])
        if used.high + wanted <= has.low:
            continue
        lacks = np.less(has.without(used), wanted)
        if not np.count_nonzero(lacks):
            continue
        if short is None or unresolvable is None:
            short, unresolvable = np.zeros((len(resources), count), np.bool_), np.zeros(count, np.bool_)
        short[row] = lacks
        if resource != PODS and wanted > has.low:
            unresolvable |= lacks & (has.numbers < wanted)
    return Fit(resources, count, short, unresolvable)
