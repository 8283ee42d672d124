"""Runners of the node agent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.hooks.containers import GroupNumbers, pod_numbers
from koordpolicy.agent.measurements.table import MeasurementTable, Reach
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.agent.strategies.suppression_plan import BestEffortGroup, SuppressionPlan, plan
from koordpolicy.algorithms.aggregation import begins_cold, millicores
from koordpolicy.algorithms.container_resources import (
    UNLIMITED,
    quota_of,
    shares_of,
)
from koordpolicy.algorithms.cpuset import pick_cpus
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.files.forms import QUOTA_OF_MAX
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import AGGREGATIONS
from koordpolicy.model.metric import HostApplicationMetric, NodeMetric, PodMetric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU_NORMALIZATION_RATIO,
    EXTENDED_RESOURCE_SPEC,
    NODE_RESERVATION,
    QOS_CLASS,
)
from koordpolicy.model.shares import shares_of_weight, weight_of_shares
from koordpolicy.model.topology import Processor
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def shares_weight(given: Given) -> Given:
    try:
        if "weight" in given:
            return {"shares": shares_of_weight(given["weight"])}
        return {"weight": weight_of_shares(given["shares"])}
    except ValueError:
        return {"error": True}


def cpu_files(given: Given) -> Given:
    shares, quota = shares_of(given["request"]), quota_of(given["limit"])
    return {
        "v1": {"cpu.shares": shares, "cpu.cfs_quota_us": quota},
        "v2": {"cpu.weight": weight_of_shares(shares), "cpu.max": QUOTA_OF_MAX.render(quota)},
    }


def suppress_target(given: Given) -> Given:
    minimum = given.get("min_percent")
    compiled = graph(
        document(
            "CPUSuppress",
            "strategy",
            {
                "parameters": {"threshold": f"{given['threshold_percent']}%"},
                "minimum": None if minimum is None else {"cel": f"node.capacity.cpu * percent({minimum})"},
            },
        )
    )
    sight = NodeSight(
        read_node(_node_object(given["node"])),
        [read_pod(_pod_object(pod, {})) for pod in given["pods"] if pod.get("known", True)],
        NodeMetric(
            "node",
            updated_at=NOW,
            node_usage={"cpu": given["node_used"]},
            pods=tuple(PodMetric("default", pod["name"], {"cpu": pod["used"]}) for pod in given["pods"]),
            host_applications=tuple(
                HostApplicationMetric(
                    app["name"], {"cpu": app["used"]}, qos=app["qos"], cgroup_base=app.get("base", "")
                )
                for app in given.get("host_apps", ())
            ),
        ),
    )
    suppression = CPUSuppression(compiled)
    found = suppression.decide(agent_record(compiled, suppression, sight, NOW), NOW)
    return {
        "target": found.target,
        "non_be_pods_used": found.figures["protectedPods"],
        "non_be_host_apps_used": found.figures["protectedHostApplications"],
        "system_used": found.figures["system"],
    }


NOW = 1_800_000_000_000_000_000


def _node_object(node: Given) -> Given:
    annotations = {}
    if "annotation_reserved_cpu" in node:
        resources = {"cpu": f"{node['annotation_reserved_cpu']}m"}
        annotations[NODE_RESERVATION] = json.dumps({"resources": resources})
    status = {
        "capacity": {"cpu": f"{node['cpu_capacity']}m"},
        "allocatable": {"cpu": f"{node['cpu_allocatable']}m"},
    }
    return {"metadata": {"name": "node", "annotations": annotations}, "status": status}


def _pod_object(pod: Given, annotations: Mapping[str, str]) -> Given:
    labels = {QOS_CLASS: pod["qos"]} if pod.get("qos") else {}
    return {
        "metadata": {
            "name": pod.get("name", "pod"),
            "namespace": "default",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"containers": []},
        "status": {"phase": "Running", "qosClass": pod.get("kube_qos", "BestEffort")},
    }


def suppress_pick(given: Given) -> Given:
    return {"picked_in_order": list(pick_cpus(_processors(given), given["count"]))}


def suppress_cpuset(given: Given) -> Given:
    held = {
        qos: {cpu for pod in given.get("cpuset_pods", ()) if pod["qos"] == qos for cpu in pod["cpus"]}
        for qos in ("LSR", "LSE")
    }
    group = BestEffortGroup(
        _processors(given),
        capacity=1000 * len(given["processors"]),
        current=set(given["old_cpuset"]),
        quota=UNLIMITED,
        borrowed=held["LSR"],
        excluded=held["LSE"] | set(given.get("node_reserved_cpus", ())),
        kubelet_owns_parents=given.get("kubelet_policy") == "static",
    )
    found = _plan(given["target"], "cpuset", group)
    assert found.picked is not None
    return {
        "count": found.picked.count,
        "from_lsr": found.picked.from_borrowed,
        "from_ls": found.picked.from_shared,
        "picked_in_order": list(found.picked.picked),
        "writes": [{"order": str(write.reach), "cpus": sorted(write.cpus)} for write in found.cpuset] or None,
    }


def suppress_quota(given: Given) -> Given:
    group = BestEffortGroup((), given["cpu_capacity"], current=None, quota=given["current_quota"])
    return {"write": _plan(given["target"], "cfsQuota", group).quota}


def _plan(target: int, mechanism: str, group: BestEffortGroup) -> SuppressionPlan:
    """The plan for a target that the case gives, with all that policy says about how it is reached."""
    facts: Record = {"usage.total.cpu": 0, "metric.age": TIMES.duration(0), "capacity.cpu": group.capacity}
    facts.update({"reserved.cpu": 0, "pods": [], "hostApplications": []})
    compiled = graph(document("CPUSuppress", "strategy", {"mechanism": mechanism}))
    return plan(replace(CPUSuppression(compiled).decide(facts, NOW), target=target), group)


def _processors(given: Given) -> list[Processor]:
    return [Processor(*numbers) for numbers in given["processors"]]


def batch_resource(given: Given) -> Given:
    compiled = graph(
        document(
            "CPUSuppress",
            "strategy",
            {"enabled": given.get("strategy_enable", False), "mechanism": given.get("suppress_policy")},
        )
    )
    annotations = {}
    if "normalization_ratio" in given:
        annotations[CPU_NORMALIZATION_RATIO] = str(given["normalization_ratio"])
    read = read_node({"metadata": {"name": "node", "annotations": annotations}})
    node = agent_record(compiled, CPUSuppression(compiled), NodeSight(read), NOW)
    announced = {}
    if given["spec"] is not None:
        containers = {name: _lists(one) for name, one in given["spec"].items()}
        announced[EXTENDED_RESOURCE_SPEC] = json.dumps({"containers": containers})
    found = pod_numbers(compiled, read_pod(_pod_object(given, announced)), node, NOW)
    if found.pod == GroupNumbers():
        return {"untouched": True}
    return {
        "pod": _files(found.pod),
        "containers": {name: _files(one) for name, one in found.containers.items()},
    }


def _lists(container: Given) -> Given:
    """A container of the extended resource specification."""
    places = {
        "batch_cpu_request": ("requests", BATCH_CPU),
        "batch_cpu_limit": ("limits", BATCH_CPU),
        "batch_memory_limit": ("limits", BATCH_MEMORY),
    }
    lists: dict[str, dict[str, int]] = {}
    for key, amount in container.items():
        part, resource = places[key]
        lists.setdefault(part, {})[resource] = amount
    return lists


def _files(numbers: GroupNumbers) -> Given:
    return {
        "cpu.shares": numbers.shares,
        "cpu.cfs_quota_us": numbers.quota,
        "memory.limit_in_bytes": numbers.memory_limit,
    }


def nodemetric_cpu(given: Given) -> Given:
    second, node = 10**9, "node"
    now, duration = given["now"] * second, given["duration_seconds"] * second
    samples = given["cpu_samples"]
    reach = Reach(duration + max(now, samples[-1][0] * second), second)
    table: MeasurementTable[str] = MeasurementTable(("cpu",), reach, most=1)
    for at, cores in samples:
        table.add(at * second, {node: (cores,)})
    excerpt = table.excerpt("cpu", now, duration)
    cold = begins_cold(excerpt.spans()[node], duration)
    shown = not (cold and given.get("cold_start_filter", True))
    last = excerpt.latest()
    return {
        "cold_start": cold,
        "cpu": {
            name: millicores(excerpt.aggregate(name)[node]) if shown and last else None
            for name in AGGREGATIONS
        },
        "last": millicores(last[node]) if last else None,
    }


RUNNERS: Mapping[str, Runner] = {
    "nodemetric_cpu": Runner(nodemetric_cpu),
    "suppress_target": Runner(suppress_target),
    "suppress_pick": Runner(suppress_pick),
    "suppress_cpuset": Runner(suppress_cpuset),
    "suppress_quota": Runner(suppress_quota),
    "batch_resource": Runner(batch_resource),
    "shares_weight": Runner(shares_weight),
    "cpu_files": Runner(cpu_files),
}
