"""Which reservations a pod may take from: the ordered checks, of which the first that fails is told.

Koordinator's order (`pkg/scheduler/plugins/reservation`): labels that ignore reservations, owners, the name, cordons,
taints, selectors, exact amounts. Where Koordinator decides by a flag, the caller decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from koordpolicy.algorithms.node_affinity import matches as placement_matches
from koordpolicy.algorithms.toleration import CORDON, tolerated, tolerates_all
from koordpolicy.model.placement import Placement
from koordpolicy.model.pod import Pod
from koordpolicy.model.pod_reservations import PodReservations, ReservationAffinity
from koordpolicy.model.reading import NO_TEXT, Amounts
from koordpolicy.model.reservation import OwnerController, OwnerObject, OwnerTerm, Reservation

POD_API_VERSION = "v1"


class Match(StrEnum):
    """What came of the checks: three ways to match, or the check that failed."""

    MATCHED = "matched"
    NAMED = "name matched"
    IGNORED = "ignored"
    NOT_MATCHABLE = "not matchable"
    OWNER = "owner"
    NAME = "name"
    UNSCHEDULABLE = "unschedulable"
    TAINT = "taint"
    AFFINITY = "affinity"
    EXACT = "exact"
    POLICY = "policy"
    """Of one that the pod meets otherwise."""

    @property
    def matched(self) -> bool:
        """Whether the pod may take from the reservation."""
        return self in (Match.MATCHED, Match.NAMED, Match.IGNORED)


@dataclass(frozen=True, slots=True)
class MatchRules:
    """What policy says of a pod and a reservation. `once`: only one pod may take from it. `checks_taints`: taints keep off a pod
    that says nothing of reservations, too. `node_labels` are labels of its node that selectors see beside its own.
    """

    once: bool = True
    checks_taints: bool = False
    node_labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)


def matchable(reservation: Reservation, assigned: int, *, once: bool) -> bool:
    """Whether anybody may take from a reservation from which so many pods have taken."""
    return reservation.available and not reservation.unusable and not (once and assigned > 0)


def match(
    pod: Pod,
    wants: PodReservations,
    request: Amounts,
    reservation: Reservation,
    assigned: int,
    rules: MatchRules,
    owned: bool | None = None,
) -> Match:
    """Whether a pod may take from a reservation; if not, the first check that fails. `owned`: whether it owns it, where that is known."""
    if not matchable(reservation, assigned, once=rules.once):
        return Match.NOT_MATCHABLE
    if wants.ignores:
        return Match.IGNORED
    if not (owns(pod, reservation.owners) if owned is None else owned):
        return Match.OWNER
    affinity = wants.affinity
    if affinity is not None and affinity.name:
        if affinity.name != reservation.name:
            return Match.NAME
        return Match.NAMED if exact(request, reservation.allocatable, wants.exact) else Match.EXACT
    tolerations = () if affinity is None else affinity.tolerations
    if (reservation.unschedulable or reservation.deleting) and not tolerated(tolerations, CORDON):
        return Match.UNSCHEDULABLE
    if (affinity is not None or rules.checks_taints) and not tolerates_all(tolerations, reservation.taints):
        return Match.TAINT
    if affinity is not None and not selects(affinity, reservation, rules.node_labels):
        return Match.AFFINITY
    return Match.MATCHED if exact(request, reservation.allocatable, wants.exact) else Match.EXACT


def owns(pod: Pod, terms: Sequence[OwnerTerm]) -> bool:
    """Whether one of the terms means the pod; none does where there are none."""
    return any(
        (one.object is None or _is(pod, one.object))
        and (one.controller is None or _controls(pod, one.controller))
        and (one.selector is None or one.selector.matches(pod.labels))
        for one in terms
    )


def selects(
    affinity: ReservationAffinity, reservation: Reservation, node_labels: Mapping[str, str] = NO_TEXT
) -> bool:
    """Whether a reservation has the labels that a pod wants, its own before those of its node."""
    placement = Placement(node_selector=affinity.selector, required=affinity.required)
    return placement_matches(placement, reservation.name, {**node_labels, **reservation.labels})


def exact(request: Amounts, allocatable: Amounts, names: Sequence[str]) -> bool:
    """Whether a reservation has exactly what a pod requests of some resources.

    A resource that neither has ends the comparison: those after it are not looked at.
    """
    for name in names:
        wanted, has = request.get(name, 0), allocatable.get(name, 0)
        if not wanted and not has:
            return True
        if wanted != has:
            return False
    return True


def _is(pod: Pod, wanted: OwnerObject) -> bool:
    pairs = (
        (wanted.uid, pod.uid),
        (wanted.name, pod.name),
        (wanted.namespace, pod.namespace),
        (wanted.api_version, POD_API_VERSION),
    )
    return all(not said or said == found for said, found in pairs)


def _controls(pod: Pod, wanted: OwnerController) -> bool:
    if wanted.namespace and wanted.namespace != pod.namespace:
        return False
    return any(
        (wanted.controller is None or wanted.controller == owner.controller)
        and all(
            not said or said == found
            for said, found in (
                (wanted.uid, owner.uid),
                (wanted.kind, owner.kind),
                (wanted.name, owner.name),
                (wanted.api_version, owner.api_version),
            )
        )
        for owner in pod.owners
    )
