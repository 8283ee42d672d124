"""What pods are predicted to use at most, and how much of their requests will stay unused.

Amounts are millicores and bytes by resource; predictions are percentiles of histograms, before any margin.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Peak = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PredictedPod:
    """A pod whose requests may be reclaimed: what it requests, and what it is predicted to use at most.

    `peak` is None for one that nothing is known of. `young` is one that was not watched for long enough, `ending` one that
    gives back all it has before long.
    """

    request: Peak
    peak: Peak | None
    young: bool = False
    ending: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """What will stay unused of requests, and what will be used at most."""

    reclaimable: Peak
    peak: Peak


def with_margin(peak: Peak, margin: float) -> dict[str, int]:
    """A prediction with so much on top (0.1 for 10 percent), cut off to whole amounts."""
    factor = (100 + margin * 100) / 100
    return {resource: int(amount * factor) for resource, amount in peak.items()}


def predict_by_pods(
    pods: Iterable[PredictedPod], allocatable: Peak, margin: float, resources: Iterable[str]
) -> Prediction:
    """Pod by pod: what each requests beyond its own peak. Of those that are not predicted, nothing."""
    pods = list(pods)
    reclaimable, peaks = {}, {}
    for resource in resources:
        spare = used = unpredicted = 0
        for pod in pods:
            asked = pod.request.get(resource, 0)
            if not pod.young and pod.ending:
                continue
            if pod.young or pod.peak is None:
                unpredicted += asked
                continue
            peak = with_margin(pod.peak, margin).get(resource, 0)
            used += peak
            spare += max(asked - peak, 0)
        reclaimable[resource] = min(max(allocatable.get(resource, 0) - used, 0), spare)
        peaks[resource] = used + unpredicted
    return Prediction(reclaimable, peaks)


def predict_by_groups(
    pods: Iterable[PredictedPod],
    groups: Iterable[Peak],
    allocatable: Peak,
    margin: float,
    resources: Iterable[str],
) -> Prediction:
    """By what whole groups of pods, and the system, are predicted to use together.

    Of pods that are old enough and not predicted, nothing is reclaimed here either.
    """
    listed, parts = list(pods), list(groups)
    whole = {name: sum(group.get(name, 0) for group in parts) for group in parts for name in group}
    grown = with_margin(whole, margin)
    reclaimable, peaks = {}, {}
    for resource in resources:
        used = grown.get(resource, 0)
        asked = sum(pod.request.get(resource, 0) for pod in listed if _counts(pod))
        there = allocatable.get(resource, 0)
        reclaimable[resource] = min(max(there - used, 0), max(asked - used, 0))
        peaks[resource] = used
    return Prediction(reclaimable, peaks)


def _counts(pod: PredictedPod) -> bool:
    return not pod.ending and (pod.young or pod.peak is not None)


def combined(one: Prediction, other: Prediction) -> Prediction:
    """The more careful of two: of each resource the less that is reclaimed, and the higher peak."""
    return Prediction(
        {name: min(amount, other.reclaimable[name]) for name, amount in one.reclaimable.items()},
        {name: max(amount, other.peak[name]) for name, amount in one.peak.items()},
    )
