"""Vectors asked of the mechanisms directly, with the policy's numbers written out as arguments."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from koordpolicy.mechanism import balanced
from koordpolicy.mechanism.classify import Catalogue, PriorityBand, QoSClass
from koordpolicy.mechanism.columns import Column
from koordpolicy.mechanism.container_resources import (
    CgroupNumbers,
    ContainerShare,
    normalized_quota,
    numbers_by_container,
    pod_numbers,
    quota_of,
)
from koordpolicy.mechanism.cpuset import pick_cpus, transition
from koordpolicy.mechanism.fit import fit, fit_all, verdict
from koordpolicy.mechanism.fit_score import FitScore, Strategy
from koordpolicy.mechanism.load import AssignedPod, LoadReport, NodeLoad, ReportedPod, estimate_end
from koordpolicy.mechanism.node_capacity import AmplifiedCpu, trimmed_allocatable
from koordpolicy.mechanism.pod_request import effective_requests, nonzero_requests
from koordpolicy.mechanism.profile import PriorityClass, ProfileEffect, applies, apply_profile
from koordpolicy.mechanism.suppress import CpusetLimits, QuotaLimits, plan_cpuset, quota_write
from koordpolicy.mechanism.translate import translate_pod, with_extended_spec
from koordpolicy.mechanism.verdict import Verdict
from koordpolicy.model.metric import AggregatedUsage
from koordpolicy.model.node import Node, node_reservation, physical_allocatable
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    NODE_RESERVATION,
    PRIORITY_CLASS,
    QOS_CLASS,
    RAW_ALLOCATABLE,
    SKIP_UPDATE_RESOURCES,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.topology import Processor
from tests.vectors import inputs
from tests.vectors.compare import AMOUNTS
from tests.vectors.runners import RUNNERS as COMPILED
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

CATALOGUE = Catalogue(
    classes=(
        QoSClass("LSE", (), "prod"),
        QoSClass("LSR", ("Guaranteed",), "prod"),
        QoSClass("LS", ("Burstable",), "prod"),
        QoSClass("BE", ("BestEffort",), "batch"),
        QoSClass("SYSTEM", (), "prod"),
    ),
    bands=(
        PriorityBand("prod", "koord-prod", 9000, 9999, 9500),
        PriorityBand("mid", "koord-mid", 7000, 7999, 7500),
        PriorityBand("batch", "koord-batch", 5000, 5999, 5500),
        PriorityBand("free", "koord-free", 3000, 3999, 3500),
    ),
)


def qos_priority_resolution(given: Given) -> Given:
    found = CATALOGUE.resolve(
        given.get("qos_label"), given.get("priority_class_label"), given.get("priority"), given["kube_qos"]
    )
    return {
        "qos": found.qos,
        "raw_class": CATALOGUE.class_name(found.raw_band),
        "class": CATALOGUE.class_name(found.band),
        "value": found.priority,
    }


def columns(amounts: Mapping[str, int]) -> dict[str, Column]:
    """The columns of a table with one node."""
    return {name: np.array([amount], dtype=np.int64) for name, amount in amounts.items()}


def fit_filter(given: Given) -> Given:
    node = given["node"]
    request = effective_requests(inputs.pod(given["pod"]))
    allocatable, requested = inputs.resources(node["allocatable"]), inputs.resources(node.get("requested"))
    ignored = given.get("ignored_resources", ()), given.get("ignored_resource_groups", ())
    short = fit(request, allocatable, requested, node["pod_count"], *ignored)
    answer = {"status": verdict(short).word, "reasons": [one.reason for one in short]}
    found = fit_all(
        request, columns(allocatable), columns(requested), np.array([node["pod_count"]]), *ignored
    )
    in_columns = {"status": Verdict(found.verdicts[0]).word, "reasons": list(found.reasons(0))}
    assert in_columns == answer, "both forms answer alike"
    return answer


def fit_score(given: Given) -> Given:
    node, pod = given["node"], inputs.pod(given["pod"])
    weights = [(inputs.full_name(one["name"]), one["weight"]) for one in given["resources"]]
    scorer = FitScore.of(Strategy(given["strategy"]), weights, given.get("shape", ()))
    requests = effective_requests(pod, pod_level=False), nonzero_requests(pod, pod_level=False)
    totals = [inputs.resources(node.get(key)) for key in ("allocatable", "requested", "nonzero_requested")]
    score = scorer.score(*requests, *totals)
    allocatable, requested, nonzero = map(columns, totals)
    (in_columns,) = scorer.score_all(*requests, allocatable, requested, nonzero, 1)
    assert in_columns == score, "both forms answer alike"
    return {"score": score}


def balanced_allocation(given: Given) -> Given:
    node, request = given["node"], effective_requests(inputs.pod(given["pod"]))
    names = [inputs.full_name(name) for name in given.get("resources", ("cpu", "memory"))]
    if not balanced.takes_part({name: request.get(name, 0) for name in names}):
        return {"skipped": True}
    totals = inputs.resources(node["allocatable"]), inputs.resources(node.get("requested"))
    answer = {
        "classic": balanced.classic(names, request, *totals),
        "delta": balanced.delta(names, request, *totals),
    }
    allocatable, requested = map(columns, totals)
    in_columns = {
        "classic": int(balanced.classic_all(names, request, allocatable, requested, 1)[0]),
        "delta": int(balanced.delta_all(names, request, allocatable, requested, 1)[0]),
    }
    assert in_columns == answer, "both forms answer alike"
    return answer


def loadaware_capacity(given: Given) -> Given:
    node = given["node"]
    raw = inputs.resources(node.get("raw_allocatable"))
    written = {name: amount_text(name, amount) for name, amount in raw.items()}
    read = Node(
        "n",
        annotations={RAW_ALLOCATABLE: json.dumps(written)} if raw else {},
        allocatable=inputs.resources(node["allocatable"]),
    )
    return {"capacity": inputs.shortened(physical_allocatable(read))}


def node_reservation_trim(given: Given) -> Given:
    allocatable = inputs.resources(given["allocatable"])
    declared = given.get("reservation")
    text = declared if isinstance(declared, str) else json.dumps(_written_reservation(declared))
    try:
        found = node_reservation({} if declared is None else {NODE_RESERVATION: text})
    except ObjectError:
        found = None
    return {
        "allocatable": inputs.shortened(trimmed_allocatable(allocatable, found, (BATCH_CPU, BATCH_MEMORY)))
    }


def _written_reservation(declared: Any) -> Any:
    if not isinstance(declared, Mapping) or "resources" not in declared:
        return declared
    amounts = inputs.resources(declared["resources"])
    return {**declared, "resources": {name: amount_text(name, value) for name, value in amounts.items()}}


def amplified_cpu_filter(given: Given) -> Given:
    cpu = AmplifiedCpu(
        given["ratio"],
        given["node_allocatable_cpu"],
        given["node_requested_cpu"],
        1000 * given["cpuset_cpus_in_use"],
    )
    return {"pass": cpu.fits(given["pod_cpu"], binds=given["cpu_bind"])}


def amplified_cpu_filter_of_resources(given: Given) -> Given:
    cpu = AmplifiedCpu(
        given["ratio"], given["nodeAllocatableMilli"], given["nodeRequestedMilli"], given["boundCPUsMilli"]
    )
    fits = cpu.fits(given["podMilliCPU"], binds=given["podIsCPUBound"])
    return {"fits": fits, "reason": None if fits else "Insufficient amplified cpu"}


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


def suppress_pick(given: Given) -> Given:
    return {"picked_in_order": list(pick_cpus(_processors(given), given["count"]))}


def suppress_cpuset(given: Given) -> Given:
    processors = _processors(given)
    held = {
        qos: {cpu for pod in given.get("cpuset_pods", ()) if pod["qos"] == qos for cpu in pod["cpus"]}
        for qos in ("LSR", "LSE")
    }
    excluded = held["LSE"] | set(given.get("node_reserved_cpus", ()))
    current = set(given["old_cpuset"])
    plan = plan_cpuset(
        given["target"],
        processors,
        current,
        excluded=excluded,
        borrowed=held["LSR"],
        limits=CpusetLimits(minimum_cpus=2, growth=0.1),
    )
    writes = transition(
        plan.picked,
        current,
        {one.cpu for one in processors} - excluded,
        kubelet_owns_parents=given.get("kubelet_policy") == "static",
    )
    return {
        "count": plan.count,
        "from_lsr": plan.from_borrowed,
        "from_ls": plan.from_shared,
        "picked_in_order": list(plan.picked),
        "writes": [{"order": str(write.reach), "cpus": sorted(write.cpus)} for write in writes] or None,
    }


def _processors(given: Given) -> list[Processor]:
    return [Processor(*numbers) for numbers in given["processors"]]


def suppress_quota(given: Given) -> Given:
    limits = QuotaLimits(period=100_000, minimum=2000, growth=0.1, negligible=0.01)
    return {"write": quota_write(given["target"], given["current_quota"], given["cpu_capacity"], limits)}


def batch_resource(given: Given) -> Given:
    if given["qos"] != "BE" or given["spec"] is None:
        return {"untouched": True}
    shares = {
        name: ContainerShare(
            one.get("batch_cpu_request", 0), one.get("batch_cpu_limit", 0), one.get("batch_memory_limit", 0)
        )
        for name, one in given["spec"].items()
    }
    quota_off = given.get("strategy_enable", False) and given.get("suppress_policy") == "cfsQuota"
    ratio = given.get("normalization_ratio")
    pod = pod_numbers(shares.values(), quota_off=quota_off, ratio=ratio)
    containers = numbers_by_container(shares, quota_off=quota_off, ratio=ratio)
    return {"pod": _files(pod), "containers": {name: _files(one) for name, one in containers.items()}}


def _files(numbers: CgroupNumbers) -> Given:
    return {
        "cpu.shares": numbers.shares,
        "cpu.cfs_quota_us": numbers.quota,
        "memory.limit_in_bytes": numbers.memory_limit,
    }


def cpu_normalization(given: Given) -> Given:
    limited = quota_of(given["limit"])
    applies = given["qos"] == "LS" or (given["qos"] == "" and not given.get("scheduler_cpuset"))
    return {"quota": normalized_quota(limited, given["ratio"]) if applies and limited > 0 else None}


def profile_probability(given: Given) -> Given:
    return {"applies": applies(_percent(given["probability"]), given["draw"])}


def _percent(probability: Any) -> int:
    return int(probability.removesuffix("%")) if isinstance(probability, str) else int(probability)


TRANSLATION = {
    "batch": {"cpu": BATCH_CPU, "memory": BATCH_MEMORY},
    "mid": {"cpu": MID_CPU, "memory": MID_MEMORY},
}


def profile_mutation(given: Given) -> Given:
    pod = inputs.pod_object(given["pod"])
    labels = given["pod"].get("labels", {})
    matching = [
        profile
        for profile in sorted(given["profiles"], key=lambda profile: str(profile["name"]))
        if profile.get("namespaceSelector", {}).items() <= given["namespace_labels"].items()
        and profile.get("selector", {}).items() <= labels.items()
    ]
    changed: Mapping[str, object] = pod
    for profile in matching:
        if applies(_percent(profile.get("probability", 100)), 50):
            changed = apply_profile(changed, _effect(profile, given["priority_classes"]))
    if matching and not any(SKIP_UPDATE_RESOURCES in one.get("profile_annotations", {}) for one in matching):
        read = read_pod(changed)
        found = CATALOGUE.resolve(
            read.labels.get(QOS_CLASS), read.labels.get(PRIORITY_CLASS), read.priority, read.kubernetes_qos
        )
        changed = translate_pod(changed, TRANSLATION.get(found.band, {}))
    changed = with_extended_spec(changed, (BATCH_CPU, BATCH_MEMORY))
    assert pod == inputs.pod_object(given["pod"]), "what was passed in is not changed"
    return inputs.shown_pod(changed)


def _effect(profile: Given, classes: Given) -> ProfileEffect:
    name = profile.get("priorityClassName", "")
    found = classes.get(name)
    return ProfileEffect(
        labels=profile.get("labels", {}),
        annotations=profile.get("annotations", {}),
        label_copies=profile.get("labelKeysMapping", {}),
        annotation_copies=profile.get("annotationKeysMapping", {}),
        label_suffixes=profile.get("labelSuffixes", {}),
        scheduler_name=profile.get("schedulerName", ""),
        qos=profile.get("qosClass", ""),
        priority_class=PriorityClass(name, found["value"], found["preemptionPolicy"]) if found else None,
        sub_priority=profile.get("koordinatorPriority"),
        patch=profile.get("patch"),
    )


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("scheduler-core", "pod_request"): COMPILED["scheduler-core", "pod_request"],
    ("scheduler-core", "fit_filter"): Runner(fit_filter),
    ("scheduler-core", "fit_score"): Runner(fit_score),
    ("scheduler-core", "balanced_allocation"): Runner(balanced_allocation),
    ("scheduler-core", "loadaware_capacity"): Runner(loadaware_capacity, AMOUNTS),
    ("scheduler-core", "loadaware_existing"): Runner(loadaware_existing, AMOUNTS),
    ("scheduler-core", "node_reservation_trim"): Runner(node_reservation_trim, AMOUNTS),
    ("scheduler-core", "amplified_cpu_filter"): Runner(amplified_cpu_filter),
    ("scheduler-resources", "amplified-cpu-filter"): Runner(amplified_cpu_filter_of_resources),
    ("node-agent", "suppress_pick"): Runner(suppress_pick),
    ("node-agent", "suppress_cpuset"): Runner(suppress_cpuset),
    ("node-agent", "suppress_quota"): Runner(suppress_quota),
    ("node-agent", "batch_resource"): Runner(batch_resource),
    ("node-agent", "cpu_normalization"): Runner(cpu_normalization),
    ("node-agent", "shares_weight"): COMPILED["node-agent", "shares_weight"],
    ("node-agent", "cpu_files"): COMPILED["node-agent", "cpu_files"],
    ("manager", "profile_probability"): Runner(profile_probability),
    ("manager", "profile_mutation"): Runner(profile_mutation),
    ("manager", "qos_priority_resolution"): Runner(qos_priority_resolution),
}
