"""Runners of what the node agent asks of the kernel for pods of each class, and for the node."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.agent.hooks.containers import PodNumbers, pod_numbers
from koordpolicy.agent.plan import Level, Write
from koordpolicy.agent.strategies.cache_isolation import Caches, CacheShare, lines
from koordpolicy.agent.strategies.cpu_isolation import IsolatedCPU
from koordpolicy.agent.strategies.isolation import Isolations
from koordpolicy.agent.strategies.memory_isolation import IsolatedMemory
from koordpolicy.agent.strategies.system_tuning import system_plan
from koordpolicy.algorithms.container_resources import UNLIMITED
from koordpolicy.algorithms.cpu_pools import CPUPools, chosen_cpus
from koordpolicy.algorithms.records import pods_on_node
from koordpolicy.algorithms.runtime_update import merged_resources
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.numa import cpu_zones
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU_QOS,
    MEMORY,
    MEMORY_QOS,
    QOS_CLASS,
    RESOURCE_STATUS,
)
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]
NOW = 1_800_000_000_000_000_000


def _record(compiled: RuleGraph, pod: Pod) -> Record:
    (record,) = pods_on_node([pod], None, compiled.catalogue, TIMES)
    return record


def _labels(qos: str | None) -> Mapping[str, str]:
    return {QOS_CLASS: qos} if qos else {}


def bvt(given: Given) -> Given:
    documents = [
        document(
            "Isolation",
            name.lower(),
            {"group": name, "cpu": {"enabled": said["enable"], "identity": said["groupIdentity"]}},
        )
        for name, said in given["classes"].items()
    ]
    mechanism = given.get("cpu_policy") or None
    compiled = graph(*documents, document("SystemTuning", "ours", {"cpuMechanism": mechanism}))
    isolation = IsolatedCPU(Isolations(compiled, {}, NOW))
    found: dict[str, object] = {}
    for name, pod in given["pods"].items():
        annotations = {}
        if "cpu_qos_annotation" in pod:
            annotations[CPU_QOS] = json.dumps(pod["cpu_qos_annotation"])
        known = Pod(name, labels=_labels(pod["qos"]), kubernetes_qos=pod["kube_qos"], annotations=annotations)
        try:
            found[name] = isolation.pod_identity(_record(compiled, known))
        except ValueError:
            found[name] = "error"
    return {
        "dirs": {group.name: value for group, value in isolation.directories().items()},
        "pods": found,
    }


_PERCENTAGES = {"min_percent": "minimum", "low_percent": "low", "throttling_percent": "throttling"}


def memory_qos(given: Given) -> Given:
    group = given.get("qos") or "LS"
    resource = BATCH_MEMORY if group == "BE" else MEMORY
    said = {
        field: f"{given['config'][key]}%" for key, field in _PERCENTAGES.items() if key in given["config"]
    }
    memory = {"enabled": True, **said}
    compiled = graph(document("Isolation", "ours", {"group": group, "memory": memory}))
    pod = Pod(
        "p",
        uid="uid",
        labels=_labels(group),
        phase="Running",
        containers=tuple(
            Container(
                name,
                requests={resource: one.get("request", 0)},
                limits={resource: one.get("limit", 0)},
            )
            for name, one in given["containers"].items()
        ),
    )
    node = {"resources.allocatable": {MEMORY: given["node_allocatable"]}}
    plan = IsolatedMemory(Isolations(compiled, node, NOW)).plan([_record(compiled, pod)])
    containers: dict[str, dict[str, object]] = {name: {} for name in given["containers"]}
    whole: dict[str, object] = {}
    for write in plan.writes:
        if write.group.level is Level.CONTAINER:
            containers[write.group.name][write.file] = write.value
        elif write.group.level is Level.POD:
            whole[write.file] = write.value
    return {"containers": containers, "pod": whole or None}


def memory_qos_level(given: Given) -> Given:
    compiled = graph()
    names = {"min_percent": "minLimitPercent", "low_percent": "lowLimitPercent"}
    pods = [
        Pod(
            pod["name"],
            uid=pod["name"],
            kubernetes_qos=pod["kube_qos"],
            phase=pod.get("phase", "Running"),
            annotations={
                MEMORY_QOS: json.dumps({said: pod[key] for key, said in names.items() if key in pod})
            },
            containers=(Container("c", requests={MEMORY: pod["request"]}),),
        )
        for pod in given["pods"]
    ]
    node = {"resources.allocatable": {MEMORY: 0}}
    plan = IsolatedMemory(Isolations(compiled, node, NOW)).plan(
        pods_on_node(pods, None, compiled.catalogue, TIMES)
    )
    found: dict[str, dict[str, object]] = {"Guaranteed": {}, "Burstable": {}, "BestEffort": {}}
    for write in plan.writes:
        if write.group.level is Level.QOS:
            found[write.group.name][write.file] = write.value
    return found


def resctrl(given: Given) -> Given:
    share = CacheShare(given["cat_start_percent"], given["cat_end_percent"], given["mba_percent"])
    found, _problems = lines(share, Caches(given["cache_ids"], int(given["cbm_mask"], 16), given["vendor"]))
    by_resource = {line.partition(":")[0]: line for line in found}
    return {"l3_line": by_resource.get("L3"), "mb_line": by_resource.get("MB")}


_SYSTEM = {"minFreeKbytesFactor": "minFreeFactor", "watermarkScaleFactor": "watermarkScaleFactor"}


def system_config(given: Given) -> Given:
    # Numbers that the node says itself: some are none that the compiler would take for all nodes.
    spec = {
        field: {"cel": f"int(node.annotations['{key}'])"} for key, field in _SYSTEM.items() if key in given
    }
    compiled = graph(document("SystemTuning", "ours", spec))
    node = {
        "annotations": {key: str(given[key]) for key in _SYSTEM if key in given},
        "resources.capacity": {MEMORY: given["memory_capacity"]},
    }
    plan = system_plan(compiled, node, NOW)
    return {"files": {_path(write): write.value for write in plan.writes}}


def _path(write: Write) -> str:
    return write.file.replace(".", "/", 1)


def cpu_normalization(given: Given) -> Given:
    annotations = {}
    if "scheduler_cpuset" in given:
        annotations[RESOURCE_STATUS] = json.dumps({"cpuset": given["scheduler_cpuset"]})
    limits = {"cpu": given["limit"]} if given["limit"] else {}
    pod = Pod(
        "p",
        labels=_labels(given["qos"]),
        annotations=annotations,
        containers=(Container("c", limits=limits),),
    )
    found = _hooked(pod, {"cpuNormalization": given["ratio"]}, "cpu-normalization")
    return {"quota": found.containers["c"].quota}


def cpuset_rule(given: Given) -> Given:
    allocation: dict[str, Any] = {}
    if "scheduler_cpuset" in given:
        allocation["cpuset"] = given["scheduler_cpuset"]
    if "numa_nodes_with_cpu" in given:
        resource = BATCH_CPU if given["qos"] == "BE" else "cpu"
        zones = [{"node": node, "resources": {resource: "1k"}} for node in given["numa_nodes_with_cpu"]]
        allocation["numaNodeResources"] = zones
    pod = Pod(
        "p",
        labels=_labels(given["qos"]),
        kubernetes_qos=given["kube_qos"],
        annotations={RESOURCE_STATUS: json.dumps(allocation)} if allocation else {},
        containers=(Container("c"),),
    )
    system = given.get("system_qos_cpus", "")
    node = {"kubelet.cpuManager": given["kubelet_policy"], "system.hasCPUs": bool(system)}
    pinned = document("ContainerHook", "cpus", {"parameters": {"pinsBestEffort": True}})
    documents = [pinned] if given.get("be_cpu_manager") else []
    choice = _hooked(pod, node, "cpus", *documents).containers["c"].cpus
    pools = CPUPools(
        {pool["node"]: pool["cpus"] for pool in given["ls_pools"]},
        {pool["node"]: pool["cpus"] for pool in given["be_pools"]},
        system,
    )
    quota = _hooked(pod, node, "owned-cpus").pod.quota
    assert choice is not None
    return {
        "cpuset": chosen_cpus(choice, pools, given.get("scheduler_cpuset", ""), cpu_zones(pod.annotations)),
        "unset_quota": quota == UNLIMITED,
    }


def _hooked(pod: Pod, node: Record, hook: str, *documents: Given) -> PodNumbers:
    """What one hook says of a pod."""
    return pod_numbers(graph(*documents), pod, node, NOW, hooks=(hook,))


def proxy_merge(given: Given) -> Given:
    return {"result": merged_resources(given["record"], given["hook"])}


RUNNERS: Mapping[str, Runner] = {
    "bvt": Runner(bvt),
    "memory_qos": Runner(memory_qos),
    "memory_qos_level": Runner(memory_qos_level),
    "resctrl": Runner(resctrl),
    "cpu_normalization": Runner(cpu_normalization),
    "cpuset_rule": Runner(cpuset_rule),
    "system_config": Runner(system_config),
    "proxy_merge": Runner(proxy_merge),
}
