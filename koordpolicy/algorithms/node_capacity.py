"""What a node really offers: less what is reserved."""

from collections.abc import Collection

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
