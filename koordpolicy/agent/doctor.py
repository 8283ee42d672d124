"""What a node's kernel can do of what policies may ask, by name; nothing is written to find out."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.agent.ability import Ability
from koordpolicy.agent.collectors.kernel_signals import KernelSignals
from koordpolicy.agent.device_abilities import device_abilities
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.graph.describe.layout import paragraph
from koordpolicy.linux.core_scheduling import HostCoreScheduling
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.files.kernel_file import CgroupVersion, FilePlace
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.readings.kubelet_cpus import CPU_MANAGER_STATE, read_kubelet_cpus
from koordpolicy.linux.readings.members import sees_all_processes
from koordpolicy.linux.readings.processes import read_cpu_ticks, read_memory_info
from koordpolicy.linux.readings.resctrl import read_cache_use
from koordpolicy.linux.readings.routes import read_default_device
from koordpolicy.linux.readings.topology import read_node_cpus, read_processors
from koordpolicy.linux.readings.traffic import read_disciplines

_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cpuset.cpus": "CPUSuppress with mechanism `cpuset` holds nothing back",
        "cpu.cfs_quota_us": "CPUSuppress with mechanism `cfsQuota`, quotas of CPUBurst and CPU limits of ContainerHook do nothing",
        "cpu.cfs_burst_us": "CPUBurst saves up no unused time",
        "cpu.shares": "CPU requests of ContainerHook do nothing",
        "memory.limit_in_bytes": "memory limits of ContainerHook do nothing",
        "cpuacct.usage": "pods and containers are not measured: nothing is suppressed or evicted by their use of CPU",
        "memory.idle_page_stats": "MetricCollection.coldMemory finds nothing: `memory: usageWithHotPageCache` counts no page cache",
        "memory.stat": "pods and containers are not measured: nobody is evicted by their use of memory",
        "cpu.stat": "throttling is not measured: quotas of CPUBurst do not grow",
        "cpu.bvt_warp_ns": "Isolation.cpu.identity does nothing",
        "cpu.idle": "Isolation.cpu.idle does nothing",
        "memory.min": "Isolation.memory.minimum does nothing",
        "memory.low": "Isolation.memory.low does nothing",
        "memory.high": "Isolation.memory.throttling does nothing",
        "memory.wmark_ratio": "Isolation.memory.watermark does nothing",
        "memory.priority": "Isolation.memory.priority does nothing",
        "memory.oom.group": "Isolation.memory.killsGroup does nothing",
        "schemata": "Isolation.cache does nothing",
        "blkio.throttle.read_bps_device": "Isolation.blocks limits nothing",
        "net_cls.classid": "pods on the host's network are in no network class",
        "vm.min_free_kbytes": "SystemTuning.minFreeFactor does nothing",
        "vm.watermark_scale_factor": "SystemTuning.watermarkScaleFactor does nothing",
        "kernel.sched_group_identity_enabled": "SystemTuning.groupIdentity does nothing",
        "kernel.sched_idle_saver_wmark": "SystemTuning.idleSaverWatermark does nothing",
        "memcg_reaper.reap_background": "SystemTuning.reapsMemory does nothing",
        "pagecache_limit.enabled": "SystemTuning.limitsPageCache does nothing",
        "sched_features": "SystemTuning.features does nothing",
        "cpu.pressure": "the pressure of pods is not measured: rules of Interference that read it hold of nobody, and no metric shows it",
    }
)
"""What is not done where a file is missing."""


def abilities(kernel: NodeKernel, terway: Path | None = None) -> Iterator[Ability]:
    """All of them, each looked at once. `terway` is where Terway's directory would be."""
    hierarchy, root = kernel.hierarchy, kernel.root
    version = "1" if hierarchy.version is CgroupVersion.V1 else "2"
    yield Ability("control groups", True, f"version {version} at {hierarchy.root}")
    kubepods = kernel.kubepods()
    yield Ability(
        "the kubelet's groups",
        kubepods is not None,
        f"{kubepods.driver} at {kubepods.root}"
        if kubepods is not None
        else "none that systemd or cgroupfs would make",
        "no pod is measured, and nothing is written to pods",
    )
    for name, read in (
        ("CPU time of the node", read_cpu_ticks),
        ("memory of the node", read_memory_info),
        ("CPUs and their places", read_processors),
        ("NUMA zones", read_node_cpus),
    ):
        try:
            found = read(root)
        except KernelFileError as error:
            yield Ability(
                name, False, str(error), f"{name} cannot be told: strategies that need it keep what is"
            )
        else:
            count = f"{len(found)} of them" if isinstance(found, tuple | Mapping) and found else ""
            yield Ability(name, True, count)
    yield _processes(kernel)
    yield _counters(kernel)
    yield _cookies()
    yield _traffic(kernel)
    yield _caches(kernel)
    if terway is not None:
        yield _terway(terway)
    yield _kubelet_cpus(kernel)
    yield from device_abilities(root, kernel.sources)
    target = "" if kubepods is None else kubepods.root
    for file, means in _FIELDS.items():
        row = KERNEL_FILES.get(file)
        if row is None:
            continue
        places = hierarchy.located(file, target if row.place is FilePlace.CGROUP else "")
        place = next((one for one in places if root.exists(one.path)), None)
        why = "not in this kernel, or not switched on" if place is None else place.path
        yield Ability(file, place is not None, why, means)


def _processes(kernel: NodeKernel) -> Ability:
    """Whether processes of containers can be told by their numbers."""
    name, means = (
        "processes of the node",
        "ContainerHook.container.oomScore does nothing, and `conduct.by: Stop` stops nobody",
    )
    try:
        there = sees_all_processes(kernel.root, kernel.hierarchy)
    except KernelFileError as error:
        return Ability(name, False, str(error), means)
    return Ability(name, there, "" if there else "the agent is in another PID namespace", means)


def _counters(kernel: NodeKernel) -> Ability:
    """Whether cycles and instructions of groups can be counted: by counting those of the root for a moment."""
    name, means = (
        "cycles and instructions of groups",
        "rules of Interference that read `pod.cpi` hold of nobody",
    )
    try:
        KernelSignals(kernel.root, kernel.hierarchy).count("").close()
    except KernelFileError as error:
        return Ability(name, False, error.problem, means)
    return Ability(name, True, "")


def _cookies() -> Ability:
    """Whether the kernel knows cookies of core scheduling: by asking for this process' own."""
    name, means = "core scheduling", "SystemTuning.cpuMechanism `coreSched` keeps nobody apart"
    try:
        HostCoreScheduling().cookie(0)
    except KernelFileError as error:
        return Ability(name, False, error.problem, means)
    return Ability(name, True, "")


def _traffic(kernel: NodeKernel) -> Ability:
    """Whether the `tc` program is there, and the device whose traffic would be shaped."""
    name, means = (
        "shaping of traffic",
        "Isolation.network with SystemTuning.networkMechanism `tc` shapes nothing",
    )
    try:
        device = read_default_device(kernel.root)
        read_disciplines(device)
    except KernelFileError as error:
        return Ability(name, False, error.problem, means)
    return Ability(name, True, f"tc, on {device}")


def _caches(kernel: NodeKernel) -> Ability:
    """Whether the CPU counts what groups of resctrl use of its caches and of memory's bandwidth."""
    name, means = "use of caches", "metrics of resctrl show nothing"
    try:
        found = read_cache_use(kernel.root)
    except KernelFileError as error:
        return Ability(name, False, error.problem, means)
    why = f"{len(found)} of them" if found else "the CPU does not count it"
    return Ability(name, bool(found), why, means)


def _terway(directory: Path) -> Ability:
    """Whether Terway reads a directory on this node, and files can be put there."""
    name, means = (
        "Terway",
        "Isolation.network with SystemTuning.networkMechanism `terway-qos` tells nobody",
    )
    if not directory.is_dir():
        return Ability(name, False, f"there is no {directory}", means)
    if not os.access(directory, os.W_OK | os.X_OK):
        return Ability(name, False, f"{directory} cannot be written", means)
    return Ability(name, True, str(directory))


def _kubelet_cpus(kernel: NodeKernel) -> Ability:
    """Whether it can be told which CPUs the kubelet gives to pods by itself."""
    name, means = (
        "CPUs that the kubelet gives",
        "where its CPU manager is `static`, NodeResourceTopology is not reported, and shared pools hold those CPUs, too",
    )
    try:
        found = read_kubelet_cpus(kernel.root)
    except KernelFileError as error:
        return Ability(name, False, str(error), means)
    return Ability(name, True, f"{CPU_MANAGER_STATE}, {len(found)} pods" if found else CPU_MANAGER_STATE)


def doctor_record(kernel: NodeKernel, terway: Path | None = None) -> list[dict[str, Any]]:
    """As JSON values."""
    return [
        {"name": one.name, "there": one.there, "why": one.why, "means": "" if one.there else one.means}
        for one in abilities(kernel, terway)
    ]


def doctor_text(kernel: NodeKernel, terway: Path | None = None, width: int = 80) -> str:
    """For people: what there is, then what is not done without the rest, in lines of that width where words allow it."""
    found = list(abilities(kernel, terway))
    names = max(len(one.name) for one in found)
    lines = ["this node's kernel has"]
    for one in found:
        if one.there:
            lines += _entry(one.name, one.why, names, width)
    missing = [one for one in found if not one.there]
    if missing:
        lines += ["", "it does not have, so that"]
        for one in missing:
            lines += _entry(one.name, f"{one.means} ({one.why})", names, width)
    return "\n".join(lines)


def _entry(name: str, text: str, names: int, width: int) -> list[str]:
    """A name and what is said of it, on one line where it fits."""
    line = f"  {name:{names}}  {text}".rstrip()
    return [line] if len(line) <= width else [f"  {name}", *paragraph(text, width, indent=6)]
