"""Anybody who may change a pod may write into its annotations what is its own: no more counts than it requests and its class may have."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.model.protocol import (
    DEVICE_ALLOCATED,
    QOS_CLASS,
    RESERVATION_ALLOCATED,
    RESERVE_POD,
    RESERVE_POD_RESERVATION,
    RESOURCE_STATUS,
)
from tests.unit.scheduler.test_cpus import Machines, own, topology_object
from tests.unit.scheduler.test_devices import Pool
from tests.unit.scheduler.test_reservations import Reserved, reservation
from tests.unit.scheduler.world import pod

CASES: Mapping[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("claims.yaml").read_text("utf-8"))


def _bound(case: Mapping[str, Any], key: str, name: str = "p") -> Any:
    given = case["pod"]
    annotations = {**given.get("annotations", {}), key: json.dumps(case["says"])}
    return pod(
        name, {"priority": 9000, **given, "annotations": annotations, "node": "n0", "phase": "Running"}
    )


@pytest.mark.parametrize("case", CASES["cpus"], ids=lambda case: case["name"])
def test_of_cpus_counts_what_the_class_and_the_requests_allow(
    case: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    there = Machines(labels=case.get("node", {}))
    there.scheduler.set_pod(_bound(case, RESOURCE_STATUS))
    assert (there.cpus("p"), there.zones("p")) == (case.get("cpus", ""), case.get("zones", {}))
    free = there.accounts.account("n0").room.free
    assert len(free) == 16 - (
        len(there.accounts.claim_of(("default", "p")).allocation.cpus) if "cpus" in case else 0
    )
    assert case.get("ignored", "") in caplog.text
    assert bool(caplog.messages) == ("ignored" in case)


@pytest.mark.parametrize("case", CASES["devices"], ids=lambda case: case["name"])
def test_of_devices_counts_what_the_requests_allow(
    case: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    pool = Pool(2, nics=2)
    pool.scheduler.set_pod(_bound(case, DEVICE_ALLOCATED))
    found: dict[str, dict[str, int]] = {}
    for (_, type, minor, name), number in pool.given().items():
        found.setdefault(f"{type} {minor}", {})[name] = number
    assert found == case.get("devices", {})
    claim = pool.cards.claim_of(("default", "p"))
    assert claim is None or not any(one.functions for listed in claim.shares.values() for one in listed)
    assert case.get("ignored", "") in caplog.text
    assert bool(caplog.messages) == ("ignored" in case)


def test_a_tenant_that_says_all_cpus_are_its_own_keeps_nobody_from_them() -> None:
    there = Machines()
    claims = {"pod": own(1, qos="LS"), "says": {"cpuset": "0-65535"}}
    there.scheduler.set_pod(_bound(claims, RESOURCE_STATUS, "thief"))
    assert there.place("owner", own(12)).placed
    # What is said later changes nothing either, neither what is free nor what the node counts as owned.
    later = {"pod": own(1), "says": {"cpuset": "0-65535"}}
    there.scheduler.set_pod(_bound(later, RESOURCE_STATUS, "thief"))
    assert there.place("small", own(2)).placed
    assert there.scheduler.cache.view(("default", "thief")).owned_cpu == 1000  # type: ignore[union-attr]  # it is there


def test_before_a_node_tells_of_its_cpus_a_claim_waits_for_what_it_says() -> None:
    late = Machines()
    late.scheduler.set_state(lambda state: state.remove_zones("n0"), None)
    claims = {"pod": own(2, qos="LS"), "says": {"cpuset": "0-1"}}
    late.scheduler.set_pod(_bound(claims, RESOURCE_STATUS))
    late.topology(topology_object("n0"))
    assert len(late.accounts.account("n0").room.free) == 16
    late.topology(topology_object("n0", kubelet={"policy": "static", "options": {"full-pcpus-only": "true"}}))
    assert len(late.accounts.account("n0").room.free) == 14


@pytest.mark.parametrize(
    ("app", "spec", "status", "counts"),
    [
        ("other", {}, {}, False),
        ("r", {}, {}, True),
        ("other", {"preAllocation": True}, {}, True),
        ("other", {}, {"currentOwners": [{"namespace": "default", "name": "p", "uid": "uid-p"}]}, True),
    ],
    ids=["a stranger", "an owner", "one whose room was allocated beforehand", "one that it counts"],
)
def test_nobody_takes_from_a_reservation_by_an_annotation_alone(
    app: str, spec: dict[str, Any], status: dict[str, Any], counts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = Reserved(n={"allocatable": {"cpu": "10", "memory": "10Gi"}})
    obj = reservation("r", "4", spec={"allocateOnce": False, **spec})
    obj["status"] = {
        "phase": "Available", "nodeName": "n", "allocatable": {"cpu": "4", "memory": "1Gi"}, **status
    }  # fmt: skip
    world.reserve(obj)
    said = json.dumps({"name": "r", "uid": "uid-r"})
    world.ask("p", "3", app=app, annotations={RESERVATION_ALLOCATED: said})
    world.pods["p"]["spec"]["nodeName"] = "n"
    world.show("p")
    kept = world.scheduler.cache.state.reservations
    assert [one.pod.name for one in kept.owners(kept.all[0]).views] == (["p"] if counts else [])
    assert ("which is not its own" in caplog.text) == (not counts)


def test_no_annotation_makes_a_pod_a_reservation(caplog: pytest.LogCaptureFixture) -> None:
    world = Reserved(n={"allocatable": {"cpu": "10", "memory": "10Gi"}})
    forged = {RESERVE_POD: "true", RESERVE_POD_RESERVATION: "r", "labels": "", QOS_CLASS: "LS"}
    world.ask("p", "1", annotations=forged)
    view = world.scheduler.waiting_view(("default", "p")) or world.scheduler.cache.view(("default", "p"))
    assert view is not None
    assert not view.pod.reservation
    assert view.says_nothing_of_reservations


def test_a_pod_that_is_called_as_a_reservation_is_kept_takes_nothing_from_it() -> None:
    world = Reserved(n={"allocatable": {"cpu": "10", "memory": "10Gi"}})
    obj = reservation("r", "4")
    obj["status"] = {"phase": "Available", "nodeName": "n", "allocatable": {"cpu": "4", "memory": "1Gi"}}
    world.reserve(obj)
    world.ask("uid-r", "5")
    world.pods["uid-r"]["spec"]["nodeName"] = "n"
    world.show("uid-r")
    requested: Any = world.scheduler.cache.table.row(0)["resources.requested"]
    assert requested["cpu"] == 9000
    world.end("uid-r")
    requested = world.scheduler.cache.table.row(0)["resources.requested"]
    assert requested["cpu"] == 4000
