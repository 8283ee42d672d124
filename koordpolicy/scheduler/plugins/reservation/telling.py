"""What is told of a pod and the Reservations that it owns: which it may take from, and what keeps it from the others."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.algorithms.reservation_match import Match
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import Reservations, keeps_room
from koordpolicy.scheduler.plugins.base import request_of

_WORDS: Final[Mapping[Match, str]] = MappingProxyType(
    {
        Match.MATCHED: "the pod may take from it",
        Match.NAMED: "the pod names it, and may take from it",
        Match.IGNORED: "the pod takes from it as from all of the node, and owns none",
        Match.NOT_MATCHABLE: "another pod has it already, or it cannot be read",
        Match.NAME: "the pod names another one",
        Match.UNSCHEDULABLE: "it takes no new pods",
        Match.TAINT: "it has a taint that the pod's reservation affinity does not tolerate",
        Match.AFFINITY: "it is not what the pod's reservation affinity asks for",
        Match.EXACT: "it has not exactly what the pod requests",
        Match.POLICY: "policy keeps the pod from it (ReservationPolicy, `matching.allows`)",
    }
)


class ToldReservation(NamedTuple):
    """A Reservation that a pod owns, by its terms: its name, its node, whether the pod has it, and what else is to be said."""

    name: str
    node: str
    taken: bool
    why: str


def told(view: PodView, reservations: Reservations, *, checks_taints: bool) -> tuple[ToldReservation, ...]:
    """Those whose owner a pod is, by name. Raises ObjectError for what the pod says that cannot be read."""
    if keeps_room(view) or not reservations.available:
        return ()
    has = reservations.taken_by(view)
    found = [
        ToldReservation(
            one.name, one.node_name, one.uid == has, "the pod has it" if one.uid == has else _WORDS[said]
        )
        for one, said in reservations.matches(view, request_of(view), checks_taints=checks_taints)
        if said is not Match.OWNER or one.uid == has
    ]
    return tuple(sorted(found))
