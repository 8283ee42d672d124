"""Programs that run beside Kubernetes on a node: where their groups stand, and what the kernel's scheduler gives to them."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.agent.plan import Group, Level, Plan, Write
from koordpolicy.agent.strategies.cpu_isolation import IDENTITY_FILE, WRITER, IsolatedCPU
from koordpolicy.agent.strategies.isolation import BE, LS, LSE, LSR
from koordpolicy.algorithms.cpu_pools import CPUPools, joined
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.language.kinds.system import CgroupPath, HostApplication
from koordpolicy.model.cpuset import parse_cpuset

KIND: Final = "HostApplicationSet"
_PLACEMENT: Final = "cpuset"
_USUAL: Final = {
    LSE: "host-latency-sensitive",
    LSR: "host-latency-sensitive",
    LS: "host-latency-sensitive",
    BE: "host-best-effort",
}
_BASES: Final = {"Kubepods": "kubepods", "KubepodsBurstable": "burstable", "KubepodsBesteffort": "besteffort"}


def host_applications(graph: RuleGraph, node: Facts, now: int) -> Sequence[HostApplication]:
    """The programs that policy names for the node. Raises `CelError` where that cannot be told."""
    if not graph.subjects(KIND):
        return ()
    roots = {"node": node, "now": TIMES.timestamp(now)}
    return graph.setting(KIND, "", "applications", roots) or ()


def application_group(application: HostApplication) -> Group:
    """The group of a program: `name` is its path, below the group that `pod` names (empty for the root)."""
    path: CgroupPath | None = application.cgroup_path
    if path is None:
        usual = _USUAL.get(application.qos or "")
        name = f"{usual}/{application.name}" if usual else application.name
        return Group(Level.HOST_APPLICATION, name=name)
    steps = [part.strip("/") for part in (path.parent_dir, path.relative_path)]
    return Group(
        Level.HOST_APPLICATION, _BASES.get(path.base or "", ""), "/".join(step for step in steps if step)
    )


def application_plan(
    isolation: IsolatedCPU, applications: Sequence[HostApplication], pools: CPUPools
) -> Plan:
    """What is to be written for programs: identities by their classes, and the shared CPUs for those of class LS."""
    writes: list[Write] = []
    notes: list[str] = []
    cpus = parse_cpuset(joined(pools.shared, pools.shared))
    for one in applications:
        group, qos = application_group(one), one.qos or ""
        reason = f"{KIND}: {one.name} of class {qos or 'none'}"
        kind = LSR if qos == LSE else qos
        value = isolation.identity(kind) if kind in (LSR, LS, BE) else 0
        if value is not None:
            writes.append(Write(IDENTITY_FILE, group, value, reason, WRITER))
        if qos == LS and cpus:
            writes.append(Write("cpuset.cpus", group, cpus, reason, _PLACEMENT))
    return Plan(tuple(writes), notes=tuple(notes))
