"""What a pod takes of its node's CPUs and zones: from the choice of the node on, and again after a restart."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, CPUExclusive
from koordpolicy.algorithms.cpu_binding import PodNeeds, Terms, terms_of
from koordpolicy.algorithms.heeded_allocation import MILLI, heeded
from koordpolicy.algorithms.numa_merge import mask_of
from koordpolicy.algorithms.zone_allocation import NoRoom, check, place
from koordpolicy.cluster.cpu_accounts import CPUAccounts, CPUClaim
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import is_reserve_pod
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpu_topology import (
    Allocation,
    allocation_text,
    designated,
    read_allocation,
    read_resource_spec,
)
from koordpolicy.model.protocol import ALLOCATE_RESTRICTED, CPU, QOS_CLASS, RESOURCE_SPEC, RESOURCE_STATUS
from koordpolicy.model.reading import Amounts, ObjectError, embedded_object
from koordpolicy.scheduler.plugins.base import Host, Refusal, request_of
from koordpolicy.scheduler.plugins.devices.fragmentation import spare_cpu
from koordpolicy.scheduler.plugins.devices.hints import hints_of_devices
from koordpolicy.scheduler.plugins.numa.filters import needs_of
from koordpolicy.scheduler.plugins.parameters import Parameters

LOG: Final = logging.getLogger(__name__)

_REQUIRED: Final = "requiredCPUBindPolicy"
_PREFERRED: Final = "preferredCPUBindPolicy"


def concerned(host: Host, pod: PodView) -> bool:
    """Whether a pod wants CPUs of its own or to be kept in zones, or has them."""
    annotations = pod.pod.annotations
    if annotations and RESOURCE_STATUS in annotations:
        return True
    return needs_of(pod, host.cluster.cpus) is not None


def take(host: Host, pod: PodView, nodes: NodeView, _parameters: Parameters) -> CPUClaim | Refusal | None:
    """Take what a pod wants of the one node that is shown; nothing where it wants nothing there."""
    cpus = nodes.state.cpus
    node = nodes.name(0)
    try:
        needs = needs_of(pod, cpus)
        if needs is None or cpus.policy is None:
            return None
        lender = nodes.state.reservations.lender(pod)
        uid, restricted = "", False
        if lender is None:
            room = cpus.account(node).room
        else:
            uid, restricted = lender.uid, lender.allocate_policy == ALLOCATE_RESTRICTED
            room = cpus.room_of(node, uid, only=restricted)
        terms = terms_of(needs, room.rules, room.layout.per_core)
        if not (terms.bound or terms.numa):
            return None
        devices = hints_of_devices(nodes.state.cards, pod) if terms.numa else None
        beside = [] if devices is None else devices.on(node, _spare_cpu(nodes), uid, restricted=restricted)
        chosen = designated(pod.pod.annotations)
        if chosen is None:
            allocation, zones = place(room, needs, cpus.policy.scoring, beside)
        else:
            check(room, needs, terms, chosen)
            allocation, zones = chosen, mask_of(chosen.zones) if terms.numa and chosen.zones else None
    except (NoRoom, ObjectError) as why:
        return Refusal(str(why))
    if not allocation and zones is None:
        return None
    spec = _spec(pod, needs, terms) if terms.bound else ""
    of = pod.pod.labels.get(QOS_CLASS, "")
    claim = CPUClaim(pod.pod.key, node, allocation, needs.exclusive, spec, of, pod.pod.uid, uid, zones)
    cpus.take(claim)
    return claim


def _spare_cpu(nodes: NodeView) -> int:
    """The node's CPU that nobody has requested yet, where policy has fragmentation measured."""
    policy = nodes.state.cards.policy
    return int(spare_cpu(nodes)[0]) if policy is not None and policy.measures else 0


def give_back(host: Host, claim: CPUClaim) -> None:
    """The pod does not come, or is gone."""
    host.cluster.cpus.give(claim)


def take_again(host: Host, claim: CPUClaim) -> None:
    """It is there after all."""
    host.cluster.cpus.take(claim)


def adopt(host: Host, pod: PodView, node: str) -> CPUClaim | None:
    """Take what a pod has that is on a node already, as its annotation says and its class and requests allow. Raises ObjectError."""
    said = read_allocation(pod.pod.annotations)
    if not said:
        return None
    cpus, exclusive = host.cluster.cpus, CPUExclusive.NONE
    allocation, by_node = _heeded(cpus, pod, node, said)
    if not allocation:
        return None
    if allocation.cpus and cpus.policy is not None and RESOURCE_SPEC in pod.pod.annotations:
        try:
            exclusive = cpus.policy.needs(pod, request_of(pod)).exclusive
        except (ObjectError, CelError):
            exclusive = CPUExclusive.NONE  # it has its CPUs all the same
    of, lender = pod.pod.labels.get(QOS_CLASS, ""), host.cluster.reservations.taken_by(pod)
    claim = CPUClaim(pod.pod.key, node, allocation, exclusive, "", of, pod.pod.uid, lender, by_node=by_node)
    cpus.take(claim)
    return claim


def _heeded(cpus: CPUAccounts, pod: PodView, node: str, said: Allocation) -> tuple[Allocation, bool]:
    """What counts of what a pod's annotation says, and whether its CPUs count only where the node gives all pods theirs."""
    if is_reserve_pod(pod) or cpus.policy is None:
        return said, False  # a Reservation is not a user's to write
    account, request = cpus.account(node), _most(pod)
    by_itself = cpus.policy.may_own(pod, request_of(pod))
    known = cpus.knows(node)
    layout = account.node.layout
    found = heeded(
        said,
        request,
        owns=by_itself or not known or account.rules.bind is not BindPolicy.NONE,
        spare=_spare(layout, request),
        there=layout.core.keys(),
        ratio=account.rules.ratio,
    )
    if found.ignored:
        LOG.warning(
            "what pod %s says by the annotation %s is more than it may have on node %s, and this counts for nothing: %s",
            "/".join(pod.pod.key),
            RESOURCE_STATUS,
            node,
            "; ".join(found.ignored),
        )
    return found.allocation, not by_itself and not known and bool(found.allocation.cpus)


def _most(pod: PodView) -> Amounts:
    """What a pod requests, or has still while it is resized."""
    request, occupied = request_of(pod), pod.occupied
    return {
        name: max(request.get(name, 0), occupied.get(name, 0)) for name in request.keys() | occupied.keys()
    }


def _spare(layout: CPULayout, request: Amounts) -> int:
    """CPUs beyond its request that a pod may have: Koordinator fills the last core where there are more than two sockets."""
    odd = layout.per_core and request.get(CPU, 0) // MILLI % layout.per_core
    return layout.per_core - odd if odd and len(layout.sockets) > 2 else 0


def said_on_pod(claim: Any) -> Mapping[str, str]:
    """What is written on a pod with its binding: what it has, and how it was bound."""
    found = {RESOURCE_STATUS: allocation_text(claim.allocation)} if claim.allocation else {}
    return {**found, RESOURCE_SPEC: claim.spec} if claim.spec else found


def _spec(pod: PodView, needs: PodNeeds, terms: Terms) -> str:
    """How a pod was bound, in the words of its annotation, where that says it otherwise. Raises ObjectError."""
    annotations = pod.pod.annotations
    spec = read_resource_spec(annotations)
    bind = terms.bind.value
    changed: dict[str, str] = {}
    if terms.required and spec.required_bind != bind:
        changed[_REQUIRED] = bind
    elif not spec.required_bind and spec.preferred_bind in ("", BindPolicy.DEFAULT) and bind:
        changed[_PREFERRED] = bind
    if not changed:
        return ""
    source = annotations.get(RESOURCE_SPEC)
    if not source:
        return _spec_text(*changed.items())
    return json.dumps({**embedded_object(source, RESOURCE_SPEC), **changed}, separators=(",", ":"))


@lru_cache(maxsize=64)
def _spec_text(*said: tuple[str, str]) -> str:
    return json.dumps(dict(said), separators=(",", ":"))
