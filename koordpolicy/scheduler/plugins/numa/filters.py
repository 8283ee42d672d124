"""Which nodes have the CPUs and zones that a pod wants, and how good they are, in columns over all nodes.

A node is tried by itself only where columns do not tell: where a pod has to be spread over zones, or cores are not alike.
"""

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Amount, Column, Mask, Numbers
from koordpolicy.algorithms.cpu_binding import PodNeeds, conflict, terms_of
from koordpolicy.algorithms.device_columns import divided, shares
from koordpolicy.algorithms.device_score import BEST
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.algorithms.zone_allocation import NoRoom, ZoneRules, check
from koordpolicy.algorithms.zone_columns import REASONS
from koordpolicy.cluster.cpu_accounts import CPUAccounts
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.cpu_topology import Allocation, designated
from koordpolicy.model.protocol import CPU, RESOURCE_STATUS
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.scheduling_hint import KEYS as HINT_KEYS
from koordpolicy.scheduler.plugins.base import Said, request_of
from koordpolicy.scheduler.plugins.devices.filters import devices_wanted
from koordpolicy.scheduler.plugins.devices.hints import HintsOfDevices, hints_of_devices
from koordpolicy.scheduler.plugins.parameters import Parameters, text, weights
from koordpolicy.scheduler.plugins.verdicts import Verdicts, refuses_none

_ELSEWHERE: Final = (*sorted(HINT_KEYS), RESOURCE_STATUS)
_LASTING: Final = frozenset(REASONS[:6])
"""Reasons that hold whoever leaves the node."""


def needs_of(pod: PodView, cpus: CPUAccounts) -> PodNeeds | None:
    """What a pod wants of CPUs and zones; None where that concerns no node. Raises ObjectError, CelError."""
    policy = cpus.policy
    if policy is None:
        return None
    if not cpus.known:  # asked several times of every pod
        if not pod.owns_cpus:
            return None
        needs = policy.needs(pod, request_of(pod))
        return needs if needs.binds and needs.guarded else None
    needs = policy.needs(pod, request_of(pod))
    if needs.binds or needs.numa or cpus.any_rules:
        return needs
    return None


def cpus_wanted(pod: PodView, state: ClusterState, said: Said) -> Hashable | None:
    """What stays equal as long as the answers about CPUs and zones do; None for a pod that they do not concern."""
    cpus = state.cpus
    try:
        needs = needs_of(pod, cpus)
    except ObjectError as error:
        return str(error)
    if needs is None:
        return None
    if not HINT_KEYS.isdisjoint(pod.pod.annotations):
        said_elsewhere = tuple(map(pod.pod.annotations.get, _ELSEWHERE))
        return cpus.version, needs, said_elsewhere, devices_wanted(pod, state, said)
    if needs.numa or cpus.columns().any_aligned:
        devices = devices_wanted(pod, state, said)
        if devices is not None:
            return cpus.version, needs, devices
    return cpus.version, needs


def cpus_free(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """The nodes that cannot give a pod its CPUs or zones."""
    cpus = nodes.state.cpus
    try:
        needs = needs_of(pod, cpus)
        chosen = None if needs is None else designated(pod.pod.annotations)
    except ObjectError as error:
        everywhere = np.ones((1, nodes.count), np.bool_)
        return Verdicts((str(error),), everywhere, everywhere[0])
    if needs is None:
        return refuses_none(("cpus",), nodes.count)
    if chosen is not None:
        return _given_elsewhere(needs, chosen, nodes)
    columns, total, devices = cpus.columns(), nodes.total, None
    if needs.numa or columns.any_aligned:
        devices = hints_of_devices(nodes.state.cards, pod)
    looked = columns.look(needs, None if devices is None else devices.beside(nodes, columns))
    # Rows beyond those of nodes mean nothing.
    if looked.none or not (looked.undecided[:total].any() or looked.refused[:, :total].any()):
        return refuses_none(("cpus",), nodes.count)
    refused: Mask = np.array([nodes.some(one[:total]) for one in looked.refused])
    undecided: NDArray[np.intp] = np.flatnonzero(nodes.some(looked.undecided[:total]))
    unresolvable: Mask = nodes.some(looked.unresolvable[:total]).copy()
    more = _tried(needs, devices, nodes, undecided)
    reasons = (*REASONS, *more)
    if more:
        refused = np.vstack((refused, *more.values()))
        for reason in more.keys() & _LASTING:
            unresolvable |= more[reason]
    if not refused.any():
        return refuses_none(("cpus",), nodes.count)
    return Verdicts(reasons, refused, unresolvable)


def is_barred(pod: PodView, node: str, state: ClusterState) -> bool:
    """Whether a node can never take a pod as it is, whoever leaves: nobody tells of its CPUs, or its rules and the pod's differ.

    Raises ObjectError, CelError.
    """
    needs = needs_of(pod, state.cpus)
    if needs is None:
        return False
    room = state.cpus.account(node).room
    return conflict(needs, room.rules, room.layout.per_core) is not None


def _given_elsewhere(needs: PodNeeds, chosen: Allocation, nodes: NodeView) -> Verdicts:
    """The nodes that cannot give a pod what somebody else has chosen for it: nothing else is tried."""
    names, cpus = nodes.names(), nodes.state.cpus
    found: dict[str, Mask] = {}
    for at in range(nodes.count):
        room = cpus.account(nodes.text(int(names[at]))).room
        terms = terms_of(needs, room.rules, room.layout.per_core)
        if not (terms.bound or terms.numa):
            continue
        try:
            check(room, needs, terms, chosen)
        except NoRoom as why:
            found.setdefault(str(why), np.zeros(nodes.count, np.bool_))[at] = True
    if not found:
        return refuses_none(("cpus",), nodes.count)
    return Verdicts(tuple(found), np.vstack([*found.values()]), np.zeros(nodes.count, np.bool_))


def _tried(
    needs: PodNeeds, devices: HintsOfDevices | None, nodes: NodeView, places: NDArray[np.intp]
) -> Mapping[str, Mask]:
    """Those of some nodes that refuse a pod when it is tried there, by reason."""
    found: dict[str, Mask] = {}
    names, cpus = nodes.names(), nodes.state.cpus
    for at in places.tolist():
        node = nodes.text(int(names[at]))
        reason = cpus.why_not(node, needs, () if devices is None else devices.on(node))
        if reason:
            if reason not in found:
                found[reason] = np.zeros(nodes.count, np.bool_)
            found[reason][at] = True
    return found


def cpus_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores | None:
    """How full the best zone for a pod would be, or how empty, or the whole node where the pod is in no zones."""
    cpus = nodes.state.cpus
    try:
        needs = needs_of(pod, cpus)
    except ObjectError:
        return None
    if needs is None:
        return None
    scored, columns = parameters.once(_scored), cpus.columns()
    whole = _of_nodes(pod, needs, nodes, scored)
    if not (needs.numa or columns.any_aligned):
        return whole
    aligned, in_zones = columns.scores(needs, scored)
    found: Scores = np.where(nodes.some(aligned[: nodes.total]), nodes.some(in_zones[: nodes.total]), whole)
    return found


def _scored(parameters: Parameters) -> ZoneRules:
    return ZoneRules(
        Strategy(text(parameters, "strategy", Strategy.LEAST_ALLOCATED)), dict(weights(parameters))
    )


def _of_nodes(pod: PodView, needs: PodNeeds, nodes: NodeView, scored: ZoneRules) -> Numbers:
    """Of whole nodes. Of CPU, a pod that gets its own is measured by what is given out so, times what it is sold for."""
    score: Numbers | None = None
    sums: Column | int = 0
    request = request_of(pod)
    cpus = nodes.state.cpus
    for name, weight in scored.weights.items():
        allocatable = nodes.amounts("resources.allocatable")[name]
        there = _numbers(allocatable)
        asked: float | NDArray[np.float64] = request.get(name, 0)
        if name == CPU and needs.binds:
            requested = nodes.some(cpus.sold())
            if cpus.columns().amplified:
                asked = np.ceil(asked * nodes.some(cpus.ratios()))
        else:
            requested = _numbers(nodes.amounts("resources.requested")[name])
        if scored.strategy is Strategy.MOST_ALLOCATED:
            part = requested + asked
            np.minimum(part, there, out=part)
        else:
            part = there - requested
            part -= asked
            np.maximum(part, 0, out=part)
        everywhere = allocatable.low > 0
        part = shares(part, there, BEST, allocatable.high, some_nothing=not everywhere)
        if weight != 1:
            part *= weight
        if score is None:
            score = part
        elif score.dtype == part.dtype:
            score += part
        else:
            score = score + part
        sums = sums + weight * (1 if everywhere else there > 0)
    return np.zeros(nodes.count, np.int64) if score is None else divided(score, sums)


def _numbers(amount: Amount) -> Numbers:
    """An amount in doubles where these are exact, else in whole numbers."""
    numbers = amount.numbers
    return numbers if numbers.dtype.kind == "f" else numbers.astype(np.int64, copy=False)
