"""The scheduler: the load of a node."""

import math
from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.load import AssignedPod, LoadReport, NodeLoad, ReportedPod, estimate_end
from koordpolicy.model.metric import AggregatedUsage
from koordpolicy.model.time import NANOSECONDS
from tests.vectors import inputs
from tests.vectors.compare import AMOUNTS
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

NOW = 1_000_000
UNREQUESTED = {"cpu": 250, "batch-cpu": 250, "memory": 209715200, "batch-memory": 209715200}


def loadaware_existing(given: Given) -> Given:
    args = given.get("args", {})
    load = NodeLoad(_universe(args), prod_includes_system=args.get("prodUsageIncludeSys", False))
    for pod in given.get("assigned_pods", ()):
        load.add(_assigned(pod, args))
    load.set_report(_report(given["metric"]))
    asked = {
        "prod": given.get("prod", False),
        "aggregation": given.get("aggregation_type", ""),
        "duration": given.get("duration", 0) * NANOSECONDS,
    }
    found = load.existing(**asked)
    again = NodeLoad(_universe(args), prod_includes_system=args.get("prodUsageIncludeSys", False))
    again.set_report(_report(given["metric"]))
    for pod in reversed(given.get("assigned_pods", ())):
        again.add(_assigned(pod, args))
    assert again.existing(**asked) == found, "the order of events does not matter"
    return {"load": inputs.shortened(found)}


def _factors(args: Given) -> dict[str, int]:
    return {"cpu": 85, "memory": 70, **args.get("estimatedScalingFactors", {})}


def _universe(args: Given) -> list[str]:
    limits = [args.get(key, {}) for key in ("usageThresholds", "prodUsageThresholds", "resourceWeights")]
    limits += [args.get("aggregated", {}).get("usageThresholds", {}), _factors(args)]
    return sorted(
        {"cpu", "memory", *args.get("supportedResources", ()), *(key for one in limits for key in one)}
    )


def _assigned(pod: Given, args: Given) -> AssignedPod:
    custom = args.get("allowCustomizeEstimation", False)
    after = {
        event: pod[f"custom_seconds_after_{word}"]
        if custom and pod.get(f"custom_seconds_after_{word}", -1) >= 0
        else args.get(f"estimatedSecondsAfter{event}", 0)
        for event, word in (("PodScheduled", "pod_scheduled"), ("Initialized", "initialized"))
    }
    factors = {**_factors(args), **(pod.get("custom_factors", {}) if custom else {})}
    scheduled = (NOW - pod["scheduled_seconds_ago"]) * NANOSECONDS
    ago = pod.get("initialized_seconds_ago")
    return AssignedPod(
        key=("default", pod["name"]),
        estimate=_estimate(pod, factors),
        prod=pod["class"] == "prod",
        since=scheduled,
        hold_until=estimate_end(
            scheduled,
            None if ago is None else (NOW - ago) * NANOSECONDS,
            after["PodScheduled"] * NANOSECONDS,
            after["Initialized"] * NANOSECONDS,
        ),
    )


def _estimate(pod: Given, factors: Mapping[str, int]) -> dict[str, int] | None:
    """The stock estimator, written out: what policy says where it is not under test."""
    estimate: dict[str, int] = {}
    tier = pod["class"]
    for resource, factor in factors.items():
        name = resource
        if tier in ("batch", "mid", "free"):
            name = f"{tier}-{resource}" if tier != "free" and resource in ("cpu", "memory") else ""
        requested, limit = (pod.get(key, {}).get(name, 0) for key in ("requests", "limits"))
        amount = max(requested, limit)
        if amount == 0:
            estimate[resource] = UNREQUESTED.get(name, 0)  # as it is, without the factor
            continue
        scaled = math.floor(amount * factor / 100 + 0.5)
        estimate[resource] = min(scaled, limit) if limit > 0 else scaled
    return estimate if any(estimate.values()) else None


def _report(metric: Given) -> LoadReport:
    return LoadReport(
        updated_at=(NOW - metric["age_seconds"]) * NANOSECONDS,
        interval=60 * NANOSECONDS,
        node_usage=metric.get("node_usage"),
        system_usage=metric.get("system_usage", {}),
        windows=tuple(
            AggregatedUsage(window["duration_seconds"] * NANOSECONDS, window["usage"])
            for window in metric.get("aggregated", ())
        ),
        pods={
            ("default", pod["name"]): ReportedPod(pod["usage"], pod["class"] == "prod")
            for pod in metric.get("pods", ())
        },
    )


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("scheduler-core", "loadaware_existing"): Runner(loadaware_existing, AMOUNTS),
}
