"""CPUs, memory and devices in the same NUMA zones: the hints of all who allocate there are merged, and columns say what comes of it."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.graph import RuleGraph
from koordpolicy.model.devices import read_devices
from koordpolicy.model.protocol import DEVICE_ALLOCATE_HINT
from koordpolicy.scheduler.plugins.devices import DEVICE_SHARE
from koordpolicy.scheduler.plugins.devices.hints import hints_of_devices
from koordpolicy.scheduler.plugins.numa import NODE_NUMA_RESOURCE
from koordpolicy.scheduler.plugins.numa.filters import cpus_free, needs_of
from koordpolicy.scheduler.plugins.parameters import Parameters
from tests.unit.scheduler.test_cpus import GRAPH, SINGLE, TIES, Machines, own, reasons
from tests.unit.scheduler.test_devices import GPU, RATIO, RDMA, device_object
from tests.unit.scheduler.world import pod
from tests.vectors.policies import document, graph

RESTRICTED = {"numaTopologyPolicy": "Restricted"}
BEST_EFFORT = {"numaTopologyPolicy": "BestEffort"}
ANYWHERE = graph(TIES, document("DeviceSharing", "gpu", {"scheduling": {"zoned": False}}))


class Pool(Machines):
    """Nodes n0, n1, ... with two zones of eight CPUs and four cards each, and a NIC at each pair of cards."""

    def __init__(self, count: int = 1, *, graph: RuleGraph = GRAPH, known: bool = True) -> None:
        super().__init__(count, graph=graph)
        amounts = dict.fromkeys(
            (GPU, RATIO, RDMA, "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory"), "1Ti"
        )
        for at in range(count):
            self.build({"nodes": {f"n{at}": {"allocatable": {"cpu": "16", "memory": "32Gi", **amounts}}}})
            listed = device_object(8, 4)
            if not known:
                for one in listed["spec"]["devices"]:
                    one["topology"] = {"nodeID": -1}
            found = read_devices(listed)
            self.scheduler.set_state(
                lambda state, node=f"n{at}", found=found: state.set_devices(node, found),  # type: ignore[misc]  # the default is the value
                Event.DEVICES_CHANGED,
            )

    def cards(self, name: str, type: str = "gpu") -> list[int]:
        claim = self.scheduler.cache.state.cards.claim_of(("default", name))
        return [share.minor for share in claim.shares.get(type, ())] if claim else []


def test_cpus_follow_the_cards_that_are_left() -> None:
    world = Pool()
    assert world.place("first", own(2, numa=SINGLE, **{GPU: "400"})).placed
    assert (world.cpus("first"), world.cards("first")) == ("0-1", [0, 1, 2, 3])
    assert world.place("second", own(2, numa=SINGLE, **{GPU: "300"})).placed
    assert (world.cpus("second"), world.cards("second")) == ("8-9", [4, 5, 6])
    # In zone 0 there are six CPUs, in zone 1 one card.
    refused = world.scheduler.framework.decide(pod("third", own(2, numa=SINGLE, **{GPU: "200"})))
    assert reasons(refused) == ["node(s) without a NUMA zone that has room for the pod"]
    assert all(one.resolvable for one in refused.refusals)
    assert world.place("plain", own(6, numa=SINGLE)).placed


def test_cards_follow_the_cpus_that_are_left() -> None:
    world = Pool()
    assert world.place("first", own(6, numa=SINGLE)).placed
    assert world.place("second", own(4, numa=SINGLE, **{GPU: "50", RDMA: "50"})).placed
    assert world.cpus("second") == "8-11"
    assert (world.cards("second"), world.cards("second", "rdma")) == ([4], [2])


def test_more_cards_than_a_zone_has_come_from_both_unless_one_zone_is_a_must() -> None:
    world = Pool()
    single = world.scheduler.framework.decide(pod("single", own(4, numa=SINGLE, **{GPU: "500"})))
    assert reasons(single) == ["node(s) without a NUMA zone that has room for the pod"]
    assert world.place("restricted", own(4, numa=RESTRICTED, **{GPU: "500"})).placed
    assert len(world.cards("restricted")) == 5
    assert world.zones("restricted").keys() == {0, 1}, "its CPUs are where its cards are"


def test_where_no_zone_will_do_best_effort_is_any() -> None:
    world = Pool()
    assert world.place("cpus", own(8, numa=SINGLE)).placed
    assert world.place("cards", own(2, "LS", numa=BEST_EFFORT, **{GPU: "400"})).placed
    assert world.cards("cards") == [4, 5, 6, 7]
    # CPUs are left in zone 1 alone, cards in zone 0.
    refused = world.scheduler.framework.decide(pod("strict", own(4, numa=RESTRICTED, **{GPU: "100"})))
    assert [one.partition(" cause ")[0] for one in reasons(refused)] == ["Unaligned NUMA Hint"]
    assert world.place("both", own(4, numa=BEST_EFFORT, **{GPU: "100"})).placed
    assert (world.cpus("both"), world.cards("both")) == ("8-11", [0])


def test_that_devices_have_no_say_is_policy() -> None:
    world = Pool(graph=ANYWHERE)
    assert world.place("first", own(2, numa=SINGLE, **{GPU: "400"})).placed
    assert world.place("second", own(2, numa=SINGLE, **{GPU: "500"})).placed is False, "four are left"
    assert world.place("third", own(6, numa=SINGLE, **{GPU: "300"})).placed
    assert (world.cpus("third"), world.cards("third")) == ("8-13", [4, 5, 6])


def test_cards_of_unknown_place_are_in_every_zone() -> None:
    world = Pool(known=False)
    assert world.place("many", own(4, numa=SINGLE, **{GPU: "800"})).placed
    assert len(world.cards("many")) == 8


def test_a_hint_of_the_pod_is_minded_in_each_zone() -> None:
    world = Pool()
    hint = {"gpu": {"requiredTopologyScope": "PCIe"}}
    wanted = own(2, numa=SINGLE, **{GPU: "200"})
    wanted["annotations"][DEVICE_ALLOCATE_HINT] = json.dumps(hint)
    for name in "abcd":
        assert world.place(name, wanted).placed
    assert sorted(world.cards(name) for name in "abcd") == [[0, 1], [2, 3], [4, 5], [6, 7]]
    for name in "abcd":
        zone = {cpu // 8 for cpu in world.accounts.claim_of(("default", name)).allocation.cpus}
        assert zone == {world.cards(name)[0] // 4}
    assert not world.place("more", wanted).placed


_PODS = st.tuples(
    st.sampled_from((1, 2, 4, 6)),
    st.sampled_from(("LSR", "LS")),
    st.sampled_from((None, SINGLE, RESTRICTED, BEST_EFFORT)),
    st.sampled_from((0, 30, 60, 100, 200, 300, 500)),
)


@settings(deadline=None, max_examples=20)
@given(st.lists(_PODS, min_size=2, max_size=7))
def test_columns_say_what_the_choice_of_zones_comes_to(asked: list[tuple[int, str, Any, int]]) -> None:
    """Of each node the filter says what trying says, over random histories; what is in one zone is in the same one."""
    world = Pool(2)
    for at, (cpus, qos, numa, percent) in enumerate(asked):
        wanted = own(cpus, qos, numa=numa, **({GPU: str(percent)} if percent else {}))
        cache, view = world.scheduler.cache, world.scheduler.framework.view(pod(f"p{at}", wanted))
        state, nodes = cache.state, NodeView(cache.table, None, cache.state)
        needs, devices = needs_of(view, state.cpus), hints_of_devices(state.cards, view)
        if needs is not None:
            said = cpus_free(view, nodes, Parameters({})).refused
            for row in range(2):
                node = cache.table.name(row)
                beside = () if devices is None else devices.on(node)
                assert said[:, row].any() == bool(why := state.cpus.why_not(node, needs, beside)), why
        if world.place(f"p{at}", wanted).placed and numa is SINGLE:
            claim, cards = state.cpus.claim_of(("default", f"p{at}")), world.cards(f"p{at}")
            assert claim is not None
            zones = {cpu // 8 for cpu in claim.allocation.cpus} | {card // 4 for card in cards}
            assert len(zones | claim.allocation.zones.keys()) == 1


def test_zones_are_found_before_devices_are_taken_from_them() -> None:
    steps = [step.plugin for step in Pool().scheduler.profile.filters]
    assert steps.index(NODE_NUMA_RESOURCE) < steps.index(DEVICE_SHARE)
