"""Columns say of each node what the exact allocation says, or nothing."""

from hypothesis import given
from hypothesis import strategies as some

from koordpolicy.algorithms.cpu_accumulator import BindPolicy
from koordpolicy.algorithms.cpu_binding import NodeRules, PodNeeds
from koordpolicy.algorithms.node_cpus import NodeAccount
from koordpolicy.algorithms.numa_merge import Exclusive, NUMAPolicy
from koordpolicy.algorithms.zone_allocation import NodeRoom, NoRoom, allocate
from koordpolicy.algorithms.zone_columns import NO_ZONE_FITS, REASONS, TOO_LITTLE, RoomColumns, columns_of
from koordpolicy.model.cpu_topology import Allocation
from tests.unit.algorithms.test_node_cpus import NEEDS, RULES, SCORED, machine, needs


@some.composite
def rooms(draw: some.DrawFn) -> NodeRoom:
    """What is left of a node on which pods hold CPUs, some of them across zones."""
    node = machine(draw(some.integers(1, 3)), draw(some.integers(1, 4)), memory=draw(some.integers(1, 16)))
    account: NodeAccount[int] = NodeAccount(node, draw(RULES), ())
    for pod, cpus in enumerate(
        draw(some.lists(some.frozensets(some.sampled_from(node.layout.cpus)), max_size=3))
    ):
        account.hold(pod, Allocation(cpus))
    return account.room


def _fits(room: NodeRoom, pod: PodNeeds) -> bool:
    try:
        allocate(room, pod, SCORED)
    except NoRoom:
        return False
    return True


@given(some.lists(rooms(), min_size=1, max_size=6), NEEDS)
def test_columns_agree_with_the_exact_allocation(nodes: list[NodeRoom], pod: PodNeeds) -> None:
    found = columns_of(nodes).look(pod)
    for row, room in enumerate(nodes):
        if not found.undecided[row]:
            assert _fits(room, pod) is not bool(found.refused[:, row].any())
        if found.unresolvable[row]:
            emptied = NodeAccount[int](machine(3, 4), room.rules, ()).room
            assert room.layout.per_core != 2 or not room.offers or not _fits(emptied, pod)


@given(rooms(), rooms(), NEEDS)
def test_a_row_is_as_it_was_put_last(first: NodeRoom, second: NodeRoom, pod: PodNeeds) -> None:
    columns = RoomColumns(1)
    columns.put(0, first)
    columns.put(0, second)
    found, fresh = columns.look(pod), columns_of([second]).look(pod)
    assert (found.refused == fresh.refused).all()
    assert found.undecided[0] == fresh.undecided[0]


def test_most_nodes_are_decided_without_a_look_at_their_cpus() -> None:
    nodes = [NodeAccount[int](machine(2, 4), NodeRules(), ()).room for _ in range(100)]
    columns = columns_of(nodes)
    for numa in NUMAPolicy:
        pod = needs(4, 1, binds=True, bind=BindPolicy.FULL_PCPUS, required=True, numa=numa)
        found = columns.look(pod)
        assert not found.undecided.any()
        assert not found.refused.any()
    across = columns.look(needs(12, binds=True, bind=BindPolicy.FULL_PCPUS, numa=NUMAPolicy.RESTRICTED))
    assert across.undecided.all()


def test_zones_that_others_span_refuse_those_who_want_one_for_themselves() -> None:
    account: NodeAccount[str] = NodeAccount(machine(2, 4), NodeRules(), ())
    account.hold("across", Allocation(frozenset({0, 8})))
    columns = columns_of([account.room])
    pod = needs(2, binds=True, numa=NUMAPolicy.SINGLE_NUMA_NODE)
    assert not columns.look(pod).refused.any()
    apart = columns.look(pod._replace(apart=Exclusive.REQUIRED))
    assert apart.refused[REASONS.index(NO_ZONE_FITS)].all()
    assert not apart.unresolvable.any()


def test_zones_that_have_too_little_together_are_refused_at_once() -> None:
    columns = columns_of([NodeAccount[str](machine(2, 4), NodeRules(), ()).room])
    for numa in (NUMAPolicy.RESTRICTED, NUMAPolicy.BEST_EFFORT):
        assert columns.look(needs(17, numa=numa)).refused[REASONS.index(TOO_LITTLE)].all()
        assert columns.look(needs(16, numa=numa)).undecided.all()


def test_a_row_without_anything_refuses_those_alone_who_want_cpus() -> None:
    columns = RoomColumns(2)
    assert not columns.any_rules
    assert not columns.look(needs(1)).refused.any()
    assert columns.look(needs(1, binds=True)).unresolvable.all()
