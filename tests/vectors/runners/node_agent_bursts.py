"""Runners of the node agent's bursts of CPU."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.agent.strategies.cpu_burst import (
    BurstRules,
    ContainerCPU,
    CPUBursts,
    PodCPU,
    quota_step,
    quota_writes,
    saved_writes,
)
from koordpolicy.algorithms.cpu_burst import PoolState, burst_allowed, tokens_after
from koordpolicy.algorithms.records import pods_on_node
from koordpolicy.algorithms.throttling import Periods, throttled_ratio
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import CPU_BURST, QOS_CLASS
from tests.vectors.compare import Comparison
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]
NOW = 1_800_000_000_000_000_000


def burst_limiter(given: Given) -> Given:
    rules = _rules(
        graph(document("CPUBurst", "ours", {"quota": {"period": f"{given['period_seconds']}s"}})),
        {"cfsQuotaBurstPercent": given["max_percent"]},
    )
    token = tokens_after(given["token"], rules.tokens, given["usage_percent"], given["elapsed_seconds"])
    return {
        "capacity": rules.tokens.capacity,
        "token": token,
        "allowed": burst_allowed(token, rules.tokens),
    }


def burst_node_state(given: Given) -> Given:
    compiled = graph(
        document("CPUBurst", "ours", {"sharePool": {"threshold": f"{given['threshold_percent']}%"}})
    )
    pods, metrics = [], []
    for number, pod in enumerate(given["pods"]):
        name, labels = f"p{number}", {QOS_CLASS: pod["qos"]} if pod["qos"] else {}
        pods.append(Pod(name, labels=labels, containers=(Container("c", requests={"cpu": pod["request"]}),)))
        if pod["used"] is not None:
            metrics.append(PodMetric("default", name, {"cpu": pod["used"]}))
    metric = NodeMetric("node", pods=tuple(metrics))
    node = {"pods": pods_on_node(pods, metric, compiled.catalogue, TIMES)}
    return {
        "state": str(
            CPUBursts(compiled, lambda: 0.0).pool(node, given["processors"], given["node_used"], NOW)
        )
    }


def burst_step(given: Given) -> Given:
    rules = _rules(graph(), {"policy": given["policy"], "cfsQuotaBurstPercent": given["max_percent"]})
    current = given["current_quota"]
    found = quota_step(
        rules,
        ContainerCPU(given["limit"], current, throttled=given["throttled_ratio"]),
        PoolState(given["node_state"]),
        allowed=given["limiter_allowed"],
    )
    writes = quota_writes("uid", "c", current, given["pod_quota"], found)
    return {
        "action": str(found.step),
        "target": found.target,
        "writes": [{"level": str(write.group.level), "value": write.value} for write in writes],
    }


def burst_static(given: Given) -> Given:
    rules = _rules(graph(), {"policy": given["policy"], "cpuBurstPercent": given["percent"]})
    containers = {name: ContainerCPU(limit, None) for name, limit in given["container_limits"].items()}
    *each, whole = saved_writes(PodCPU({"uid": "uid"}, None, containers), rules)
    return {"containers": {write.group.name: write.value for write in each}, "pod": whole.value}


def throttled(given: Given) -> Given:
    before, after = (
        Periods(given[name]["nr_periods"], given[name]["nr_throttled"]) for name in ("previous", "current")
    )
    return {"ratio": throttled_ratio(before, after)}


def _rules(compiled: RuleGraph, said: Given) -> BurstRules:
    """What holds for a pod that says this over the node's policies."""
    pod = Pod("p", annotations={CPU_BURST: json.dumps(dict(said))})
    (record,) = pods_on_node([pod], None, compiled.catalogue, TIMES)
    found = CPUBursts(compiled, lambda: 0.0).rules(record, {}, NOW)
    assert found is not None
    return found


RUNNERS: Mapping[str, Runner] = {
    "burst_limiter": Runner(burst_limiter),
    "burst_node_state": Runner(burst_node_state),
    "burst_step": Runner(burst_step),
    "burst_static": Runner(burst_static),
    "throttled_ratio": Runner(throttled, Comparison(absolute=1e-12)),
}
