"""Volumes to be bound: which nodes the volumes of a pod can come to, and how.

A claim that waits for its first user takes the smallest volume that suits it there, or the class' driver
makes one. What is said here of all nodes is said of the chosen one alone to make the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms import node_affinity
from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.volume_match import candidates
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.volume_plan import VolumeBind, VolumePlan
from koordpolicy.cluster.volumes import Volumes
from koordpolicy.model.labels import LabelSelector, Operator
from koordpolicy.model.placement import NodeRequirement, NodeTerm, Placement
from koordpolicy.model.volumes import LOST, NO_PROVISIONER, StorageClass, Volume, VolumeClaim

NOT_BOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_STORAGE: Final = "node(s) did not have enough free storage"
GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_NONE: Final = -1


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod. `problem` says why no node will do, and `remedy` when one may; `bound` have a volume (None:
    a lost one).
    """

    problem: str = ""
    remedy: str = ""
    bound: list[tuple[VolumeClaim, Volume | None]] = field(default_factory=list)
    waiting: list[VolumeClaim] = field(default_factory=list)


def claims_of(pod: PodView, volumes: Volumes) -> PodClaims:
    """What the claims of a pod need."""
    found = PodClaims()
    unbound: list[str] = []
    for use in pod.volumes.claims:
        claim = volumes.claim((pod.pod.namespace, use.name))
        if claim is None:
            found.problem = (
                f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
                if use.ephemeral
                else f'persistentvolumeclaim "{use.name}" not found'
            )
        elif claim.phase == LOST:
            found.problem = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
        elif claim.terminating:
            found.problem = f'persistentvolumeclaim "{claim.name}" is being deleted'
        elif use.ephemeral and pod.pod.uid not in claim.owners:
            found.problem = f'persistentvolumeclaim "{claim.name}" was not created for the pod'
        elif claim.bound:
            found.bound.append((claim, volumes.volume(claim.volume)))
        elif claim.volume or not _waits(claim, volumes):
            unbound.append(claim.name)
        else:
            found.waiting.append(claim)
        if found.problem:
            again = "there" if claim is None else "made anew"
            found.remedy = f"once the claim {use.name} is {again}"
            return found
    if unbound:
        found.problem = NOT_BOUND
        found.remedy = f"once {_claims(unbound)} bound"
    return found


def _claims(names: Sequence[str]) -> str:
    return f"the claim {names[0]} is" if len(names) == 1 else f"the claims {', '.join(names)} are"


def _waits(claim: VolumeClaim, volumes: Volumes) -> bool:
    storage = volumes.storage_class(claim.storage_class or "")
    return storage is not None and storage.waits


@dataclass(slots=True)
class Bindings:
    """What becomes of a pod's claims on each node: masks of the nodes refused, and what is chosen.

    `chosen[i]` is for each node the number among `volumes` of what the i-th of `claims` gets, -1 for one that
    its class' driver makes.
    """

    gone: Mask
    elsewhere: Mask
    unmatched: Mask
    short: Mask
    claims: list[VolumeClaim] = field(default_factory=list)
    volumes: list[Volume] = field(default_factory=list)
    chosen: list[NDArray[np.int64]] = field(default_factory=list)

    def plan(self, at: int, node: str) -> VolumePlan:
        """What is to be done for one of the nodes."""
        binds, made = [], []
        for claim, chosen in zip(self.claims, self.chosen, strict=True):
            number = int(chosen[at])
            if number == _NONE:
                made.append(claim.key)
            else:
                binds.append(VolumeBind(self.volumes[number].name, claim.key, claim.uid))
        return VolumePlan(node, tuple(binds), tuple(made))


def bindings(wanted: PodClaims, nodes: NodeView, volumes: Volumes) -> Bindings:
    """What becomes of the claims on each of the nodes."""
    gone, elsewhere, unmatched, short = (np.zeros(nodes.count, np.bool_) for _ in range(4))
    found = Bindings(gone, elsewhere, unmatched, short)
    places = _Places(nodes)
    for _, volume in wanted.bound:
        if volume is None:
            found.gone |= True
        elif volume.affinity is not None:
            found.elsewhere |= ~places.mask(volume.affinity)
    # The first claim that a node cannot serve is the reason: one whose volume is made for another node before
    # all, then those whose volume is made for this one, in the pod's order, then the smallest.
    promised = [claim for claim in wanted.waiting if claim.selected_node]
    for claim in promised:
        found.unmatched |= nodes.names() != nodes.code(claim.selected_node)
    free = [claim for claim in wanted.waiting if not claim.selected_node]
    for claim in [*promised, *sorted(free, key=lambda one: one.request or 0)]:
        chosen = np.full(nodes.count, _NONE, np.int64)
        if not claim.selected_node:
            _choose(found, claim, chosen, places, volumes)
        _provide(found, claim, (chosen == _NONE) & ~found.unmatched & ~found.short, nodes, volumes)
        found.claims.append(claim)
        found.chosen.append(chosen)
    return found


def _choose(
    found: Bindings, claim: VolumeClaim, chosen: NDArray[np.int64], places: "_Places", volumes: Volumes
) -> None:
    """Give each node the first volume that suits the claim there and that no claim before has got."""
    left = len(chosen)
    for volume in candidates(claim, volumes.of_class(claim.storage_class or "")):
        if not left:
            return
        at = places.rows(volume.affinity)
        at = at[chosen[at] == _NONE]
        if volume in found.volumes:
            number = found.volumes.index(volume)
            for before in found.chosen:
                at = at[before[at] != number]
        else:
            number = len(found.volumes)
            found.volumes.append(volume)
        chosen[at] = number
        left -= len(at)


def _provide(found: Bindings, claim: VolumeClaim, lacking: Mask, nodes: NodeView, volumes: Volumes) -> None:
    """Refuse the nodes for which the class' driver makes no volume, or has no room for one."""
    if not lacking.any():
        return
    storage = volumes.storage_class(claim.storage_class or "")
    if storage is None or storage.provisioner in ("", NO_PROVISIONER):
        found.unmatched |= lacking
        return
    if storage.topologies is not None:
        reached = node_affinity.matches_all(Placement(required=storage.topologies), nodes)
        found.unmatched |= lacking & ~reached
        lacking = lacking & reached
    roomy = _roomy(claim, storage, nodes, volumes)
    if roomy is not None:
        found.short |= lacking & ~roomy


def _roomy(claim: VolumeClaim, storage: StorageClass, nodes: NodeView, volumes: Volumes) -> Mask | None:
    """The nodes for which a large enough volume can be had; None where nobody says."""
    places = None if claim.request is None else volumes.capacities(storage)
    if places is None:
        return None
    found = np.zeros(nodes.count, np.bool_)
    for place in places:
        if place.nodes is not None and place.suffices(claim.request or 0):
            found |= _selected(place.nodes, nodes)
    return found


def _selected(selector: LabelSelector, nodes: NodeView) -> Mask:
    """The nodes whose labels a selector matches."""
    term = NodeTerm(
        tuple(
            NodeRequirement(one.key, one.operator.value, tuple(one.values)) for one in selector.requirements
        )
    )
    if not term.labels:
        return np.ones(nodes.count, np.bool_)
    return node_affinity.matches_all(Placement(required=(term,)), nodes)


class _Places:
    """The nodes that volumes can come to. Many volumes name one node each: those are looked up."""

    __slots__ = ("_by_label", "_nodes")

    def __init__(self, nodes: NodeView) -> None:
        self._nodes = nodes
        self._by_label: dict[str, dict[int, NDArray[np.int64]]] = {}

    def mask(self, affinity: tuple[NodeTerm, ...]) -> Mask:
        """The nodes that an affinity permits."""
        return node_affinity.matches_all(Placement(required=affinity), self._nodes)

    def rows(self, affinity: tuple[NodeTerm, ...] | None) -> NDArray[np.int64]:
        """The same as numbers."""
        if affinity is None:
            return np.arange(self._nodes.count)
        needed = _one_label(affinity)
        if needed is None:
            return np.flatnonzero(self.mask(affinity))
        known = self._by_label.get(needed.key)
        if known is None:
            known = self._by_label[needed.key] = self._grouped(needed.key)
        found = [known.get(self._nodes.code(value), _NO_ROWS) for value in needed.values]
        return found[0] if len(found) == 1 else np.sort(np.concatenate(found))

    def _grouped(self, key: str) -> dict[int, NDArray[np.int64]]:
        """The nodes by the value of a label."""
        codes, absent = self._nodes.label(key)
        there = np.arange(len(codes)) if absent is None else np.flatnonzero(~absent)
        if not len(there):
            return {}
        order = there[np.argsort(codes[there], kind="stable")]
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        return {int(codes[rows[0]]): rows for rows in np.split(order, ends)}


_NO_ROWS: Final = np.zeros(0, np.int64)


def _one_label(affinity: Sequence[NodeTerm]) -> NodeRequirement | None:
    """The requirement that is all of an affinity: a label and the values it may have."""
    if len(affinity) != 1 or affinity[0].fields or len(affinity[0].labels) != 1:
        return None
    (needed,) = affinity[0].labels
    return needed if needed.operator == Operator.IN and needed.values else None
