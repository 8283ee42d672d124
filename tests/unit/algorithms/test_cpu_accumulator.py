"""CPUs of their own for pods: what holds whatever is free."""

from hypothesis import given
from hypothesis import strategies as some

from koordpolicy.algorithms.cpu_accumulator import (
    BindPolicy,
    CPUAllocateStrategy,
    CPUExclusive,
    HeldCPUs,
    NotEnoughCPUs,
    WantedCPUs,
    take_preferred,
    take_required,
)
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.topology import Processor


def layout(sockets: int, zones: int, cores: int, threads: int) -> CPULayout:
    return CPULayout.of(
        Processor(cpu, cpu // threads, cpu // (threads * cores * zones), cpu // (threads * cores))
        for cpu in range(sockets * zones * cores * threads)
    )


LAYOUTS = some.builds(
    layout, some.integers(1, 2), some.integers(1, 3), some.integers(1, 4), some.sampled_from([1, 2])
)


@given(some.data(), LAYOUTS)
def test_so_many_free_cpus_are_taken_as_are_wanted(data: some.DataObject, machine: CPULayout) -> None:
    free = data.draw(some.frozensets(some.sampled_from(machine.cpus)))
    preferred = data.draw(some.frozensets(some.sampled_from(machine.cpus)))
    wanted = WantedCPUs(
        data.draw(some.integers(0, len(machine.cpus))),
        data.draw(some.sampled_from(BindPolicy)),
        data.draw(some.sampled_from(CPUExclusive)),
        data.draw(some.sampled_from(CPUAllocateStrategy)),
    )
    held = HeldCPUs(
        data.draw(some.frozensets(some.sampled_from(sorted(machine.siblings)))),
        data.draw(some.frozensets(some.sampled_from(sorted(machine.zones)))),
    )
    try:
        taken = take_preferred(machine, free, preferred, wanted, held)
    except NotEnoughCPUs:
        assert len(free) < wanted.count
        return
    # Two sockets: with three, an odd number of CPUs in whole cores may be one more.
    assert taken <= free
    assert len(taken) == wanted.count
    assert len(taken & preferred) >= min(wanted.count, len(free & preferred)) or not preferred


@given(some.data(), LAYOUTS)
def test_required_policies_are_kept_or_nothing_is_taken(data: some.DataObject, machine: CPULayout) -> None:
    free = data.draw(some.frozensets(some.sampled_from(machine.cpus)))
    bind = data.draw(some.sampled_from([BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS]))
    wanted = WantedCPUs(data.draw(some.integers(1, len(machine.cpus))), bind)
    try:
        taken = take_required(machine, free, frozenset(), wanted, HeldCPUs())
    except NotEnoughCPUs:
        return
    assert taken <= free
    assert len(taken) == wanted.count
    cores = machine.cores(taken)
    assert (
        cores == len(taken) if bind is BindPolicy.SPREAD_BY_PCPUS else cores * machine.per_core == len(taken)
    )
