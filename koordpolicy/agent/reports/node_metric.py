"""The status of a NodeMetric object: what a node's agent reports, as Koordinator's manager and scheduler read it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from koordpolicy.agent.reports.devices import NONE_IN_USE, DevicesInUse
from koordpolicy.model.metric import AggregatedUsage, NodeMetric
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts
from koordpolicy.model.time import NANOSECONDS, time_text, whole_seconds_text


def status_of(
    metric: NodeMetric,
    zones: Mapping[int, tuple[Amounts, Amounts | None]],
    devices: DevicesInUse = NONE_IN_USE,
    best_effort_cpu: int | None = None,
) -> dict[str, Any]:
    """The status that says what a metric says; `zones` are NUMA zones with their use, and the system's part of it.

    `best_effort_cpu` are the millicores that best-effort work may use now, None where nothing holds it back.
    """
    assert metric.updated_at is not None
    status: dict[str, Any] = {
        "updateTime": time_text(metric.updated_at // NANOSECONDS * NANOSECONDS),
        "nodeMetric": {
            "nodeUsage": _usage(metric.node_usage) | _in_use(devices.node),
            "aggregatedNodeUsages": _windows(metric.aggregated),
            "systemUsage": _usage(metric.system_usage),
            "aggregatedSystemUsages": _windows(metric.aggregated_system),
        },
        "podsMetric": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "podUsage": _usage(one.usage) | _in_use(devices.pods.get(one.key, ())),
                **_said(priority=one.priority, qos=one.qos),
            }
            for one in metric.pods
        ],
        "hostApplicationMetric": [
            {"name": one.name, "usage": _usage(one.usage), **_said(priority=one.priority, qos=one.qos)}
            for one in metric.host_applications
        ],
        "prodReclaimableMetric": {"resource": _usage(metric.prod_reclaimable)},
    }
    if zones:
        status["nodeMetric"]["numaUsages"] = [
            {
                "numaNodeID": zone,
                "nodeUsage": _usage(used),
                **({} if system is None else {"systemUsage": _usage(system)}),
            }
            for zone, (used, system) in sorted(zones.items())
        ]
    if metric.prod_peak is not None:
        status["prodPeakMetric"] = {"resource": _usage(metric.prod_peak)}
    if best_effort_cpu is not None:
        status["bestEffort"] = {"allowed": {CPU: f"{best_effort_cpu}m"}}
    return status


def _usage(amounts: Amounts | None) -> dict[str, Any]:
    """An empty map where nothing was measured."""
    if not amounts:
        return {}
    return {"resources": {name: f"{n}m" if name == CPU else str(n) for name, n in amounts.items()}}


def _in_use(devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"devices": list(devices)} if devices else {}


def _windows(windows: Iterable[AggregatedUsage]) -> list[dict[str, Any]]:
    return [
        {
            "duration": whole_seconds_text(one.duration),
            "usage": {name: _usage(amounts) for name, amounts in one.usage.items()},
        }
        for one in windows
    ]


def _said(**fields: str) -> dict[str, str]:
    """Fields that say something; the API server takes no class that it does not know, nor an empty one."""
    return {name: value for name, value in fields.items() if value}
