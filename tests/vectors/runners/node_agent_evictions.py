"""Runners of the node agent's evictions."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.strategies import cpu_eviction, memory_eviction
from koordpolicy.agent.strategies.cpu_eviction import MeasuredCPU, cpu_needs
from koordpolicy.agent.strategies.evictable import DEFAULT_STEP, Evictable
from koordpolicy.agent.strategies.eviction_need import BELOW, INVALID, RELEASE, Need, Needs
from koordpolicy.agent.strategies.memory_eviction import memory_needs
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.eviction_round import EvictionTask, Target, eviction_round
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.algorithms.release import Thresholds, release_by_requests, release_by_use, used_percent
from koordpolicy.algorithms.satisfaction import BestEffortUse, real_limit
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    EVICTION_ENABLED,
    EVICTION_POLICY,
    EVICTION_PRIORITY,
    QOS_CLASS,
    SUB_PRIORITY,
)
from tests.vectors.inputs import full_name, shortened
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]
NOW = 1_800_000_000_000_000_000


def be_real_limit(given: Given) -> Given:
    return {"real_limit": real_limit(len(given["be_cpuset"]), given["be_quota"], given["period"])}


def be_satisfaction(given: Given) -> Given:
    said = {
        "enabled": True,
        "threshold": _percent(given, "lower_percent"),
        "upper": _percent(given, "upper_percent"),
        "usage": _percent(given, "usage_threshold_percent"),
        "measured": {"evictByAllocatable": "Allocatable"}.get(given.get("policy", ""), "RealLimit"),
    }
    spec = {"enabled": True, "window": f"{given['window_seconds']}s", "bestEffort": _present(said)}
    measured = MeasuredCPU(
        given["collect_interval_seconds"], average=_use(given["avg"]), current=_use(given["current"])
    )
    pod = _pod({"name": "p", "qos": "BE", "batch_cpu_request": 10**9})
    need = _cpu_need(
        spec,
        cpu_eviction.BEST_EFFORT,
        _node(given, {}, {BATCH_CPU: given["batch_cpu_allocatable"]}, [pod]),
        measured,
    )
    return {"release_batch_cpu": need.release.get(BATCH_CPU, 0), "reason": need.why}


def _use(given: Given) -> BestEffortUse:
    return BestEffortUse(given["used"], given["request"], given["real_limit"], given["count"])


def cpu_usage_release(given: Given) -> Given:
    if _unsayable(given):
        return _usage_alone(given)
    said = {
        "enabled": True,
        "highestPriority": 9999,
        "threshold": _percent(given, "threshold_percent"),
        "lower": _percent(given, "lower_percent"),
    }
    need = _cpu_need(
        {"enabled": True, "byPriority": _present(said)},
        cpu_eviction.BY_PRIORITY,
        _node(given, {"cpu": given["capacity"]}),
        MeasuredCPU(1, node=given["used"]),
    )
    return _usage_answer(need, "cpu")


def memory_usage_release(given: Given) -> Given:
    if _unsayable(given):
        return _usage_alone(given)
    spec = {
        "enabled": True,
        "threshold": _percent(given, "threshold_percent"),
        "lower": _percent(given, "lower_percent"),
        "bestEffort": {"enabled": True},
    }
    need = _memory_need(
        spec,
        memory_eviction.BEST_EFFORT,
        _node(given, {"memory": given["capacity"]}, usage={"memory": given["used"]}),
    )
    return _usage_answer(need, "memory")


def _unsayable(given: Given) -> bool:
    """Whether no policy can say these percentages, which Koordinator's API forbids and its agent takes."""
    return bool(given["threshold_percent"] < 0 or given.get("lower_percent", 0) < 0)


def _thresholds(given: Given) -> Thresholds:
    threshold = given["threshold_percent"]
    return Thresholds(threshold, given.get("lower_percent", threshold - DEFAULT_STEP))


def _usage_alone(given: Given) -> Given:
    thresholds, used, capacity = _thresholds(given), given["used"], given["capacity"]
    if not thresholds.valid:
        return {"usage_percent": None, "release": 0, "reason": INVALID}
    released = release_by_use(used, capacity, thresholds)
    return {
        "usage_percent": used_percent(used, capacity),
        "release": released,
        "reason": RELEASE if released else BELOW,
    }


def _usage_answer(need: Need, resource: str) -> Given:
    return {"usage_percent": need.percent, "release": need.release.get(resource, 0), "reason": need.why}


def ledger_release(given: Given) -> Given:
    resource = given["resource"]
    if _unsayable(given):
        catalogue, requested = graph().catalogue, dict[str, int]()
        for pod in given["pods"]:
            if pod["priority"] <= given["priority_threshold"]:
                name = f"{catalogue.raw_band(None, pod['priority'])}-{resource}"
                requested[name] = requested.get(name, 0) + pod["request"]
        return {"release": release_by_requests(requested, given["allocatable"], _thresholds(given))}
    said = {
        "enabled": True,
        "highestPriority": given["priority_threshold"],
        "threshold": _percent(given, "threshold_percent"),
        "lower": _percent(given, "lower_percent"),
    }
    # The amount stands for whatever resource the pod's band has.
    pods = [
        _pod(
            {"name": pod["name"], "priority": pod["priority"]},
            {f"{band}{resource}": pod["request"] for band in ("", "mid-", "batch-")},
        )
        for pod in given["pods"]
    ]
    allocatable = {full_name(name): amount for name, amount in given["allocatable"].items()}
    node = _node(given, {}, allocatable, pods)
    spec = {"enabled": True, "byRequests": said}
    if resource == "cpu":
        need = _cpu_need(spec, cpu_eviction.BY_REQUESTS, node, MeasuredCPU(1))
    else:
        need = _memory_need(spec, memory_eviction.BY_REQUESTS, node)
    return {"release": shortened(need.release)}


def evict_order_be_memory(given: Given) -> Given:
    node = _node(given, {"memory": 100}, pods=[_pod(pod) for pod in given["pods"]], usage={"memory": 100})
    node_pods = _measured(node, given["pods"], "memory")
    spec = {"enabled": True, "threshold": "50%", "bestEffort": {"enabled": True}}
    return _order(_memory_need(spec, memory_eviction.BEST_EFFORT, node_pods))


def evict_order_be_cpu(given: Given) -> Given:
    node = _node(given, {"cpu": 100}, pods=[_pod(pod) for pod in given["pods"]])
    starved = BestEffortUse(used=2_000, request=10_000, limit=2_000)
    spec = {"enabled": True, "bestEffort": {"enabled": True, "threshold": "30%", "upper": "90%"}}
    measured = MeasuredCPU(1, average=starved, current=starved)
    return _order(_cpu_need(spec, cpu_eviction.BEST_EFFORT, _measured(node, given["pods"], "cpu"), measured))


_SECTIONS = {
    "CPUEvict": ("cpu", "byPriority"),
    "CPUAllocatableEvict": ("cpu", "byRequests"),
    "MemoryEvict": ("memory", "byPriority"),
    "MemoryAllocatableEvict": ("memory", "byRequests"),
}


def evict_order_priority(given: Given) -> Given:
    feature, highest = given["feature"], given["priority_threshold"]
    resource, section = _SECTIONS[feature]
    # Requests are of the pod's own band; a pod of a band with native resources goes for none of them.
    pods = [
        _pod(pod, {f"{band}{resource}": pod["request"] for band in ("", "mid-", "batch-")})
        for pod in given["pods"]
    ]
    node = _measured(_node(given, {resource: 100}, pods=pods, usage={"memory": 100}), given["pods"], resource)
    compiled = graph(
        document(
            "CPUEviction" if resource == "cpu" else "MemoryEviction", "ours", {section: {"enabled": True}}
        )
    )
    rules = Evictable(
        compiled, "CPUEviction" if resource == "cpu" else "MemoryEviction", _record(compiled, node), NOW
    )
    found = rules.candidates(section, highest_priority=highest)
    return {"order": [pod["name"] for pod in found if f"usage.{resource}" in pod]}


def evict_round(given: Given) -> Given:
    fails, tasks = given.get("eviction_fails", ()), given["tasks"]
    found = eviction_round(
        [
            EvictionTask("reason", Target(one["target"]), one["to_release"], one["pods"], one["amounts"])
            for one in tasks
        ],
        given.get("already_evicted", ()),
        lambda pod, _reason: pod not in fails,
    )
    return {
        "newly_evicted": list(found.evicted),
        "counted_as_pending": list(found.pending),
        "released": {str(target): dict(amounts) for target, amounts in found.released.items()},
        "task_satisfied": list(found.satisfied),
    }


# --- nodes, pods and policies -------------------------------------------------------------------------


def _percent(given: Given, name: str) -> Mapping[str, str] | None:
    """A number that the node says itself: some are none that the compiler would take for all nodes."""
    return {"cel": f"percent(int(node.annotations['{name}']))"} if name in given else None


def _present(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None}


def _node(
    given: Given,
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int] | None = None,
    pods: list[Pod] | None = None,
    usage: Mapping[str, int] | None = None,
) -> NodeSight:
    said = {key: str(value) for key, value in given.items() if key.endswith("_percent")}
    node = Node("node", annotations=said, capacity=capacity, allocatable=allocatable or {})
    return NodeSight(node, pods or [], NodeMetric("node", updated_at=NOW, node_usage=usage or {}))


def _measured(sight: NodeSight, pods: list[Given], resource: str) -> NodeSight:
    assert sight.metric is not None
    found = [
        PodMetric("default", pod["name"], {resource: pod["used"]}) for pod in pods if pod["used"] is not None
    ]
    return replace(sight, metric=replace(sight.metric, pods=tuple(found)))


def _record(compiled: RuleGraph, sight: NodeSight) -> Record:
    return agent_record(compiled, CPUSuppression(compiled), sight, NOW)


def _pod(given: Given, requests: Mapping[str, int] = MappingProxyType({})) -> Pod:
    labels = {
        QOS_CLASS: given.get("qos"),
        EVICTION_ENABLED: given.get("eviction_enabled"),
        SUB_PRIORITY: given.get("label_priority"),
    }
    policy = given.get("eviction_policy")
    annotations = {
        EVICTION_PRIORITY: given.get("eviction_priority"),
        EVICTION_POLICY: policy if policy is None or isinstance(policy, str) else json.dumps(list(policy)),
    }
    asked = {full_name(name): amount for name, amount in requests.items()}
    if "batch_cpu_request" in given:
        asked[BATCH_CPU] = given["batch_cpu_request"]
    return Pod(
        given["name"],
        labels={key: value for key, value in labels.items() if value},
        annotations={key: value for key, value in annotations.items() if value is not None},
        phase=given.get("phase", "Running"),
        priority=given.get("priority"),
        containers=(Container("c", requests=asked),),
    )


def _cpu_need(spec: Given, reason: str, sight: NodeSight, measured: MeasuredCPU) -> Need:
    return _need(
        "CPUEviction",
        spec,
        reason,
        lambda compiled: cpu_needs(compiled, _record(compiled, sight), measured, NOW),
    )


def _memory_need(spec: Given, reason: str, sight: NodeSight) -> Need:
    return _need(
        "MemoryEviction", spec, reason, lambda compiled: memory_needs(compiled, _record(compiled, sight), NOW)
    )


def _need(kind: str, spec: Given, reason: str, ask: Callable[[RuleGraph], Needs]) -> Need:
    return ask(graph(document(kind, "ours", spec))).by_reason[reason]


def _order(need: Need) -> Given:
    return {"order": [] if need.task is None else [name for _namespace, name, _uid in need.task.pods]}


RUNNERS: Mapping[str, Runner] = {
    "be_real_limit": Runner(be_real_limit),
    "be_satisfaction": Runner(be_satisfaction),
    "cpu_usage_release": Runner(cpu_usage_release),
    "memory_usage_release": Runner(memory_usage_release),
    "ledger_release": Runner(ledger_release),
    "evict_order_be_memory": Runner(evict_order_be_memory),
    "evict_order_be_cpu": Runner(evict_order_be_cpu),
    "evict_order_priority": Runner(evict_order_priority),
    # Amounts of pods that nobody comes to are never asked for.
    "evict_round": Runner(evict_round, irrelevant=frozenset({"tasks[].amounts.be_120", "tasks[].amounts.e"})),
}
