"""The fact record of a Reservation."""

from koordpolicy.model.facts.record import Record
from koordpolicy.model.reading import NOTHING, Amounts
from koordpolicy.model.reservation import Reservation


def reservation_facts(
    reservation: Reservation, *, owners: int = 0, allocated: Amounts = NOTHING, score: int = 0
) -> Record:
    """What follows from a Reservation, from which `owners` pods have taken so much; `score` is 0 to 100."""
    return {
        "name": reservation.name,
        "labels": reservation.labels,
        "annotations": reservation.annotations,
        "order": reservation.order,
        "allocateOnce": reservation.allocate_once,
        "allocatePolicy": reservation.allocate_policy,
        "unschedulable": reservation.unschedulable,
        "phase": reservation.phase,
        "node": reservation.node_name,
        "owners": owners,
        "score": score,
        "resources.allocatable": reservation.allocatable,
        "resources.allocated": allocated,
    }
