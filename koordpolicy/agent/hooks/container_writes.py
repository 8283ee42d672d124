"""What hooks say of pods and containers as writes: shares, quotas, limits, CPUs, scores."""

from collections.abc import Iterator
from typing import Final

from koordpolicy.agent.hooks.containers import GroupNumbers, HookedNumbers
from koordpolicy.agent.plan import Group, Order, Plan, Write, container_group, pod_group
from koordpolicy.algorithms.cpu_pools import CPUPools, chosen_cpus
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from koordpolicy.model.numa import cpu_zones
from koordpolicy.model.pod import Pod, owned_cpus
from koordpolicy.model.reading import ObjectError

PLACEMENT: Final = "cpuset"
SCORES: Final = "oom-score"


def container_writes(pod: Pod, hooked: HookedNumbers, pools: CPUPools) -> Plan:
    """The writes for a pod, parents before children; an allocation that cannot be read moves no container."""
    reason = f"ContainerHook for {pod.namespace}/{pod.name}"
    writes: list[Write] = []
    for writer, numbers in hooked.by_writer.items():
        writes += _numbers(pod_group(pod.uid), numbers.pod, reason, writer)
        for name, one in numbers.containers.items():
            writes += _numbers(container_group(pod.uid, name), one, reason, writer)
    notes: tuple[str, ...] = ()
    for name, one in hooked.whole.containers.items():
        group = container_group(pod.uid, name)
        try:
            cpus = container_cpus(pod, one, pools)
        except (ObjectError, ValueError) as problem:
            notes = (f"{pod.namespace}/{pod.name}: {problem}",)
            cpus = None
        if cpus:
            writes.append(Write("cpuset.cpus", group, cpus, reason, PLACEMENT, Order.LEVELLED))
        if one.oom_score is not None:
            writes.append(Write("oom_score_adj", group, one.oom_score, reason, SCORES))
    return Plan(tuple(writes), notes=notes)


def container_cpus(pod: Pod, numbers: GroupNumbers, pools: CPUPools) -> frozenset[int] | None:
    """The CPUs of a container: none for those of its parents, None to leave it where it is.

    Raises `ObjectError` and `ValueError` where the pod's allocation cannot be read.
    """
    if numbers.cpus is None:
        return None
    owned = cpuset_text(owned_cpus(pod.annotations))
    found = chosen_cpus(numbers.cpus, pools, owned, cpu_zones(pod.annotations))
    return None if found is None else parse_cpuset(found)


def _numbers(group: Group, numbers: GroupNumbers, reason: str, writer: str) -> Iterator[Write]:
    for file, value in (
        ("cpu.shares", numbers.shares),
        ("cpu.cfs_quota_us", numbers.quota),
        ("memory.limit_in_bytes", numbers.memory_limit),
    ):
        if value is not None:
            yield Write(file, group, value, reason, writer, Order.LEVELLED)
