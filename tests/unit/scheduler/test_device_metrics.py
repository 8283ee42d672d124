"""The nodes whose secondary devices are not well planned, as a metric."""

from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.model.devices import read_devices
from koordpolicy.model.protocol import SECONDARY_DEVICES_PLANNED
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.scheduler.device_metrics import DeviceMetrics

_NAME = "scheduler_secondary_device_not_well_planned"


def test_nodes_are_shown_as_long_as_their_device_object_says_so() -> None:
    metrics, cards = Metrics("scheduler"), DeviceCards()
    shown = DeviceMetrics(metrics, lambda: cards)

    def put(node: str, planned: str | None) -> None:
        labels = {} if planned is None else {SECONDARY_DEVICES_PLANNED: planned}
        cards.set(node, read_devices({"metadata": {"name": node, "labels": labels}, "spec": {}}))

    def nodes() -> list[str]:
        shown.look()
        return sorted(labels[0] for labels, value in shown.samples() if value == 1)

    put("a", "false")
    put("b", "true")
    put("c", None)
    put("d", "false")
    assert nodes() == ["a", "d"]
    assert metrics.value(_NAME, node="a") == 1
    put("a", "true")
    assert nodes() == ["d"]
    cards.remove("d")
    assert nodes() == []
    put("b", "false")
    cards = cards.again()
    assert nodes() == ["b"]
