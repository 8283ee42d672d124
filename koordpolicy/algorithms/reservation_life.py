"""When a Reservation ends, and what its status says of its owners. The time arrives as an argument."""

from collections.abc import Sequence

from koordpolicy.model.pod import read_time
from koordpolicy.model.protocol import (
    CONDITION_RESERVATION_READY,
    REASON_EXPIRED,
    REASON_SUCCEEDED,
    RESERVATION_FAILED,
    RESERVATION_SUCCEEDED,
)
from koordpolicy.model.reading import Amounts, objects
from koordpolicy.model.reservation import CurrentOwner, Reservation


def expires_at(reservation: Reservation) -> int | None:
    """When a reservation ends by time alone, in nanoseconds since 1970; None for never. A `ttl` of 0 switches both off."""
    if reservation.ttl == 0:
        return None
    ends = [] if reservation.expires is None else [reservation.expires]
    if reservation.ttl is not None and reservation.created_at is not None:
        ends.append(reservation.created_at + reservation.ttl)
    return min(ends, default=None)


def ended_at(reservation: Reservation) -> int | None:
    """When a reservation ended, in nanoseconds since 1970: when it expired, or was last found to have succeeded; None for one that has
    not ended so. Raises ObjectError.
    """
    ready = reservation.condition(CONDITION_RESERVATION_READY)
    if not reservation.over or ready is None or ready.reason not in (REASON_EXPIRED, REASON_SUCCEEDED):
        return None
    if ready.reason == REASON_EXPIRED:
        return ready.since
    found = next(
        one
        for one in objects(reservation.raw_status, "conditions", "status")
        if one.get("type") == CONDITION_RESERVATION_READY
    )
    return read_time(found, "lastProbeTime", "status.conditions") or ready.since


def following_phase(
    reservation: Reservation,
    owners: Sequence[CurrentOwner],
    allocated: Amounts,
    now: int,
    *,
    node_is_there: bool,
) -> str | None:
    """The phase that follows for one that keeps room on a node; None where its status says all that there is to say.

    It fails when its time is over or its node is gone. One for a single owner succeeds when that comes, or has left.
    """
    until = expires_at(reservation)
    if (until is not None and now > until) or not node_is_there:
        return RESERVATION_FAILED
    if tuple(owners) == reservation.current_owners and _same(allocated, reservation.allocated):
        return None
    return RESERVATION_SUCCEEDED if reservation.allocate_once else reservation.phase


def _same(one: Amounts, other: Amounts) -> bool:
    return all(one.get(name, 0) == other.get(name, 0) for name in {**one, **other})
