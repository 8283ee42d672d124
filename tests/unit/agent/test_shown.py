"""Metrics of the agent: koordlet's names and labels, and what stands behind them; cold memory, which they show too."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from math import isnan, nan
from typing import Any, Final

import pytest

from koordpolicy.agent.apply import apply
from koordpolicy.agent.collectors.cold_memory import ColdMemoryCollector
from koordpolicy.agent.collectors.usage import Scene
from koordpolicy.agent.measurements.levels import COLD, NODE, WITH_HOT_CACHE, Measurements
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_strategies import node_strategies
from koordpolicy.agent.reports.usage import ApplicationOnHost, UsageView
from koordpolicy.agent.shown.agent_metrics import ALL_ROWS
from koordpolicy.agent.shown.rows import ShownRows
from koordpolicy.agent.strategies.cold_memory import ColdMemoryPace, decide_cold_memory
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.machine import FakeMachine, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.runtime.metrics.koordlet import KOORDLET, NOT_SHOWN
from koordpolicy.runtime.metrics.metric import MetricKind
from koordpolicy.runtime.metrics.table import METRICS
from tests.unit.agent.frames import COLLECTION, GIB, LIMITS, SECOND, FakeNode, pod
from tests.unit.agent.nodes import NOW
from tests.unit.agent.test_whole_agent import CONTAINERS, GROUPS, PLAIN, PODS_OF, appear
from tests.unit.agent.whole import NODE as NAME
from tests.unit.agent.whole import whole_agent
from tests.vectors.policies import document, graph

POD: Final = "pod_uid pod_name pod_namespace"
CONTAINER: Final = f"container_id container_name {POD}"
STALL: Final = "psi_resource_type psi_precision psi_degree cpu_full_supported"

REFERENCE: Mapping[str, str | None] = {
    "start_time": "",
    "be_suppress_cpu_cores": "type",
    "be_suppress_ls_used_cpu_cores": "",
    "be_suppress_be_used_cpu_cores": "",
    "pod_eviction": "reason",
    "pod_eviction_detail": "pod_namespace pod_name reason",
    "container_scaled_cfs_burst_us": "pod_namespace pod_name container_id container_name",
    "container_scaled_cfs_quota_us": "pod_namespace pod_name container_id container_name",
    "container_cpi": f"{CONTAINER} cpi_field",
    "container_psi": f"{CONTAINER} {STALL}",
    "pod_psi": f"{POD} {STALL}",
    "container_resource_requests": f"resource unit {POD} container_id container_name",
    "container_resource_limits": f"resource unit {POD} container_id container_name",
    "node_used_cpu_cores": "",
    "node_used_memory_bytes": "",
    "node_resource_allocatable": "resource unit",
    "host_application_resource_usage": "host_application_name resource priority_class qos",
    "node_predicted_resource_reclaimable": "predictor resource unit",
    "node_predicted_resource_peak": "predictor resource unit",
    "node_priority_resource_reclaimable": "priority resource unit",
    "node_resource_priority_reclaimable_status": "priority",
    "node_metric_node_usage": "resource unit",
    "node_metric_system_usage": "resource unit",
    "node_metric_numa_node_usage": "numa_node_id resource unit",
    "node_metric_numa_system_usage": "numa_node_id resource unit",
    "cpuset_share_pool_cpu_cores": "",
    "cpuset_be_share_pool_cpu_cores": "",
    "cpuset_share_pool_info": "cpu_id",
    "cpuset_be_share_pool_info": "cpu_id",
    "core_sched_cookie_manage_status": "core_sched_group status",
    "container_core_sched_cookie": "pod_name pod_namespace pod_uid container_name container_id core_sched_group core_sched_cookie",
    "container_oom_score_adj": "pod_name pod_namespace pod_uid container_name",
    "resctrl_llc_occupancy": "cache_id qos",
    "resctrl_memory_bandwidth": "cache_id qos mb_type",
    "runtime_hook_invoked_duration_milliseconds": None,
    "runtime_hook_reconciler_invoked_duration_milliseconds": None,
    "resource_update_duration_milliseconds": "type status",
    "kubelet_request_duration_seconds": "verb path code",
    "collect_node_cpu_info_status": "status",
    "collect_node_numa_info_status": "status",
    "collect_node_local_storage_info_status": "status",
}
"""koordlet's metrics and their labels beside the node's name; None for what this agent does not show."""


def test_names_and_labels_are_koordlets() -> None:
    shown = {metric.name: set(metric.labels) for metric in KOORDLET}
    no_node = {"resource_update_duration_milliseconds", "kubelet_request_duration_seconds"}
    assert shown == {
        f"koordlet_{name}": {*([] if name in no_node else ["node"]), *labels.split()}
        for name, labels in REFERENCE.items()
        if labels is not None
    }
    assert {f"koordlet_{name}" for name, labels in REFERENCE.items() if labels is None} == NOT_SHOWN
    gauges = [metric for metric in KOORDLET if metric.kind is MetricKind.GAUGE]
    assert {metric.name for metric in gauges} <= ALL_ROWS.keys()
    assert {metric.also for metric in gauges}.isdisjoint(metric.name for metric in METRICS)


POLICIES = (
    document("CPUSuppress", "ours", {"enabled": True}),
    document("CPUBurst", "ours", {"policy": "auto"}),
    document("MetricCollection", "ours", {"pressure": {"always": True}, "coldMemory": {"enabled": True}}),
    document(
        "HostApplicationSet",
        "ours",
        {"applications": [{"name": "nginx", "qos": "LS", "priority": "koord-prod"}]},
    ),
)
PRESSURE = (
    "some avg10={0}.50 avg60=2.00 avg300=3.00 total=9\nfull avg10=0.50 avg60=0.25 avg300=0.10 total=1\n"
)
IDLE = "# buckets: 1,2,5,15,30,60,120,240\n  csei {0} 0 0 0 0 {1} 0 0\n  dsei 0 0 0 0 0 0 {1} 0\n"
USE = {
    f"/sys/fs/resctrl/{group}/mon_data/mon_L3_00/{file}": text
    for group in ("LSR", "LS", "BE")
    for file, text in (("llc_occupancy", "4096"), ("mbm_local_bytes", "10"), ("mbm_total_bytes", "30"))
}


def shown() -> tuple[dict[str, dict[tuple[str, ...], float]], str]:
    """The rows of an agent after a few rounds, and what is scraped."""
    root = FakeRoot(CgroupVersion.V1, extra={**PLAIN, **USE})
    machine = FakeMachine(root, MachineSettings(memory=8 * GIB, reserve=1 << 20, step=100_000_000))
    for pid, name in enumerate(GROUPS, 7):
        appear(root, machine, name, pid)
    group = root.tree("cpu").find(GROUPS["web"].rpartition("/")[0])
    container = root.tree("cpu").find(GROUPS["web"])
    assert group is not None and container is not None
    for resource in ("cpu", "memory", "io"):
        group.extra[f"{resource}.pressure"] = PRESSURE.format(1)
        container.extra[f"{resource}.pressure"] = PRESSURE.format(4).partition("full")[0]
    hierarchy = discover_hierarchy(root)
    for tree in root.trees.values():
        tree.make(tree.root, "host-latency-sensitive")
        tree.make(tree.root.children["host-latency-sensitive"], "nginx")
    door = KernelDoor(root, hierarchy, lambda: 0, LIMITS, WriteLog(10))
    cluster = MemoryCluster(Store(lambda: NOW / SECOND))

    async def story() -> tuple[dict[str, dict[tuple[str, ...], float]], str]:
        capacity = {"cpu": "4", "memory": "8Gi", "kubernetes.io/batch-cpu": "1500"}
        pods = list(PODS_OF.values())
        async with whole_agent(
            graph(*POLICIES), NodeKernel(root, hierarchy, door), cluster, pods, capacity=capacity
        ) as agent:
            for _ in range(3):
                agent.collect()
                machine.advance(SECOND // 5)
            agent.doing.counts["evictPodByMemory"] = 2
            agent.doing.evicted["default", "gone", "evictPodByMemory"] = 2
            for _ in range(2):
                await agent.report_topology()
                await agent.predict()
                assert await agent.report()
            frame = agent.frame()
            assert frame is not None
            await agent.carry_out(agent.strategies, frame)
            rows = {
                name: {tuple(labels): value for labels, value in ShownRows(agent, found).samples()}
                for name, found in ALL_ROWS.items()
            }
            text = agent.component.process.metrics.text().decode()
            await agent.stop()
            return rows, text

    return asyncio.run(story())


def test_what_the_agent_knows_is_shown_under_both_names() -> None:
    rows, text = shown()
    table = {metric.name: metric for metric in METRICS}
    for name, found in rows.items():
        assert {len(labels) for labels in found} <= {len(table[name].labels)}, name
    silent = {name for name, found in rows.items() if not found}
    assert silent == {
        "koordlet_container_cpi",  # no counters in a model of a kernel
        "koordlet_container_core_sched_cookie",  # no cookies either
        "koordlet_core_sched_cookie_manage_status",
        "koordlet_container_oom_score_adj",  # no pod says any
        "koordlet_node_metric_numa_system_usage",  # not told apart
        "koordpolicy_node_cold_memory_bytes",
        "koordpolicy_pod_cold_memory_bytes",
        "koordpolicy_device_healthy",
        "koordpolicy_device_busy_percent",
        "koordpolicy_device_used_memory_bytes",
    }
    identity = f"containerd://{CONTAINERS['web']}"
    web = ("uid-web", "web", "default")
    assert rows["koordlet_pod_psi"][NAME, *web, "mem", "avg10", "some", "true"] == 1.5
    assert rows["koordlet_container_psi"][NAME, identity, "main", *web, "io", "avg10", "some", "false"] == 4.5
    assert rows["koordlet_node_resource_allocatable"][NAME, "kubernetes.io/batch-cpu", "integer"] == 1500
    batch = ("kubernetes.io/batch-cpu", "integer", "uid-batch", "batch", "default")
    key = (NAME, *batch, f"containerd://{CONTAINERS['batch']}", "main")
    assert rows["koordlet_container_resource_requests"][key] == 500
    assert rows["koordlet_resctrl_memory_bandwidth"][NAME, "0", "BE", "mbm_total"] == 30
    assert rows["koordlet_collect_node_cpu_info_status"] == {(NAME, "succeeded"): 1}
    assert rows["koordlet_cpuset_share_pool_cpu_cores"] == {(NAME,): 4}
    assert set(rows["koordlet_node_predicted_resource_peak"]) == {
        (NAME, predictor, resource, unit)
        for predictor in ("podReclaimablePredictor", "priorityReclaimablePredictor", "minPredictor")
        for resource, unit in (("cpu", "core"), ("memory", "byte"))
    }
    cores = rows["koordlet_be_suppress_ls_used_cpu_cores"][NAME,]
    assert cores > 0
    values = dict(re.findall(r"^(koord\w+_be_suppress_ls_used_cpu_cores)\S* (\S+)$", text, re.MULTILINE))
    assert {name: float(value) for name, value in values.items()} == {
        "koordlet_be_suppress_ls_used_cpu_cores": cores,
        "koordpolicy_be_suppress_ls_used_cpu_cores": cores,
    }


# --- cold memory --------------------------------------------------------------------------------------

WANTED = graph(
    document(
        "MetricCollection",
        "ours",
        {
            "coldMemory": {"enabled": True, "scanEvery": "10s", "fromBucket": 5},
            "memory": "usageWithHotPageCache",
        },
    )
)
PACE = ColdMemoryPace(5 * SECOND, 10 * SECOND, 5)
WEB = pod("web", "LS")
KIDLED = {
    "/sys/kernel/mm/kidled/scan_period_in_seconds": "0\n",
    "/sys/kernel/mm/kidled/use_hierarchy": "0\n",
    "/sys/fs/cgroup/memory/memory.idle_page_stats": IDLE.format(7, 3 << 20),
}


def memory_node(files: Mapping[str, str]) -> FakeNode:
    node = FakeNode([WEB], CgroupVersion.V1, files)
    assert isinstance(node.root, FakeRoot)
    group = node.root.tree("memory").find(node.group(WEB))
    assert group is not None
    group.anonymous, group.cache = 5 << 20, 3 << 20
    if files:
        group.extra["memory.idle_page_stats"] = IDLE.format(7, 1 << 20)
        group.children["main"].extra["memory.idle_page_stats"] = IDLE.format(7, 0)
    return node


def scene(node: FakeNode) -> Scene:
    return Scene(node.node_pods(), {"nginx": f"{node.group(WEB)}/main"})


def test_cold_memory_is_what_nobody_looked_at_for_long() -> None:
    node = memory_node(KIDLED)
    collector = ColdMemoryCollector(node.root, node.hierarchy)
    assert decide_cold_memory(WANTED, node.frame(WANTED).record, node.now) == PACE
    assert decide_cold_memory(graph(), node.frame(graph()).record, node.now) is None
    for _ in range(4):
        collector.collect(node.measurements, scene(node), PACE, node.monotonic)
        node.elapsed += SECOND
    now = node.monotonic
    assert collector.of_node(now) == 6 << 20
    assert node.measurements.cold.latest(COLD, now, 10 * SECOND) == {
        NODE: 6 << 20,
        WEB.uid: 2 << 20,
        "application nginx": 0,
    }
    assert node.measurements.cold.latest(WITH_HOT_CACHE, now, 10 * SECOND) == {
        WEB.uid: 6 << 20,
        "application nginx": 0,
    }
    assert node.measurements.cold.excerpt(COLD, now, 60 * SECOND).counts()[NODE] == 1  # at its own pace
    assert isnan(collector.of_node(now + 20 * SECOND))  # what is old is nothing that was read
    collector.collect(node.measurements, scene(node), None, now)
    assert isnan(collector.of_node(now))


@pytest.mark.parametrize(
    ("memory", "node_bytes", "pod_bytes"),
    [("usageWithoutPageCache", 100, 50), ("usageWithPageCache", 400, 80), ("usageWithHotPageCache", 300, 60)],
)
@pytest.mark.parametrize("known", [True, False])
def test_reports_count_as_policy_says_and_strategies_without_page_cache(
    memory: str, node_bytes: int, pod_bytes: int, known: bool
) -> None:
    found = Measurements(COLLECTION)
    now = 1000 * SECOND
    found.node.add(now, {NODE: (1.0, 100.0, 400.0, 300.0 if known else nan)})
    found.pods.add(now, {WEB.uid: (1.0, 50.0, 80.0)})
    found.applications.add(now, {"nginx": (1.0, 50.0, 80.0)})
    if known:
        found.cold.add(now, {NODE: (100.0, nan), WEB.uid: (20.0, 60.0), "application nginx": (20.0, 60.0)})
    elif memory == "usageWithHotPageCache":
        node_bytes, pod_bytes = 100, 50
    view = UsageView(found, replace(COLLECTION, memory=memory), graph().catalogue, now)
    told = {WEB.uid: WEB}
    report = view.averaged("n", NOW, told, [ApplicationOnHost("nginx")])
    assert report.node_usage is not None
    said = (report.pods[0], report.host_applications[0])
    assert report.node_usage["memory"] == node_bytes
    assert [one.usage["memory"] for one in said] == [pod_bytes, pod_bytes]
    seen = view.latest("n", NOW, told, [], None)
    assert seen is not None and seen.node_usage is not None
    assert (seen.node_usage["memory"], seen.pods[0].usage["memory"]) == (100, 50)


def test_a_kernel_without_kidled_is_named_and_tells_of_no_pod() -> None:
    node = memory_node({})
    collector = ColdMemoryCollector(node.root, node.hierarchy)
    collector.collect(node.measurements, scene(node), PACE, node.monotonic)
    assert "memory.idle_page_stats" in collector.failures["cold memory"]
    assert node.measurements.cold.latest(COLD, node.monotonic, 60 * SECOND) == {}


@pytest.mark.parametrize(("files", "expected"), [(KIDLED, ("10", "1")), ({}, ("", ""))])
def test_the_kernel_is_told_to_look_where_it_can(files: Mapping[str, str], expected: Any) -> None:
    node = memory_node(files)
    plan = next(one.plan for one in node_strategies(lambda: 0.5) if one.kind == "MetricCollection")
    assert plan is not None
    assert isinstance(node.root, FakeRoot)
    apply(plan(node.frame(WANTED)), node.kernel.door, node.kernel.groups({}))
    said = tuple(node.root.plain.get(path, "").strip() for path in list(KIDLED)[:2])
    assert said == expected
    assert plan(node.frame(graph())).empty
