"""Inter-pod affinity: nodes near the pods that a pod wants near, away from those it does not, both ways."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.interpod import (
    NOT_APART,
    NOT_NEAR,
    OTHERS_OBJECT,
    Near,
    affinity_refusals,
    anti_affinity_refusals,
    interpod_normalized,
    weighed,
)
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.label_sets import Wanted
from koordpolicy.cluster.nodes import NodeView, Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import TERMS, ClusterState
from koordpolicy.scheduler.plugins.base import ANEW, NODES_COME_AND_CHANGE, PLACE, Plugin, Said
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters
from koordpolicy.scheduler.plugins.verdicts import Verdicts

_HARD_WEIGHT: Final = "hardPodAffinityWeight"
_MOST_WEIGHT: Final = 100


def required_wanted(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """Whether the pod requires something of others, or one of them of it."""
    wants = pod.neighbours
    if wants.near or wants.apart:
        return ANEW
    return ANEW if state.apart.speaks(state.label_sets, pod.pod.namespace, pod.pod.labels) else None


def interpod_filter(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that are not near, nodes that are not apart, nodes whose pods would object."""
    state, count, wants = nodes.state, nodes.total, pod.neighbours
    namespace, labels = pod.pod.namespace, pod.pod.labels
    near = affinity_refusals([], False, count)
    if wants.near:
        terms = tuple(one.pods for one in wants.near)
        pods = state.label_sets.counts(Wanted(terms)).array(count)
        itself = all(state.label_sets.matches(term, namespace, labels) for term in terms)
        keys = dict.fromkeys(one.key for one in wants.near)
        near = affinity_refusals([_near(nodes, key, pods) for key in keys], itself, count)
    selections = state.label_sets
    apart = anti_affinity_refusals(
        _by_key(nodes, ((one.key, selections.counts(one), 1) for one in wants.apart_by_key)), count
    )
    objecting = anti_affinity_refusals(
        _by_key(
            nodes, ((key, counts, 1) for key, counts in state.apart.about(selections, namespace, labels))
        ),
        count,
    )
    apart &= ~near
    objecting &= ~near & ~apart
    refused = np.stack([nodes.some(one) for one in (near, apart, objecting)])
    return Verdicts((NOT_NEAR, NOT_APART, OTHERS_OBJECT), refused, refused[0])


def wishes_wanted(pod: PodView, state: ClusterState, said: Said) -> Hashable | None:
    """Whether the pod has wishes about others, or others about it."""
    if pod.neighbours.wishes:
        return ANEW
    if not state.near and not state.wishes:
        return None
    parameters = said()
    if parameters.get("ignorePreferredTermsOfExistingPods"):
        return None
    asked = state.label_sets, pod.pod.namespace, pod.pod.labels
    speaks = (_hard_weight(parameters) and state.near.speaks(*asked)) or state.wishes.speaks(*asked)
    return ANEW if speaks else None


def interpod_rank(pod: PodView, nodes: NodeView, rows: Rows, parameters: Parameters) -> Scores | None:
    """How many wishes the feasible nodes fulfil."""
    return interpod_normalized(interpod_wishes(pod, nodes, parameters)[rows])


def interpod_wishes(pod: PodView, nodes: NodeView, parameters: Parameters) -> Column:
    """The weights of the wishes that all nodes fulfil."""
    return weighed(_by_key(nodes, _wishes(pod, nodes, parameters)), nodes.total)


def _wishes(pod: PodView, nodes: NodeView, parameters: Parameters) -> Iterator[tuple[str, RowCounts, int]]:
    state = nodes.state
    for wishes in pod.neighbours.wishes_by_key:
        yield wishes.key, state.label_sets.counts(wishes), 1
    yield from _of_others(pod, state, parameters)


def _of_others(
    pod: PodView, state: ClusterState, parameters: Parameters
) -> Iterator[tuple[str, RowCounts, int]]:
    """What pods on nodes say of the pod, and what that weighs."""
    namespace, labels = pod.pod.namespace, pod.pod.labels
    hard = _hard_weight(parameters)
    if hard:
        for key, counts in state.near.about(state.label_sets, namespace, labels):
            yield key, counts, hard
    for key, counts in state.wishes.about(state.label_sets, namespace, labels):
        yield key, counts, 1


def _hard_weight(parameters: Parameters) -> int:
    value = parameters.get(_HARD_WEIGHT)
    if value is None:
        return 1
    if type(value) is not int or not 0 <= value <= _MOST_WEIGHT:
        raise ParameterError(f"`{_HARD_WEIGHT}` is not a whole number from 0 to {_MOST_WEIGHT}")
    return value


def _by_key(nodes: NodeView, found: Iterable[tuple[str, RowCounts, int]]) -> list[Near]:
    """Pods with the labels in whose domains they count, and with weights: those of one label together, however many."""
    together: dict[str, Column] = {}
    for key, counts, weight in found:
        pods = together.get(key)
        if pods is None:
            pods = together[key] = np.zeros(nodes.total, np.int64)
        counts.add_to(pods, weight)
    return [_near(nodes, key, pods) for key, pods in together.items()]


def _near(nodes: NodeView, key: str, pods: Column) -> Near:
    domains = nodes.state.topology.of(key)
    return Near(domains.ids(nodes.total), domains.size, pods)


INTER_POD_AFFINITY: Final = Plugin(
    filter=interpod_filter,
    rank=interpod_rank,
    node_facts=PLACE,
    helped_by=NODES_COME_AND_CHANGE
    | {Event.POD_GONE, Event.POD_PLACED, Event.POD_CHANGED, Event.NAMESPACE_CHANGED},
    row_only=False,
    cache_key=required_wanted,
    rank_key=wishes_wanted,
    ordinary_with=TERMS,
    of_kubernetes=True,
)
