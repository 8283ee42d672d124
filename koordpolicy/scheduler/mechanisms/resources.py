"""What pods take from nodes: room, how much would be left, and how evenly."""

from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.mechanism import balanced
from koordpolicy.mechanism.fit import checked_resources, fit_all, shortage_reason
from koordpolicy.mechanism.fit_score import FitScore, Strategy
from koordpolicy.model.protocol import PODS
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
    found = fit_all(
        request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.numbers("requested.pods"),
        texts(parameters, "ignoredResources"),
        texts(parameters, "ignoredResourceGroups"),
    )
    reasons = tuple(shortage_reason(resource) for resource in found.resources)
    return Verdicts(reasons, found.short, found.unresolvable)


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
    resources = texts(parameters, "resources")
    if not balanced.takes_part({name: request.get(name, 0) for name in resources}):
        return None
    variant = text(parameters, "variant", "classic")
    score = _VARIANTS.get(variant)
    if score is None:
        raise ParameterError(
            f"`variant` is `{variant}`; it may be " + " or ".join(f"`{one}`" for one in _VARIANTS)
        )
    allocatable, requested = nodes.amounts("resources.allocatable"), nodes.amounts("resources.requested")
    return score(resources, request, allocatable, requested, nodes.count)


_VARIANTS: Final = MappingProxyType({"classic": balanced.classic_all, "delta": balanced.delta_all})


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
