"""What of the requests of a node's pods will stay unused, by their predicted peaks and by policy."""

from collections.abc import Iterable, Sequence

from koordpolicy.agent.strategies.peaks import SYSTEM, Peaks, band_key
from koordpolicy.agent.strategies.prediction_rules import SCALES, PredictionRules
from koordpolicy.algorithms.peak import (
    Peak,
    PredictedPod,
    Prediction,
    combined,
    predict_by_groups,
    predict_by_pods,
)
from koordpolicy.graph.graph import Facts
from koordpolicy.model.pod import Pod

PODS, BANDS, TOGETHER = "Pods", "Bands", ""
"""Methods of prediction; the last one stands for both."""


class NotPredicted(Exception):
    """There is no prediction yet. The message says what is missing."""


def reclaimable(
    node: Facts, pods: Sequence[Pod], peaks: Peaks, rules: PredictionRules, now: int
) -> Prediction:
    """What policy makes of all predictions: what will stay unused of requests of its bands, what will be used at most.

    `pods` are those of the node's record, in its order. Raises NotPredicted where a group is not known yet: then nothing
    should be reclaimed.
    """
    found = all_predictions(node, pods, peaks, rules, now)
    return found.get(rules.method, found[TOGETHER])


def all_predictions(
    node: Facts, pods: Sequence[Pod], peaks: Peaks, rules: PredictionRules, now: int
) -> dict[str, Prediction]:
    """By single pods, by bands, and the more careful of both, whichever policy chooses. Raises NotPredicted, too."""
    listed = [
        _predicted(facts, pod, peaks, rules, now)
        for facts, pod in zip(node["pods"], pods, strict=False)
        if facts["band"] in rules.bands
    ]
    groups = [_group(key, peaks, rules) for key in (SYSTEM, *map(band_key, sorted(rules.bands)))]
    by_pods, by_bands = both_predictions(listed, groups, node["resources.physical"], rules)
    return {PODS: by_pods, BANDS: by_bands, TOGETHER: combined(by_pods, by_bands)}


def predicted(
    pods: Iterable[PredictedPod], groups: Sequence[Peak], allocatable: Peak, rules: PredictionRules
) -> Prediction:
    """What policy makes of pods and of groups of them, of which the system is one."""
    by_pods, by_bands = both_predictions(pods, groups, allocatable, rules)
    return {PODS: by_pods, BANDS: by_bands}.get(rules.method) or combined(by_pods, by_bands)


def both_predictions(
    pods: Iterable[PredictedPod], groups: Sequence[Peak], allocatable: Peak, rules: PredictionRules
) -> tuple[Prediction, Prediction]:
    """By single pods, and by groups."""
    listed, resources = list(pods), tuple(SCALES)
    return (
        predict_by_pods(listed, allocatable, rules.margin, resources),
        predict_by_groups(listed, groups, allocatable, rules.margin, resources),
    )


def is_young(created_at: int | None, rules: PredictionRules, now: int) -> bool:
    """Whether a pod is too young for anything of it to be reclaimed."""
    return created_at is None or now - created_at <= rules.cold_start


def _predicted(facts: Facts, pod: Pod, peaks: Peaks, rules: PredictionRules, now: int) -> PredictedPod:
    return PredictedPod(
        facts["resources.request"],
        peaks.peak(pod.uid, rules),
        young=is_young(pod.created_at, rules, now),
        ending=pod.terminating or not facts["active"],
    )


def _group(key: str, peaks: Peaks, rules: PredictionRules) -> Peak:
    found = peaks.peak(key, rules)
    if found is None:
        raise NotPredicted(f"nothing was measured yet of `{key}`")
    return found
