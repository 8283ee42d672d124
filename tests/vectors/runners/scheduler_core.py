"""Runners of the scheduler's core: the profile `koord-scheduler`, asked through the scheduler's own parts.

What is an expression is asked twice, of the column program that the scheduler runs and of the row program of
the graph; a vector passes only when both give the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from koordpolicy.algorithms.backoff import backoff as backoff_time
from koordpolicy.algorithms.node_affinity import matches
from koordpolicy.algorithms.normalize import normalized
from koordpolicy.algorithms.pod_request import effective_requests, nonzero_requests
from koordpolicy.algorithms.sampling import nodes_to_find
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.nodes import TAINTS, node_schema, taint_text
from koordpolicy.cluster.pods import view_of
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import NodeDemand, node_facts
from koordpolicy.model.metric import AggregatedUsage, NodeMetric, PodMetric
from koordpolicy.model.node import Node, Taint
from koordpolicy.model.placement import Placement, read_placement
from koordpolicy.model.pod import Container, Owner, Pod, PodCondition
from koordpolicy.model.protocol import (
    CONDITION_INITIALIZED,
    CONDITION_SCHEDULED,
    ESTIMATED_SCALING_FACTORS,
    ESTIMATED_SECONDS_AFTER_INITIALIZED,
    ESTIMATED_SECONDS_AFTER_SCHEDULED,
    NODE_RESERVATION,
    PRIORITY_CLASS,
    RAW_ALLOCATABLE,
    USAGE_THRESHOLDS,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.table import NodeTable
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, evaluate
from koordpolicy.scheduler.evaluation.refusals import reasons_of
from koordpolicy.scheduler.profile import KIND, Profile, profile_of, records_for
from tests.vectors import inputs
from tests.vectors.compare import AMOUNTS
from tests.vectors.policies import document, graph
from tests.vectors.runners.answers import filtered, scored
from tests.vectors.runners.runner import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE, Runner

Given = Mapping[str, Any]

PROFILE = "koord-scheduler"
LOAD_AWARE = "LoadAwareScheduling"
_NOW = 1_700_000_000 * NANOSECONDS


# --- policies ------------------------------------------------------------------------------------


def overlay(parameters: Given) -> RuleGraph:
    """The built-in pack, and a document that sets parameters as a user would. None is left out."""
    said = {
        name: {"value": value} if isinstance(value, Mapping) else value
        for name, value in parameters.items()
        if value is not None
    }
    if not said:
        return graph()
    return graph(document(KIND, "vector", {"schedulerName": PROFILE, "parameters": said}))


def load_parameters(args: Given) -> dict[str, Any]:
    """Koordinator's plugin arguments as the profile's parameters.

    Empty maps are not set: Koordinator takes its default for them.
    """
    window = args.get("aggregated") or {}
    return {
        **{name: args.get(name) for name in _AS_THEY_ARE},
        **{name: _percents(args.get(name)) for name in _PERCENTS},
        **{name: _seconds(args.get(written)) for name, written in _SECONDS.items()},
        "resourceWeights": {
            inputs.full_name(one): w for one, w in (args.get("resourceWeights") or {}).items()
        }
        or None,
        "aggregatedUsageThresholds": _percents(window.get("usageThresholds")),
        "usageAggregationType": window.get("usageAggregationType") or None,
        "usageAggregatedDuration": _seconds(window.get("usageAggregatedDurationSeconds")),
        "scoreAggregationType": window.get("scoreAggregationType") or None,
        "scoreAggregatedDuration": _seconds(window.get("scoreAggregatedDurationSeconds")),
    }


_AS_THEY_ARE = (
    "filterExpiredNodeMetrics",
    "enableScheduleWhenNodeMetricsExpired",
    "dominantResourceWeight",
    "prodUsageIncludeSys",
    "scoreAccordingProdUsage",
    "allowCustomizeEstimation",
    "supportedResources",
)
_PERCENTS = ("usageThresholds", "prodUsageThresholds", "estimatedScalingFactors")
_SECONDS = {
    "nodeMetricExpiration": "nodeMetricExpirationSeconds",
    "estimatedAfterPodScheduled": "estimatedSecondsAfterPodScheduled",
    "estimatedAfterInitialized": "estimatedSecondsAfterInitialized",
}


def _percents(given: Given | None) -> dict[str, str] | None:
    return {inputs.full_name(name): f"{value}%" for name, value in (given or {}).items()} or None


def _seconds(given: int | None) -> str | None:
    return None if given is None else f"{given}s"


# --- objects -------------------------------------------------------------------------------------


def _pod(given: Given, name: str = "pod") -> Pod:
    """A pod of a class. Class '' is none: neither label nor Kubernetes' QoS class leads to one."""
    annotations = {
        annotation: text
        for annotation, text in (
            (
                ESTIMATED_SCALING_FACTORS,
                json.dumps(given["custom_factors"]) if "custom_factors" in given else None,
            ),
            (ESTIMATED_SECONDS_AFTER_SCHEDULED, given.get("custom_seconds_after_pod_scheduled")),
            (ESTIMATED_SECONDS_AFTER_INITIALIZED, given.get("custom_seconds_after_initialized")),
        )
        if text is not None
    }
    conditions = [
        PodCondition(type, "True", since=_NOW - given[key] * NANOSECONDS)
        for type, key in (
            (CONDITION_SCHEDULED, "scheduled_seconds_ago"),
            (CONDITION_INITIALIZED, "initialized_seconds_ago"),
        )
        if given.get(key) is not None
    ]
    owners = (Owner(given["owner_kind"], "owner", controller=True),) if "owner_kind" in given else ()
    amounts = inputs.resources(given.get("requests")), inputs.resources(given.get("limits"))
    return Pod(
        name=given.get("name", name),
        labels={PRIORITY_CLASS: f"koord-{given['class']}"} if given["class"] else {},
        annotations={key: str(value) for key, value in annotations.items()},
        owners=owners,
        kubernetes_qos="",
        containers=(Container("main", requests=amounts[0], limits=amounts[1]),),
        conditions=tuple(conditions),
    )


def _node(given: Given) -> Node:
    annotations = {}
    if "raw_allocatable" in given:
        raw = inputs.resources(given["raw_allocatable"])
        annotations[RAW_ALLOCATABLE] = json.dumps(
            {name: amount_text(name, value) for name, value in raw.items()}
        )
    if "custom_thresholds" in given:
        annotations[USAGE_THRESHOLDS] = json.dumps(_annotated(given["custom_thresholds"]))
    return Node("node", annotations=annotations, allocatable=inputs.resources(given.get("allocatable")))


def _annotated(thresholds: Given) -> Given:
    """The annotation's text as Koordinator writes it: durations as such."""
    window = dict(thresholds.get("aggregatedUsage") or {})
    if "usageAggregatedDurationSeconds" in window:
        window["usageAggregatedDuration"] = f"{window.pop('usageAggregatedDurationSeconds')}s"
    return {**thresholds, **({"aggregatedUsage": window} if window else {})}


def _metric(given: Given) -> NodeMetric:
    age = given["age_seconds"]
    return NodeMetric(
        "node",
        updated_at=None if age is None else _NOW - age * NANOSECONDS,
        node_usage=inputs.resources(given["node_usage"]) if given.get("node_usage") is not None else None,
        system_usage=inputs.resources(given.get("system_usage")),
        aggregated=tuple(
            AggregatedUsage(
                window["duration_seconds"] * NANOSECONDS,
                {name: inputs.resources(usage) for name, usage in window["usage"].items()},
            )
            for window in given.get("aggregated", ())
        ),
        pods=tuple(
            PodMetric("default", pod["name"], inputs.resources(pod.get("usage")), f"koord-{pod['class']}")
            for pod in given.get("pods", ())
        ),
    )


# --- load-aware scheduling -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """One node with its load, and a pod that asks for a place."""

    graph: RuleGraph
    profile: Profile
    cache: ClusterCache
    cycle: Cycle

    @property
    def row(self) -> Record:
        """The node's facts."""
        return dict(self.cache.table.row(0))


def scene(given: Given, more: Given | None = None) -> Scene:
    """What a vector says, as the scheduler sees it."""
    compiled = overlay({**load_parameters(given.get("args") or {}), **(more or {})})
    profile = profile_of(compiled, PROFILE)
    policy = LoadPolicy(compiled, PROFILE)
    cache = ClusterCache(policy, compiled.catalogue, profile.node_facts)
    cache.set_node(_node(given.get("node") or {}))
    if given.get("metric") is not None:
        cache.set_metric(_metric(given["metric"]))
    for assigned in given.get("assigned_pods", ()):
        cache.place(view_of(_pod(assigned), compiled.catalogue, policy.estimate), "node", _NOW)
    view = view_of(_pod(given.get("pod") or {"class": ""}), compiled.catalogue, policy.estimate)
    return Scene(compiled, profile, cache, Cycle(profile, view, records_for(view.facts, {}, {}, _NOW)))


def _both_ways(scene: Scene, field: str, by_columns: Any) -> Any:
    """The answer of the column program, which must be the row program's."""
    by_row = scene.graph.value(f"{KIND}/{PROFILE}.{field}", node=scene.row, **scene.cycle.records)
    assert by_row == by_columns, f"row program: {by_row}, column program: {by_columns}"
    return by_columns


def loadaware_estimate(given: Given) -> Given:
    found = scene(given).cycle.records["pod"]["resources.estimate"]
    return {"estimate": inputs.shortened(found)}


def loadaware_capacity(given: Given) -> Given:
    return {"capacity": inputs.shortened(scene(given).row["resources.physical"])}  # type: ignore[arg-type]


def node_reservation_trim(given: Given) -> Given:
    declared = given.get("reservation")
    if isinstance(declared, Mapping) and "resources" in declared:
        amounts = inputs.resources(declared["resources"])
        written = {name: amount_text(name, value) for name, value in amounts.items()}
        declared = {**declared, "resources": written}
    text = declared if isinstance(declared, str) else json.dumps(declared)
    annotations = {} if declared is None else {NODE_RESERVATION: text}
    compiled = graph()
    cache = ClusterCache(LoadPolicy(compiled, PROFILE), compiled.catalogue, frozenset())
    cache.set_node(Node("node", annotations=annotations, allocatable=inputs.resources(given["allocatable"])))
    row: Any = cache.table.row(0)
    return {"allocatable": inputs.shortened(row["resources.allocatable"])}


def loadaware_existing(given: Given) -> Given:
    query = {
        "scoreAggregationType": given.get("aggregation_type") or "last",
        "scoreAggregatedDuration": _seconds(given.get("duration") or 0),
    }
    row = scene(given, query).row
    load = row["resources.prodLoad" if given.get("prod") else "resources.scoreLoad"]
    return {"load": inputs.shortened(load)}  # type: ignore[arg-type]


def loadaware_filter(given: Given) -> Given:
    found = scene(given)
    evaluation = evaluate(found.cycle, found.cache.table)
    (step,) = [one for one in found.profile.filters if one.name == LOAD_AWARE]
    accepted = filtered(evaluation, step.name).accepted
    assert accepted is not None
    passes = _both_ways(found, f"filters[{LOAD_AWARE}].require", bool(accepted[0]))
    if passes:
        return {"pass": True}
    (reason,) = reasons_of(found.cycle, step, np.array([0]), found.cache.table).each()
    return {"pass": False, "reason": _both_ways(found, f"filters[{LOAD_AWARE}].reason", reason)}


def loadaware_score(given: Given) -> Given:
    found = scene(given)
    evaluation = evaluate(found.cycle, found.cache.table)
    scores = scored(evaluation, LOAD_AWARE).scores
    assert scores is not None
    return {"score": _both_ways(found, f"scores[{LOAD_AWARE}].value", int(scores[0]))}


# --- fit and balance -----------------------------------------------------------------------------


def pod_request(given: Given) -> Given:
    pod = inputs.pod(given["pod"])
    return {
        "request": inputs.shortened(effective_requests(pod)),
        "nonzero": inputs.shortened(nonzero_requests(pod)),
    }


def fit_filter(given: Given) -> Given:
    ignored = given.get("ignored_resources")
    parameters = {
        "ignoredResources": ignored and [inputs.full_name(name) for name in ignored],
        "ignoredResourceGroups": given.get("ignored_resource_groups"),
    }
    _, evaluation = _evaluated(given, parameters)
    verdicts = filtered(evaluation, "NodeResourcesFit").verdicts
    assert verdicts is not None
    refused = verdicts.refused[:, 0]
    status = UNRESOLVABLE if verdicts.unresolvable[0] else UNSCHEDULABLE if refused.any() else SUCCESS
    reasons = [reason for reason, fails in zip(verdicts.reasons, refused, strict=True) if fails]
    return {"status": status, "reasons": reasons}


def fit_score(given: Given) -> Given:
    weights = given.get("resources") or [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    parameters = {
        "fitStrategy": given.get("strategy"),
        "fitWeights": {inputs.full_name(one["name"]): one["weight"] for one in weights},
        "fitShape": {f"{use}%": score for use, score in given["shape"]} if given.get("shape") else None,
    }
    _, evaluation = _evaluated(given, parameters)
    scores = scored(evaluation, "NodeResourcesFit").scores
    assert scores is not None
    return {"score": int(scores[0])}


def balanced_allocation(given: Given) -> Given:
    answer: dict[str, Any] = {}
    resources = given.get("resources")
    named = [inputs.full_name(one["name"] if isinstance(one, Mapping) else one) for one in resources or ()]
    for variant in ("classic", "delta"):
        _, evaluation = _evaluated(given, {"balancedResources": named or None, "balanceVariant": variant})
        scores = scored(evaluation, "NodeResourcesBalancedAllocation").scores
        if scores is None:
            return {"skipped": True}
        answer[variant] = int(scores[0])
    return answer


def _evaluated(given: Given, parameters: Given) -> tuple[Profile, Evaluation]:
    """What the profile says of a pod and a node whose totals the vector gives."""
    compiled = overlay(parameters)
    profile = profile_of(compiled, PROFILE)
    node = given["node"]
    demand = NodeDemand(
        inputs.resources(node.get("requested")),
        inputs.resources(node.get("nonzero_requested")),
        node.get("pod_count", 0),
    )
    view = view_of(inputs.pod(given["pod"]), compiled.catalogue, _unestimated)
    table = _table([(_node(node), demand)])
    return profile, evaluate(Cycle(profile, view, records_for(view.facts, {}, {}, _NOW)), table)


def _unestimated(_facts: Record) -> None:
    """Fit and balance look at requests alone."""


def _table(nodes: Sequence[tuple[Node, NodeDemand]]) -> NodeTable:
    table = NodeTable(node_schema())
    for node, demand in nodes:
        facts = {**node_facts(node, demand), TAINTS: taint_text(node.taints), "metric.known": False}
        table.put(node.name, facts)
    return table


# --- where a pod may go --------------------------------------------------------------------------


def _placed(spec: Given, nodes: Sequence[Given]) -> tuple[Profile, Evaluation]:
    """What the profile says of nodes with labels and taints, and a pod with this spec."""
    compiled = graph()
    profile = profile_of(compiled, PROFILE)
    view = view_of(Pod("pod", raw={"spec": spec}), compiled.catalogue, _unestimated)
    table = _table(
        [
            (
                Node(
                    one.get("name", "node"),
                    labels=one.get("labels", {}),
                    taints=tuple(
                        Taint(taint["key"], taint["effect"], taint.get("value", ""))
                        for taint in one.get("taints", ())
                    ),
                    unschedulable=one.get("unschedulable", False),
                ),
                NodeDemand(),
            )
            for one in nodes
        ]
    )
    return profile, evaluate(Cycle(profile, view, records_for(view.facts, {}, {}, _NOW)), table)


def _passes(name: str, spec: Given, node: Given) -> Given:
    _, evaluation = _placed(spec, [node])
    verdicts = filtered(evaluation, name).verdicts
    assert verdicts is not None
    return {"pass": not verdicts.refused.any()}


def _normalized(name: str, spec: Given, nodes: Sequence[Given]) -> Given:
    profile, evaluation = _placed(spec, nodes)
    at = [one.name for one in profile.scores].index(name)
    scores = evaluation.scores[at].scores
    whole = [0] * len(nodes) if scores is None else normalized(profile.scores[at].normalize, scores).tolist()
    return {"scores": dict(zip((one["name"] for one in nodes), whole, strict=True))}


def unschedulable_filter(given: Given) -> Given:
    node = {"unschedulable": given.get("unschedulable", False)}
    return _passes("NodeUnschedulable", {"tolerations": given.get("tolerations")}, node)


def taint_filter(given: Given) -> Given:
    return _passes("TaintToleration", {"tolerations": given.get("tolerations")}, {"taints": given["taints"]})


def taint_score(given: Given) -> Given:
    return _normalized("TaintToleration", {"tolerations": given.get("tolerations")}, given["nodes"])


def node_affinity_filter(given: Given) -> Given:
    spec, node = _affinity(given["pod"]), given["node"]
    answer = _passes("NodeAffinity", spec, node)
    placement = read_placement({"spec": spec})
    assert answer["pass"] == matches(placement, node["name"], node.get("labels", {})), "one node, all nodes"
    return answer


def node_affinity_score(given: Given) -> Given:
    spec = _affinity(given["pod"])
    placement = read_placement({"spec": spec})
    _, evaluation = _placed(spec, given["nodes"])
    scores = scored(evaluation, "NodeAffinity").scores
    for at, node in enumerate(given["nodes"]):
        alone = sum(
            wish.weight
            for wish in placement.preferred
            if matches(Placement(required=(wish.term,)), node["name"], node.get("labels", {}))
        )
        assert alone == (0 if scores is None else scores[at]), "one node, all nodes"
    return _normalized("NodeAffinity", spec, given["nodes"])


def _affinity(pod: Given) -> Given:
    affinity: dict[str, Any] = {}
    if "required" in pod:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": pod["required"]}
    if "preferred" in pod:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = pod["preferred"]
    return {"nodeSelector": pod.get("nodeSelector"), "affinity": {"nodeAffinity": affinity}}


# --- queue and search ----------------------------------------------------------------------------


def backoff(given: Given) -> Given:
    compiled = graph(
        document(
            KIND,
            "vector",
            {
                "schedulerName": PROFILE,
                "queue": {"initialBackoff": f"{given['initial']}s", "maximumBackoff": f"{given['max']}s"},
            },
        )
    )
    first, longest, _ = profile_of(compiled, PROFILE).waits({})
    return {"seconds": [backoff_time(n, first, longest) / NANOSECONDS for n in given["attempts"]]}


def to_find(given: Given) -> Given:
    compiled = graph(
        document(KIND, "vector", {"schedulerName": PROFILE, "sampling": f"{given['percentage']}%"})
    )
    share = profile_of(compiled, PROFILE).sampling.value({})
    return {"to_find": nodes_to_find(given["nodes"], int(share))}


RUNNERS: Mapping[str, Runner] = {
    "loadaware_estimate": Runner(loadaware_estimate, AMOUNTS),
    "loadaware_capacity": Runner(loadaware_capacity, AMOUNTS),
    "loadaware_existing": Runner(loadaware_existing, AMOUNTS),
    "loadaware_filter": Runner(loadaware_filter),
    "loadaware_score": Runner(loadaware_score),
    "node_reservation_trim": Runner(node_reservation_trim, AMOUNTS),
    "pod_request": Runner(pod_request, AMOUNTS),
    "fit_filter": Runner(fit_filter),
    "fit_score": Runner(fit_score),
    "balanced_allocation": Runner(balanced_allocation),
    "unschedulable_filter": Runner(unschedulable_filter),
    "taint_filter": Runner(taint_filter),
    "taint_score": Runner(taint_score),
    "node_affinity_filter": Runner(node_affinity_filter),
    "node_affinity_score": Runner(node_affinity_score),
    "backoff": Runner(backoff),
    "nodes_to_find": Runner(to_find),
}
