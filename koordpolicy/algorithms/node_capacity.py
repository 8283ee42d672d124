"""What a node really offers: less what is reserved, and CPUs that count more than once."""

from collections.abc import Collection
from dataclasses import dataclass

from koordpolicy.algorithms.amplified import short_of_cpu_one
from koordpolicy.model.node import NodeReservation
from koordpolicy.model.reading import Amounts


def trimmed_allocatable(
    allocatable: Amounts, reservation: NodeReservation | None, kept: Collection[str]
) -> Amounts:
    """Allocatable amounts less the reservation, at least zero.

    Nothing changes when the reservation only keeps CPUs apart. Resources in `kept` stay: they were
    published with the reservation already taken off.
    """
    if reservation is None or not reservation.trims:
        return allocatable
    trimmed = dict(allocatable)
    for resource, amount in reservation.resources.items():
        if resource in allocatable and resource not in kept:
            trimmed[resource] = max(0, allocatable[resource] - amount)
    return trimmed


@dataclass(frozen=True, slots=True)
class AmplifiedCpu:
    """The CPU of a node whose published amount is `ratio` times the physical one; millicores.

    `bound` is the physical CPU held by pods with CPUs of their own, `requested` what all pods request.
    """

    ratio: float
    allocatable: int
    requested: int
    bound: int

    def fits(self, request: int, *, binds: bool) -> bool:
        """Whether a pod's request has room when bound CPUs count at their amplified size.

        A request of 0 always fits. With a ratio up to 1 there is nothing to check beyond plain fit.
        """
        short = short_of_cpu_one(request, binds=binds)
        return not short(self.ratio, self.allocatable, self.requested, self.bound)
