"""What pods take from nodes: room, how much would be left, and how evenly."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from koordpolicy.mechanism import balanced
from koordpolicy.mechanism.fit import checked_resources, fit, fit_all, shortage_reason
from koordpolicy.mechanism.fit_score import FitScore, Strategy
from koordpolicy.mechanism.verdict import Verdict
from koordpolicy.model.protocol import PODS
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.mechanisms.base import (
    ParameterError,
    Parameters,
    Scores,
    Verdicts,
    text,
    texts,
    weights,
)
from koordpolicy.scheduler.nodes import NodeView
from koordpolicy.scheduler.pods import PodView


def resources_fit(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes without room for what the pod requests."""
    request: Any = pod.facts["resources.request"]
    ignored = texts(parameters, "ignoredResources"), texts(parameters, "ignoredResourceGroups")
    few = nodes.few
    if few is not None:
        return _fit_few(request, few, ignored)
    found = fit_all(
        request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.numbers("requested.pods"),
        *ignored,
    )
    reasons = tuple(shortage_reason(resource) for resource in found.resources)
    return Verdicts(reasons, found.short, found.unresolvable)


def _fit_few(
    request: Amounts, few: Sequence[Mapping[str, Any]], ignored: tuple[tuple[str, ...], tuple[str, ...]]
) -> Verdicts:
    """The same, node by node."""
    resources = (PODS, *checked_resources(request, *ignored))
    refused = np.zeros((len(resources), len(few)), np.bool_)
    hopeless = np.zeros(len(few), np.bool_)
    for at, node in enumerate(few):
        allocatable, requested = node["resources.allocatable"], node["resources.requested"]
        for shortage in fit(request, allocatable, requested, node["requested.pods"], *ignored):
            refused[resources.index(shortage.resource), at] = True
            hopeless[at] |= shortage.verdict == Verdict.UNRESOLVABLE
    return Verdicts(tuple(map(shortage_reason, resources)), refused, hopeless)


def room_wanted(pod: PodView, parameters: Parameters) -> dict[str, int]:
    """What `resources_fit` compares with what is free."""
    request: Any = pod.facts["resources.request"]
    ignored = texts(parameters, "ignoredResources"), texts(parameters, "ignoredResourceGroups")
    return {PODS: 1, **{name: request[name] for name in checked_resources(request, *ignored)}}


def fit_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores:
    """How much of each node would be left, or taken, by strategy."""
    score = _fit_score(
        text(parameters, "strategy", "LeastAllocated"),
        tuple(weights(parameters).items()),
        tuple((parameters.get("shape") or {}).items()),
    )
    few = nodes.few
    if few is not None:
        asked = pod.plain_request, pod.plain_nonzero_request
        return np.array([score.score(*asked, *_taken(node)) for node in few], np.int64)
    return score.score_all(
        pod.plain_request,
        pod.plain_nonzero_request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.amounts("resources.nonzeroRequested"),
        nodes.count,
    )


def _taken(node: Mapping[str, Any]) -> tuple[Amounts, Amounts, Amounts]:
    return node["resources.allocatable"], node["resources.requested"], node["resources.nonzeroRequested"]


def balanced_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> "Scores | None":
    """How evenly each node's resources would be used."""
    request: Any = pod.facts["resources.request"]
    resources = texts(parameters, "resources")
    if not balanced.takes_part({name: request.get(name, 0) for name in resources}):
        return None
    variant = text(parameters, "variant", "classic")
    found = _VARIANTS.get(variant)
    if found is None:
        raise ParameterError(
            f"`variant` is `{variant}`; it may be " + " or ".join(f"`{one}`" for one in _VARIANTS)
        )
    score_one, score = found
    few = nodes.few
    if few is not None:
        one_by_one = [score_one(resources, request, *_taken(node)[:2]) for node in few]
        return np.array(one_by_one, np.int64)
    allocatable, requested = nodes.amounts("resources.allocatable"), nodes.amounts("resources.requested")
    return score(resources, request, allocatable, requested, nodes.count)


_VARIANTS: Final = MappingProxyType(
    {
        "classic": (balanced.classic, balanced.classic_all),
        "delta": (balanced.delta, balanced.delta_all),
    }
)
"""Each for one node and for all at once."""


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
