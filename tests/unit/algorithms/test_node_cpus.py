"""What pods are given of a node, one after another: nothing twice, nothing that is not there, and the same after a restart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from koordpolicy.algorithms.cpu_accumulator import BindPolicy, CPUExclusive
from koordpolicy.algorithms.cpu_binding import (
    BIND_DIFFERS,
    NO_TOPOLOGY,
    NOT_MULTIPLE,
    NOT_WHOLE,
    POLICY_DIFFERS,
    NodeRules,
    PodNeeds,
    terms_of,
)
from koordpolicy.algorithms.node_cpus import NodeAccount
from koordpolicy.algorithms.numa_merge import Affinity, Exclusive, NUMAPolicy, zones_of
from koordpolicy.algorithms.zone_allocation import NoRoom, ZoneRules, affinity, allocate
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpu_topology import (
    KUBELET,
    Allocation,
    NodeCPUs,
    allocation_text,
    read_allocation,
)
from koordpolicy.model.protocol import CPU, MEMORY, RESOURCE_STATUS
from koordpolicy.model.topology import Processor

GI = 1 << 30
SCORED = ZoneRules(weights={CPU: 1, MEMORY: 1})


def machine(zones: int, cores: int, reserved: frozenset[int] = frozenset(), memory: int = 16) -> NodeCPUs:
    """One with a socket for each zone, and two CPUs a core."""
    layout = CPULayout.of(
        Processor(cpu, cpu // 2, cpu // (2 * cores), cpu // (2 * cores)) for cpu in range(zones * cores * 2)
    )
    amounts = {CPU: 2000 * cores, MEMORY: memory * GI}
    return NodeCPUs(layout, dict.fromkeys(range(zones), amounts), {KUBELET: reserved})


def needs(cpus: int, memory: int = 0, **more: object) -> PodNeeds:
    request = tuple((name, amount) for name, amount in ((CPU, 1000 * cpus), (MEMORY, memory * GI)) if amount)
    return PodNeeds(1000 * cpus, request)._replace(**more)  # type: ignore[arg-type]  # fields by name


NEEDS = some.builds(
    needs,
    some.integers(1, 12),
    some.integers(0, 12),
    binds=some.booleans(),
    bind=some.sampled_from([BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS]),
    required=some.booleans(),
    exclusive=some.sampled_from(CPUExclusive),
    numa=some.sampled_from(NUMAPolicy),
    apart=some.sampled_from(Exclusive),
)
RULES = some.builds(
    NodeRules,
    bind=some.sampled_from([BindPolicy.NONE, BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS]),
    numa=some.sampled_from(NUMAPolicy),
    ratio=some.sampled_from([1.0, 1.5]),
    evenly=some.booleans(),
)


@given(some.data(), some.integers(1, 4), some.integers(1, 4), RULES)
def test_nothing_is_promised_twice_and_a_restart_changes_nothing(
    data: some.DataObject, zones: int, cores: int, rules: NodeRules
) -> None:
    reserved = data.draw(some.frozensets(some.integers(0, zones * cores * 2 - 1), max_size=2))
    node = machine(zones, cores, reserved)
    account: NodeAccount[int] = NodeAccount(node, rules, (KUBELET,))
    wanted: dict[int, PodNeeds] = {}
    for pod in range(data.draw(some.integers(1, 8))):
        if data.draw(some.booleans()) and account.held:
            account.give_back(data.draw(some.sampled_from(sorted(account.held))))
        pod_needs = data.draw(NEEDS)
        try:
            found = allocate(account.room, pod_needs, SCORED)
        except NoRoom:
            continue
        account.hold(pod, found, pod_needs.exclusive)
        wanted[pod] = pod_needs
        _check(pod_needs, rules, found)
    held = [cpu for one in account.held.values() for cpu in one.cpus]
    assert len(held) == len(set(held))
    assert reserved.isdisjoint(held)
    for zone, amounts in account.room.offers.items():
        for name, amount in amounts.items():
            assert sum(one.zones.get(zone, {}).get(name, 0) for one in account.held.values()) <= amount
    again: NodeAccount[int] = NodeAccount(node, rules, (KUBELET,))
    for pod, one in account.held.items():
        again.hold(
            pod,
            read_allocation({RESOURCE_STATUS: allocation_text(one)}) if one else one,
            wanted[pod].exclusive,
        )
    assert again.room == account.room


def _check(wanted: PodNeeds, rules: NodeRules, found: Allocation) -> None:
    """What was given is what was asked for, in the zones that are admitted."""
    terms = terms_of(wanted, rules)
    assert len(found.cpus) == (wanted.cpus if terms.bound else 0)
    if terms.numa is NUMAPolicy.SINGLE_NUMA_NODE:
        assert len(found.zones) <= 1
    if found.zones:
        for name, amount in wanted.request:
            assert sum(zone.get(name, 0) for zone in found.zones.values()) == amount


@pytest.mark.parametrize(
    ("pod", "rules", "reason"),
    [
        (needs(1, binds=True)._replace(milli=1500), NodeRules(), NOT_WHOLE),
        (
            needs(1, numa=NUMAPolicy.RESTRICTED),
            NodeRules(numa=NUMAPolicy.SINGLE_NUMA_NODE),
            POLICY_DIFFERS,
        ),
        (
            needs(2, binds=True, bind=BindPolicy.SPREAD_BY_PCPUS, required=True),
            NodeRules(bind=BindPolicy.FULL_PCPUS),
            BIND_DIFFERS,
        ),
        (needs(3), NodeRules(bind=BindPolicy.FULL_PCPUS), NOT_MULTIPLE),
        (
            needs(6, binds=True, numa=NUMAPolicy.SINGLE_NUMA_NODE),
            NodeRules(),
            "Unsatisfied NUMA cpu",
        ),
        (needs(2, 40, numa=NUMAPolicy.BEST_EFFORT), NodeRules(), "Insufficient NUMA memory"),
    ],
)
def test_a_refusal_says_why(pod: PodNeeds, rules: NodeRules, reason: str) -> None:
    account: NodeAccount[str] = NodeAccount(machine(2, 2), rules, ())
    with pytest.raises(NoRoom) as refused:
        allocate(account.room, pod, SCORED)
    assert reason in str(refused.value)


def test_a_node_whose_cpus_are_not_known_binds_nobody() -> None:
    account: NodeAccount[str] = NodeAccount(NodeCPUs(CPULayout.of(()), {}), NodeRules(), ())
    with pytest.raises(NoRoom, match=NO_TOPOLOGY.replace("(", r"\(").replace(")", r"\)")):
        allocate(account.room, needs(1, binds=True), SCORED)


def test_cpus_of_their_own_cost_what_they_are_sold_for() -> None:
    account: NodeAccount[str] = NodeAccount(machine(1, 4), NodeRules(ratio=1.5), ())
    account.hold("a", Allocation(frozenset({0, 1})))
    assert account.room.offers[0][CPU] == 12_000
    assert account.room.available[0][CPU] == 9_000


def test_a_pod_across_zones_keeps_those_away_that_want_one_for_themselves() -> None:
    account: NodeAccount[str] = NodeAccount(machine(2, 2), NodeRules(), ())
    account.hold("across", Allocation(frozenset({0, 4})))
    pod = needs(1, binds=True, numa=NUMAPolicy.SINGLE_NUMA_NODE, apart=Exclusive.REQUIRED)
    found: Affinity = affinity(account.room, pod, terms_of(pod, account.rules), SCORED)
    assert not found.admitted
    alone = pod._replace(apart=Exclusive.UNSET)
    assert zones_of(affinity(account.room, alone, terms_of(alone, account.rules), SCORED).zones or 0) == [0]


def test_what_was_given_is_written_as_koordinator_reads_it() -> None:
    given_to = Allocation(frozenset({0, 1, 2}), {1: {CPU: 3000, MEMORY: GI}})
    assert json.loads(allocation_text(given_to)) == {
        "cpuset": "0-2",
        "numaNodeResources": [{"node": 1, "resources": {"cpu": "3", "memory": "1Gi"}}],
    }
