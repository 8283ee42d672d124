"""What a pod may take of a reservation and of the node around it, and how full a reservation would be.

All amounts as of the model: cpu in millicores, everything else in whole units.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from koordpolicy.algorithms.fit import checked_resources
from koordpolicy.model.protocol import ALLOCATE_RESTRICTED
from koordpolicy.model.reading import NOTHING, Amounts

FULL = 100
"""The score of a reservation that a pod would fill."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """The resources that are short on the node, and inside the reservation."""

    by_node: tuple[str, ...] = ()
    by_reservation: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Whether nothing is."""
        return not self.by_node and not self.by_reservation


def governed(allocatable: Amounts, policy: str, options: Collection[str] | None = None) -> tuple[str, ...]:
    """The resources that a reservation governs, sorted: all that it has, or those of them that its options name.

    Options count where the policy is Restricted; those that name nothing that it has count as none.
    """
    names = tuple(sorted(allocatable))
    if policy == ALLOCATE_RESTRICTED and options:
        return tuple(name for name in names if name in options) or names
    return names


def asks_for(request: Amounts, names: Collection[str]) -> bool:
    """Whether a pod requests any of some resources: a reservation that governs none of them is of no use to it."""
    return any(request.get(name, 0) > 0 for name in names)


def masked(amounts: Amounts, names: Collection[str]) -> dict[str, int]:
    """The amounts of some resources."""
    return {name: amount for name, amount in amounts.items() if name in names}


def sum_masked(requests: Iterable[Amounts], names: Collection[str]) -> dict[str, int]:
    """What pods have taken together of some resources."""
    total: dict[str, int] = {}
    for request in requests:
        for name, amount in request.items():
            if name in names:
                total[name] = total.get(name, 0) + amount
    return total


def remained(allocatable: Amounts, allocated: Amounts, held_back: Amounts = NOTHING) -> dict[str, int]:
    """What is left in a reservation, by resource, never below 0."""
    return {
        name: max(0, amount - allocated.get(name, 0) - held_back.get(name, 0))
        for name, amount in allocatable.items()
    }


def node_shortage(
    request: Amounts,
    node_allocatable: Amounts,
    requested: Amounts,
    room: Amounts,
    ignored: Collection[str] = (),
    ignored_groups: Collection[str] = (),
) -> tuple[str, ...]:
    """What is short on a node for a pod that may also take `room`, which is counted in `requested`.

    `requested` is what the node's pods hold, each amount once: what owners have of a reservation is not counted twice.
    """
    return tuple(
        name
        for name in checked_resources(request, ignored, ignored_groups)
        if request[name] > node_allocatable.get(name, 0) - (requested.get(name, 0) - room.get(name, 0))
    )


def reservation_shortage(
    request: Amounts,
    allocatable: Amounts,
    allocated: Amounts,
    names: Collection[str],
    held_back: Amounts = NOTHING,
    preemptible: Amounts = NOTHING,
    ignored: Collection[str] = (),
    ignored_groups: Collection[str] = (),
) -> tuple[str, ...]:
    """What is short inside a reservation, of the resources that it restricts a pod to. `preemptible` is what those
    hold there who could be made to go.
    """
    return tuple(
        name
        for name in checked_resources(request, ignored, ignored_groups)
        if name in names
        and request[name]
        > allocatable.get(name, 0)
        - held_back.get(name, 0)
        - max(0, allocated.get(name, 0) - preemptible.get(name, 0))
    )


def filling(
    request: Amounts,
    allocated: Amounts,
    allocatable: Amounts,
    weights: Amounts = NOTHING,
    otherwise: int = 1,
    *,
    emptiest: bool = False,
) -> int:
    """How full a reservation would be, 0 to 100, or how empty: the weighted mean over what it has, where a resource that would
    overflow counts 0. What `weights` do not name weighs `otherwise`; a weight of 0 or less counts as none.
    """
    score = total = 0
    for name, has in allocatable.items():
        weight = weights.get(name, otherwise)
        if has <= 0 or weight <= 0:
            continue
        wanted = request.get(name, 0) + allocated.get(name, 0)
        if wanted <= has:
            score += weight * (FULL * ((has - wanted) if emptiest else wanted) // has)
        total += weight
    return score // total if total else 0
