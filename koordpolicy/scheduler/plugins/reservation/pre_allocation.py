"""Reservations that are placed on what pods hold already: these become their owners, so that the room is kept when they are gone.

Which pods of a node may give theirs are its candidates: the reservation's owners, or in the mode `Cluster` those with a label that
policy names. They are taken in policy's order, one, or as many as it takes where the reservation says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.fit import checked_resources
from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.algorithms.reservation_match import MatchRules, match
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import Reservations, is_reserve_pod, keeps_room
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import (
    ALLOCATE_RESTRICTED,
    PRE_ALLOCATION_REQUIRED,
    RESERVATION_AVAILABLE,
)
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.model.reservation import OwnerTerm, Reservation
from koordpolicy.scheduler.plugins.base import request_of
from koordpolicy.scheduler.plugins.reservation.room import Ignored, policy_of

CLUSTER_MODE: Final = "reservation requires cluster mode pre-allocation which is disabled"
NO_CANDIDATE: Final = "node(s) no pod match reservation with pre allocation required"
NOT_ENOUGH: Final = "node(s) no pod(s) to meet the pre-allocation requirements"

_CLUSTER: Final = "Cluster"
_NONE_IGNORED: Final = Ignored()


def pre_allocating(pod: PodView, reservations: Reservations) -> Reservation | None:
    """The reservation that a reserve pod without a node stands for, where it may be placed on what pods hold."""
    if not is_reserve_pod(pod):
        return None
    found = reservations.get(pod.pod.uid)
    return found if found is not None and found.pre_allocation.enabled and not found.node_name else None


def required(reservation: Reservation) -> bool:
    """Whether it has to be placed on what a pod holds."""
    return reservation.labels.get(PRE_ALLOCATION_REQUIRED) == "true"


def candidates(reservation: Reservation, node: str, reservations: Reservations) -> list[PodView]:
    """The pods of a node that may give their room, as policy orders them."""
    policy = policy_of(reservations)
    by_cluster = reservation.pre_allocation.mode == _CLUSTER
    label = policy.cluster_label
    if by_cluster and not (policy.cluster_mode and label):
        return []
    asked = replace(
        reservation,
        phase=RESERVATION_AVAILABLE,
        node_name=node,
        allocatable=_request(reservation),
        unschedulable=False,
        deleted_at=None,
        owners=(OwnerTerm(),) if by_cluster else reservation.owners,
    )
    found = []
    for view in reservations.pods_on(node).values():
        pod = view.pod
        if keeps_room(view) or pod.terminal or pod.terminating or reservations.taken_by(view):
            continue
        if by_cluster and label not in pod.labels:
            continue
        try:
            said = match(pod, view.reservations, request_of(view), asked, 0, _RULES)
        except ObjectError:
            continue
        if said.matched and not view.reservations.ignores:
            found.append((policy.candidate_place(view, reservation), pod.key, view))
    return [view for _, _, view in sorted(found, key=lambda one: one[:2])]


def chosen(
    reservation: Reservation,
    node: str,
    facts: Mapping[str, Any],
    reservations: Reservations,
    ignored: Ignored = _NONE_IGNORED,
) -> Sequence[PodView] | None:
    """The candidates that give their room on a node with these facts: none where it has enough without; None where they do not
    give enough, or where some are required and there are none.
    """
    request = _request(reservation)
    short = lacking(request, facts["resources.allocatable"], facts["resources.requested"], ignored)
    if not short and not required(reservation):
        return ()
    taken: list[PodView] = []
    inside: dict[str, int] = {}
    for view in candidates(reservation, node, reservations):
        if reservation.allocate_policy == ALLOCATE_RESTRICTED and not _fits(view.occupied, inside, request):
            continue
        gives = {name: view.occupied.get(name, 0) for name in short}
        if not reservation.pre_allocation.multiple:
            if all(gives[name] >= amount for name, amount in short.items()):
                return (view,)
            continue
        taken.append(view)
        for name, amount in view.occupied.items():
            inside[name] = inside.get(name, 0) + amount
        short = {name: amount - gives[name] for name, amount in short.items() if amount > gives[name]}
        if not short:
            return taken
    return None


def makes_room(pod: PodView, reservations: Reservations) -> dict[str, Sequence[PodKey]]:
    """By node, the pods that give their room to the reservation for which a reserve pod stands."""
    reservation = pre_allocating(pod, reservations)
    if reservation is None:
        return {}
    found: dict[str, Sequence[PodKey]] = {}
    for node in reservations.node_names():
        giving = chosen(reservation, node, reservations.facts_of(node), reservations)
        if giving:
            found[node] = [view.pod.key for view in giving]
    reservations.giving = pod.pod.uid, frozenset(found)
    return found


def refused(pod: PodView, nodes: NodeView) -> tuple[tuple[str, ...], list[Mask]]:
    """Why nodes do not take a reservation that is placed on what pods hold, as far as that is about these pods."""
    reservations = nodes.state.reservations
    reservation = pre_allocating(pod, reservations)
    if reservation is None:
        return (), []
    policy = policy_of(reservations)
    everywhere = np.ones(nodes.count, np.bool_)
    if reservation.pre_allocation.mode == _CLUSTER and not policy.cluster_mode:
        return (CLUSTER_MODE,), [everywhere]
    if not required(reservation):
        return (), []
    without = everywhere.copy()
    # Where candidates have made way already, they are not to be seen.
    gave = reservations.giving[1] if reservations.giving[0] == pod.pod.uid else frozenset()
    for at, name in enumerate(nodes.names().tolist()):
        node = nodes.text(int(name))
        without[at] = node not in gave and not candidates(reservation, node, reservations)
    return (NO_CANDIDATE,), [without]


def lacking(request: Amounts, allocatable: Amounts, requested: Amounts, ignored: Ignored) -> dict[str, int]:
    """How much of what is short on a node for a request."""
    short = {
        name: request[name] - (allocatable.get(name, 0) - requested.get(name, 0))
        for name in checked_resources(request, *ignored)
    }
    return {name: amount for name, amount in short.items() if amount > 0}


def _request(reservation: Reservation) -> Amounts:
    return effective_requests(reservation.pod)


def _fits(amounts: Amounts, before: Amounts, into: Amounts) -> bool:
    return all(before.get(name, 0) + amount <= into[name] for name, amount in amounts.items() if name in into)


_RULES: Final = MatchRules(once=False)
