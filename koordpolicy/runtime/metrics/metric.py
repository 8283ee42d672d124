"""What is known of a metric: a row of the table."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_THEIRS: Final = "koordlet_"
_OURS: Final = "koordpolicy_"


class MetricKind(StrEnum):
    """What a number means: a counter only grows, a gauge is a state, a histogram counts by size."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row: the name as scraped, what it counts, its labels; `buckets` are upper bounds in the name's unit."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def also(self) -> str:
        """The other name that it is shown under: gauges that koordlet's dashboards know are shown under ours as well."""
        twice = self.kind is MetricKind.GAUGE and self.name.startswith(_THEIRS)
        return self.name.replace(_THEIRS, _OURS, 1) if twice else ""
