"""Metrics of one process: handed around, never global."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from koordpolicy import __version__
from koordpolicy.runtime.counting import Counted
from koordpolicy.runtime.metrics.metric import Metric, MetricKind
from koordpolicy.runtime.metrics.table import METRICS

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

_Key = tuple[str, tuple[tuple[str, str], ...]]
"""A name, and labels with their values."""

Sizes = tuple[Sequence[str], Sequence[int], float]
"""Label values, how many fell into each bucket of the table (one more: into none), and the sum of them all."""


class Measured(Protocol):
    """Sizes that are counted elsewhere, for that reason."""

    def sizes(self) -> Iterable[Sizes]:
        """The counts now; asked for at each scrape, from any thread."""
        ...


class Metrics:
    """The numbers of one process, by the names of a table. Safe to use from any thread.

    A name that the table lacks, and labels that do not fit, raise: that is a mistake of ours.
    """

    def __init__(self, component: str, table: Iterable[Metric] = METRICS) -> None:
        self.table: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in table})
        self.registry = CollectorRegistry(auto_describe=False)
        self._made: dict[str, Counter | Gauge | Histogram] = {}
        # Finding a number by its labels costs more than adding to it. These are never forgotten.
        self._counters: dict[_Key, Counter] = {}
        self._histograms: dict[_Key, Histogram] = {}
        self._counted: set[str] = set()
        ProcessCollector(registry=self.registry)
        if "koordpolicy_build_info" in self.table:
            self.set("koordpolicy_build_info", 1, version=__version__, component=component)

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Count."""
        key = (name, tuple(labels.items()))
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._counter(name, labels)
        counter.inc(amount)

    def adder(self, name: str, /, **labels: str) -> Callable[[], None]:
        """What counts one, for who counts often and keeps it: its labels are looked up now."""
        return self._counter(name, labels).inc

    def observer(self, name: str, /, **labels: str) -> Callable[[float], None]:
        """What counts by size, likewise."""
        return self._histogram(name, labels).observe

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._metric(name, MetricKind.GAUGE)
        assert isinstance(gauge, Gauge)
        (gauge.labels(**labels) if labels else gauge).set(value)

    def only(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge and forget it for all other labels: of two revisions only one is active."""
        self.clear(name)
        self.set(name, value, **labels)

    def clear(self, name: str) -> None:
        """Forget a gauge for all labels; one without labels is not shown until it is set again."""
        if self._row(name, MetricKind.GAUGE).labels:
            self._metric(name, MetricKind.GAUGE).clear()
            return
        made = self._made.pop(name, None)
        if made is not None:
            self.registry.unregister(made)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Count by size, in the unit of the name."""
        key = (name, tuple(labels.items()))
        histogram = self._histograms.get(key)
        if histogram is None:
            histogram = self._histograms[key] = self._histogram(name, labels)
        histogram.observe(value)

    def count_elsewhere(self, name: str, counted: Counted) -> None:
        """Show a counter whose numbers somebody else keeps. Once a name."""
        self.registry.register(_Foreign(self._elsewhere(name, MetricKind.COUNTER), counted))

    def show_elsewhere(self, name: str, counted: Counted) -> None:
        """Show a gauge whose numbers somebody else has, under its other name too. Once a name."""
        self.registry.register(_ForeignGauge(self._elsewhere(name, MetricKind.GAUGE), counted))

    def measure_elsewhere(self, name: str, measured: Measured) -> None:
        """Show a histogram whose numbers somebody else keeps. Once a name."""
        self.registry.register(_ForeignSizes(self._elsewhere(name, MetricKind.HISTOGRAM), measured))

    def text(self) -> bytes:
        """All numbers, in the text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def value(self, name: str, /, **labels: str) -> float | None:
        """A number as it would be scraped, None when there is none yet. A histogram gives its count."""
        kind = self.table[name].kind
        sample = f"{name}_count" if kind is MetricKind.HISTOGRAM else name
        return self.registry.get_sample_value(sample, labels)

    def numbers(self) -> dict[str, float]:
        """Every metric of the table that has a value, summed over its labels; of a histogram the count."""
        found: dict[str, float] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                name = sample.name.removesuffix("_count") if family.type == "histogram" else sample.name
                if name in self.table:
                    found[name] = found.get(name, 0.0) + sample.value
        return found

    def _counter(self, name: str, labels: Mapping[str, str]) -> Counter:
        whole = self._metric(name, MetricKind.COUNTER)
        assert isinstance(whole, Counter)
        return whole.labels(**labels) if labels else whole

    def _histogram(self, name: str, labels: Mapping[str, str]) -> Histogram:
        whole = self._metric(name, MetricKind.HISTOGRAM)
        assert isinstance(whole, Histogram)
        return whole.labels(**labels) if labels else whole

    def _elsewhere(self, name: str, kind: MetricKind) -> Metric:
        row = self._row(name, kind)
        if name in self._counted or name in self._made:
            raise ValueError(f"{name} is counted already")
        self._counted.add(name)
        return row

    def _row(self, name: str, kind: MetricKind) -> Metric:
        row = self.table[name]
        if row.kind is not kind:
            raise TypeError(f"{name} is a {row.kind}, not a {kind}")
        return row

    def _metric(self, name: str, kind: MetricKind) -> Counter | Gauge | Histogram:
        row, made = self._row(name, kind), self._made.get(name)
        if made is None:
            if name in self._counted:
                raise ValueError(f"{name} is counted elsewhere")
            made = self._made.setdefault(name, _make(row, self.registry))
        return made


def _make(row: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if row.kind is MetricKind.COUNTER:
        return Counter(row.name.removesuffix("_total"), row.help, row.labels, registry=registry)
    if row.kind is MetricKind.GAUGE:
        return Gauge(row.name, row.help, row.labels, registry=registry)
    return Histogram(row.name, row.help, row.labels, buckets=row.buckets, registry=registry)


class _Foreign(Collector):
    """A counter of the table whose numbers somebody else keeps."""

    def __init__(self, row: Metric, counted: Counted) -> None:
        self._row = row
        self._counted = counted

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(
            self._row.name.removesuffix("_total"), self._row.help, labels=self._row.labels
        )
        for labels, number in self._counted.samples():
            family.add_metric(labels, number)
        yield family


class _ForeignGauge(Collector):
    """A gauge of the table whose numbers somebody else has."""

    def __init__(self, row: Metric, counted: Counted) -> None:
        self._row = row
        self._counted = counted

    def collect(self) -> Iterable[GaugeMetricFamily]:
        samples = list(self._counted.samples())
        for name in filter(None, (self._row.name, self._row.also)):
            family = GaugeMetricFamily(name, self._row.help, labels=self._row.labels)
            for labels, number in samples:
                family.add_metric(labels, number)
            yield family


class _ForeignSizes(Collector):
    """A histogram of the table whose numbers somebody else keeps."""

    def __init__(self, row: Metric, measured: Measured) -> None:
        self._row = row
        self._measured = measured

    def collect(self) -> Iterable[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._row.name, self._row.help, labels=self._row.labels)
        bounds = [*map(str, self._row.buckets), "+Inf"]
        for labels, counts, total in self._measured.sizes():
            family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        yield family
