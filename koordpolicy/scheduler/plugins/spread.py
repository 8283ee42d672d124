"""Topology spread: even numbers of pods over zones, nodes, and whatever else nodes are labelled with."""

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np

from koordpolicy.algorithms import node_affinity, toleration
from koordpolicy.algorithms.columns import Column, Mask
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.algorithms.spread import (
    LABEL_MISSING,
    UNEVEN,
    HardSpread,
    SoftSpread,
    spread_normalized,
    spread_raw,
    spread_refusals,
)
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.label_sets import Wanted
from koordpolicy.cluster.nodes import TAINTS, NodeView, Rows, taints_of
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.distinct import distinct
from koordpolicy.model.neighbours import PodTerm, SpreadConstraint
from koordpolicy.model.protocol import HOSTNAME
from koordpolicy.scheduler.plugins.base import ANEW, NODES_COME_AND_CHANGE, PLACE, Plugin, Said
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts

_SOFT: Final = "defaultConstraints"
_HARD: Final = "requiredDefaultConstraints"
_PARTIAL: Final = "scoreNodesWithoutLabel"


def hard_wanted(pod: PodView, state: ClusterState, said: Said) -> Hashable | None:
    """Whether a constraint of the pod may refuse nodes."""
    return ANEW if any(one.hard for one in _constraints(pod, state, said)) else None


def soft_wanted(pod: PodView, state: ClusterState, said: Said) -> Hashable | None:
    """Whether a constraint of the pod scores nodes."""
    return ANEW if any(not one.hard for one in _constraints(pod, state, said)) else None


def spread_filter(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes that lack a label, and nodes that have more than their share."""
    state, everything = nodes.state, nodes.whole()
    hard = [one for one in _constraints(pod, state, lambda: parameters) if one.hard]
    holders = state.topology.holders({one.key for one in hard})
    constraints = []
    for one in hard:
        domains = state.topology.of(one.key)
        matches_itself = one.selector is not None and one.selector.matches(pod.pod.labels)
        constraints.append(
            HardSpread(
                domains.ids(nodes.total),
                domains.size,
                _pods(pod, one, nodes),
                holders & _counting(pod, one, everything),
                one.max_skew,
                one.min_domains,
                int(matches_itself),
            )
        )
    missing, uneven = spread_refusals(constraints, nodes.total)
    refused = np.stack([nodes.some(missing), nodes.some(uneven)])
    return Verdicts((LABEL_MISSING, UNEVEN), refused, refused[0])


def spread_rank(pod: PodView, nodes: NodeView, rows: Rows, parameters: Parameters) -> Scores:
    """How little crowded the domains of the feasible nodes are."""
    raw, ignored = spread_crowding(pod, nodes, rows, parameters)
    return spread_normalized(raw, ignored)


def spread_crowding(pod: PodView, nodes: NodeView, rows: Rows, parameters: Parameters) -> tuple[Scores, Mask]:
    """How crowded they are, and those that lack a label and are not scored for that."""
    state = nodes.state
    soft = [one for one in _constraints(pod, state, lambda: parameters) if not one.hard]
    own = bool(pod.neighbours.spread)
    holders = np.ones(nodes.total, np.bool_)
    if own or not parameters.get(_PARTIAL):
        holders = state.topology.holders({one.key for one in soft})
    constraints = []
    for one in soft:
        domains = state.topology.of(one.key)
        constraints.append(
            SoftSpread(
                domains.ids(nodes.total),
                domains.size,
                _pods(pod, one, nodes),
                holders & _counting(pod, one, nodes),
                one.max_skew,
                by_node=one.key == HOSTNAME,
            )
        )
    ignored = ~holders[rows]
    return spread_raw(constraints, rows, ignored), ignored


def _constraints(pod: PodView, state: ClusterState, said: Said) -> tuple[SpreadConstraint, ...]:
    """The pod's own constraints, or those that policy has for pods without any."""
    own = pod.neighbours.spread
    if own:
        return own
    selector = state.workloads.selector_of(pod.pod)
    if selector is None:
        return ()
    parameters = said()
    soft, hard = _defaults(parameters, _SOFT), _defaults(parameters, _HARD)
    return tuple(
        SpreadConstraint(key, skew, required, selector)
        for required, defaults in ((True, hard), (False, soft))
        for key, skew in defaults.items()
    )


def _defaults(parameters: Parameters, name: str) -> Mapping[str, int]:
    value = parameters.get(name) or {}
    if not isinstance(value, Mapping) or not all(type(skew) is int and skew > 0 for skew in value.values()):
        raise ParameterError(f"`{name}` is not a mapping of labels to whole numbers from 1")
    return value


def _pods(pod: PodView, constraint: SpreadConstraint, nodes: NodeView) -> Column:
    """The pods on each node that a constraint counts. The empty selector counts none."""
    selector = constraint.selector
    if selector is None or not selector.requirements:
        return np.zeros(nodes.total, np.int64)
    term = PodTerm(selector, frozenset({pod.pod.namespace}))
    return nodes.state.label_sets.counts(Wanted((term,), alive=True)).array(nodes.total)


def _counting(pod: PodView, constraint: SpreadConstraint, nodes: NodeView) -> Mask:
    """The nodes that count for a constraint, as it says of affinity and taints. `nodes` are all."""
    found = np.ones(nodes.total, np.bool_)
    placement = pod.placement
    if constraint.honor_affinity and (placement.node_selector or placement.required is not None):
        found &= node_affinity.matches_all(placement, nodes)
    if constraint.honor_taints:
        codes = nodes.taints()
        for code in distinct(codes) if codes.any() else ():
            if not toleration.tolerates_all(placement.tolerations, taints_of(nodes.text(int(code)))):
                found &= codes != code
    return found


POD_TOPOLOGY_SPREAD: Final = Plugin(
    filter=spread_filter,
    rank=spread_rank,
    node_facts=PLACE | {TAINTS},
    helped_by=NODES_COME_AND_CHANGE | {Event.NODE_GONE, Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED},
    row_only=False,
    cache_key=hard_wanted,
    rank_key=soft_wanted,
    of_kubernetes=True,
)
