"""A plan carried out: targets, levels, what has no file, what has gone."""

from collections.abc import Callable, Sequence

from koordpolicy.agent.apply import apply
from koordpolicy.agent.plan import (
    ALL_PODS,
    BEST_EFFORT,
    NODE,
    Group,
    Level,
    Order,
    Plan,
    Write,
    container_group,
    pod_group,
)
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

WEB = container_group("u", "web")
PATHS = {
    ALL_PODS: "kubepods",
    BEST_EFFORT: "kubepods/besteffort",
    pod_group("u"): "kubepods/besteffort/podu",
    WEB: "kubepods/besteffort/podu/c",
}


class Paths:
    """Groups that are there."""

    def path(self, group: Group) -> str | None:
        return PATHS.get(group)

    def processes(self, group: Group) -> Sequence[int]:
        return (7, 8) if group == WEB else ()


class Planning:
    """A door that only notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[list[list[FileWrite]]] = []

    def write(self, writes: Sequence[FileWrite]) -> tuple[FileWriteResult, ...]:
        return self.write_leveled([writes])

    def write_leveled(self, levels: Sequence[Sequence[FileWrite]]) -> tuple[FileWriteResult, ...]:
        self.calls.append([list(level) for level in levels])
        return tuple(FileWriteResult(one, FileOutcome.PLANNED) for level in levels for one in level)

    def undo(self, choose: Callable[[FileWrite], bool]) -> tuple[FileWriteResult, ...]:
        raise NotImplementedError

    def forget(self, target: str) -> None:
        raise NotImplementedError


def write(file: str, group: Group, value: int | str, strategy: str, order: Order = Order.AS_LISTED) -> Write:
    assert strategy in KERNEL_FILES[file].writers or file == COOKIE
    return Write(file, group, value, "why", strategy, order)


def test_a_plan_is_carried_out() -> None:
    levelled = Order.LEVELLED
    gone = pod_group("gone")
    cookie = Write(COOKIE, WEB, "group", "why", "core-scheduling")
    plan = Plan(
        (
            write("vm.min_free_kbytes", NODE, 20_000, "system"),
            write("schemata", Group(Level.RESCTRL, name="BE"), "L3:0=f;", "resctrl"),
            write("oom_score_adj", WEB, -5, "oom-score"),
            cookie,
            write("memory.min", WEB, 1, "memory-qos", levelled),
            write("memory.min", ALL_PODS, 3, "memory-qos", levelled),
            write("memory.min", BEST_EFFORT, 2, "memory-qos", levelled),
            write("memory.min", pod_group("u"), 1, "memory-qos", levelled),
            write("memory.min", gone, 1, "memory-qos", levelled),
            write("cpu.cfs_quota_us", BEST_EFFORT, 5_000, "cpu-suppress"),
        )
    )
    door = Planning()
    found = apply(plan, door, Paths())
    first, levels, last = door.calls
    assert [(one.file, one.target) for one in first[0]] == [
        ("vm.min_free_kbytes", ""),
        ("schemata", "BE"),
        ("oom_score_adj", "7"),
        ("oom_score_adj", "8"),
    ]
    assert [[one.target for one in level] for level in levels] == [
        ["kubepods"],
        ["kubepods/besteffort"],
        ["kubepods/besteffort/podu"],
        ["kubepods/besteffort/podu/c"],
    ]
    assert [(one.value, one.writer, one.reason) for one in last[0]] == [(5_000, "cpu-suppress", "why")]
    assert found.elsewhere == (cookie,)
    assert [one.group for one in found.vanished] == [gone]
    assert len(found.results) == 9


FILES = {
    "cpu-suppress": ("cpuset.cpus", "cpu.cfs_quota_us"),
    "cpu-burst": ("cpu.cfs_quota_us", "cpu.cfs_burst_us"),
    "batch-resources": ("cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes"),
    "cpuset": ("cpuset.cpus",),
    "oom-score": ("oom_score_adj",),
    "group-identity": (
        "cpu.bvt_warp_ns",
        "cpu.idle",
        "kernel.sched_group_identity_enabled",
        "kernel.sched_core",
    ),
    "core-scheduling": ("kernel.sched_group_identity_enabled", "kernel.sched_core"),
    "memory-qos": (
        *("memory.min", "memory.low", "memory.high", "memory.wmark_ratio", "memory.wmark_scale_factor"),
        *("memory.wmark_min_adj", "memory.use_priority_oom", "memory.priority", "memory.oom.group"),
        *(f"memory.pagecache_limit.{name}" for name in ("enable", "size", "sync")),
    ),
    "resctrl": ("schemata", "resctrl.tasks"),
    "block-io": (
        *(f"blkio.throttle.{way}_{what}_device" for way in ("read", "write") for what in ("iops", "bps")),
        *("blkio.cost.weight", "blkio.cost.qos", "blkio.cost.model"),
    ),
    "system": (
        *(
            "vm.min_free_kbytes",
            "vm.watermark_scale_factor",
            "memcg_reaper.reap_background",
            "sched_features",
        ),
        *("kernel.sched_group_identity_enabled", "kernel.sched_idle_saver_wmark", "pagecache_limit.enabled"),
    ),
}
"""What each strategy plans writes to."""


def test_every_strategy_may_write_what_it_plans() -> None:
    refused = [
        (strategy, file)
        for strategy, files in FILES.items()
        for file in files
        if file not in KERNEL_FILES or strategy not in KERNEL_FILES[file].writers
    ]
    assert refused == []
