"""What counts of the CPUs and zones that a pod's annotation says are its own: whoever may change the pod may write there anything.

A pod has no more than it requests, of a node no more than that has. What is said beyond counts for nothing, and is told.
"""

import math
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from koordpolicy.model.cpu_topology import NO_ALLOCATION, Allocation
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts

MILLI: Final = 1000


class Heeded(NamedTuple):
    """What counts, and in words what does not."""

    allocation: Allocation = NO_ALLOCATION
    ignored: tuple[str, ...] = ()


def heeded(
    said: Allocation,
    request: Amounts,
    *,
    owns: bool,
    spare: int = 0,
    there: Collection[int] = (),
    ratio: float = 1.0,
) -> Heeded:
    """What counts of what is said of a pod with this request, CPU in millicores.

    `owns` says whether it may have CPUs of its own: as many as it requests in whole, and `spare` more. `there` are the CPUs of the node,
    none where they are not known, `ratio` by how much its CPU is sold: some schedulers note amounts of zones as they are sold.
    """
    ignored: list[str] = []
    own = said.cpus
    if own and not owns:
        ignored.append("all CPUs, as pods of its class own none here")
        own = frozenset()
    if there and not own <= (known := frozenset(there)):
        ignored.append("CPUs that the node does not have")
        own &= known
    most = request.get(CPU, 0) // MILLI + spare
    if len(own) > most:
        ignored.append(f"{len(own) - most} of {len(own)} CPUs, as it requests {request.get(CPU, 0) // MILLI}")
        own = frozenset(sorted(own)[:most])
    zones = _within(said.zones, {**request, CPU: math.ceil(request.get(CPU, 0) * max(1.0, ratio))})
    if zones != said.zones:
        ignored.append("amounts of NUMA zones beyond its requests")
    return Heeded(Allocation(own, zones), tuple(ignored))


def _within(zones: Mapping[int, Amounts], request: Amounts) -> dict[int, Amounts]:
    """Amounts of zones, in the order in which they are said, until what is requested is used up."""
    left, found = dict(request), dict[int, Amounts]()
    for zone, amounts in zones.items():
        kept = {name: min(amount, left.get(name, 0)) for name, amount in amounts.items()}
        for name, amount in kept.items():
            if amount:
                left[name] -= amount
        if any(kept.values()):
            found[zone] = {name: amount for name, amount in kept.items() if amount or not amounts[name]}
    return found
