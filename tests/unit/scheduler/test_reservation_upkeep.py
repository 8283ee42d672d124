"""What the status of Reservations says of their owners, and when they end."""

import asyncio
import copy
from typing import Any

import pytest

from koordpolicy.algorithms.reservation_life import expires_at
from koordpolicy.kube import NotFound
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import PODS, RESERVATIONS
from koordpolicy.model.protocol import RESERVATION_ALLOCATED
from koordpolicy.model.reservation import read_reservation
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.scheduler.reservation_metrics import ReservationMetrics
from koordpolicy.scheduler.reservation_upkeep import ReservationUpkeep
from tests.unit.scheduler.test_reservations import Reserved, reservation
from tests.unit.scheduler.world import START

_TEN = {"allocatable": {"cpu": "10", "memory": "10Gi"}}


@pytest.mark.parametrize(("once", "phase"), [(True, "Succeeded"), (False, "Available")])
def test_owners_stand_in_the_status(once: bool, phase: str) -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8", spec={"allocateOnce": once}))
    world.run()
    world.ask("web", cpu="3", app="r")
    world.run()
    upkeep = ReservationUpkeep(
        lambda: world.scheduler.cache, MemoryCluster(Store(lambda: START // NANOSECONDS)), lambda: world.now
    )
    status = upkeep.status_of(read_reservation(world.objects["r"]))
    assert status is not None
    assert status["phase"] == phase
    assert status["allocated"] == {"cpu": "3", "memory": "1048576"}
    assert [one["name"] for one in status["currentOwners"]] == ["web"]
    world.objects["r"]["status"].update(status)
    assert upkeep.status_of(read_reservation(world.objects["r"])) is None


def test_a_pod_on_its_way_is_no_owner_yet() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8"))
    world.run()
    world.ask("web", cpu="3", app="r")
    world.run(writes=False)
    upkeep = ReservationUpkeep(
        lambda: world.scheduler.cache, MemoryCluster(Store(lambda: START // NANOSECONDS)), lambda: world.now
    )
    assert upkeep.status_of(read_reservation(world.objects["r"])) is None


@pytest.mark.parametrize("why", ["time", "node"])
def test_it_fails_when_its_time_is_over_or_its_node_is_gone(why: str) -> None:
    world = Reserved(n1=_TEN)
    obj = reservation("r")
    obj["metadata"]["creationTimestamp"] = time_text(START)
    world.reserve(obj)
    world.run()
    upkeep = ReservationUpkeep(
        lambda: world.scheduler.cache, MemoryCluster(Store(lambda: START // NANOSECONDS)), lambda: world.now
    )
    assert upkeep.status_of(read_reservation(world.objects["r"])) is None
    if why == "time":
        world.pass_time(3601)
    else:
        world.scheduler.remove_node("n1")
    status = upkeep.status_of(read_reservation(world.objects["r"]))
    assert status is not None
    assert status["phase"] == "Failed"
    ready = next(one for one in status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Expired")


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({"ttl": "1h"}, 3600),
        ({"ttl": "0s"}, None),
        ({"ttl": "0s", "expires": time_text(START)}, None),
        ({"ttl": "1h", "expires": time_text(START + 60 * NANOSECONDS)}, 60),
        ({"ttl": None, "expires": time_text(START + 60 * NANOSECONDS)}, 60),
    ],
)
def test_the_first_of_both_times_ends_it(spec: dict[str, Any], seconds: int | None) -> None:
    obj = reservation("r", spec=spec)
    obj["metadata"]["creationTimestamp"] = time_text(START)
    expected = None if seconds is None else START + seconds * NANOSECONDS
    assert expires_at(read_reservation(obj)) == expected


def test_a_look_writes_once() -> None:
    async def run() -> tuple[int, int, dict[str, Any]]:
        cluster = MemoryCluster(Store(lambda: START // NANOSECONDS))
        world = Reserved(n1=_TEN)
        head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
        made = await cluster.create(RESERVATIONS, {**head, **reservation("r", cpu="8")})
        world.reserve(dict(made))
        world.run()
        body = {**world.objects["r"], "metadata": made["metadata"]}
        await cluster.update(RESERVATIONS, body, subresource="status")
        world.pass_time(7200)
        upkeep = ReservationUpkeep(lambda: world.scheduler.cache, cluster, lambda: world.now)
        first = await upkeep.look()
        now = dict(await cluster.get(RESERVATIONS, "r"))
        world.reserve(now)
        return first, await upkeep.look(), now["status"]

    first, second, status = asyncio.run(run())
    assert (first, second, status["phase"]) == (1, 0, "Failed")


def _upkeep(world: Reserved, cluster: MemoryCluster, told: list[tuple[str, str]]) -> ReservationUpkeep:
    return ReservationUpkeep(
        lambda: world.scheduler.cache,
        cluster,
        lambda: world.now,
        tell=lambda one, reason, message: told.append((one.name, reason)),
    )


async def _created(world: Reserved, cluster: MemoryCluster, name: str, **said: Any) -> None:
    head = {"apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
    made = await cluster.create(RESERVATIONS, {**head, **reservation(name, **said)})
    world.reserve(dict(made))
    world.run()
    body = {**world.objects[name], "metadata": made["metadata"]}
    world.reserve(dict(await cluster.update(RESERVATIONS, body, subresource="status")))


@pytest.mark.parametrize(
    ("overlay", "stays", "goes"),
    [
        ("", 23 * 3600, 24 * 3600 + 1),
        ("parameters: {gcDuration: {value: 1h}}", 3590, 3601),
        (
            "removal: {after: {cel: \"reservation.labels[?'keep'].orValue('') == 'no' ? duration('1m') : duration('2h')\"}}",
            50,
            61,
        ),
        ("parameters: {disableGarbageCollection: {value: true}}", 10**7, None),
    ],
)
def test_those_that_are_over_stay_as_long_as_policy_says(overlay: str, stays: int, goes: int | None) -> None:
    async def run() -> None:
        world = Reserved(overlay, n1=_TEN)
        cluster, told = MemoryCluster(Store(lambda: world.now // NANOSECONDS)), list[tuple[str, str]]()
        await _created(world, cluster, "r", labels={"keep": "no"})
        upkeep = _upkeep(world, cluster, told)
        world.pass_time(3601)
        assert (await upkeep.remove_once(), await upkeep.look()) == (0, 1)
        assert told == [("r", "Expired")]
        world.reserve(dict(await cluster.get(RESERVATIONS, "r")))
        world.pass_time(stays)
        assert await upkeep.remove_once() == 0
        if goes is not None:
            world.pass_time(goes - stays)
            assert await upkeep.remove_once() == 1
            with pytest.raises(NotFound):
                await cluster.get(RESERVATIONS, "r")
            assert await upkeep.remove_once() == 0

    asyncio.run(run())


def test_one_that_is_over_goes_at_once_where_its_node_is_gone() -> None:
    async def run() -> None:
        world = Reserved(n1=_TEN)
        cluster = MemoryCluster(Store(lambda: world.now // NANOSECONDS))
        await _created(world, cluster, "r")
        upkeep = _upkeep(world, cluster, [])
        world.scheduler.remove_node("n1")
        assert await upkeep.remove_once() == 0, "it is not over yet"
        assert await upkeep.look() == 1
        world.reserve(dict(await cluster.get(RESERVATIONS, "r")))
        assert await upkeep.remove_once() == 1

    asyncio.run(run())


def test_what_its_pods_say_goes_with_it_where_policy_wants_that() -> None:
    async def run() -> None:
        world = Reserved("parameters: {cleanExpiredReservationAllocated: {value: true}}", n1=_TEN)
        cluster = MemoryCluster(Store(lambda: world.now // NANOSECONDS))
        await _created(world, cluster, "r", cpu="4")
        world.ask("web", cpu="3", app="r")
        world.run()
        pod = {"apiVersion": "v1", "kind": "Pod", **world.pods["web"]}
        del pod["spec"]["priority"]
        pod["spec"]["containers"][0]["image"] = "pause"
        world.pods["web"] = dict(await cluster.create(PODS, pod))
        world.show("web")
        upkeep = _upkeep(world, cluster, [])
        await upkeep.look()
        world.reserve(dict(await cluster.get(RESERVATIONS, "r")))
        world.pass_time(24 * 3600 + 1)
        assert await upkeep.remove_once() == 1
        annotations = (await cluster.get(PODS, "web", namespace="default"))["metadata"].get("annotations", {})
        assert RESERVATION_ALLOCATED not in annotations

    asyncio.run(run())


def test_figures_stand_under_the_names_that_dashboards_know() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8", spec={"allocateOnce": False}))
    world.reserve(reservation("waits", cpu="80"))
    world.run()
    world.objects["r"]["status"]["allocated"] = {"cpu": "2"}
    world.reserve(copy.deepcopy(world.objects["r"]))
    metrics = Metrics("scheduler")
    shown = ReservationMetrics(metrics, lambda: world.scheduler.cache.state.reservations)
    asyncio.run(shown.look())
    phases = {
        name: [
            phase
            for phase in ("Pending", "Available", "Succeeded", "Failed")
            if metrics.value("scheduler_reservation_status_phase", name=name, phase=phase)
        ]
        for name in ("r", "waits")
    }
    assert phases == {"r": ["Available"], "waits": ["Pending"]}
    of_cpu = {
        type: metrics.value("scheduler_reservation_resource", type=type, name="r", resource="cpu", unit=unit)
        for type, unit in (("allocatable", "core"), ("allocated", "core"), ("utilization", "ratio"))
    }
    assert of_cpu == {"allocatable": 8, "allocated": 2, "utilization": 0.25}
