"""What a pod finds in the reservations on one node that it may take from, and which of them it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from koordpolicy.algorithms.reservation_capacity import (
    asks_for,
    first_by_order,
    governed,
    most_allocated,
    node_shortage,
    remained,
    reservation_shortage,
)
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import Reservations
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
    """The reservation that a pod takes from: the first by order, else the one that will be fullest; names decide last."""
    if not room.into:
        return None
    by_uid = {one.uid: one for one in sorted(room.into, key=lambda one: one.name)}
    first = first_by_order({uid: one.order for uid, one in by_uid.items()})
    if first is not None:
        return by_uid[first]
    return max(by_uid.values(), key=lambda one: fullness(pod, one, reservations))


def fullness(pod: PodView, one: Reservation, reservations: Reservations) -> int:
    """How full a reservation would be with a pod, 0 to 100."""
    return most_allocated(request_of(pod), reservations.owners(one).allocated, one.allocatable)
