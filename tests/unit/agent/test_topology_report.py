"""The NodeResourceTopology that an agent writes, read again as the scheduler and the manager read it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.reports.kubelet_settings import read_kubelet_settings
from koordpolicy.agent.reports.node_topologies import TopologyReporter
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODE_RESOURCE_TOPOLOGIES
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.model.numa import CPUInfo, read_cpu_info, read_zones
from koordpolicy.model.protocol import BE_CPU_SHARED_POOLS, CPU_BASIC_INFO, CPU_SHARED_POOLS, CPU_TOPOLOGY
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


@pytest.mark.parametrize(
    ("kubelet", "files", "trouble"),
    [
        (Kubelet(cpuManagerPolicy="static"), {}, "static"),
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
