"""Reservations: pods that own one take from what it keeps on its node, and from the node what it lacks.

What is kept counts on nodes as reserve pods (`cluster/reservations.py`), which make way for owners. Which reservation a pod takes
from is decided when it has its node (`reserve`), and written on the pod with its binding.
"""

import json
import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservation_policy import ReservationPolicy
from koordpolicy.cluster.reservations import is_reserve_pod, keeps_room
from koordpolicy.cluster.state import RESERVATIONS, ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import StrategicPatch
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import PodKey
from koordpolicy.model.pod_reservations import NO_RESERVATIONS
from koordpolicy.model.protocol import ALLOCATE_ALIGNED, RESERVATION_ALLOCATED, RESERVE_POD_NODE
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.reservation import Reservation
from koordpolicy.scheduler.plugins.base import (
    ANEW,
    NODES_COME_AND_CHANGE,
    Host,
    Plugin,
    Port,
    Refusal,
    Said,
    Sleep,
    request_of,
)
from koordpolicy.scheduler.plugins.parameters import Parameters, texts
from koordpolicy.scheduler.plugins.reservation.pre_allocation import (
    NOT_ENOUGH,
    makes_room,
    pre_allocating,
)
from koordpolicy.scheduler.plugins.reservation.pre_allocation import chosen as chosen_candidates
from koordpolicy.scheduler.plugins.reservation.pre_allocation import refused as refused_candidates
from koordpolicy.scheduler.plugins.reservation.room import (
    NO_MATCH,
    Ignored,
    Room,
    chosen,
    policy_of,
    rated,
    room_on,
)
from koordpolicy.scheduler.plugins.verdicts import Verdicts

LOG: Final = logging.getLogger(__name__)

WRONG_NODE: Final = "node(s) didn't match the nodeName specified by reservation"
CONFLICT: Final = "node(s) reservation allocate policy conflict"


class ReservationClaim(NamedTuple):
    """Which reservation a pod takes from; of a reserve pod, which pods (with their UIDs) give their room to it."""

    pod: PodKey
    name: str
    uid: str
    owners: tuple[tuple[PodKey, str], ...] = ()


class ReservationBook:
    """The state of the plugin: what there is stands in the cluster's state."""

    def __init__(self, host: Host) -> None:
        self._host = host

    @property
    def cluster(self) -> ClusterState:
        """What there is in the cluster beside nodes."""
        return self._host.cluster

    def concerned(self, pod: PodView) -> bool:
        """Whether a pod may take from any: not where there are none, and it says nothing of them."""
        if self._host.cluster.reservations.make_way:
            return True
        try:
            return bool(pod.pod.annotations) and pod.reservations is not NO_RESERVATIONS
        except ObjectError:
            return True  # whoever asks will hear what is wrong


def _says(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """Whether it has something to say of a pod: of most there is nothing to be said."""
    reservations = state.reservations
    if not reservations.available and (not pod.pod.annotations or pod.says_nothing_of_reservations):
        return None  # as of nearly all, in one look
    if pre_allocating(pod, reservations) is not None:
        return ANEW
    if keeps_room(pod):
        return (
            "reserve",
            pod.pod.annotations.get(RESERVE_POD_NODE, ""),
            _policy(state, pod),
            reservations.version,
        )
    wants = pod.reservations
    if wants is NO_RESERVATIONS and not reservations.available:
        return None
    if wants.ignores:
        return None
    if wants.affinity is None and not _matching(pod, state, _said()):
        return None
    return ANEW


def _matching(pod: PodView, state: ClusterState, parameters: Parameters) -> dict[str, list[Reservation]]:
    return state.reservations.matching(
        pod, request_of(pod), checks_taints=parameters.get("checksTaints") is True
    )


def _ignored(parameters: Parameters) -> Ignored:
    return Ignored(texts(parameters, "ignoredResources"), texts(parameters, "ignoredResourceGroups"))


def make_way(pod: PodView, state: ClusterState, said: Said) -> Mapping[str, Sequence[PodKey]]:
    """The reserve pods of the reservations that a pod may take from; of a reserve pod, those who give their room to it."""
    if keeps_room(pod):
        return makes_room(pod, state.reservations)
    return {
        node: [one.pod.key for one in found if state.reservations.holds(one)]
        for node, found in _matching(pod, state, said()).items()
    }


def enough(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes without enough of what the pod may take from; all others, for a pod that has to take from one."""
    if keeps_room(pod):
        return _of_reserve_pod(pod, nodes)
    state = nodes.state
    matching, required = _matching(pod, state, parameters), pod.reservations.affinity is not None
    found: dict[int, Room] = {}
    for node, there in matching.items():
        at = nodes.place_of(node)
        if at is not None:
            found[at] = room_on(
                pod, nodes.one(at), there, state.reservations, parameters.once(_ignored), required=required
            )
    reasons = tuple(
        dict.fromkeys([NO_MATCH, *(reason for room in found.values() for reason in room.reasons)])
    )
    refused = np.zeros((len(reasons), nodes.count), np.bool_)
    unresolvable = np.zeros(nodes.count, np.bool_)
    if required:
        refused[0] = unresolvable[:] = True
    for at, room in found.items():
        refused[0, at] = unresolvable[at] = False
        for reason in room.reasons:
            refused[reasons.index(reason), at] = True
    return Verdicts(reasons, refused, unresolvable)


def _of_reserve_pod(pod: PodView, nodes: NodeView) -> Verdicts:
    """Nodes that a reservation does not want, or whose reservations give out what they keep in another way."""
    wanted, reservations = pod.pod.annotations.get(RESERVE_POD_NODE, ""), nodes.state.reservations
    by_default = _policy(nodes.state, pod) == ""
    refused = np.zeros((2, nodes.count), np.bool_)
    if wanted:
        refused[0] = True
        if (at := nodes.place_of(wanted)) is not None:
            refused[0, at] = False
    for node in reservations.nodes_with(default=not by_default):
        at = nodes.place_of(node)
        if at is not None:
            refused[1, at] = True
    reasons, more = refused_candidates(pod, nodes)
    every = np.vstack((refused, *more)) if more else refused
    return Verdicts((WRONG_NODE, CONFLICT, *reasons), every, np.logical_or.reduce(every))


def _policy(state: ClusterState, pod: PodView) -> str:
    if not is_reserve_pod(pod):
        return ALLOCATE_ALIGNED
    found = state.reservations.get(pod.pod.uid)
    return "" if found is None else found.allocate_policy


def score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores | None:
    """How good what the pod would take from is for it; the node whose reservation has the smallest order before all."""
    if keeps_room(pod):
        return None
    state, scores = nodes.state, np.zeros(nodes.count, np.int64)
    first: tuple[int, int] | None = None
    for node, there in _matching(pod, state, parameters).items():
        at = nodes.place_of(node)
        if at is None:
            continue
        room = room_on(
            pod, nodes.one(at), there, state.reservations, parameters.once(_ignored), required=True
        )
        taken = chosen(pod, room, state.reservations)
        if taken is None:
            continue
        scores[at] = rated(pod, taken, state.reservations)
        if taken.order and (first is None or (taken.order, at) < first):
            first = taken.order, at
    if first is not None:
        scores[first[1]] = policy_of(state.reservations).preferred
    return scores


def reserve(
    book: ReservationBook, pod: PodView, nodes: NodeView, parameters: Parameters
) -> ReservationClaim | Refusal | None:
    """Take from one of the reservations on the node, the first as policy orders them."""
    wants, state = pod.reservations, nodes.state
    if keeps_room(pod):
        return _given(pod, nodes, parameters)
    if wants.ignores:
        return None
    if wants is NO_RESERVATIONS and not state.reservations.available:
        return None
    there = _matching(pod, state, parameters).get(nodes.name(0), [])
    required = wants.affinity is not None
    room = room_on(pod, nodes.one(0), there, state.reservations, parameters.once(_ignored), required=required)
    taken = chosen(pod, room, state.reservations)
    if taken is None:
        if required:
            return Refusal(NO_MATCH)
        return None if room.fits else Refusal("; ".join(room.reasons))
    state.reservations.take(pod.pod.key, taken.uid)
    return ReservationClaim(pod.pod.key, taken.name, taken.uid)


def _given(pod: PodView, nodes: NodeView, parameters: Parameters) -> ReservationClaim | Refusal | None:
    """Who gives its room to a reservation on its node, and becomes its owner."""
    reservations = nodes.state.reservations
    reservation = pre_allocating(pod, reservations)
    if reservation is None:
        return None
    node = nodes.name(0)
    giving = chosen_candidates(reservation, node, nodes.one(0), reservations, parameters.once(_ignored))
    if giving is None:
        return Refusal(NOT_ENOUGH)
    if not giving:
        return None
    for view in giving:
        reservations.take(view.pod.key, reservation.uid)
    owners = tuple((view.pod.key, view.pod.uid) for view in giving)
    return ReservationClaim(pod.pod.key, reservation.name, reservation.uid, owners)


async def write(_book: ReservationBook, claim: ReservationClaim, cluster: Port, _sleep: Sleep) -> None:
    """Have those say whose owners they are who give their room, before it is kept. Raises KubeError."""
    for (namespace, name), uid in claim.owners:
        metadata = {"uid": uid, "annotations": {RESERVATION_ALLOCATED: _allocated(claim)}}
        await cluster.patch(
            PODS, name, StrategicPatch({"metadata": metadata}), namespace=namespace, subresource="status"
        )


def writes(claim: Any) -> bool:
    """Whether others are to be written about."""
    return bool(claim.owners)


def adopt(book: ReservationBook, pod: PodView, _node: str) -> ReservationClaim | None:
    """What the annotation of a pod on its node says, where it may have that. Raises ObjectError."""
    if not pod.pod.annotations or RESERVATION_ALLOCATED not in pod.pod.annotations:
        return None
    reservations = book.cluster.reservations
    refusing = reservations.refuses(pod)
    if refusing is not None:
        LOG.warning(
            "pod %s says by the annotation %s that it takes from reservation %s, which is not its own: that counts for nothing",
            "/".join(pod.pod.key),
            RESERVATION_ALLOCATED,
            refusing.name,
        )
        return None
    uid = reservations.taken_by(pod)
    found = reservations.get(uid) if uid else None
    if found is None:
        return None  # of one that nobody has heard of yet, the annotation says so until then
    reservations.take(pod.pod.key, uid)
    return ReservationClaim(pod.pod.key, found.name, uid)


def undo(book: ReservationBook, claim: ReservationClaim) -> None:
    """The pod takes from it no more, or those who gave their room."""
    for pod in _takers(claim):
        book.cluster.reservations.give_back(pod)


def redo(book: ReservationBook, claim: ReservationClaim) -> None:
    """It takes from it again."""
    for pod in _takers(claim):
        book.cluster.reservations.take(pod, claim.uid)


def _takers(claim: ReservationClaim) -> Sequence[PodKey]:
    return [key for key, _ in claim.owners] or [claim.pod]


def _allocated(claim: ReservationClaim) -> str:
    return json.dumps({"name": claim.name, "uid": claim.uid})


def annotations(claim: Any) -> Mapping[str, str]:
    """What says on the pod which reservation it has."""
    return {} if claim.owners else {RESERVATION_ALLOCATED: _allocated(claim)}


def keep(state: ClusterState, graph: RuleGraph) -> None:
    """Have Reservations kept as a revision says."""
    state.reservations.begin(ReservationPolicy(graph))


RESERVATION: Final = Plugin(
    filter=enough,
    score=score,
    node_facts=frozenset({"name", "resources.allocatable", "resources.requested"}),
    pod_facts=frozenset({"resources.request"}),
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE, Event.RESERVATION_CHANGED},
    row_only=False,
    cache_key=_says,
    ordinary_with=RESERVATIONS,
    makes_way=make_way,
    keeps=keep,
    state=ReservationBook,
    concerned=ReservationBook.concerned,
    reserve=reserve,
    undo=undo,
    redo=redo,
    adopt=adopt,
    prebind=write,
    writes=writes,
    annotates=annotations,
)
