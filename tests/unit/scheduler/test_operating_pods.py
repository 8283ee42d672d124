"""Pods that operate as reservations: once ready, one keeps what it requests for a pod that its annotation names."""

import asyncio
import json
from typing import Any, Final

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import PODS
from koordpolicy.model.protocol import (
    OPERATING_MODE,
    RESERVATION_CURRENT_OWNER,
    RESERVATION_OWNERS,
    RESOURCE_STATUS,
)
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.reservation_upkeep import ReservationUpkeep
from tests.unit.scheduler.test_reservations import Reserved, reservation

_TEN: Final = {"allocatable": {"cpu": "10", "memory": "10Gi"}}
_AFFINITY: Final = "scheduling.koordinator.sh/reservation-affinity"
_OWNERS: Final = json.dumps([{"labelSelector": {"matchLabels": {"app": "web"}}}])


def _operating(world: Reserved, name: str = "place", owners: str = _OWNERS, *, ready: bool = True) -> None:
    """A pod of 6 CPUs that operates as a reservation comes, and runs."""
    world.ask(name, "6", annotations={RESERVATION_OWNERS: owners})
    world.pods[name]["metadata"]["labels"][OPERATING_MODE] = "Reservation"
    world.show(name)
    world.run()
    _ready(world, name, ready=ready)


def _ready(world: Reserved, name: str, *, ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    world.pods[name]["status"]["conditions"] = [condition]
    world.show(name)


def test_its_owner_takes_its_place_and_counts_once() -> None:
    world = Reserved(n1=_TEN)
    _operating(world)
    world.ask("stranger", "5")
    world.ask("web", "6", app="web", annotations={_AFFINITY: "{}"})
    found = world.run()
    assert (found["stranger"].placed, found["web"].node) == (False, "n1")
    assert world.taken() == {"place": ("web",)}
    assert world.requested() == 6000
    other = world.restarted(n1=_TEN)
    assert (other.taken(), other.requested()) == (world.taken(), 6000)
    world.ask("second", "1", app="web", annotations={_AFFINITY: "{}"})
    assert not world.run()["second"].placed, "it is for one pod"
    world.end("web")
    assert world.requested() == 6000


def test_one_that_is_not_ready_keeps_nothing_for_others() -> None:
    world = Reserved(n1=_TEN)
    _operating(world, ready=False)
    world.ask("web", "6", app="web")
    assert not world.run()["web"].placed
    _ready(world, "place", ready=True)
    world.pass_time(20)
    assert world.run()["web"].placed
    assert world.requested() == 6000
    _ready(world, "place", ready=False)
    assert world.requested() == 12_000, "both run by themselves now"
    world.end("place")
    assert world.taken() == {}


def test_nobody_takes_from_one_whose_owners_cannot_be_read() -> None:
    world = Reserved(n1=_TEN)
    _operating(world, owners='{"a": 1}')
    world.ask("web", "6", app="web")
    assert not world.run()["web"].placed
    assert world.requested() == 6000


def test_it_shares_no_node_with_reservations_of_the_default_policy() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="1"))
    world.run()
    world.ask("place", "2")
    world.pods["place"]["metadata"]["labels"][OPERATING_MODE] = "Reservation"
    world.show("place")
    assert [one.reason for one in world.run()["place"].refusals] == [
        "node(s) reservation allocate policy conflict"
    ]


def test_who_has_taken_its_place_stands_on_it() -> None:
    async def run() -> None:
        world = Reserved(n1=_TEN)
        cluster = MemoryCluster(Store(lambda: world.now // NANOSECONDS))
        _operating(world)
        said: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **world.pods["place"]}
        del said["spec"]["priority"]
        said["spec"]["containers"][0]["image"] = "pause"
        made = dict(await cluster.create(PODS, said))
        status = {**made, "status": world.pods["place"]["status"]}
        world.end("place")
        world.pods["place"] = dict(await cluster.update(PODS, status, subresource="status"))
        world.show("place")
        world.ask("web", "6", app="web")
        world.run()
        upkeep = ReservationUpkeep(lambda: world.scheduler.cache, cluster, lambda: world.now)
        assert await upkeep.look() == 1
        world.pods["place"] = dict(await cluster.get(PODS, "place", namespace="default"))
        owner = json.loads(world.pods["place"]["metadata"]["annotations"][RESERVATION_CURRENT_OWNER])
        assert owner == {"namespace": "default", "name": "web", "uid": "uid-web"}
        world.show("place")
        assert await upkeep.look() == 0

    asyncio.run(run())


def test_of_cpus_it_has_no_more_for_itself_than_it_requests() -> None:
    world = Reserved(n1=_TEN)
    _operating(world)
    world.pods["place"]["metadata"]["annotations"][RESOURCE_STATUS] = '{"cpuset": "0-65535"}'
    world.show("place")
    assert [view.owned_cpu for view in world.scheduler.cache.state.reservations.pods_on("n1").values()] == [
        6000
    ]
