"""Reservations that are placed on what pods hold already: these own them from then on, and what they leave stays kept."""

import asyncio
import json
from typing import Any, Final

import pytest

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import PODS
from koordpolicy.model.protocol import PRE_ALLOCATION_REQUIRED, RESERVATION_ALLOCATED
from koordpolicy.scheduler.plugins.reservation import ReservationClaim, write
from koordpolicy.scheduler.plugins.reservation.pre_allocation import (
    CLUSTER_MODE,
    NO_CANDIDATE,
)
from tests.unit.scheduler.test_reservations import Reserved, reservation

_TEN: Final = {"allocatable": {"cpu": "10", "memory": "10Gi"}}

_BY_NUMBER: Final = """
parameters: {enableClusterMode: {value: true}, clusterLabelKey: {value: gives}}
preAllocation: {order: [{cel: "-int(pod.labels['gives'])"}]}
"""


def _world(*sizes: str, policy: str = "", labels: dict[str, str] | None = None) -> Reserved:
    """One node on which pods run, `web-0`, `web-1`, ... of these sizes, and one that is no owner."""
    world = Reserved(policy, n1=_TEN)
    for at, size in enumerate(sizes):
        world.ask(f"web-{at}", size, app="web")
        world.pods[f"web-{at}"]["metadata"]["labels"].update(labels or {})
        world.show(f"web-{at}")
    world.ask("other", "2")
    world.run()
    return world


def _asked(cpu: str, *, once: bool = False, required: bool = False, **spec: Any) -> dict[str, Any]:
    labels = {PRE_ALLOCATION_REQUIRED: "true"} if required else {}
    more = {"preAllocation": True, "allocateOnce": once, **spec}
    return reservation("r", cpu, app="web", labels=labels, spec=more)


def _annotated(world: Reserved) -> None:
    """The annotations are written that go before the Reservation's node."""
    taken = world.taken()["r"]
    for name in taken:
        world.pods[name]["metadata"]["annotations"][RESERVATION_ALLOCATED] = json.dumps(
            {"name": "r", "uid": "uid-r"}
        )
        world.show(name)


def test_it_takes_the_place_of_its_owner_and_counts_once() -> None:
    world = _world("6", "1")
    world.reserve(_asked("6"))
    assert world.run()["r"].node == "n1"
    assert world.taken() == {"r": ("web-0",)}
    assert world.requested() == 9000
    _annotated(world)
    world.end("web-0")
    assert world.requested() == 9000, "what the owner leaves stays kept"
    world.ask("stranger", "4")
    world.ask("next", "6", app="web")
    found = world.run()
    assert (found["stranger"].placed, found["next"].node) == (False, "n1")
    other = world.restarted(n1=_TEN)
    assert (other.taken(), other.requested()) == (world.taken(), world.requested())


def test_where_the_node_has_enough_nobody_gives_its_room() -> None:
    world = _world("2")
    world.reserve(_asked("4"))
    assert world.run()["r"].node == "n1"
    assert world.taken() == {"r": ()}
    assert world.requested() == 8000


def test_one_that_has_to_take_an_owners_place_waits_for_one() -> None:
    world = _world()
    world.reserve(_asked("1", required=True))
    assert [one.reason for one in world.run()["r"].refusals] == [NO_CANDIDATE]
    world.ask("web-0", "2", app="web")
    world.run()
    world.pass_time(30)
    world.scheduler.set_state(lambda state: None, None)
    world.reserve(_asked("2", required=True))
    assert world.run()["r"].node == "n1"
    assert world.taken() == {"r": ("web-0",)}


@pytest.mark.parametrize(("multiple", "placed"), [(True, True), (False, False)])
def test_several_give_their_room_where_it_says_so(multiple: bool, placed: bool) -> None:
    world = _world("3", "3")
    world.reserve(_asked("8", preAllocationPolicy={"enableMultiple": multiple}))
    assert world.run()["r"].placed is placed
    assert world.taken() == {"r": ("web-0", "web-1") if placed else ()}


def test_who_does_not_fit_into_a_restricted_one_gives_no_room() -> None:
    world = _world("8")
    world.reserve(_asked("4", allocatePolicy="Restricted"))
    assert not world.run()["r"].placed
    world.reserve(_asked("4", allocatePolicy="Aligned"))
    world.pass_time(30)
    assert world.run()["r"].placed


@pytest.mark.parametrize(
    ("policy", "gives"),
    [
        ("", None),
        ("parameters: {enableClusterMode: {value: true}, clusterLabelKey: {value: gives}}", "web-0"),
        (_BY_NUMBER, "web-1"),
    ],
)
def test_pods_of_the_cluster_give_their_room_where_policy_lets_them(policy: str, gives: str | None) -> None:
    world = _world("3", "4", policy=policy)
    for at in range(2):
        world.pods[f"web-{at}"]["metadata"]["labels"] = {"gives": str(at)}
        world.show(f"web-{at}")
    world.reserve(_asked("1" if gives is None else "4", preAllocationPolicy={"mode": "Cluster"}))
    decision = world.run()["r"]
    if gives is None:
        assert [one.reason for one in decision.refusals] == [CLUSTER_MODE]
    else:
        assert world.taken() == {"r": (gives,)}


def test_a_write_that_fails_gives_all_back() -> None:
    world = _world("6", "1")
    world.reserve(_asked("6"))
    world.run(writes=False)
    account = world.scheduler.ledger.assumed(("default", "reservation uid-r"))
    assert account is not None
    assert account.writes
    world.scheduler.forget(account.view.pod)
    assert world.taken() == {"r": ()}
    assert world.requested() == 9000


def test_its_owners_say_so_before_it_has_its_node() -> None:
    async def run() -> dict[str, Any]:
        cluster = MemoryCluster(Store(lambda: 1_700_000_000))
        container = {"name": "c", "image": "pause"}
        made = await cluster.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"containers": [container]},
            },
        )
        claim = ReservationClaim(
            ("default", "reservation uid-r"), "r", "uid-r", ((("default", "web"), made["metadata"]["uid"]),)
        )
        await write(None, claim, cluster, asyncio.sleep)  # type: ignore[arg-type]  # it needs no state
        return dict(await cluster.get(PODS, "web", namespace="default"))

    pod = asyncio.run(run())
    assert json.loads(pod["metadata"]["annotations"][RESERVATION_ALLOCATED]) == {"name": "r", "uid": "uid-r"}
