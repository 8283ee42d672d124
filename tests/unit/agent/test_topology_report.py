"""The NodeResourceTopology that an agent writes, read again as the scheduler and the manager read it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.node_strategies import cpu_pools
from koordpolicy.agent.reports.kubelet_settings import read_kubelet_settings
from koordpolicy.agent.reports.node_topologies import TopologyReporter
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODE_RESOURCE_TOPOLOGIES
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.readings.kubelet_cpus import CPU_MANAGER_STATE
from koordpolicy.model.numa import CPUInfo, read_cpu_info, read_zones
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import (
    BE_CPU_SHARED_POOLS,
    CPU_BASIC_INFO,
    CPU_SHARED_POOLS,
    CPU_TOPOLOGY,
    KUBELET_CPU_MANAGER_POLICY,
    POD_CPU_ALLOCS,
    QOS_CLASS,
    RESOURCE_STATUS,
)
from koordpolicy.model.reading import ObjectError
from tests.unit.agent.test_unchanged import frame

NODE = {"metadata": {"name": "n", "uid": "node-uid"}}
FILES = {
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon: 8269CY\n",
    "/sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "/sys/fs/resctrl/info/L3/cbm_mask": "7ff\n",
    "/sys/devices/system/node/node0/cpulist": "0-9\n",
    "/sys/devices/system/node/node1/cpulist": "10-19\n",
    "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 1 kB\n",
    "/sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 2048 kB\nNode 1 MemFree: 1 kB\n",
}


def node(**files: str) -> NodeFrame:
    """A node of 20 CPUs with two threads a core and two NUMA nodes."""
    root = FakeRoot(extra={**FILES, **files})
    known = frame()
    kernel = NodeKernel(root, discover_hierarchy(root), known.kernel.door)
    return replace(known, kernel=kernel, reserved_cpus=frozenset({0, 10}))


class Kubelet:
    """Says how it is configured."""

    def __init__(self, **said: Any) -> None:
        self.said: Mapping[str, Any] = said

    async def __call__(self) -> Mapping[str, Any]:
        return self.said


def test_what_is_written_is_what_others_read_and_what_is_others_stays() -> None:
    async def story() -> None:
        cluster, seen = MemoryCluster(Store(lambda: 0.0)), node()
        reporter = TopologyReporter(cluster, Kubelet(topologyManagerPolicy="single-numa-node"))
        assert await reporter.report(NODE, seen, None)
        found = await cluster.get(NODE_RESOURCE_TOPOLOGIES, "n")
        assert found["topologyPolicies"] == ["SingleNUMANodeContainerLevel"]
        assert found["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
        assert read_cpu_info(found) == CPUInfo("Xeon: 8269CY", hyper_threading=True, turbo=True)
        assert [(zone.name, zone.allocatable) for zone in read_zones(found)] == [
            ("node-0", {"cpu": 10_000, "memory": 1024 << 10}),
            ("node-1", {"cpu": 10_000, "memory": 2048 << 10}),
        ]
        said = {key: json.loads(text) for key, text in found["metadata"]["annotations"].items()}
        assert said[CPU_BASIC_INFO]["catL3CbmMask"] == "7ff"
        assert said[CPU_TOPOLOGY]["detail"][19] == {"id": 19, "core": 9, "socket": 0, "node": 1}
        assert said[CPU_SHARED_POOLS] == said[BE_CPU_SHARED_POOLS]
        assert said[CPU_SHARED_POOLS] == [
            {"socket": 0, "node": 0, "cpuset": "1-9"},
            {"socket": 0, "node": 1, "cpuset": "11-19"},
        ]
        # Nothing new is not written; the manager's own resources and others' annotations stay.
        assert not await reporter.report(NODE, seen, found)
        offered = {"name": "kubernetes.io/batch-cpu", "capacity": "5", "allocatable": "5", "available": "5"}
        zones = [{**found["zones"][0], "resources": [*found["zones"][0]["resources"], offered]}]
        annotations = {**found["metadata"]["annotations"], "theirs": "x"}
        theirs = {
            **found,
            "zones": [*zones, {"name": "socket-0", "type": "Socket"}],
            "metadata": {**found["metadata"], "annotations": annotations},
        }
        standing = await cluster.update(NODE_RESOURCE_TOPOLOGIES, theirs)
        assert await reporter.report(NODE, seen, standing)
        found = await cluster.get(NODE_RESOURCE_TOPOLOGIES, "n")
        assert [zone["name"] for zone in found["zones"]] == ["node-0", "node-1", "socket-0"]
        assert offered in found["zones"][0]["resources"]
        assert found["metadata"]["annotations"]["theirs"] == "x"
        assert reporter.trouble == ""

    asyncio.run(story())


STATE = {
    "policyName": "static",
    "defaultCpuSet": "0-1,6-19",
    "entries": {
        "z-unknown": {"main": "14"},
        "own": {"main": "2-3", "side": "12"},
        "shared": {"main": "4"},
        "placed": {"main": "5"},
    },
    "checksum": 7,
}


def pods_of_a_static_kubelet() -> dict[str, NodePod]:
    said: dict[str, dict[str, Any]] = {
        "own": {},
        "shared": {"labels": {QOS_CLASS: "LS"}},
        "placed": {
            "labels": {QOS_CLASS: "LSE"},
            "kubernetes_qos": "Guaranteed",
            "annotations": {RESOURCE_STATUS: '{"cpuset": "5"}'},
        },
    }
    return {uid: NodePod(Pod(f"{uid}-pod", uid=uid, **more), "", {}) for uid, more in said.items()}


def test_cpus_that_the_kubelet_gives_by_itself_are_told_of_and_shared_by_nobody() -> None:
    async def story() -> None:
        cluster = MemoryCluster(Store(lambda: 0.0))
        seen = replace(node(**{CPU_MANAGER_STATE: json.dumps(STATE)}), pods=pods_of_a_static_kubelet())
        kubelet = Kubelet(cpuManagerPolicy="static", reservedSystemCPUs="6")
        reporter = TopologyReporter(cluster, kubelet)
        assert await reporter.report(NODE, seen, None)
        found = await cluster.get(NODE_RESOURCE_TOPOLOGIES, "n")
        said = {key: json.loads(text) for key, text in found["metadata"]["annotations"].items()}
        assert said[KUBELET_CPU_MANAGER_POLICY] == {"policy": "static", "reservedCPUs": "6"}
        assert said[POD_CPU_ALLOCS] == [
            {
                "namespace": "default",
                "name": "own-pod",
                "uid": "own",
                "cpuset": "2-3,12",
                "managedByKubelet": True,
            },
            {"uid": "z-unknown", "cpuset": "14", "managedByKubelet": True},
        ]
        # What the scheduler has given leaves the shared pool, an LSE pod's the other one, too. Reserved CPUs stay.
        assert [one["cpuset"] for one in said[CPU_SHARED_POOLS]] == ["1,4,6-9", "11,13,15-19"]
        assert said[BE_CPU_SHARED_POOLS] == said[CPU_SHARED_POOLS]
        assert cpu_pools(replace(seen, kubelet_cpus=reporter.kubelet_cpus)).shared == {
            0: "1,4,6-9",
            1: "11,13,15-19",
        }
        # A kubelet that gives none any more leaves an empty list.
        kubelet.said = {}
        assert await reporter.report(NODE, seen, found)
        found = await cluster.get(NODE_RESOURCE_TOPOLOGIES, "n")
        assert json.loads(found["metadata"]["annotations"][POD_CPU_ALLOCS]) == []
        assert reporter.kubelet_cpus == {}

    asyncio.run(story())


@pytest.mark.parametrize(
    "state",
    ["", "[]", '{"policyName": "static", "entries": {"a": "1-2"}}', '{"policyName": "static", "entries": {"a": {"b": "2-"}}}',
     '{"policyName": "static", "entries": {"a": {"b": 2}}}', "[" * 100_000],
)  # fmt: skip
def test_a_state_of_the_kubelet_that_cannot_be_read_is_told_and_changes_nothing(state: str) -> None:
    async def story() -> None:
        reporter = TopologyReporter(MemoryCluster(Store(lambda: 0.0)), Kubelet(cpuManagerPolicy="static"))
        reporter.kubelet_cpus = {"a": frozenset({1})}
        assert not await reporter.report(NODE, node(**{CPU_MANAGER_STATE: state}), None)
        assert CPU_MANAGER_STATE in reporter.trouble
        assert reporter.kubelet_cpus == {"a": frozenset({1})}

    asyncio.run(story())


@pytest.mark.parametrize(
    ("kubelet", "files", "trouble"),
    [
        (Kubelet(cpuManagerPolicy="static"), {}, "--kubelet-dir"),
        (Kubelet(cpuManagerPolicy=1), {}, "cpuManagerPolicy"),
        (Kubelet(), {"/sys/devices/system/node/node1/meminfo": "odd"}, "MemTotal"),
    ],
)
def test_what_cannot_be_told_is_not_written(kubelet: Kubelet, files: dict[str, str], trouble: str) -> None:
    async def story() -> None:
        reporter = TopologyReporter(MemoryCluster(Store(lambda: 0.0)), kubelet)
        assert not await reporter.report(NODE, node(**files), None)
        assert trouble in reporter.trouble

    asyncio.run(story())


@pytest.mark.parametrize(
    ("policy", "scope", "expected"),
    [
        ("", "", "None"),
        ("none", "container", "None"),
        ("best-effort", "pod", "BestEffort"),
        ("restricted", "container", "Restricted"),
        ("single-numa-node", "pod", "SingleNUMANodePodLevel"),
        ("single-numa-node", "container", "SingleNUMANodeContainerLevel"),
    ],
)
def test_policies_of_the_topology_manager(policy: str, scope: str, expected: str) -> None:
    said = {"topologyManagerPolicy": policy, "topologyManagerScope": scope}
    assert read_kubelet_settings(said).topology_policy == expected


def test_a_scope_that_there_is_not() -> None:
    with pytest.raises(ObjectError, match="topologyManagerScope"):
        read_kubelet_settings({"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "x"})
