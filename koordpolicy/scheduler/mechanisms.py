"""The mechanisms that policies name: one ordered table from name to implementation.

Each is a thin fit between a profile's parameters and an algorithm of `koordpolicy.mechanism`. To add
one: its name and parameters in `language/kinds/mechanisms.py`, its implementation here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.mechanism import balanced, node_affinity, toleration
from koordpolicy.mechanism.columns import Mask
from koordpolicy.mechanism.fit import fit_all, shortage_reason
from koordpolicy.mechanism.fit_score import FitScore, Strategy
from koordpolicy.mechanism.verdict import Verdict
from koordpolicy.scheduler.events import Event
from koordpolicy.scheduler.nodes import NodeView, taints_of
from koordpolicy.scheduler.pods import PodView

Parameters = Mapping[str, Any]
"""The values of a mechanism's parameters by name, as run-time values. None: policy says nothing."""

Scores = NDArray[Any]


class ParameterError(ValueError):
    """A parameter has a value that the mechanism cannot work with; the message names it."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a filter says of the nodes it was shown.

    Row i of `refused` marks the nodes refused for `reasons[i]`; `hopeless` those that fewer pods on them
    would not help either.
    """

    reasons: tuple[str, ...]
    refused: Mask
    hopeless: Mask


Filter = Callable[[PodView, NodeView, Parameters], Verdicts]
Score = Callable[[PodView, NodeView, Parameters], "Scores | None"]
"""Scores of the nodes; None when the pod gives no reason to prefer any."""

_NODES_COME_AND_CHANGE: Final = frozenset({Event.NODE_ADDED, Event.NODE_CHANGED})


@dataclass(frozen=True, slots=True)
class Mechanism:
    """An implementation: as a filter, as a score, or as both.

    `node_facts` and `pod_facts` are what it reads, so that equal pods on unchanged nodes need no second
    look. `helped_by` are the events after which a refused pod may pass.
    """

    filter: Filter | None = None
    score: Score | None = None
    node_facts: frozenset[str] = frozenset()
    pod_facts: frozenset[str] = frozenset()
    helped_by: frozenset[Event] = _NODES_COME_AND_CHANGE


# --- filters -------------------------------------------------------------------------------------


def _one_reason(refused: Mask, reason: str) -> Verdicts:
    """A filter with one reason, which other pods have nothing to do with."""
    return Verdicts((reason,), refused[np.newaxis], refused)


def node_unschedulable(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Cordoned nodes."""
    if toleration.tolerated(pod.placement.tolerations, toleration.CORDON):
        return _one_reason(np.zeros(nodes.count, np.bool_), toleration.CORDONED)
    return _one_reason(nodes.flags("unschedulable"), toleration.CORDONED)


NODE_NAME_MISMATCH: Final = "node(s) didn't match the requested node name"


def node_name(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes other than the one that the pod names."""
    wanted = pod.pod.node_name
    if not wanted:
        return _one_reason(np.zeros(nodes.count, np.bool_), NODE_NAME_MISMATCH)
    return _one_reason(nodes.names() != nodes.code(wanted), NODE_NAME_MISMATCH)


def taint_toleration(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes with taints that the pod does not tolerate. Each set of taints is looked at once."""
    codes = nodes.taints()
    refused = np.zeros(nodes.count, np.bool_)
    for code in np.unique(codes) if codes.any() else ():
        if not toleration.tolerates_all(pod.placement.tolerations, taints_of(nodes.text(int(code)))):
            refused |= codes == code
    return _one_reason(refused, toleration.UNTOLERATED)


def required_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """Nodes that have not what the pod's selector and affinity require."""
    placement = pod.placement
    if not placement.node_selector and placement.required is None:
        return _one_reason(np.zeros(nodes.count, np.bool_), node_affinity.MISMATCH)
    return _one_reason(~node_affinity.matches_all(placement, nodes), node_affinity.MISMATCH)


def resources_fit(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes without room for what the pod requests."""
    request: Any = pod.facts["resources.request"]
    found = fit_all(
        request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.numbers("requested.pods"),
        _texts(parameters, "ignoredResources"),
        _texts(parameters, "ignoredResourceGroups"),
    )
    reasons = tuple(shortage_reason(resource) for resource in found.resources)
    return Verdicts(reasons, found.short, found.verdicts == Verdict.UNRESOLVABLE)


# --- scores --------------------------------------------------------------------------------------


def avoided_taints(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Scores:
    """How many taints of each node the pod would rather avoid."""
    codes = nodes.taints()
    counts = np.zeros(nodes.count, np.int64)
    for code in np.unique(codes) if codes.any() else ():
        avoided = toleration.avoided(pod.placement.tolerations, taints_of(nodes.text(int(code))))
        counts[codes == code] = avoided
    return counts


def preferred_affinity(pod: PodView, nodes: NodeView, _parameters: Parameters) -> "Scores | None":
    """The weights of the pod's wishes that each node fulfils."""
    preferred = pod.placement.preferred
    return node_affinity.preference_all(preferred, nodes) if preferred else None


def fit_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores:
    """How much of each node would be left, or taken, by strategy."""
    score = _fit_score(
        _text(parameters, "strategy", "LeastAllocated"),
        tuple(_weights(parameters).items()),
        tuple((parameters.get("shape") or {}).items()),
    )
    return score.score_all(
        pod.plain_request,
        pod.plain_nonzero_request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.amounts("resources.nonzeroRequested"),
        nodes.count,
    )


def balanced_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> "Scores | None":
    """How evenly each node's resources would be used."""
    request: Any = pod.facts["resources.request"]
    resources = _texts(parameters, "resources")
    if not balanced.takes_part({name: request.get(name, 0) for name in resources}):
        return None
    variant = _text(parameters, "variant", "classic")
    score = _VARIANTS.get(variant)
    if score is None:
        raise ParameterError(
            f"`variant` is `{variant}`; it may be " + " or ".join(f"`{one}`" for one in _VARIANTS)
        )
    allocatable, requested = nodes.amounts("resources.allocatable"), nodes.amounts("resources.requested")
    return score(resources, request, allocatable, requested, nodes.count)


_VARIANTS: Final = MappingProxyType({"classic": balanced.classic_all, "delta": balanced.delta_all})


# --- parameters ----------------------------------------------------------------------------------


def _text(parameters: Parameters, name: str, default: str) -> str:
    value = parameters.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ParameterError(f"`{name}` is not a text")
    return value


def _texts(parameters: Parameters, name: str) -> tuple[str, ...]:
    value = parameters.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ParameterError(f"`{name}` is not a list of texts")
    return tuple(value)


def _weights(parameters: Parameters) -> Mapping[str, int]:
    value = parameters.get("weights") or {}
    if not isinstance(value, Mapping) or not all(
        type(weight) is int and weight >= 0 for weight in value.values()
    ):
        raise ParameterError("`weights` is not a mapping of resources to whole numbers from 0")
    return value


@lru_cache(maxsize=64)
def _fit_score(
    strategy: str, weights: tuple[tuple[str, int], ...], shape: tuple[tuple[str, int], ...]
) -> FitScore:
    try:
        named = Strategy(strategy)
    except ValueError:
        known = " or ".join(f"`{one}`" for one in Strategy)
        raise ParameterError(f"`strategy` is `{strategy}`; it may be {known}") from None
    if named is not Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return FitScore.of(named, weights)
    try:
        points = sorted((int(use.removesuffix("%")), score) for use, score in shape)
        return FitScore.of(named, weights, points)
    except (ValueError, AttributeError) as problem:
        raise ParameterError(f"`shape`: {problem}") from None


_PLACEMENT: Final = frozenset({"spec"})
"""Stands for what a pod's spec says of nodes, which has no facts of its own."""

_FIT_FACTS: Final = frozenset({"resources.allocatable", "resources.requested", "requested.pods"})

MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "NodeUnschedulable": Mechanism(
            filter=node_unschedulable, node_facts=frozenset({"unschedulable"}), pod_facts=_PLACEMENT
        ),
        "NodeName": Mechanism(
            filter=node_name, node_facts=frozenset({"name"}), pod_facts=frozenset({"nodeName"})
        ),
        "TaintToleration": Mechanism(
            filter=taint_toleration,
            score=avoided_taints,
            node_facts=frozenset({"scheduler/taints"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeAffinity": Mechanism(
            filter=required_affinity,
            score=preferred_affinity,
            node_facts=frozenset({"labels", "name"}),
            pod_facts=_PLACEMENT,
        ),
        "NodeResourcesFit": Mechanism(
            filter=resources_fit,
            score=fit_score,
            node_facts=_FIT_FACTS | {"resources.nonzeroRequested"},
            pod_facts=frozenset({"resources.request", "resources.nonzeroRequest"}),
            helped_by=_NODES_COME_AND_CHANGE | {Event.POD_GONE},
        ),
        "NodeResourcesBalancedAllocation": Mechanism(
            score=balanced_score,
            node_facts=_FIT_FACTS,
            pod_facts=frozenset({"resources.request"}),
        ),
    }
)
"""All mechanisms, in the order of the manual."""
