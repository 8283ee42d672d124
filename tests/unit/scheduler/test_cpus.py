"""CPUs of their own and NUMA zones through the real scheduler: no CPU is promised twice, whatever happens, and a restart knows all."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.algorithms.cpu_binding import NO_TOPOLOGY, NO_ZONES
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.graph import RuleGraph
from koordpolicy.model.cpu_topology import allocation_text
from koordpolicy.model.cpuset import cpuset_text
from koordpolicy.model.numa import read_zones
from koordpolicy.model.protocol import (
    CPU_TOPOLOGY,
    KUBELET_CPU_MANAGER_POLICY,
    NUMA_TOPOLOGY_SPEC,
    QOS_CLASS,
    RESOURCE_SPEC,
    RESOURCE_STATUS,
)
from koordpolicy.scheduler.plugins.numa.claim import said_on_pod
from koordpolicy.scheduler.plugins.numa.filters import cpus_free, cpus_wanted
from koordpolicy.scheduler.plugins.parameters import Parameters
from tests.unit.scheduler.world import PROFILE, World, pod
from tests.vectors.policies import document, graph

TIES = document("SchedulingProfile", "own", {"schedulerName": PROFILE, "ties": "First"})
GRAPH = graph(TIES)


def topology_object(
    name: str, zones: int = 2, cores: int = 4, kubelet: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """Zones with so many cores of two CPUs each, which follow one another, a socket for each zone."""
    per = 2 * cores
    detail = [
        {"id": cpu, "core": cpu // 2, "socket": cpu // per, "node": cpu // per} for cpu in range(zones * per)
    ]
    annotations = {CPU_TOPOLOGY: json.dumps({"detail": detail})}
    if kubelet is not None:
        annotations[KUBELET_CPU_MANAGER_POLICY] = json.dumps(kubelet)
    amounts = [("cpu", str(per)), ("memory", "16Gi")]
    listed = [
        {
            "name": f"node-{zone}",
            "type": "Node",
            "resources": [
                {"name": key, "capacity": amount, "allocatable": amount, "available": amount}
                for key, amount in amounts
            ],
        }
        for zone in range(zones)
    ]
    return {"metadata": {"name": name, "annotations": annotations}, "zones": listed, **spec}


class Machines(World):
    """Nodes n0, n1, ... with two zones of eight CPUs each."""

    def __init__(
        self,
        count: int = 1,
        *,
        graph: RuleGraph = GRAPH,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        cpu: str = "16",
        **topology: Any,
    ) -> None:
        super().__init__(graph)
        for at in range(count):
            said = {
                "allocatable": {"cpu": cpu, "memory": "32Gi"},
                "labels": labels or {},
                "annotations": annotations or {},
            }
            self.build({"nodes": {f"n{at}": said}})
            self.topology(topology_object(f"n{at}", **topology))

    def topology(self, said: dict[str, Any]) -> None:
        """A node has these CPUs."""
        name, zones = said["metadata"]["name"], read_zones(said)
        self.scheduler.set_state(lambda state: state.set_zones(name, zones, said), Event.CPUS_CHANGED)

    @property
    def accounts(self) -> Any:
        return self.scheduler.cache.state.cpus

    def cpus(self, name: str) -> str:
        claim = self.accounts.claim_of(("default", name))
        return cpuset_text(claim.allocation.cpus) if claim else ""

    def zones(self, name: str) -> dict[int, dict[str, int]]:
        claim = self.accounts.claim_of(("default", name))
        return {zone: dict(amounts) for zone, amounts in claim.allocation.zones.items()} if claim else {}

    def given(self) -> dict[Any, str]:
        """What each pod has, by node."""
        return {
            (node, *key): allocation_text(claim.allocation)
            for node in ("n0", "n1")
            for key, claim in self.accounts.owners(node).items()
        }


def own(cpus: float, qos: str = "LSR", spec: Any = None, numa: Any = None, **more: Any) -> dict[str, Any]:
    """A pod that gets so many CPUs of its own."""
    annotations = {}
    if spec is not None:
        annotations[RESOURCE_SPEC] = json.dumps(spec)
    if numa is not None:
        annotations[NUMA_TOPOLOGY_SPEC] = json.dumps(numa)
    labels = {QOS_CLASS: qos} if qos else {}
    request = {"cpu": str(cpus), "memory": "1Gi", **more}
    return {"request": request, "labels": labels, "annotations": annotations}


SINGLE = {"numaTopologyPolicy": "SingleNUMANode"}


def reasons(decision: Any) -> list[str]:
    return [one.reason for one in decision.refusals]


def test_pods_of_lse_and_lsr_get_whole_cores_of_their_own() -> None:
    world = Machines()
    assert world.place("a", own(4)).placed
    assert world.place("b", own(4, "LSE")).placed
    assert world.place("plain", own(4, "LS")).placed
    assert (world.cpus("a"), world.cpus("b"), world.cpus("plain")) == ("0-3", "8-11", "")
    spread = {"requiredCPUBindPolicy": "SpreadByPCPUs"}
    assert world.place("spread", own(2, spec=spread)).placed
    assert world.cpus("spread") == "4,6"


def test_nobody_gets_more_than_there_is() -> None:
    world = Machines(cpu="64")
    required = {"requiredCPUBindPolicy": "FullPCPUs"}
    assert [world.place(f"p{at}", own(6, spec=required)).placed for at in range(3)] == [True, True, False]
    refused = world.scheduler.framework.decide(pod("more", own(6, spec=required)))
    assert reasons(refused) == ["not enough cpus available to satisfy request"]
    odd = world.scheduler.framework.decide(pod("odd", own(1, spec=required)))
    assert reasons(odd) == ["node(s) requested cpus not multiple cpus per core"]
    part = world.scheduler.framework.decide(pod("part", own(1.5)))
    assert reasons(part) == ["the requested CPUs must be integer"]
    assert not any(one.resolvable for one in (*odd.refusals, *part.refusals))


def test_a_pod_that_is_gone_leaves_its_cpus_to_others() -> None:
    world = Machines()
    assert world.place("first", own(16)).placed
    assert not world.place("second", own(2)).placed
    world.scheduler.remove_pod(("default", "first"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.placed
    assert world.cpus("second") == "0-1"


def test_a_pod_stays_in_one_zone_if_it_says_so() -> None:
    world = Machines()
    assert world.place("a", own(6, numa=SINGLE)).placed
    assert world.place("b", own(6, numa=SINGLE)).placed
    assert (world.cpus("a"), world.cpus("b")) == ("0-5", "8-13")
    assert world.zones("a") == {0: {"cpu": 6000, "memory": 1 << 30}}
    assert not world.place("c", own(4, numa=SINGLE)).placed
    assert world.place("d", own(4, "LSE")).placed
    assert world.cpus("d") == "6-7,14-15"


def test_a_pod_without_cpus_of_its_own_is_kept_in_a_zone_too() -> None:
    world = Machines()
    assert [world.place(f"p{at}", own(5, "LS", numa=SINGLE)).placed for at in range(3)] == [True, True, False]
    assert {zone for at in range(2) for zone in world.zones(f"p{at}")} == {0, 1}
    assert world.place("wide", own(6, "LS", numa={"numaTopologyPolicy": "Restricted"})).placed
    assert world.zones("wide") == {0: {"cpu": 3000, "memory": 1 << 29}, 1: {"cpu": 3000, "memory": 1 << 29}}


def test_a_node_may_say_how_all_pods_are_bound_and_in_which_zones() -> None:
    world = Machines(labels={"node.koordinator.sh/cpu-bind-policy": "FullPCPUsOnly"})
    assert world.place("any", own(2, "")).placed
    assert world.cpus("any") == "0-1"
    assert reasons(world.place("half", own(1.5, ""))) == ["the requested CPUs must be integer"]
    claim = world.accounts.claim_of(("default", "any"))
    assert json.loads(said_on_pod(claim)[RESOURCE_SPEC]) == {"requiredCPUBindPolicy": "FullPCPUs"}
    world = Machines(topologyPolicies=["SingleNUMANodePodLevel"])
    assert [world.place(f"p{at}", own(5, "")).placed for at in range(3)] == [True, True, False]
    other = world.scheduler.framework.decide(pod("c", own(1, numa={"numaTopologyPolicy": "Restricted"})))
    assert reasons(other) == ["node(s) NUMA Topology policy not match"]
    world = Machines(
        kubelet={"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0-1"}
    )
    assert world.place("static", own(2, "")).placed
    assert world.cpus("static") == "8-9"


def test_what_binds_is_policy() -> None:
    said = {"parameters": {"ownClasses": {"value": ["GOLD"]}, "defaultBinding": {"value": "SpreadByPCPUs"}}}
    world = Machines(graph=graph(document("CPUTopology", "own", said), TIES))
    assert world.place("gold", own(2, "GOLD")).placed
    assert world.place("lsr", own(2, "LSR")).placed
    assert (world.cpus("gold"), world.cpus("lsr")) == ("0,2", "")
    kept = document("CPUTopology", "own", {"nodes": {"reserved": []}})
    world = Machines(graph=graph(kept, TIES), kubelet={"policy": "none", "reservedCPUs": "0-3"})
    assert world.place("a", own(4)).placed
    assert world.cpus("a") == "0-3"


def test_a_node_that_changes_its_rules_is_asked_by_the_new_ones() -> None:
    world = Machines()
    assert world.place("a", own(1, "")).placed
    assert world.cpus("a") == ""
    said = {
        "allocatable": {"cpu": "16", "memory": "32Gi"},
        "labels": {"node.koordinator.sh/cpu-bind-policy": "SpreadByPCPUs"},
    }
    world.build({"nodes": {"n0": said}})
    assert world.place("b", own(1, "")).placed
    assert world.cpus("b") == "0"


def test_a_pod_with_cpus_of_its_own_stays_away_from_nodes_of_whose_cpus_nobody_tells() -> None:
    world = World(GRAPH)
    world.build({"nodes": {"n0": {}, "n1": {}}})
    assert world.place("plain", own(2, "")).placed
    refused = world.place("a", own(2))
    assert [(one.reason, one.nodes, one.resolvable) for one in refused.refusals] == [(NO_TOPOLOGY, 2, False)]
    state = world.scheduler.cache.state
    view = world.scheduler.framework.view(pod("plain", own(2, "")))
    assert cpus_wanted(view, state, lambda: Parameters({})) is None
    said = topology_object("n1")
    world.scheduler.set_state(lambda state: state.set_zones("n1", read_zones(said), said), Event.CPUS_CHANGED)
    world.pass_time(60)
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "n1"
    world = Machines()
    world.build({"nodes": {"bare": {"allocatable": {"cpu": "64", "memory": "64Gi"}}}})
    assert world.place("a", own(2)).node == "n0"
    assert world.place("plain", own(20, "")).node == "bare"


def test_only_the_topology_of_a_node_brings_back_a_pod_that_lacks_it() -> None:
    world = World(GRAPH)
    large = {"allocatable": {"cpu": "10", "memory": "10Gi"}}
    world.build(
        {"nodes": {"n0": {**large, "pods": {"x": {}}}, "n1": {}, "full": {"allocatable": {"cpu": "1"}}}}
    )
    refused = world.place("a", own(2))
    assert NO_TOPOLOGY in reasons(refused)

    def rests(name: str = "a") -> bool:
        return world.scheduler._waitlist.rests(("default", name))

    def tell(name: str) -> None:
        said = topology_object(name)
        world.scheduler.set_state(
            lambda state: state.set_zones(name, read_zones(said), said), Event.CPUS_CHANGED
        )

    world.scheduler.remove_pod(("default", "x"))
    assert rests(), "a pod has left a node that stays closed to it"
    world.build({"nodes": {"n0": {"allocatable": {"cpu": "12", "memory": "12Gi"}}}})
    assert rests(), "a node is larger and stays closed to it"
    world.build({"nodes": {"n2": large}})
    assert rests(), "a node came that is closed to it"
    tell("n1")
    assert not rests()
    world.pass_time(60)
    assert (decision := world.scheduler.schedule_one()) is not None
    assert decision.node == "n1"
    assert NO_TOPOLOGY in reasons(world.place("b", own(9)))
    tell("n1")
    assert rests("b"), "the same is told again, as agents do each minute"


def test_a_pod_that_has_no_room_among_known_cpus_is_helped_by_whoever_leaves() -> None:
    world = Machines()
    assert world.place("there", own(8)).placed
    world.build({"nodes": {"bare": {}}})
    assert not world.place("a", own(10)).placed
    world.scheduler.remove_pod(("default", "there"))
    assert not world.scheduler._waitlist.rests(("default", "a"))


def test_policy_may_leave_its_cpus_to_the_kubelet_there() -> None:
    lenient = graph(
        document("CPUTopology", "own", {"parameters": {"knownNodesOnly": {"value": False}}}), TIES
    )
    world = World(lenient)
    world.build({"nodes": {"n0": {}}})
    assert world.place("a", own(2)).placed
    assert not world.scheduler.cache.state.cpus.dealt
    world = Machines(graph=lenient)
    world.build({"nodes": {"bare": {"allocatable": {"cpu": "64", "memory": "64Gi"}}}})
    placed = {name: world.place(name, own(10)).node for name in "abcdefg"}
    assert sorted(placed.values()) == ["bare"] * 6 + ["n0"]
    assert {name for name in placed if world.cpus(name)} == {
        name for name, node in placed.items() if node == "n0"
    }
    assert NO_ZONES in reasons(world.place("strict", own(2, numa=SINGLE)))


def test_a_plain_pod_is_asked_nothing() -> None:
    world = Machines()
    view = world.scheduler.framework.view(pod("plain"))
    assert cpus_wanted(view, world.scheduler.cache.state, lambda: Parameters({})) is None
    nodes = NodeView(world.scheduler.cache.table, None, world.scheduler.cache.state)
    assert not cpus_free(view, nodes, Parameters({})).refused.any()


@pytest.mark.parametrize("annotation", ["{", '{"requiredCPUBindPolicy": 3}'])
def test_an_annotation_that_cannot_be_read_is_a_reason(annotation: str) -> None:
    world = Machines()
    refused = world.place("odd", {"labels": {QOS_CLASS: "LSR"}, "annotations": {RESOURCE_SPEC: annotation}})
    assert not refused.placed
    assert "resource-spec" in reasons(refused)[0]


def test_amplified_cpus_cost_what_they_are_sold_for() -> None:
    ratio = {"node.koordinator.sh/resource-amplification-ratio": json.dumps({"cpu": 1.5})}
    world = Machines(annotations=ratio, cpu="24")
    assert world.place("own", own(8, numa=SINGLE)).placed
    assert world.accounts.account("n0").room.available[0]["cpu"] == 0
    assert world.accounts.account("n0").room.available[1]["cpu"] == 12_000
    assert world.place("shares", own(10, "LS", numa=SINGLE)).placed
    assert not world.place("more", own(4, "LS", numa=SINGLE)).placed


def test_cpus_of_pods_on_their_way_cost_what_they_are_sold_for() -> None:
    ratio = {"node.koordinator.sh/resource-amplification-ratio": json.dumps({"cpu": 2.0})}
    world = Machines(cpu="32", annotations=ratio)
    cache = world.scheduler.cache

    def owned() -> object:
        return cache.table.row(cache.table.index("n0"))["ownedCPU"]

    assert world.place("own", own(6)).placed
    assert owned() == 6000, "though the cluster does not show it yet"
    world.scheduler.keep_facts(frozenset({"capacity.pods"}))  # as a revision does that reads it
    cache = world.scheduler.cache
    assert owned() == 6000, "though all pods are counted anew"
    claim = world.accounts.claim_of(("default", "own"))
    there = {**own(6), "node": "n0", "phase": "Running"}
    there["annotations"] = dict(said_on_pod(claim))
    world.scheduler.set_pod(pod("own", there))
    assert owned() == 6000
    world.scheduler.remove_pod(("default", "own"))
    assert owned() == 0


def test_what_is_missing_is_told_with_numbers() -> None:
    world = Machines()
    assert world.place("a", own(3, "LSE", numa=SINGLE)).placed
    assert world.place("b", own(4, "LSR", numa=SINGLE)).placed
    said = world.scheduler.framework.advise(pod("c", own(6, numa=SINGLE)))
    expected = "n0: no NUMA zone has 6 free CPUs: zone 0 has 5, 3 are LSE's, zone 1 has 4, 4 are LSR's"
    assert any(expected in one.text for one in said), said


def test_a_gone_topology_leaves_what_pods_have() -> None:
    world = Machines()
    assert world.place("a", own(4)).placed
    world.scheduler.set_state(lambda state: state.remove_zones("n0"), Event.CPUS_CHANGED)
    assert world.cpus("a") == "0-3"
    world.topology(topology_object("n0"))
    assert world.place("b", own(4)).placed
    assert world.cpus("b") == "8-11"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "place", "place", "gone", "tried", "restart"]),
        st.integers(0, 9),
        st.sampled_from([1, 2, 3, 4, 6]),
        st.sampled_from(["LSE", "LSR", "LS"]),
        st.sampled_from([None, "BestEffort", "Restricted", "SingleNUMANode"]),
        st.sampled_from(["", "FullPCPUs", "SpreadByPCPUs"]),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from([{}, {"node.koordinator.sh/cpu-bind-policy": "SpreadByPCPUs"}]))
def test_no_cpu_is_promised_twice_over_any_history(steps: list[Any], labels: dict[str, str]) -> None:
    world = Machines(2, labels=labels, cpu="40")
    there: dict[str, dict[str, Any]] = {}
    for step, which, count, qos, numa, required in steps:
        name = f"p{which}"
        if step == "place" and name not in there:
            spec = {"requiredCPUBindPolicy": required} if required else None
            there[name] = own(count, qos, spec, {"numaTopologyPolicy": numa} if numa else None)
            world.submit(name, there[name])
            while world.scheduler.schedule_one() is not None:
                pass
        elif step == "gone" and name in there:
            world.scheduler.remove_pod(("default", name))
            del there[name]
        elif step == "tried":
            before, rooms = world.given(), [world.accounts.account(f"n{at}").room for at in range(2)]
            with world.scheduler.cache.trial():
                world.scheduler.cache.displace(*[("default", one) for one in there])
                assert world.given() == {}
            assert world.given() == before
            assert [world.accounts.account(f"n{at}").room for at in range(2)] == rooms
        elif step == "restart":
            world = _again(world, there, labels)
        _check(world)
    after = _again(world, there, labels)
    assert after.given() == world.given()
    assert [after.accounts.account(f"n{at}").room for at in range(2)] == [
        world.accounts.account(f"n{at}").room for at in range(2)
    ]


def _check(world: Machines) -> None:
    for node in ("n0", "n1"):
        owners = world.accounts.owners(node)
        cpus = Counter(cpu for claim in owners.values() for cpu in claim.allocation.cpus)
        assert all(count == 1 for count in cpus.values())
        for claim in owners.values():
            assert world.scheduler.cache.node_of(claim.pod) == node
        offers = world.accounts.account(node).room.offers
        for zone, amounts in offers.items():
            taken = sum(claim.allocation.zones.get(zone, {}).get("memory", 0) for claim in owners.values())
            assert taken <= amounts["memory"]


def _again(world: Machines, there: dict[str, dict[str, Any]], labels: dict[str, str]) -> Machines:
    """Another scheduler that finds what the first one wrote."""
    after = Machines(2, labels=labels, cpu="40")
    for name, said in there.items():
        node = world.scheduler.cache.node_of(("default", name))
        if node is None:
            continue
        claim = world.accounts.claim_of(("default", name))
        written = {} if claim is None else dict(said_on_pod(claim))
        annotations = {**said["annotations"], **written}
        assert (RESOURCE_STATUS in annotations) == (claim is not None)
        after.scheduler.set_pod(
            pod(name, {**said, "annotations": annotations, "node": node, "phase": "Running"})
        )
        there[name] = {**said, "annotations": annotations}
    return after
