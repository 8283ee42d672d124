"""What policy says of predicting peaks on a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from koordpolicy.algorithms.recommended import Layout
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.catalogue import band_name
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.protocol import CPU, MEMORY

KIND: Final = "Prediction"
SCALES: Final[Mapping[str, int]] = {CPU: 1000, MEMORY: 1}
"""Amounts in each unit of a histogram: CPU is counted in cores."""


@dataclass(frozen=True, slots=True)
class PeakRules:
    """How the peak of a resource is predicted: from which histogram, which share of it; `sampled` of use is one sample."""

    layout: Layout
    percentile: float
    sampled: float


@dataclass(frozen=True, slots=True)
class PredictionRules:
    """What holds for a node. Times are nanoseconds, shares of one; `bands` are empty text for pods of no band."""

    peaks: Mapping[str, PeakRules]
    bands: frozenset[str]
    margin: float
    cold_start: int
    method: str
    interval: int
    forget_after: int
    checkpoint_interval: int


def prediction_rules(graph: RuleGraph, node: Facts, now: int) -> PredictionRules | None:
    """What policy says; None where nothing is predicted. Raises `CelError`."""
    if not graph.subjects(KIND):
        return None
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    if not about.value("enabled"):
        return None
    peaks = {}
    for resource, scale in SCALES.items():
        first, growth, most, percentile, sampled = (
            about.value(f"{resource}.{name}")
            for name in ("buckets.first", "buckets.growth", "buckets.most", "percentile", "sampled")
        )
        if None in (first, growth, most, percentile, sampled):
            return None
        layout = Layout(first / scale, growth / 100, most / scale, about.value(f"{resource}.halfLife").ns)
        peaks[resource] = PeakRules(layout, percentile / 100, sampled / 100)
    margin, cold_start = about.value("margin"), about.value("coldStart")
    return PredictionRules(
        peaks,
        frozenset(map(band_name, about.value("bands") or ())),
        0.0 if margin is None else margin / 100,
        0 if cold_start is None else cold_start.ns,
        about.value("method"),
        about.value("interval").ns,
        about.value("forgetAfter").ns,
        about.value("checkpoint.interval").ns,
    )
