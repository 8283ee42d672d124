"""Pods that operate as reservations: once one runs and is ready, what it requests is kept for one pod that its annotation names."""

from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.model.pod import Pod
from koordpolicy.model.pod_reservations import operates_as_reservation, read_operating_owners
from koordpolicy.model.protocol import ALLOCATE_ALIGNED, CONDITION_READY, RESERVATION_AVAILABLE
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.reservation import OwnerTerm, Reservation


def operating_reservation(pod: Pod) -> Reservation | None:
    """A pod on its node as the reservation as which it operates; None for one that does not, or not yet, or no more.

    Nobody may take from one whose owners cannot be read.
    """
    if not operates_as_reservation(pod.labels) or not pod.node_name or pod.terminal or pod.terminating:
        return None
    ready = pod.condition(CONDITION_READY)
    if pod.phase != "Running" or ready is None or ready.status != "True":
        return None
    owners: tuple[OwnerTerm, ...] = ()
    unusable = ""
    try:
        owners = read_operating_owners(pod.annotations)
    except ObjectError as problem:
        unusable = str(problem)
    return Reservation(
        pod.name,
        pod.uid,
        labels=pod.labels,
        annotations=pod.annotations,
        owners=owners,
        ttl=0,
        allocate_policy=ALLOCATE_ALIGNED,
        phase=RESERVATION_AVAILABLE,
        node_name=pod.node_name,
        allocatable=effective_requests(pod),
        unusable=unusable,
        pod=pod,
        of_pod=True,
    )
