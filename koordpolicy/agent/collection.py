"""What policy wants to be measured on this node, and how often."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.agent.measurements.table import Reach
from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.reading import ObjectError, integer, mapping, sequence, text
from koordpolicy.model.time import NANOSECONDS, parse_duration

KIND: Final = "MetricCollection"

_LEAST_WINDOW: Final = 60
_LEAST_REPORT: Final = 30
"""Seconds; Koordinator's agent takes less for so much, where a NodeMetric object says it."""
_POLICY: Final = "spec.metricCollectPolicy"


@dataclass(frozen=True, slots=True)
class Collection:
    """The decisions of `MetricCollection` for one node. Durations in nanoseconds."""

    every: int
    averages_over: int
    percentiles_over: tuple[int, ...]
    memory: str
    interval: int
    system_inputs_within: int
    most_pods: int
    pods_every: int
    pods_timeout: int
    pods_notice_within: int
    pods_stale_after: int

    @property
    def node_reach(self) -> Reach:
        """How far back measurements of the node as a whole go."""
        return self._reach(max(self.averages_over, *self.percentiles_over, _LEAST_WINDOW * NANOSECONDS))

    @property
    def pod_reach(self) -> Reach:
        """How far back measurements of pods and containers go."""
        return self._reach(max(self.averages_over, _LEAST_WINDOW * NANOSECONDS))

    def _reach(self, window: int) -> Reach:
        return Reach(max(window, self.interval), self.interval)

    @property
    def fresh(self) -> int:
        """How old a measurement may be to be the present one: two intervals."""
        return 2 * self.interval


def decide_collection(graph: RuleGraph, node: Record, now: int, spec: Mapping[str, Any]) -> Collection:
    """What holds for the node; `now` in nanoseconds since 1970, `spec` the node's NodeMetric object (whole, or empty).

    What the object says of windows and reports counts before policy: a stock koord-manager speaks through it. Raises
    CelError, and ObjectError for an object that cannot be read.
    """
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    said = mapping(mapping(spec, "spec"), "metricCollectPolicy", "spec")
    averages = _seconds(said, "aggregateDurationSeconds", _LEAST_WINDOW)
    every = _seconds(said, "reportIntervalSeconds", _LEAST_REPORT)
    return Collection(
        every=every or _nanoseconds(about, "every"),
        averages_over=averages or _nanoseconds(about, "averagesOver"),
        percentiles_over=_windows(said) or tuple(one.ns for one in about.value("percentilesOver")),
        memory=text(said, "nodeMemoryCollectPolicy", _POLICY) or about.value("memory"),
        interval=_nanoseconds(about, "interval"),
        system_inputs_within=_nanoseconds(about, "systemInputsWithin"),
        most_pods=about.value("mostPods"),
        pods_every=_nanoseconds(about, "pods.every"),
        pods_timeout=_nanoseconds(about, "pods.timeout"),
        pods_notice_within=_nanoseconds(about, "pods.noticeWithin"),
        pods_stale_after=_nanoseconds(about, "pods.staleAfter"),
    )


def _nanoseconds(about: About, field: str) -> int:
    found: int = about.value(field).ns
    return found


def _seconds(said: Mapping[str, Any], key: str, least: int) -> int:
    """Nanoseconds; 0 where the object says nothing."""
    found = integer(said, key, _POLICY)
    return 0 if not found else max(found, least) * NANOSECONDS


def _windows(said: Mapping[str, Any]) -> tuple[int, ...]:
    place = f"{_POLICY}.nodeAggregatePolicy.durations"
    durations = sequence(mapping(said, "nodeAggregatePolicy", _POLICY), "durations", _POLICY)
    try:
        found = tuple(parse_duration(str(one)) for one in durations)
    except ValueError as error:
        raise ObjectError(f"{place}: {error}") from error
    return tuple(one for one in found if one > 0)
