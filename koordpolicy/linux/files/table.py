"""The table of kernel files: names, units, ranges, merge rules and writers of both versions of cgroups.

Files of no mainline kernel are marked by whose they are. Where one is not there, nothing is written and
`WriteOutcome.UNSUPPORTED` says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.linux.files import forms
from koordpolicy.linux.files.forms import Form
from koordpolicy.linux.files.kernel_file import (
    CgroupVersion,
    FileEntry,
    FilePlace,
    FileUnit,
    FileWriter,
    KernelFile,
    MergeRule,
)
from koordpolicy.model.shares import LEAST_SHARES, MOST_SHARES

V1, V2 = CgroupVersion.V1, CgroupVersion.V2

_SIZERS: Final = frozenset({FileWriter.BATCH_RESOURCES, FileWriter.CPU_NORMALIZATION, FileWriter.CPUSET})
"""Those as whom hooks size pods and containers."""
_MOST_QUOTA: Final = (1 << 44) - 1
"""Microseconds; the kernel's own bound (MAX_BW of kernel/sched/sched.h)."""
_LEAST_QUOTA: Final = 1000
_MOST_BURST: Final = 100_000_000
_MOST_BYTES: Final = (1 << 63) - 1


def _entries(v1: FileEntry | None, v2: FileEntry | None) -> Mapping[CgroupVersion, FileEntry]:
    return MappingProxyType({version: one for version, one in ((V1, v1), (V2, v2)) if one is not None})


def _both(
    name: str, form: Form, least: int | None = None, most: int | None = None
) -> Mapping[CgroupVersion, FileEntry]:
    entry = FileEntry(name, form, least, most)
    return _entries(entry, entry)


def _reads(controller: str, unit: FileUnit, v1: str | None, v2: str | None, form: Form) -> KernelFile:
    return KernelFile(
        v1 or v2 or "",
        unit,
        controller=controller,
        entries=_entries(FileEntry(v1, form) if v1 else None, FileEntry(v2, form) if v2 else None),
    )


def _cpu() -> Iterator[KernelFile]:
    shares = _SIZERS | {FileWriter.CPU_SUPPRESS, FileWriter.INTERFERENCE}
    quota = {
        *_SIZERS,
        FileWriter.CPU_SUPPRESS,
        FileWriter.CPU_BURST,
        FileWriter.INTERFERENCE,
    }
    yield KernelFile(
        "cpu.shares",
        FileUnit.SHARES,
        controller="cpu",
        entries=_entries(
            FileEntry("cpu.shares", forms.INTEGER, LEAST_SHARES, MOST_SHARES),
            FileEntry("cpu.weight", forms.SHARES_AS_WEIGHT, LEAST_SHARES, MOST_SHARES),
        ),
        writers=frozenset(shares),
    )
    yield KernelFile(
        "cpu.cfs_quota_us",
        FileUnit.MICROSECONDS,
        controller="cpu",
        entries=_entries(
            FileEntry(
                "cpu.cfs_quota_us", forms.UNLIMITED_AS_MINUS_ONE, _LEAST_QUOTA, _MOST_QUOTA, unlimited=True
            ),
            FileEntry("cpu.max", forms.QUOTA_OF_MAX, _LEAST_QUOTA, _MOST_QUOTA, unlimited=True),
        ),
        merge=MergeRule.LARGER,
        writers=frozenset(quota),
    )
    yield _reads_pair(
        "cpu.cfs_period_us", "cpu", FileUnit.MICROSECONDS, forms.INTEGER, "cpu.max", forms.PERIOD_OF_MAX
    )
    yield KernelFile(
        "cpu.cfs_burst_us",
        FileUnit.MICROSECONDS,
        controller="cpu",
        entries=_entries(
            FileEntry("cpu.cfs_burst_us", forms.INTEGER, 0, _MOST_BURST),
            FileEntry("cpu.max.burst", forms.INTEGER, 0),
        ),
        writers=frozenset({FileWriter.CPU_BURST}),
    )
    # Of Alibaba Cloud Linux and Anolis OS.
    yield KernelFile(
        "cpu.bvt_warp_ns",
        FileUnit.NUMBER,
        controller="cpu",
        entries=_both("cpu.bvt_warp_ns", forms.INTEGER, -1, 2),
        writers=frozenset({FileWriter.GROUP_IDENTITY}),
    )
    yield KernelFile(
        "cpu.idle",
        FileUnit.FLAG,
        controller="cpu",
        entries=_both("cpu.idle", forms.INTEGER, 0, 1),
        writers=frozenset({FileWriter.CORE_SCHEDULING, FileWriter.GROUP_IDENTITY, FileWriter.INTERFERENCE}),
    )
    yield _reads("cpu", FileUnit.LINES, "cpu.stat", "cpu.stat", forms.TEXT)
    yield _reads_pair("cpuacct.usage", "cpuacct", FileUnit.NANOSECONDS, forms.INTEGER, "cpu.stat", forms.TEXT)
    yield _reads("cpu", FileUnit.LINES, "tasks", "cgroup.threads", forms.TEXT)
    yield _reads("cpu", FileUnit.LINES, "cgroup.procs", "cgroup.procs", forms.TEXT)
    for resource in ("cpu", "memory", "io"):
        # In version 1 of Alibaba Cloud Linux and Anolis OS; in version 2 of every kernel with PSI.
        yield _reads("cpuacct", FileUnit.LINES, f"{resource}.pressure", f"{resource}.pressure", forms.TEXT)


def _reads_pair(name: str, controller: str, unit: FileUnit, v1: Form, v2_name: str, v2: Form) -> KernelFile:
    entries = _entries(FileEntry(name, v1), FileEntry(v2_name, v2))
    return KernelFile(name, unit, controller=controller, entries=entries)


def _cpuset() -> Iterator[KernelFile]:
    yield KernelFile(
        "cpuset.cpus",
        FileUnit.CPUS,
        controller="cpuset",
        entries=_both("cpuset.cpus", forms.CPUS),
        merge=MergeRule.UNION,
        writers=frozenset({FileWriter.CPU_SUPPRESS, FileWriter.CPUSET}),
    )
    yield _reads("cpuset", FileUnit.CPUS, "cpuset.effective_cpus", "cpuset.cpus.effective", forms.CPUS)
    yield _reads("cpuset", FileUnit.CPUS, "cpuset.mems", "cpuset.mems", forms.CPUS)


def _memory() -> Iterator[KernelFile]:
    qos = frozenset({FileWriter.MEMORY_QOS})
    yield KernelFile(
        "memory.limit_in_bytes",
        FileUnit.BYTES,
        controller="memory",
        entries=_entries(
            FileEntry("memory.limit_in_bytes", forms.UNLIMITED_AS_MINUS_ONE, 0, _MOST_BYTES, unlimited=True),
            FileEntry("memory.max", forms.UNLIMITED_AS_MAX, 0, _MOST_BYTES, unlimited=True),
        ),
        writers=_SIZERS,
    )
    yield _reads("memory", FileUnit.BYTES, "memory.usage_in_bytes", "memory.current", forms.INTEGER)
    for name in ("memory.min", "memory.low", "memory.high"):
        # In version 1 of Alibaba Cloud Linux and Anolis OS.
        yield KernelFile(
            name,
            FileUnit.BYTES,
            controller="memory",
            entries=_entries(
                FileEntry(name, forms.UNLIMITED_AS_HUGE, 0, _MOST_BYTES, unlimited=True),
                FileEntry(name, forms.UNLIMITED_AS_MAX, 0, _MOST_BYTES, unlimited=True),
            ),
            merge=MergeRule.LARGER,
            writers=qos,
        )
    # All but memory.oom.group of version 2 are Alibaba Cloud Linux' and Anolis OS'.
    for name, unit, least, most in (
        ("memory.wmark_ratio", FileUnit.PERCENT, 0, 100),
        ("memory.wmark_scale_factor", FileUnit.PERMILL, 1, 1000),
        ("memory.wmark_min_adj", FileUnit.PERCENT, -25, 50),
        ("memory.priority", FileUnit.NUMBER, 0, 12),
        ("memory.use_priority_oom", FileUnit.FLAG, 0, 1),
        ("memory.oom.group", FileUnit.FLAG, 0, 1),
    ):
        yield KernelFile(
            name, unit, controller="memory", entries=_both(name, forms.INTEGER, least, most), writers=qos
        )
    for name, unit, most in (
        ("memory.pagecache_limit.enable", FileUnit.FLAG, 1),
        ("memory.pagecache_limit.size", FileUnit.BYTES, _MOST_BYTES),
        ("memory.pagecache_limit.sync", FileUnit.FLAG, 1),
    ):
        entries = _entries(None, FileEntry(name, forms.INTEGER, 0, most))
        yield KernelFile(name, unit, controller="memory", entries=entries, writers=qos)
    yield _reads("memory", FileUnit.LINES, "memory.stat", "memory.stat", forms.TEXT)
    yield _reads("memory", FileUnit.LINES, "memory.numa_stat", "memory.numa_stat", forms.TEXT)
    yield _reads("memory", FileUnit.LINES, "memory.oom_control", "memory.events", forms.TEXT)
    # Of kernels with kidled.
    yield _reads("memory", FileUnit.LINES, "memory.idle_page_stats", None, forms.TEXT)


def _block_io() -> Iterator[KernelFile]:
    writers = frozenset({FileWriter.BLOCK_IO})
    for kind, key in (
        ("read_bps", "rbps"),
        ("write_bps", "wbps"),
        ("read_iops", "riops"),
        ("write_iops", "wiops"),
    ):
        name = f"blkio.throttle.{kind}_device"
        entries = _entries(FileEntry(name, forms.DEVICE_LINE), FileEntry("io.max", forms.throttle_v2(key)))
        yield KernelFile(name, FileUnit.LINES, controller="blkio", entries=entries, writers=writers)
    # In version 1 of Alibaba Cloud Linux and Anolis OS.
    for v1, v2, form in (
        ("blkio.cost.weight", "io.weight", forms.DEVICE_WEIGHT),
        ("blkio.cost.qos", "io.cost.qos", forms.DEVICE_LINE),
        ("blkio.cost.model", "io.cost.model", forms.DEVICE_LINE),
    ):
        entries = _entries(FileEntry(v1, form), FileEntry(v2, form))
        yield KernelFile(v1, FileUnit.LINES, controller="blkio", entries=entries, writers=writers)
    yield _reads("blkio", FileUnit.LINES, "blkio.throttle.io_service_bytes", "io.stat", forms.TEXT)


def _network() -> Iterator[KernelFile]:
    yield KernelFile(
        "net_cls.classid",
        FileUnit.NUMBER,
        controller="net_cls",
        entries=_entries(FileEntry("net_cls.classid", forms.INTEGER, 0, (1 << 32) - 1), None),
        writers=frozenset({FileWriter.NETWORK}),
    )


def _resctrl() -> Iterator[KernelFile]:
    writers = frozenset({FileWriter.RESCTRL, FileWriter.INTERFERENCE})
    yield KernelFile(
        "schemata",
        FileUnit.LINES,
        FilePlace.RESCTRL,
        entry=FileEntry("schemata", forms.SCHEMATA),
        writers=writers,
    )
    yield KernelFile(
        "resctrl.tasks",
        FileUnit.NUMBER,
        FilePlace.RESCTRL,
        entry=FileEntry("tasks", forms.MEMBER),
        writers=writers,
        appends=True,
    )


def _of_node(
    path: str, unit: FileUnit, writer: FileWriter, least: int | None = None, most: int | None = None
) -> KernelFile:
    """A file of the node, named as sysctl names it: `vm.min_free_kbytes`; those of /sys/kernel/mm likewise."""
    name = path.removeprefix("/proc/sys/").removeprefix("/sys/kernel/mm/").replace("/", ".")
    entry = FileEntry(path, forms.INTEGER, least, most)
    return KernelFile(name, unit, FilePlace.NODE, entry=entry, writers=frozenset({writer}))


def _node() -> Iterator[KernelFile]:
    system, identity, cold = FileWriter.SYSTEM, FileWriter.GROUP_IDENTITY, FileWriter.COLD_MEMORY
    yield _of_node("/proc/sys/vm/min_free_kbytes", FileUnit.KIBIBYTES, system, 10_240, 10_485_760)
    yield _of_node("/proc/sys/vm/watermark_scale_factor", FileUnit.PERMILL, system, 10, 400)
    # Those below are Alibaba Cloud Linux' and Anolis OS'.
    for name in ("sched_group_identity_enabled", "sched_core"):
        row = _of_node(f"/proc/sys/kernel/{name}", FileUnit.FLAG, identity, 0, 1)
        yield KernelFile(
            row.name,
            row.unit,
            row.place,
            entry=row.entry,
            writers=frozenset({identity, system, FileWriter.CORE_SCHEDULING}),
        )
    yield _of_node("/proc/sys/kernel/sched_idle_saver_wmark", FileUnit.NANOSECONDS, system)
    yield _of_node("/sys/kernel/mm/memcg_reaper/reap_background", FileUnit.FLAG, system, 0, 1)
    yield _of_node("/sys/kernel/mm/pagecache_limit/enabled", FileUnit.FLAG, system, 0, 1)
    yield _of_node("/sys/kernel/mm/kidled/scan_period_in_seconds", FileUnit.SECONDS, cold, 0, 32_767)
    yield _of_node("/sys/kernel/mm/kidled/use_hierarchy", FileUnit.FLAG, cold, 0, 1)
    yield KernelFile(
        "sched_features",
        FileUnit.LINES,
        FilePlace.NODE,
        entry=FileEntry("/sys/kernel/debug/sched_features", forms.FEATURE),
        writers=frozenset({system, FileWriter.CORE_SCHEDULING}),
    )


def _process() -> Iterator[KernelFile]:
    yield KernelFile(
        "oom_score_adj",
        FileUnit.NUMBER,
        FilePlace.PROCESS,
        entry=FileEntry("/proc/{}/oom_score_adj", forms.INTEGER, -1000, 1000),
        writers=frozenset({FileWriter.OOM_SCORE}),
    )


def _table(parts: Iterable[Iterator[KernelFile]]) -> Mapping[str, KernelFile]:
    rows = [row for part in parts for row in part]
    table = {row.name: row for row in rows}
    assert len(table) == len(rows), "two rows of one name"
    return MappingProxyType(table)


KERNEL_FILES: Final[Mapping[str, KernelFile]] = _table(
    (_cpu(), _cpuset(), _memory(), _block_io(), _network(), _resctrl(), _node(), _process())
)
"""Every file that is read or written by name, by its name."""
