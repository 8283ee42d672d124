"""Picking CPUs, moving cgroups to them, quotas, and the kernel's numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.container_resources import (
    normalized_quota,
    quota_of,
    shares_of,
)
from koordpolicy.algorithms.cpuset import Reach, pick_cpus, transition
from koordpolicy.algorithms.suppress import CpusetLimits, QuotaLimits, cpu_count, plan_cpuset, quota_write
from koordpolicy.model.shares import MOST_SHARES
from koordpolicy.model.topology import Processor

PROCESSORS = st.lists(
    st.builds(Processor, st.integers(0, 63), st.integers(0, 15), st.integers(0, 3), st.integers(0, 3)),
    unique_by=lambda one: one.cpu,
    max_size=24,
)
CPUS = st.sets(st.integers(0, 63), max_size=24)
STEP = CpusetLimits(minimum_cpus=2, growth=0.1)
QUOTA = QuotaLimits(period=100_000, minimum=2000, growth=0.1, negligible=0.01)


def machine(cores: int) -> list[Processor]:
    """Two threads a core, two sockets."""
    return [Processor(cpu, cpu // 2, cpu // cores, cpu // cores) for cpu in range(2 * cores)]


@given(PROCESSORS, st.integers(-2, 30))
def test_exactly_as_many_as_asked_or_none(processors: list[Processor], count: int) -> None:
    picked = pick_cpus(processors, count)
    assert len(picked) == len(set(picked))
    assert set(picked) <= {one.cpu for one in processors}
    assert len(picked) == (count if 0 <= count <= len(processors) else 0)
    assert pick_cpus(list(reversed(processors)), count) == picked


def test_whole_cores_first_spread_over_sockets() -> None:
    assert pick_cpus(machine(4), 5) == (0, 1, 4, 5, 2)


@given(CPUS, CPUS, CPUS, st.booleans())
def test_every_parent_holds_its_children_at_every_moment(
    picked: set[int], current: set[int], allowed: set[int], static: bool
) -> None:
    writes = transition(picked, current, allowed, kubelet_owns_parents=static)
    if not picked:
        assert all(write.reach is Reach.TOP_DOWN_TO_PODS for write in writes)
    elif not static:
        widening, shrinking = writes
        assert widening.cpus >= current
        assert widening.cpus >= shrinking.cpus == picked
    assert all(write.cpus for write in writes)


@pytest.mark.parametrize(
    ("target", "current", "expected"),
    [(12_000, 4, 6), (6_500, 6, 7), (3_001, 16, 4), (3_000, 16, 3), (0, 4, 2), (-9_999, 4, 2), (2_001, 0, 2)],
)
def test_growth_in_steps_shrinking_at_once(target: int, current: int, expected: int) -> None:
    assert cpu_count(target, current, 16, STEP) == expected


def test_lent_cpus_are_used_in_proportion() -> None:
    processors = machine(4)
    plan = plan_cpuset(4000, processors, set(range(8)), excluded={7}, borrowed={0, 1, 7}, limits=STEP)
    assert (plan.count, plan.from_borrowed, plan.from_shared) == (4, 1, 3)
    assert plan.picked[0] == 0
    assert {0, 1, 7}.isdisjoint(plan.picked[1:])


def test_nothing_usable_picks_nothing() -> None:
    plan = plan_cpuset(4000, machine(1), set(), excluded={0, 1}, borrowed=set(), limits=STEP)
    assert (plan.picked, plan.from_borrowed) == ((), 0)


@pytest.mark.parametrize(
    ("target", "current", "expected"),
    [
        (20_000, -1, 2_000_000),  # the first quota comes at once
        (20_000, 1_000_000, 1_800_000),  # then at most a tenth of the node more
        (20_000, 2_400_000, 2_000_000),
        (20_000, 1_980_000, None),  # less than a hundredth is not worth a write
        (0, 2_001, 2000),  # but the minimum always is
        (-5_000, 500_000, 2000),
    ],
)
def test_quotas(target: int, current: int, expected: int | None) -> None:
    assert quota_write(target, current, 80_000, QUOTA) == expected


@given(st.integers(-(10**6), 10**7))
def test_numbers_of_any_amount_are_accepted_by_the_kernel(milli: int) -> None:
    assert 2 <= shares_of(milli) <= MOST_SHARES
    assert quota_of(milli) == -1 or quota_of(milli) >= 1000


@pytest.mark.parametrize(
    ("quota", "ratio", "expected"),
    [
        (1000, 2.0, 500),
        (1001, 2.0, 501),
        (1000, 1.0, 1000),
        (1000, 0.5, 1000),
        (1000, None, 1000),
        (-1, 2.0, -1),
    ],
)
def test_normalisation(quota: int, ratio: float | None, expected: int) -> None:
    assert normalized_quota(quota, ratio) == expected
