"""What a NodeResourceTopology and a pod say of CPUs."""

import json

import pytest

from koordpolicy.model.cpu_topology import (
    KUBELET,
    KUBELET_PODS,
    NODE_RESERVED,
    SYSTEM,
    ResourceSpec,
    read_node_cpus,
    read_resource_spec,
)
from koordpolicy.model.protocol import (
    CPU_TOPOLOGY,
    KUBELET_CPU_MANAGER_POLICY,
    NODE_RESERVATION,
    NUMA_TOPOLOGY_SPEC,
    POD_CPU_ALLOCS,
    RESOURCE_SPEC,
    SYSTEM_QOS_RESOURCE,
)
from koordpolicy.model.reading import ObjectError


def topology(**annotations: object) -> dict[str, object]:
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "allocatable": "4"}]}
    return {
        "metadata": {"name": "n", "annotations": {key: json.dumps(one) for key, one in annotations.items()}},
        "topologyPolicies": ["SingleNUMANodePodLevel"],
        "zones": [zone, {**zone, "name": "socket-0"}, {**zone, "name": "node-x"}],
    }


DETAIL = [{"id": cpu, "core": cpu // 2 % 2, "socket": cpu // 4, "node": cpu // 4} for cpu in range(8)]


def test_cores_of_two_sockets_are_told_apart_and_zones_have_numbers() -> None:
    found = read_node_cpus(topology(**{CPU_TOPOLOGY: {"detail": DETAIL}}))
    assert (found.layout.per_core, len(found.layout.siblings), found.layout.per_zone) == (2, 4, 4)
    assert found.zones == {0: {"cpu": 4000}}
    assert found.policies == ("SingleNUMANodePodLevel",)


def test_it_is_known_who_keeps_which_cpus() -> None:
    allocs = [
        {"uid": "a", "cpuset": "1", "managedByKubelet": True},
        {"uid": "b", "cpuset": "2"},
        {"uid": "c", "cpuset": "3-", "managedByKubelet": True},
        {"uid": "", "cpuset": "4", "managedByKubelet": True},
    ]
    said = {
        POD_CPU_ALLOCS: allocs,
        KUBELET_CPU_MANAGER_POLICY: {
            "policy": "static",
            "options": {"full-pcpus-only": "true"},
            "reservedCPUs": "0",
        },
        NODE_RESERVATION: {"reservedCPUs": "5"},
        SYSTEM_QOS_RESOURCE: {"cpuset": "6-7"},
    }
    found = read_node_cpus(topology(**said))
    assert found.reserved == {KUBELET_PODS: {1}, KUBELET: {0}, NODE_RESERVED: {5}, SYSTEM: {6, 7}}
    assert (found.cpu_manager, found.full_pcpus_only) == ("static", True)
    shared = {**said, SYSTEM_QOS_RESOURCE: {"cpuset": "6-7", "cpusetExclusive": False}}
    assert read_node_cpus(topology(**shared)).reserved[SYSTEM] == frozenset()


@pytest.mark.parametrize(
    ("annotation", "said", "place"),
    [
        (CPU_TOPOLOGY, {"detail": [{"id": "0"}]}, CPU_TOPOLOGY),
        (CPU_TOPOLOGY, {"detail": [{"id": -1}]}, "no number of a CPU's place"),
        (KUBELET_CPU_MANAGER_POLICY, {"reservedCPUs": "0-"}, "reservedCPUs"),
        (SYSTEM_QOS_RESOURCE, {"cpuset": "a"}, "cpuset"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(annotation: str, said: object, place: str) -> None:
    with pytest.raises(ObjectError, match=place):
        read_node_cpus(topology(**{annotation: said}))


def test_a_pod_says_how_it_wants_its_cpus() -> None:
    cpus = {"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}
    zones = {"numaTopologyPolicy": "SingleNUMANode", "singleNUMANodeExclusive": "Required"}
    annotations = {RESOURCE_SPEC: json.dumps(cpus), NUMA_TOPOLOGY_SPEC: json.dumps(zones)}
    assert read_resource_spec(annotations) == ResourceSpec(
        required_bind="FullPCPUs",
        exclusive="PCPULevel",
        numa_policy="SingleNUMANode",
        numa_exclusive="Required",
    )
    with pytest.raises(ObjectError, match=RESOURCE_SPEC):
        read_resource_spec({RESOURCE_SPEC: "{"})
