"""Volumes: disks that are in use, attach limits, claims that come only to some nodes, zones."""

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.distinct import among
from koordpolicy.model.protocol import LEGACY_REGION, LEGACY_ZONE, REGION, ZONE
from koordpolicy.model.volumes import Volume
from koordpolicy.scheduler.plugins.base import RefusedNodes, Said
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts
from koordpolicy.scheduler.plugins.volumes import binding
from koordpolicy.scheduler.plugins.volumes.binding import bindings, claims_of

DISK_TAKEN: Final = "node(s) had no available disk"
ONE_POD_ONLY: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod"
)
TOO_MANY: Final = "node(s) exceed max volume count"
OTHER_ZONE: Final = "node(s) had no available volume zone"

_ZONE_LABELS: Final = (ZONE, REGION, LEGACY_ZONE, LEGACY_REGION)
_CURRENT: Final = {LEGACY_ZONE: ZONE, LEGACY_REGION: REGION}
_BETWEEN_ZONES: Final = "__"


def volumes_wanted(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """The pod's volumes, and what stays the same while they and all others do."""
    wanted = pod.volumes
    if not wanted.claims and not wanted.disks:
        return None
    held = state.volumes.held_alone(pod.pod.namespace, wanted)
    return pod.pod.namespace, pod.pod.uid, wanted, held, state.volumes.version


def claims_wanted(pod: PodView, state: ClusterState, said: Said) -> Hashable | None:
    """The same; None for pods without claims."""
    return volumes_wanted(pod, state, said) if pod.volumes.claims else None


def volume_restrictions(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes where a disk is in use, and all others while a claim for one pod only is another one's."""
    volumes = nodes.state.volumes
    taken = np.zeros(nodes.total, np.bool_)
    for disk in pod.volumes.disks:
        for counts in volumes.users(disk):
            taken |= counts.array(nodes.total) > 0
    there = nodes.some(taken)
    held = ~there & volumes.held_alone(pod.pod.namespace, pod.volumes)
    refused = np.stack([there, held])
    return Verdicts((DISK_TAKEN, ONE_POD_ONLY), refused, np.zeros(nodes.count, np.bool_))


def node_volume_limits(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that can attach no more volumes of a driver."""
    volumes, count = nodes.state.volumes, nodes.total
    by_driver: dict[str, list[tuple[str, str]]] = {}
    for handle in volumes.handles(pod.pod.namespace, pod.volumes):
        by_driver.setdefault(handle[0], []).append(handle)
    refused = np.zeros(count, np.bool_)
    for driver, handles in by_driver.items():
        limits = volumes.attached.limits(driver, count)
        if limits is None:
            continue
        new = np.zeros(count, np.int64)
        for handle in handles:
            new += volumes.attached.has(handle, count) == 0
        total = volumes.attached.attached(driver, count) + new
        refused |= (limits > 0) & (new > 0) & (total >= limits)
    return Verdicts((TOO_MANY,), nodes.some(refused)[np.newaxis], np.zeros(nodes.count, np.bool_))


def volume_filter(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that the pod's volumes cannot come to."""
    volumes = nodes.state.volumes
    wanted = claims_of(pod, volumes)
    if wanted.problem:
        everywhere = np.ones(nodes.count, np.bool_)
        return Verdicts((wanted.problem,), everywhere[np.newaxis], everywhere)
    found = bindings(wanted, nodes, volumes)
    masks = np.stack([found.gone, found.elsewhere, found.unmatched, found.short])
    reasons = (
        binding.GONE,
        binding.ELSEWHERE,
        binding.NO_VOLUME,
        binding.NO_STORAGE,
    )
    unresolvable = found.gone | found.elsewhere | found.unmatched | found.short
    return Verdicts(reasons, masks, unresolvable)


def claims_advice(pod: PodView, _parameters: Parameters, nodes: RefusedNodes) -> Iterator[str]:
    """What has to become of the claims that let the pod on no node."""
    wanted = None if nodes.state is None else claims_of(pod, nodes.state.volumes)
    if wanted is not None and wanted.remedy:
        yield f"{len(nodes.rows)} may take it {wanted.remedy}"


def volumes_missing(pod: PodView, state: ClusterState) -> bool:
    """Whether the pod's volumes can come to no node whatever."""
    wanted = claims_of(pod, state.volumes)
    return bool(wanted.problem) or any(volume is None for _, volume in wanted.bound)


def volume_zone(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes outside the zones and regions that the pod's volumes are labelled with."""
    wanted = claims_of(pod, nodes.state.volumes)
    refused = np.zeros(nodes.count, np.bool_)
    zoned = _zoned(nodes)
    for _, volume in wanted.bound:
        for label, zones in _zones(volume):
            refused |= zoned & ~_in_zones(nodes, label, zones)
    return Verdicts((OTHER_ZONE,), refused[np.newaxis], refused)


def _zones(volume: Volume | None) -> list[tuple[str, frozenset[str]]]:
    """The zones and regions that a volume is labelled with. A label with an empty part says nothing."""
    found = []
    for label in _ZONE_LABELS if volume is not None else ():
        text = volume.labels.get(label) if volume is not None else None
        zones = [] if text is None else [part.strip() for part in text.split(_BETWEEN_ZONES)]
        if zones and all(zones):
            found.append((label, frozenset(zones)))
    return found


def _zoned(nodes: NodeView) -> Mask:
    """The nodes that say at all where they are."""
    found = np.zeros(nodes.count, np.bool_)
    for label in _ZONE_LABELS:
        _, absent = nodes.label(label)
        found |= True if absent is None else ~absent
    return found


def _in_zones(nodes: NodeView, label: str, zones: frozenset[str]) -> Mask:
    """The nodes whose label has one of these values; the current label counts where the old one is absent."""
    codes, absent = nodes.label(label)
    found = among(codes, [nodes.code(zone) for zone in zones])
    if absent is None:
        return found
    found &= ~absent
    current = _CURRENT.get(label)
    return found if current is None else found | (absent & _in_zones(nodes, current, zones))
