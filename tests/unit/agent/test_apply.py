"""A plan carried out on the model of a kernel: targets, levels, what has no file, what has gone."""

import pytest

from koordpolicy.agent.apply import Applied, apply
from koordpolicy.agent.doctor import abilities
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import (
    BEST_EFFORT,
    NODE,
    FileValue,
    Group,
    Level,
    Order,
    Plan,
    Write,
    container_group,
    pod_group,
)
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.machine import FakeMachine, FakeTask, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.readings.value import read_value
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import FileOutcome
from koordpolicy.model.pod import Pod
from tests.contract.kernel.kernels import make_group

SECOND = 1_000_000_000
LIMITS = DoorLimits(
    refresh=60 * SECOND, attempts=3, first_delay=SECOND, longest_delay=8 * SECOND, most_files=1000
)
FREE = "/proc/sys/vm/min_free_kbytes"
SCHEMATA = "/sys/fs/resctrl/BE/schemata"
POD = Pod("web", uid="u" * 8, kubernetes_qos="BestEffort", phase="Running")
WEB, GONE = container_group(POD.uid, "web"), pod_group("gone")
ENDED = container_group(POD.uid, "ended")


class Site:
    """A model of a node with one pod; each of its container's two processes has a score."""

    def __init__(self, version: CgroupVersion) -> None:
        self.root = FakeRoot(version, extra={FREE: "1", SCHEMATA: "L3:0=ff"})
        self.machine = FakeMachine(self.root, MachineSettings(memory=1 << 30, reserve=1 << 20))
        self.hierarchy = discover_hierarchy(self.root)
        self.pod = f"kubepods/besteffort/pod{POD.uid}"
        for group in ("kubepods", "kubepods/besteffort", self.pod, f"{self.pod}/c"):
            make_group(self.root, self.hierarchy, group)
        for pid in (7, 8):
            self.machine.start(FakeTask(pid, f"{self.pod}/c"))
        door = KernelDoor(self.root, self.hierarchy, lambda: self.machine.now, LIMITS, WriteLog(100))
        self.kernel = NodeKernel(self.root, self.hierarchy, door)

    def apply(self, *writes: Write) -> Applied:
        containers = {"web": f"{self.pod}/c", "ended": f"{self.pod}/e"}
        groups = self.kernel.groups({POD.uid: NodePod(POD, self.pod, containers)})
        return apply(Plan(writes), self.kernel.door, groups)

    def value(self, file: str, target: str = "") -> FileValue:
        return read_value(self.root, self.hierarchy, file, target)


@pytest.fixture(params=list(CgroupVersion))
def site(request: pytest.FixtureRequest) -> Site:
    return Site(request.param)


def write(file: str, group: Group, value: FileValue, strategy: str, order: Order = Order.AS_LISTED) -> Write:
    return Write(file, group, value, "why", strategy, order)


def quotas(*values: int) -> list[Write]:
    """A quota for the pod, and one for its container."""
    groups = (pod_group(POD.uid), WEB)
    return [
        write("cpu.cfs_quota_us", group, value, "batch-resources", Order.LEVELLED)
        for group, value in zip(groups, values, strict=True)
    ]


def test_a_plan_is_carried_out(site: Site) -> None:
    cookie = write(COOKIE, WEB, "group", "core-scheduling")
    gone = write("cpu.shares", GONE, 2, "batch-resources", Order.LEVELLED)
    ended = write("oom_score_adj", ENDED, 5, "oom-score")
    found = site.apply(
        write("vm.min_free_kbytes", NODE, 20_000, "system"),
        write("schemata", Group(Level.RESCTRL, name="BE"), "L3:0=f;", "resctrl"),
        write("oom_score_adj", WEB, -5, "oom-score"),
        cookie,
        ended,
        *quotas(64_000, 32_000),
        gone,
        write("cpu.cfs_quota_us", BEST_EFFORT, 100_000, "cpu-suppress"),
    )
    assert [one.outcome for one in found.results] == [FileOutcome.WRITTEN] * 7
    assert (found.elsewhere, found.vanished) == ((cookie,), (ended, gone))
    assert site.root.read(FREE) == "20000"
    assert site.root.read(SCHEMATA).strip() == "L3:0=f;"
    assert [site.value("oom_score_adj", pid) for pid in ("7", "8")] == [-5, -5]
    assert site.value("cpu.cfs_quota_us", "kubepods/besteffort") == 100_000
    for group, expected in ((site.pod, 64_000), (f"{site.pod}/c", 32_000)):
        assert site.value("cpu.cfs_quota_us", group) == expected


def test_processes_of_other_namespaces_are_left_alone(site: Site) -> None:
    def seen() -> bool:
        return next(one.there for one in abilities(site.kernel) if one.name == "processes of the node")

    assert seen()
    site.root.tree("cpu").root.pids.add(0)  # as the kernel lists one that is not seen from here
    found = site.root.tree("cpu").find(f"{site.pod}/c")
    assert found is not None
    found.pids.add(0)
    assert not seen()
    scores = site.apply(write("oom_score_adj", WEB, 300, "oom-score"))
    assert [one.write.target for one in scores.results] == ["7", "8"]


def test_processes_that_begin_later_have_the_score_too(site: Site) -> None:
    score = write("oom_score_adj", WEB, 300, "oom-score")
    site.apply(score)
    site.machine.start(FakeTask(9, f"{site.pod}/c"))
    assert {one.write.target: one.outcome for one in site.apply(score).results} == {
        "7": FileOutcome.REMEMBERED,
        "8": FileOutcome.REMEMBERED,
        "9": FileOutcome.WRITTEN,
    }


@pytest.mark.parametrize(
    ("before", "after", "order"),
    [
        ((8_000, 4_000), (64_000, 32_000), ["pod", "container"]),
        ((64_000, 32_000), (8_000, 4_000), ["container", "pod"]),
    ],
)
def test_parents_grow_first_and_shrink_last(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[int, int],
    after: tuple[int, int],
    order: list[str],
) -> None:
    site.apply(*quotas(*before))
    written: list[str] = []
    really = site.root.write

    def noted(path: str, content: str) -> None:
        written.append("container" if "/c/" in path else "pod")
        really(path, content)

    monkeypatch.setattr(site.root, "write", noted)
    found = site.apply(*reversed(quotas(*after)))
    assert {one.outcome for one in found.results} == {FileOutcome.WRITTEN}
    assert written == order


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
