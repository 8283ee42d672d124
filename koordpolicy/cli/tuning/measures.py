"""The record `report`: what an objective and constraints may read of a simulation, by the names of `simulate -o json`."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.language.cel.types import DOUBLE
from koordpolicy.language.facts.table import Fact, Record

_OVER_TIME: Final = {
    "mean": "mean over time",
    "p95": "exceeded in a twentieth of the time",
    "max": "the highest",
}
_SHARES: Final = {
    "cpuUsed": "Share of all CPU in use",
    "cpuRequested": "Share of all CPU requested",
    "cpuBestEffort": "Share of all CPU in use by best-effort work",
    "memoryUsed": "Share of all memory in use",
}
_PODS: Final = ("total", "scheduled", "pending", "refused", "notOurs", "notArrived", "finished", "running")
_SINGLE: Final = {
    "scheduling.attempts": "Attempts to place a pod.",
    "scheduling.preempted": "Pods that were preempted.",
    "suppression.shareOfNodeTime": "Share of the time of nodes with best-effort work in which that was suppressed.",
    "suppression.withheldCoreHours": "Core hours withheld from best-effort work.",
    "suppression.withheldShare": "Share of the CPU that best-effort work asked for and did not get.",
    "suppression.givenCoreHours": "Core hours that best-effort work got.",
    "batch.coreHours": "Core hours of best-effort work.",
    "batch.finishedPodsAnHour": "Pods that finished, an hour.",
    "services.shortOfNodeTime": "Share of node time in which services got less CPU than they wished.",
    "services.minutes": "Service minutes.",
    "services.violationMinutes": "Service minutes in which one was slower than its objective.",
    "services.violationShare": "The same as a share of all service minutes.",
    "services.medianSeconds": "Median response time of services, in seconds.",
    "services.tailSeconds": "Response time of services at the tail, in seconds.",
    "fragmentation.stranded": "Share of free CPU that is in small pieces.",
    "balance.deviation": "Standard deviation of nodes' shares of CPU in use.",
    "balance.highestNode": "Share of CPU in use on the fullest node.",
    "balance.lowestNode": "Share of CPU in use on the emptiest node.",
}

REPORT: Final = Record(
    "report",
    "What came of a simulation: shares from 0 to 1, CPU in cores, times in seconds.",
    (
        *(
            Fact(f"utilisation.{name}.{part}", DOUBLE, f"{meaning}, {how}.", frozenset())
            for name, meaning in _SHARES.items()
            for part, how in _OVER_TIME.items()
        ),
        *(Fact(f"pods.{name}", DOUBLE, f"Pods: {name}.", frozenset()) for name in _PODS),
        *(
            Fact(f"scheduling.waitSeconds.{part}", DOUBLE, f"Wait for a node: {part}.", frozenset())
            for part in ("mean", "p50", "p95", "max")
        ),
        *(Fact(path, DOUBLE, meaning, frozenset()) for path, meaning in _SINGLE.items()),
    ),
)


def measured(report: Mapping[str, Any]) -> dict[str, float]:
    """The values of the record's facts in a report."""
    found: dict[str, float] = {}
    for fact in REPORT.facts:
        value: Any = report
        for step in fact.path.split("."):
            value = value[step]
        found[fact.path] = float(value)
    return found
