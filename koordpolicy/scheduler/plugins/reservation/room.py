"""What a pod finds in the reservations on one node that it may take from, and which of them it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from koordpolicy.algorithms.reservation_capacity import (
    asks_for,
    governed,
    node_shortage,
    remained,
    reservation_shortage,
)
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservation_policy import ReservationPolicy
from koordpolicy.cluster.reservations import Reservations
from koordpolicy.graph.sortable import SortKey
from koordpolicy.model.facts.reservation import reservation_facts
from koordpolicy.model.protocol import ALLOCATE_RESTRICTED
from koordpolicy.model.reading import Amounts
from koordpolicy.model.reservation import Reservation
from koordpolicy.scheduler.plugins.base import request_of

NO_MATCH: Final = "node(s) no reservations match reservation affinity"
NONE_MEETS: Final = "node(s) no reservation(s) to meet the requirements"


class Ignored(NamedTuple):
    """Resources, and groups of them, that are not looked at."""

    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Room(NamedTuple):
    """Whether a pod fits, the reservations that it fits into (none: it takes from the node alone), else why it does not."""

    fits: bool
    into: tuple[Reservation, ...] = ()
    reasons: tuple[str, ...] = ()


def room_on(
    pod: PodView,
    facts: Mapping[str, Any],
    matching: Sequence[Reservation],
    reservations: Reservations,
    ignored: Ignored,
    *,
    required: bool,
) -> Room:
    """What a pod finds on a node with these facts, whether or not its reserve pods make way just now."""
    request, allocatable = request_of(pod), facts["resources.allocatable"]
    requested = dict(facts["resources.requested"])
    for one in matching:
        if not reservations.holds(one):
            for name, amount in reservations.left(one).items():
                requested[name] = requested.get(name, 0) + amount
    into: list[Reservation] = []
    by_node: list[str] = []
    reasons: list[str] = []
    for one in matching:
        names = governed(one.allocatable, one.allocate_policy, one.restricted or None)
        if not required and not asks_for(request, names):
            continue
        allocated = reservations.owners(one).allocated
        room = remained(one.allocatable, allocated, one.held_back)
        on_node = node_shortage(request, allocatable, requested, room, *ignored)
        inside = _inside(request, one, allocated, names, ignored)
        if not on_node and not inside:
            into.append(one)
        by_node += [f"Insufficient {name} by node" for name in on_node]
        reasons += [f"Reservation(s) Insufficient {name}" for name in inside]
    if into:
        return Room(True, tuple(into))
    if required:
        return Room(False, (), tuple(dict.fromkeys([*by_node, *reasons])) or (NONE_MEETS,))
    if by_node:
        return Room(False, (), tuple(dict.fromkeys(by_node)))
    alone = node_shortage(request, allocatable, requested, {}, *ignored)
    return Room(not alone, (), tuple(f"Insufficient {name} by node" for name in alone))


def _inside(
    request: Amounts, one: Reservation, allocated: Amounts, names: Sequence[str], ignored: Ignored
) -> tuple[str, ...]:
    if one.allocate_policy != ALLOCATE_RESTRICTED:
        return ()
    return reservation_shortage(request, one.allocatable, allocated, names, one.held_back, {}, *ignored)


def chosen(pod: PodView, room: Room, reservations: Reservations) -> Reservation | None:
    """The reservation that a pod takes from: the first as policy orders them; names decide last."""
    if len(room.into) < 2:
        return room.into[0] if room.into else None
    policy = policy_of(reservations)

    def place(one: Reservation) -> tuple[SortKey, str]:
        owners = reservations.owners(one)
        facts = reservation_facts(
            one,
            owners=len(owners.views),
            allocated=owners.allocated,
            score=policy.score(request_of(pod), owners.allocated, one),
        )
        return policy.place(pod, facts), one.name

    return min(room.into, key=place)


def rated(pod: PodView, one: Reservation, reservations: Reservations) -> int:
    """How good a reservation is for a pod, 0 to 100."""
    return policy_of(reservations).score(request_of(pod), reservations.owners(one).allocated, one)


def policy_of(reservations: Reservations) -> ReservationPolicy:
    """What a revision says of them, which stands there before the plugin is asked anything."""
    assert reservations.policy is not None
    return reservations.policy
