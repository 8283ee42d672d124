"""Runners of the node agent's predictions."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.agent.strategies.peaks import Peaks, UseSample
from koordpolicy.agent.strategies.prediction import both_predictions, is_young, predicted
from koordpolicy.agent.strategies.prediction_rules import PredictionRules, prediction_rules
from koordpolicy.algorithms.peak import Peak, PredictedPod
from koordpolicy.model.time import NANOSECONDS
from tests.vectors.compare import Comparison
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]
NOW = 1_800_000_000_000_000_000
_REFERENCE = 1_799_971_200 * NANOSECONDS
"""A multiple of both half-lives, from the year 1."""
_SHARES = {"p60": 60, "p90": 90, "p95": 95, "p98": 98, "max": 100}


def peak_histogram(given: Given) -> Given:
    resource = given["resource"]
    percentiles = {}
    buckets = 0
    for name, percent in _SHARES.items():
        rules = _rules({resource: {"percentile": f"{percent}%"}})
        peaks = Peaks()
        for sample in given["samples"]:
            used = {"cpu": 0, "memory": 0, resource: sample["value"]}
            at = _REFERENCE + sample["t_seconds"] * NANOSECONDS
            for _ in range(sample.get("repeat", 1)):
                peaks.sample(UseSample({"uid": ("prod", used)}), (), rules, at)
        found = peaks.peak("uid", rules)
        assert found is not None
        percentiles[name] = found[resource]
        buckets = rules.peaks[resource].layout.histogram().buckets.count
    return {"percentiles": percentiles, "buckets": buckets}


def prod_reclaimable(given: Given) -> Given:
    rules = _rules(
        {"margin": f"{given['safety_margin_percent']}%", "coldStart": f"{given['cold_start_seconds']}s"}
    )
    models = given["node_models"]
    if any(model is None for model in models.values()):
        return {"error": True}
    pods = [
        PredictedPod(
            pod["request"],
            _peak(pod["prediction"]),
            young=is_young(NOW - pod["age_seconds"] * NANOSECONDS, rules, NOW),
            ending=pod.get("terminating", False),
        )
        for pod in given["pods"]
        if pod.get("class", "prod") in rules.bands
    ]
    groups = [found for found in map(_peak, models.values()) if found is not None]
    by_pods, by_bands = both_predictions(pods, groups, given["allocatable"], rules)
    together = predicted(pods, groups, given["allocatable"], rules)
    return {
        "pod_predictor": by_pods.reclaimable,
        "priority_predictor": by_bands.reclaimable,
        "prod_reclaimable": together.reclaimable,
        "prod_peak": together.peak,
    }


def _peak(said: Given | None) -> Peak | None:
    return None if said is None else {"cpu": said["cpu_p95"], "memory": said["memory_p98"]}


def _rules(spec: Given) -> PredictionRules:
    found = prediction_rules(graph(document("Prediction", "ours", spec)), {}, NOW)
    assert found is not None
    return found


RUNNERS: Mapping[str, Runner] = {
    # Borders of buckets are floating point numbers.
    "peak_histogram": Runner(peak_histogram, Comparison(absolute=1.0)),
    "prod_reclaimable": Runner(prod_reclaimable, irrelevant=frozenset({"pods[].name"})),
}
