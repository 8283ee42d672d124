"""The scheduler: room, scores, capacity."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms import balanced
from koordpolicy.algorithms.amplified import short_of_cpu_one
from koordpolicy.algorithms.fit import fit_all, fit_one, shortage_reason
from koordpolicy.algorithms.fit_score import FitScore, Strategy
from koordpolicy.algorithms.node_capacity import trimmed_allocatable
from koordpolicy.algorithms.pod_request import effective_requests, nonzero_requests
from koordpolicy.model.node import Node, node_reservation, physical_allocatable
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    NODE_RESERVATION,
    RAW_ALLOCATABLE,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import ObjectError
from tests.unit.algorithms.clusters import amount, columns
from tests.vectors import inputs
from tests.vectors.compare import AMOUNTS
from tests.vectors.runners.runner import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE, Runner

Given = Mapping[str, Any]


def fit_filter(given: Given) -> Given:
    node = given["node"]
    request = effective_requests(inputs.pod(given["pod"]))
    allocatable, requested = inputs.resources(node["allocatable"]), inputs.resources(node.get("requested"))
    ignored = given.get("ignored_resources", ()), given.get("ignored_resource_groups", ())
    resources, lacking = fit_one(request, *ignored)
    short = lacking(allocatable, requested, node["pod_count"])
    found = fit_all(
        request, columns([allocatable]), columns([requested]), amount(node["pod_count"]), *ignored
    )
    if short is None:
        assert found.short is None, "both forms answer alike"
        return {"status": SUCCESS, "reasons": []}
    fails, unresolvable = short
    assert found.resources == resources
    assert found.short is not None
    assert found.unresolvable is not None
    in_columns = tuple(found.short[:, 0].tolist()), bool(found.unresolvable[0])
    assert in_columns == (fails, unresolvable), "both forms answer alike"
    return {
        "status": UNRESOLVABLE if unresolvable else UNSCHEDULABLE,
        "reasons": [shortage_reason(one) for one, lacks in zip(resources, fails, strict=True) if lacks],
    }


def fit_score(given: Given) -> Given:
    node, pod = given["node"], inputs.pod(given["pod"])
    weights = [(inputs.full_name(one["name"]), one["weight"]) for one in given["resources"]]
    scorer = FitScore.of(Strategy(given["strategy"]), weights, given.get("shape", ()))
    requests = effective_requests(pod, pod_level=False), nonzero_requests(pod, pod_level=False)
    totals = [inputs.resources(node.get(key)) for key in ("allocatable", "requested", "nonzero_requested")]
    score = scorer.score(*requests, *totals)
    allocatable, requested, nonzero = (columns([one]) for one in totals)
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
        "classic": balanced.classic_one(names, request)(*totals),
        "delta": balanced.delta_one(names, request)(*totals),
    }
    allocatable, requested = (columns([one]) for one in totals)
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
    short = short_of_cpu_one(given["pod_cpu"], binds=given["cpu_bind"])
    node = given["ratio"], given["node_allocatable_cpu"], given["node_requested_cpu"]
    return {"pass": not short(*node, 1000 * given["cpuset_cpus_in_use"])}


def amplified_cpu_filter_of_resources(given: Given) -> Given:
    short = short_of_cpu_one(given["podMilliCPU"], binds=given["podIsCPUBound"])
    fits = not short(
        given["ratio"], given["nodeAllocatableMilli"], given["nodeRequestedMilli"], given["boundCPUsMilli"]
    )
    return {"fits": fits, "reason": None if fits else "Insufficient amplified cpu"}


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("scheduler-core", "fit_filter"): Runner(fit_filter),
    ("scheduler-core", "fit_score"): Runner(fit_score),
    ("scheduler-core", "balanced_allocation"): Runner(balanced_allocation),
    ("scheduler-core", "loadaware_capacity"): Runner(loadaware_capacity, AMOUNTS),
    ("scheduler-core", "node_reservation_trim"): Runner(node_reservation_trim, AMOUNTS),
    ("scheduler-core", "amplified_cpu_filter"): Runner(amplified_cpu_filter),
    ("scheduler-resources", "amplified-cpu-filter"): Runner(amplified_cpu_filter_of_resources),
}
