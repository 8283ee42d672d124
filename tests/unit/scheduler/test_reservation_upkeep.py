"""What the status of Reservations says of their owners, and when they end."""

import asyncio
from typing import Any

import pytest

from koordpolicy.algorithms.reservation_life import expires_at
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import RESERVATIONS
from koordpolicy.model.reservation import read_reservation
from koordpolicy.model.time import NANOSECONDS, time_text
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
