"""CPUs and devices that a Reservation keeps: its owners get these, nobody else does, nothing is held twice, a restart knows all."""

import copy
import json
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.events import Event
from koordpolicy.model.devices import read_devices
from koordpolicy.model.numa import read_zones
from koordpolicy.model.protocol import QOS_CLASS, RESOURCE_STATUS
from tests.unit.scheduler.test_cpus import topology_object
from tests.unit.scheduler.test_devices import GPU, RATIO, RDMA, device_object
from tests.unit.scheduler.test_reservations import Reserved, reservation

_NODE: Final = {
    "allocatable": {
        "cpu": "16",
        "memory": "32Gi",
        **dict.fromkeys((GPU, RATIO, RDMA, "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory"), "1Ti"),
    }
}


class Machines(Reserved):
    """One node, n1, with two zones of eight CPUs each, and four cards."""

    def __init__(self) -> None:
        super().__init__(n1=_NODE)
        said, cards = topology_object("n1"), read_devices(device_object(4))
        zones = read_zones(said)
        self.scheduler.set_state(lambda state: state.set_zones("n1", zones, said), Event.CPUS_CHANGED)
        self.scheduler.set_state(lambda state: state.set_devices("n1", cards), Event.DEVICES_CHANGED)

    def keep(self, name: str, requests: dict[str, str], *, own: bool = True, **spec: Any) -> None:
        """A Reservation comes, with CPUs of its own or without."""
        obj = reservation(name, spec=spec)
        template = obj["spec"]["template"]
        template["spec"]["containers"][0]["resources"]["requests"] = {"memory": "1Gi", **requests}
        template["spec"]["priority"] = 9500
        if own:
            template["metadata"] = {"labels": {QOS_CLASS: "LSR"}}
        self.reserve(obj)

    def want(self, name: str, requests: dict[str, str], app: str = "", *, own: bool = True) -> None:
        """A pod comes that asks for so much."""
        self.ask(name, app=app)
        pod = self.pods[name]
        pod["spec"]["priority"] = 9500
        pod["spec"]["containers"][0]["resources"]["requests"] = {"memory": "1Mi", **requests}
        if own:
            pod["metadata"]["labels"][QOS_CLASS] = "LSR"
        self.show(name)

    def cpus(self, name: str) -> frozenset[int]:
        """The CPUs that a pod has for itself; of a Reservation those that nobody has taken."""
        found = self.scheduler.cache.state.cpus.owners("n1").get(("default", name))
        return frozenset() if found is None else found.allocation.cpus

    def cards(self, name: str) -> dict[int, int]:
        """How much of which card a pod has, in percent; of a Reservation what nobody has taken."""
        found = self.scheduler.cache.state.cards.owners("n1").get(("default", name))
        shares = () if found is None else found.shares.get("gpu", ())
        return {share.minor: share.resources.get(RATIO, 0) for share in shares}

    def restarted(self, **nodes: Any) -> "Machines":
        other = Machines()
        for obj in self.objects.values():
            other.reserve(obj)
        other.pods = copy.deepcopy(self.pods)
        for name in self.pods:
            other.show(name)
        return other

    def held(self) -> dict[str, Any]:
        """What everybody has."""
        state = self.scheduler.cache.state
        return {
            "/".join(key): (sorted(claim.allocation.cpus), self.cards(key[1]))
            for key, claim in state.cpus.owners("n1").items()
        } | {f"cards of {key[1]}": self.cards(key[1]) for key in state.cards.owners("n1")}


def test_owners_get_the_cpus_that_are_kept_for_them() -> None:
    world = Machines()
    world.keep("r", {"cpu": "4"}, allocateOnce=False)
    assert world.run()["r"].node == "n1"
    kept = world.cpus("reservation uid-r")
    assert len(kept) == 4
    written = json.loads(world.objects["r"]["metadata"]["annotations"][RESOURCE_STATUS])
    assert written["cpuset"], "they stand on the Reservation"
    world.want("stranger", {"cpu": "4"})
    world.want("owner", {"cpu": "2"}, "r")
    world.run()
    assert not world.cpus("stranger") & kept
    assert world.cpus("owner") < kept
    assert world.cpus("reservation uid-r") == kept - world.cpus("owner")
    assert world.requested() == 8000
    table = world.scheduler.cache.table
    assert table.row(table.index("n1"))["ownedCPU"] == 8000, "what an owner has counts once"
    assert world.restarted().held() == world.held()
    world.end("owner")
    assert world.cpus("reservation uid-r") == kept


def test_a_node_whose_cpus_are_kept_takes_the_owner_alone() -> None:
    world = Machines()
    world.keep("r", {"cpu": "12"})
    world.run()
    world.want("stranger", {"cpu": "6"})
    assert not world.run()["stranger"].placed
    world.want("owner", {"cpu": "12"}, "r")
    assert world.run()["owner"].node == "n1"
    assert len(world.cpus("owner")) == 12


def test_a_restricted_one_gives_its_own_cpus_alone() -> None:
    for policy, placed in (("Restricted", False), ("Aligned", True)):
        world = Machines()
        world.keep("r", {"cpu": "4"}, allocatePolicy=policy)
        world.run()
        world.want("owner", {"cpu": "6"}, "r")
        assert world.run()["owner"].placed is placed or not placed
        assert (world.cpus("owner") > world.cpus("reservation uid-r")) is placed


def test_owners_get_the_cards_that_are_kept_for_them() -> None:
    world = Machines()
    world.keep("r", {"cpu": "1", GPU: "200"}, own=False, allocateOnce=False)
    assert world.run()["r"].node == "n1"
    kept = world.cards("reservation uid-r")
    assert list(kept.values()) == [100, 100]
    for name in ("s1", "s2", "s3"):
        world.want(name, {"cpu": "1", GPU: "100"}, own=False)
    found = world.run()
    assert [name for name in ("s1", "s2", "s3") if found[name].placed] == ["s1", "s2"]
    world.want("owner", {"cpu": "500m", GPU: "50"}, "r", own=False)
    assert world.run()["owner"].node == "n1"
    assert world.cards("owner").keys() <= kept.keys()
    assert sum(world.cards("reservation uid-r").values()) == 150
    assert world.restarted().held() == world.held()
    world.end("owner")
    assert world.cards("reservation uid-r") == kept


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "own", "strange", "end", "over", "fail"]),
            st.integers(1, 3),
            st.integers(0, 1),
        ),
        max_size=14,
    )
)
def test_nothing_is_held_twice_and_a_restart_knows_the_same(steps: list[tuple[str, int, int]]) -> None:
    world = Machines()
    for number, (what, size, which) in enumerate(steps):
        asked = {"cpu": str(2 * size), GPU: str(50 * size if size != 3 else 100)}
        if what == "reserve" and f"r{which}" not in world.objects:
            world.keep(
                f"r{which}", asked, allocateOnce=False, allocatePolicy=("Aligned", "Restricted")[size % 2]
            )
        elif what in ("own", "strange"):
            world.want(f"p{number}", asked, f"r{which}" if what == "own" else "")
        elif what == "end" and world.pods:
            world.end(sorted(world.pods)[size % len(world.pods)])
        elif what == "over" and f"r{which}" in world.objects:
            obj = copy.deepcopy(world.objects[f"r{which}"])
            obj["status"]["phase"] = "Failed"
            world.reserve(obj)
        elif what == "fail":
            for name in world.run(writes=False):
                for key in (("default", name), ("default", f"reservation uid-{name}")):
                    account = world.scheduler.ledger.assumed(key)
                    if account is not None:
                        world.scheduler.forget(account.view.pod)
        world.pass_time(30)
        world.run()
        state = world.scheduler.cache.state
        owned = [cpu for claim in state.cpus.owners("n1").values() for cpu in claim.allocation.cpus]
        assert len(owned) == len(set(owned)), "no CPU is held twice"
        for minor in range(4):
            assert sum(world.cards(key[1]).get(minor, 0) for key in state.cards.owners("n1")) <= 100
    assert world.restarted().held() == world.held()
