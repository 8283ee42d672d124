"""What is counted of devices, under the name that koord-scheduler's has.

Koordinator's filter passes over secondary devices of a node that is labelled as well planned, and finds out at Reserve whether there
are any. Here all that a pod asks for is looked at before a node is chosen, whatever the label says; it is shown alone.
"""

from collections.abc import Callable
from typing import Final

from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.runtime.counting import Sample
from koordpolicy.runtime.metrics.registry import Metrics

_NOT_PLANNED: Final = "scheduler_secondary_device_not_well_planned"


class DeviceMetrics:
    """Shows it. `cards` gives the devices of now. Once for the metrics of a process."""

    def __init__(self, metrics: Metrics, cards: Callable[[], DeviceCards]) -> None:
        self._cards = cards
        self._rows: list[Sample] = []
        metrics.show_elsewhere(_NOT_PLANNED, self)

    def look(self) -> None:
        """Take up how nodes stand now."""
        self._rows = [((node,), 1.0) for node in self._cards().not_planned]

    def samples(self) -> list[Sample]:
        """As they were when they were looked at last; read from any thread."""
        return self._rows
