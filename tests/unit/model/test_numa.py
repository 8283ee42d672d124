"""Zones and allocations of other schedulers, from the API's JSON."""

import pytest

from koordpolicy.model import protocol as wire
from koordpolicy.model.numa import read_zones, zone_allocations
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.third_party import ThirdPartyAllocation, third_party_allocations


def test_zones_are_the_numa_nodes_in_order() -> None:
    cpu = {"name": "cpu", "capacity": "8", "allocatable": "7500m"}
    zones = read_zones(
        {
            "zones": [
                {"name": "socket-0", "type": "Socket", "resources": [cpu]},
                {"name": "node-0", "type": "Node", "resources": [cpu, {"name": "memory", "capacity": "1Gi"}]},
                {"name": "node-1"},
            ]
        }
    )
    assert [zone.name for zone in zones] == ["node-0", "node-1"]
    assert (zones[0].capacity, zones[0].allocatable) == ({"cpu": 8000, "memory": 2**30}, {"cpu": 7500})
    assert (zones[1].capacity, read_zones({})) == ({}, ())


def test_a_malformed_zone_names_its_place() -> None:
    with pytest.raises(ObjectError, match=r"zones\[0\]\.capacity\.cpu"):
        read_zones({"zones": [{"name": "node-0", "resources": [{"name": "cpu", "capacity": "many"}]}]})


def test_allocations_of_a_pod_by_zone() -> None:
    status = (
        '{"numaNodeResources": [{"node": 1, "resources": {"cpu": "2"}}, {"resources": {"memory": "1Ki"}}]}'
    )
    assert zone_allocations({wire.RESOURCE_STATUS: status}) == {1: {"cpu": 2000}, 0: {"memory": 1024}}
    assert zone_allocations({}) == {}


def test_allocations_of_other_schedulers() -> None:
    said = '{"allocations": [{"name": "yarn", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "5k"}}]}'
    assert third_party_allocations({wire.THIRD_PARTY_ALLOCATIONS: said}) == (
        ThirdPartyAllocation("yarn", "koord-batch", {wire.BATCH_CPU: 5000}),
    )
    assert third_party_allocations({}) == ()
    with pytest.raises(ObjectError, match="thirdPartyAllocations"):
        third_party_allocations({wire.THIRD_PARTY_ALLOCATIONS: "[]"})
