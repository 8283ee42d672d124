"""What a pod takes of its node's devices: from the choice of the node on, and again after a restart."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.device_need import DeviceRequestError
from koordpolicy.algorithms.device_pick import Unpicked
from koordpolicy.cluster.cpu_accounts import CPUAccounts
from koordpolicy.cluster.device_cards import DeviceCards, DeviceClaim
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.reservations import is_reserve_pod
from koordpolicy.kube import StrategicPatch
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod_devices import read_shares, read_wishes, shares_text
from koordpolicy.model.protocol import ALLOCATE_RESTRICTED, DEVICE_ALLOCATED
from koordpolicy.scheduler.plugins.base import Host, Port, Refusal, Sleep, request_of
from koordpolicy.scheduler.plugins.devices.allocation import Dealing
from koordpolicy.scheduler.plugins.devices.filters import asks_for_devices
from koordpolicy.scheduler.plugins.devices.fragmentation import spare_cpu
from koordpolicy.scheduler.plugins.devices.heeded import heeded_shares
from koordpolicy.scheduler.plugins.parameters import Parameters

LOG: Final = logging.getLogger(__name__)


def concerned(host: Host, pod: PodView) -> bool:
    """Whether a pod asks for devices, or has some."""
    return asks_for_devices(pod, host.cluster) or DEVICE_ALLOCATED in pod.pod.annotations


def take(host: Host, pod: PodView, nodes: NodeView, _parameters: Parameters) -> DeviceClaim | Refusal | None:
    """Take what a pod asks for of the one node that is shown; nothing where its kubelet deals devices out."""
    cards = nodes.state.cards
    node = nodes.name(0)
    if cards.policy is None or not cards.knows(node):
        return None
    try:
        needs = cards.policy.needs(request_of(pod))
        if not needs:
            return None
        lender = nodes.state.reservations.lender(pod)
        uid = "" if lender is None else lender.uid
        dealt = Dealing(
            cards,
            node,
            pod,
            needs,
            read_wishes(pod.pod.annotations),
            _spare_cpu(cards, nodes),
            uid,
            lender is not None and lender.allocate_policy == ALLOCATE_RESTRICTED,
        )
        shares = dealt.shares(_zones_of(nodes.state.cpus, pod, node))
    except (DeviceRequestError, Unpicked) as why:
        return Refusal(str(why))
    said: dict[str, str] = {}
    for type, listed in shares.items():
        sort = cards.policy.sorts[type]
        if sort.annotations:
            said.update(sort.said(pod.facts, node, listed))
    claim = DeviceClaim(pod.pod.key, node, shares, pod.pod.uid, uid, is_reserve_pod(pod), said)
    cards.take(claim)
    return claim


def _zones_of(cpus: CPUAccounts, pod: PodView, node: str) -> int | None:
    """The NUMA zones in which everything is allocated for a pod, as the plugin NodeNUMAResource has found (None: any)."""
    claim = cpus.claim_of(pod.pod.key)
    return claim.zones if claim is not None and claim.node == node else None


def _spare_cpu(cards: DeviceCards, nodes: NodeView) -> int:
    """The node's CPU that nobody has requested yet, where policy has fragmentation measured."""
    return int(spare_cpu(nodes)[0]) if cards.policy is not None and cards.policy.measures else 0


def give_back(host: Host, claim: DeviceClaim) -> None:
    """The pod does not come, or is gone."""
    host.cluster.cards.give(claim)


def take_again(host: Host, claim: DeviceClaim) -> None:
    """It is there after all."""
    host.cluster.cards.take(claim)


def adopt(host: Host, pod: PodView, node: str) -> DeviceClaim | None:
    """Take what a pod has that is on a node already, as its annotation says and its requests allow. Raises ObjectError."""
    shares = read_shares(pod.pod.annotations)
    if shares and not is_reserve_pod(pod):  # a Reservation is not a user's to write
        shares, ignored = heeded_shares(host.cluster.cards, node, pod, shares)
        if ignored:
            LOG.warning(
                "what pod %s says by the annotation %s is more than it may have on node %s, and this counts for nothing: %s",
                "/".join(pod.pod.key),
                DEVICE_ALLOCATED,
                node,
                "; ".join(ignored),
            )
    if not shares:
        return None
    lender = host.cluster.reservations.taken_by(pod)
    claim = DeviceClaim(pod.pod.key, node, shares, pod.pod.uid, lender, is_reserve_pod(pod))
    host.cluster.cards.take(claim)
    return claim


def said_with_binding(claim: Any) -> Mapping[str, str]:
    """What is written of a reserve pod's devices on its Reservation, as it gets its node."""
    return {DEVICE_ALLOCATED: shares_text(claim.shares)} if claim.reserve else {}


def writes(claim: Any) -> bool:
    """Whether there is a pod to be written about."""
    return not claim.reserve


async def write(_host: Host, claim: DeviceClaim, cluster: Port, _sleep: Sleep) -> None:
    """Write what a pod has into its annotation, before it is bound. Raises KubeError."""
    metadata = {"uid": claim.uid, "annotations": {**claim.said, DEVICE_ALLOCATED: shares_text(claim.shares)}}
    if not claim.uid:
        del metadata["uid"]
    namespace, name = claim.pod
    patch = StrategicPatch({"metadata": metadata})
    await cluster.patch(PODS, name, patch, namespace=namespace, subresource="status")
