"""What every write through the door does, on the model and on this machine's kernel."""

from dataclasses import replace

import pytest

from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.files.kernel_file import CgroupVersion, FileWriter
from koordpolicy.linux.readings.value import read_value
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import FileOutcome, FileWrite
from tests.contract.kernel.kernels import Kernel

SECOND = 1_000_000_000
LIMITS = DoorLimits(
    refresh=60 * SECOND,
    attempts=3,
    first_delay=SECOND,
    longest_delay=8 * SECOND,
    most_files=1000,
    absent=5 * SECOND,
)
WRITERS = {
    "cpu.shares": FileWriter.BATCH_RESOURCES,
    "cpu.cfs_quota_us": FileWriter.CPU_BURST,
    "cpu.cfs_burst_us": FileWriter.CPU_BURST,
    "cpu.idle": FileWriter.CORE_SCHEDULING,
    "cpuset.cpus": FileWriter.CPU_SUPPRESS,
    "memory.limit_in_bytes": FileWriter.BATCH_RESOURCES,
}


class Site:
    """A door to a kernel whose clock stands still until it is moved."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.now = kernel, 0
        self.log = WriteLog(100)
        self.door = self.new_door()

    def new_door(self, *, plan_only: bool = False) -> KernelDoor:
        return KernelDoor(
            self.kernel.root, self.kernel.hierarchy, lambda: self.now, LIMITS, self.log, plan_only=plan_only
        )

    def write(self, file: str, value: FileValue, target: str) -> FileOutcome:
        return self.door.write([write(file, value, target)])[0].outcome

    def value(self, file: str, target: str) -> FileValue:
        return read_value(self.kernel.root, self.kernel.hierarchy, file, target)

    def text(self, file: str, target: str) -> str:
        return self.kernel.root.read(self.path(file, target)).strip()

    def path(self, file: str, target: str) -> str:
        return self.kernel.hierarchy.located(file, target)[0].path


def write(file: str, value: FileValue, target: str) -> FileWrite:
    return FileWrite(file, value, WRITERS[file], target)


@pytest.fixture
def site(kernel: Kernel) -> Site:
    return Site(kernel)


@pytest.mark.parametrize(
    ("file", "value", "v1", "v2"),
    [
        ("cpu.shares", 2, "2", "1"),
        ("cpu.shares", 2048, "2048", "79"),
        ("cpu.shares", 262144, "262144", "10000"),
        ("cpu.cfs_quota_us", 50_000, "50000", "50000 100000"),
        ("cpu.cfs_burst_us", 0, "0", "0"),
        ("cpu.idle", 1, "1", "1"),
        ("cpuset.cpus", frozenset({0}), "0", "0"),
        ("memory.limit_in_bytes", 64 << 20, str(64 << 20), str(64 << 20)),
    ],
)
def test_values_arrive_in_the_words_of_either_version(
    site: Site, file: str, value: FileValue, v1: str, v2: str
) -> None:
    group = site.kernel.make("pod")
    outcome = site.write(file, value, group)
    assert outcome in {FileOutcome.WRITTEN, FileOutcome.EQUAL}
    assert site.text(file, group) == (v1 if site.kernel.hierarchy.version is CgroupVersion.V1 else v2)
    site.now += 2 * LIMITS.refresh
    assert site.write(file, value, group) is FileOutcome.EQUAL


@pytest.mark.parametrize("file", ["cpu.cfs_quota_us", "memory.limit_in_bytes"])
def test_no_limit_is_minus_one_in_either_version(site: Site, file: str) -> None:
    group = site.kernel.make("pod")
    assert site.value(file, group) == -1
    assert site.write(file, 128 << 20, group) is FileOutcome.WRITTEN
    assert site.write(file, -1, group) is FileOutcome.WRITTEN
    assert site.value(file, group) == -1
    site.now += 2 * LIMITS.refresh
    assert site.write(file, -1, group) is FileOutcome.EQUAL


def test_what_was_written_is_remembered_until_others_may_have_changed_it(site: Site) -> None:
    group = site.kernel.make("pod")
    assert site.write("cpu.shares", 512, group) is FileOutcome.WRITTEN
    site.kernel.root.write(site.path("cpu.shares", group), "10")
    site.now += LIMITS.refresh - 1
    assert site.write("cpu.shares", 512, group) is FileOutcome.REMEMBERED
    site.now += 1
    assert site.write("cpu.shares", 512, group) is FileOutcome.WRITTEN
    site.now -= 10 * LIMITS.refresh  # a clock that goes back remembers nothing
    assert site.write("cpu.shares", 512, group) is FileOutcome.EQUAL


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (FileWrite("cpu.shares", 1, FileWriter.BATCH_RESOURCES, "GROUP"), "1 is outside 2 to 262144"),
        (FileWrite("cpu.cfs_quota_us", 999, FileWriter.CPU_BURST, "GROUP"), "outside 1000"),
        (FileWrite("cpu.shares", "many", FileWriter.BATCH_RESOURCES, "GROUP"), "not an integer"),
        (FileWrite("cpuset.cpus", 3, FileWriter.CPUSET, "GROUP"), "not a set of CPUs"),
        (FileWrite("cpu.shares", 2, FileWriter.NETWORK, "GROUP"), "network does not write"),
        (FileWrite("cpu.stat", "", FileWriter.CPU_BURST, "GROUP"), "does not write"),
        (FileWrite("cpu.everything", 1, FileWriter.CPU_BURST, "GROUP"), "no file of the table"),
        (FileWrite("cpu.shares", 2, FileWriter.BATCH_RESOURCES, "../../../etc"), "no empty parts"),
        (FileWrite("cpu.shares", 2, FileWriter.BATCH_RESOURCES, "/"), "no empty parts"),
        (FileWrite("cpu.shares", 2, FileWriter.BATCH_RESOURCES, "GROUP/./x"), "no empty parts"),
        (FileWrite("cpu.shares", 2, FileWriter.BATCH_RESOURCES, "GROUP\0"), "no empty parts"),
        (FileWrite("oom_score_adj", 1, FileWriter.OOM_SCORE, "self/../1"), "not the ID of a process"),
        (FileWrite("schemata", "L3:0=f", FileWriter.RESCTRL, "a/b"), "not the name of a resctrl group"),
        (FileWrite("vm.min_free_kbytes", 20_480, FileWriter.SYSTEM, "x"), "has no target"),
    ],
)
def test_what_no_file_can_hold_is_refused(site: Site, wrong: FileWrite, says: str) -> None:
    group = site.kernel.make("pod")
    before = site.text("cpu.shares", group)
    target = wrong.target.replace("GROUP", group)
    (result,) = site.door.write([FileWrite(wrong.file, wrong.value, wrong.writer, target)])
    assert result.outcome is FileOutcome.REFUSED
    assert says in result.problem
    assert site.text("cpu.shares", group) == before
    assert site.log.newest(1)[0].outcome is FileOutcome.REFUSED


def test_a_group_that_has_ended_is_unsupported_and_keeps_nothing_from_others(site: Site) -> None:
    gone, there = site.kernel.make("gone"), site.kernel.make("there")
    assert site.write("cpu.shares", 64, gone) is FileOutcome.WRITTEN
    site.kernel.root.remove_directory(site.kernel.hierarchy.directory("cpu", gone))
    site.now += LIMITS.refresh
    results = site.door.write([write("cpu.shares", 64, gone), write("cpu.shares", 64, there)])
    assert [one.outcome for one in results] == [FileOutcome.UNSUPPORTED, FileOutcome.WRITTEN]


def test_what_would_do_nothing_is_said_beforehand(site: Site) -> None:
    group = site.kernel.make("pod")
    writes = [
        write("cpu.shares", 512, group),
        FileWrite("memory.wmark_ratio", 95, FileWriter.MEMORY_QOS, group),
    ]
    if site.kernel.root.exists(site.path("memory.wmark_ratio", group)):
        writes.pop()
    results = site.door.write(writes)
    assert site.door.quiet_until(results) == site.now + LIMITS.refresh
    assert len(results) == 1 or results[1].outcome is FileOutcome.UNSUPPORTED
    site.now += 1
    assert site.door.quiet_until(site.door.write(writes)) == site.now + LIMITS.refresh - 1
    # A group that is not there may be at any moment.
    absent = site.door.write([write("cpu.shares", 512, f"{group}/later")])
    assert site.door.quiet_until(absent) == site.now + LIMITS.absent


def test_files_written_at_different_times_are_looked_at_together(site: Site) -> None:
    """So that a round in which nothing else happens is rare."""
    root, hierarchy = site.kernel.root, site.kernel.hierarchy
    limits = replace(LIMITS, early=LIMITS.refresh // 2)
    door = KernelDoor(root, hierarchy, lambda: site.now, limits, WriteLog(100))
    writes = [write("cpu.shares", 512, site.kernel.make(name)) for name in ("old", "young")]
    assert door.write(writes[:1])[0].outcome is FileOutcome.WRITTEN
    site.now += LIMITS.refresh // 4
    assert [one.outcome for one in door.write(writes)] == [FileOutcome.REMEMBERED, FileOutcome.WRITTEN]
    site.now += LIMITS.refresh * 3 // 4
    results = door.write(writes)
    assert [one.outcome for one in results] == [FileOutcome.EQUAL] * 2
    assert door.quiet_until(results) == site.now + LIMITS.refresh


def test_cpu_sets_move_together_from_parents_and_back(site: Site) -> None:
    pod = site.kernel.make("pod")
    container = site.kernel.make("pod/container")
    first, second = frozenset({0}), frozenset({1})
    assert {first, second} <= {frozenset({cpu}) for cpu in site.kernel.cpus}
    for cpus in (first, second, first):
        levels = [[write("cpuset.cpus", cpus, pod)], [write("cpuset.cpus", cpus, container)]]
        assert {one.outcome for one in site.door.write_leveled(levels)} <= {
            FileOutcome.WRITTEN,
            FileOutcome.EQUAL,
        }
        assert (site.value("cpuset.cpus", pod), site.value("cpuset.cpus", container)) == (cpus, cpus)


def test_quotas_grow_from_parents_and_shrink_from_children(site: Site) -> None:
    pod = site.kernel.make("pod")
    container = site.kernel.make("pod/container")
    for quota in (20_000, 80_000, 10_000, -1, 30_000):
        levels = [[write("cpu.cfs_quota_us", quota, pod)], [write("cpu.cfs_quota_us", quota, container)]]
        results = site.door.write_leveled(levels)
        assert [one.outcome for one in results] == [FileOutcome.WRITTEN, FileOutcome.WRITTEN]
        assert (site.value("cpu.cfs_quota_us", pod), site.value("cpu.cfs_quota_us", container)) == (
            quota,
            quota,
        )


def test_undoing_brings_back_what_was_there_before(site: Site) -> None:
    pod = site.kernel.make("pod")
    container = site.kernel.make("pod/container")
    files = ("cpu.shares", "cpu.cfs_quota_us", "cpuset.cpus", "memory.limit_in_bytes")
    places = [site.path(file, target) for file in files for target in (pod, container)]
    if site.kernel.hierarchy.version is CgroupVersion.V2:
        site.write("cpuset.cpus", site.kernel.cpus, pod)
        site.write("cpuset.cpus", site.kernel.cpus, container)
        site.door = site.new_door()
    before = [site.kernel.root.read(path) for path in places]
    for quota, cpus in ((50_000, frozenset({0})), (20_000, frozenset({1}))):
        values: tuple[FileValue, ...] = (99, quota, cpus, 64 << 20)
        for file, value in zip(files, values, strict=True):
            site.door.write_leveled([[write(file, value, pod)], [write(file, value, container)]])
    assert [site.kernel.root.read(path) for path in places] != before
    results = site.door.undo(lambda one: one.target.startswith(pod))
    assert {one.outcome for one in results} <= {FileOutcome.WRITTEN, FileOutcome.EQUAL}
    assert [site.kernel.root.read(path) for path in places] == before
    assert site.door.undo(lambda one: True) == ()


def test_a_door_that_plans_writes_nothing(site: Site) -> None:
    group = site.kernel.make("pod")
    planning = site.new_door(plan_only=True)
    (result,) = planning.write([write("cpu.shares", 77, group)])
    assert (result.outcome, site.value("cpu.shares", group) == 77) == (FileOutcome.PLANNED, False)
    (result,) = planning.write_leveled([[write("cpuset.cpus", frozenset({0}), group)]])
    assert result.outcome is FileOutcome.PLANNED


def test_what_the_kernel_refuses_is_tried_again_later_and_later(site: Site) -> None:
    group = site.kernel.make("pod")
    missing = frozenset({max(site.kernel.cpus) + 5000})
    outcomes = []
    for _ in range(40):
        outcomes.append(site.write("cpuset.cpus", missing, group))
        site.now += SECOND
    tries = [second for second, outcome in enumerate(outcomes) if outcome is FileOutcome.FAILED]
    assert set(outcomes) == {FileOutcome.FAILED, FileOutcome.DELAYED}
    assert tries == [0, 1, 2, 4, 8, 16, 24, 32]
    assert site.write("cpuset.cpus", frozenset({0}), group) in {FileOutcome.WRITTEN, FileOutcome.EQUAL}


def test_the_log_tells_what_was_written_and_stays_small(site: Site) -> None:
    group = site.kernel.make("pod")
    for shares in range(2, 140):
        site.write("cpu.shares", shares * 64, group)
    newest = site.log.newest(1000)
    assert (len(newest), newest[0].sequence, site.log.counted) == (100, 138, 138)
    assert newest[0].before is not None and newest[0].before.strip() == newest[1].after
    assert [one.sequence for one in site.log.newest(2, before=newest[1].sequence)] == [136, 135]


def test_what_the_kernel_takes_is_written_where_it_does_not_take_the_value(site: Site) -> None:
    group = site.kernel.make("burst")
    site.write("cpu.cfs_quota_us", 50_000, group)
    burst = FileWrite("cpu.cfs_burst_us", 500_000, FileWriter.CPU_BURST, group, otherwise=50_000)
    assert site.door.write([burst])[0].outcome is FileOutcome.WRITTEN
    assert site.value("cpu.cfs_burst_us", group) == 50_000
    assert site.door.write([burst])[0].outcome is FileOutcome.REMEMBERED
    site.now += LIMITS.refresh
    assert site.door.write([burst])[0].outcome is FileOutcome.EQUAL
    site.kernel.root.write(site.path("cpu.cfs_burst_us", group), "0")
    site.now += LIMITS.refresh
    assert site.door.write([burst])[0].outcome is FileOutcome.WRITTEN
    site.door.undo(lambda _: True)
    assert site.value("cpu.cfs_burst_us", group) == 0
