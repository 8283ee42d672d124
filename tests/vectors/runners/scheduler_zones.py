"""Runners of CPUs and NUMA zones."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordpolicy.algorithms.amplified import INSUFFICIENT, amplified_cpu, short_of_cpu, short_of_cpu_one
from koordpolicy.algorithms.cpu_accumulator import (
    BindPolicy,
    CPUAllocateStrategy,
    CPUExclusive,
    HeldCPUs,
    NotEnoughCPUs,
    WantedCPUs,
    take_preferred,
)
from koordpolicy.algorithms.numa_merge import (
    Exclusive,
    Hint,
    NUMAPolicy,
    Zones,
    ZoneUse,
    mask_of,
    merge,
    zones_of,
)
from koordpolicy.model.cpu_layout import CPULayout
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from koordpolicy.model.topology import Processor
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def numa_merge(given: Given) -> Given:
    numbers = given["numaNodes"]
    uses = {zone: ZoneUse(use) for zone, use in zip(numbers, given["numaStatus"], strict=True)}
    zones = Zones(mask_of(numbers), uses, Exclusive(given["exclusive"]))
    providers = [
        {
            resource: None if hints is None else [_hint(hint) for hint in hints]
            for resource, hints in one.items()
        }
        for one in given["providers"]
    ]
    found = merge(NUMAPolicy(given["policy"] if given["policy"] != "None" else ""), zones, providers)
    return {
        "admit": found.admitted,
        "numaNodes": None if found.zones is None else zones_of(found.zones),
        "preferred": found.preferred,
        "score": found.score,
        "reasons": list(found.unsatisfied),
    }


def _hint(given: Given) -> Hint:
    return Hint(mask_of(given["numaNodes"]), given["preferred"], given["score"])


def amplify(given: Given) -> Given:
    return {"milliCPU": amplified_cpu(given["milliCPU"], given["ratio"])}


def amplified_cpu_filter(given: Given) -> Given:
    request, binds, ratio = given["podMilliCPU"], given["podIsCPUBound"], given["ratio"]
    amounts = given["nodeAllocatableMilli"], given["nodeRequestedMilli"], given["boundCPUsMilli"]
    allocatable, requested, bound = (np.array([amount]) for amount in amounts)
    columns = {"allocatable": allocatable, "requested": requested, "bound": bound}
    (short,) = short_of_cpu(request, binds=binds, ratio=np.array([ratio]), **columns)
    assert short == short_of_cpu_one(request, binds=binds)(ratio, *amounts)
    return {"fits": not short, "reason": INSUFFICIENT if short else None}


def cpu_accumulator(given: Given) -> Given:
    layout = layout_of(given["topology"])
    unavailable = parse_cpuset(given["unavailableCPUs"])
    references: dict[int, int] = {}
    cores, zones = set(), set()
    for one in given["allocatedBy"]:
        for cpu in parse_cpuset(one["cpus"]):
            references[cpu] = references.get(cpu, 0) + 1
            exclusive = _exclusive(one["exclusivePolicy"])
            if exclusive is CPUExclusive.PCPU_LEVEL:
                cores.add(layout.core[cpu])
            elif exclusive is CPUExclusive.NUMA_NODE_LEVEL:
                zones.add(layout.zone[cpu])
    most = given["maxRefCount"]
    available = {cpu for cpu in layout.cpus if references.get(cpu, 0) < most} - unavailable
    wanted = WantedCPUs(
        given["cpusNeeded"],
        BindPolicy(given["bindPolicy"]),
        _exclusive(given["exclusivePolicy"]),
        CPUAllocateStrategy(given["numaAllocateStrategy"]),
    )
    held = HeldCPUs(cores, zones, references if most > 1 else {})
    try:
        taken = take_preferred(
            layout, frozenset(available), parse_cpuset(given["preferredCPUs"]), wanted, held
        )
    except NotEnoughCPUs as problem:
        return {"error": str(problem)}
    return {"cpus": cpuset_text(taken)}


def layout_of(given: Given) -> CPULayout:
    """CPUs in the order of socket, zone, core and thread."""
    zones, cores, threads = given["numaNodesPerSocket"], given["coresPerNUMANode"], given["cpusPerCore"]
    return CPULayout.of(
        Processor(cpu, cpu // threads, cpu // (threads * cores * zones), cpu // (threads * cores))
        for cpu in range(given["sockets"] * zones * cores * threads)
    )


def _exclusive(name: str) -> CPUExclusive:
    return CPUExclusive("" if name == "None" else name)


RUNNERS: Mapping[str, Runner] = {
    "amplified-cpu-filter": Runner(amplified_cpu_filter),
    "amplify": Runner(amplify),
    "cpu-accumulator": Runner(cpu_accumulator),
    "numa-merge": Runner(numa_merge),
}
