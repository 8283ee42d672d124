"""The model of a machine: who gets CPU and memory, against what the kernel's documentation says."""

import pytest

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.machine import FakeMachine, FakeTask, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.group_usage import read_cpu_usage, read_group_memory, read_throttling
from koordpolicy.linux.readings.processes import read_cpu_ticks, read_memory_info

SECOND = 1_000_000_000
MIB = 1 << 20


class Site:
    def __init__(self, version: CgroupVersion, cpus: int = 4) -> None:
        self.root = FakeRoot(version, cpus=range(cpus))
        self.machine = FakeMachine(self.root, MachineSettings(memory=1024 * MIB, reserve=64 * MIB))
        self.hierarchy = discover_hierarchy(self.root)
        self.v1 = version is CgroupVersion.V1
        self.pid = 100

    def group(self, name: str, **files: int | str) -> str:
        for controller in ("cpu", "cpuset", "memory"):
            self.root.make_directory(self.hierarchy.directory(controller, name))
        if self.v1:
            self.set("cpuset.cpus", name, f"0-{len(self.root.tree('cpu').all_cpus) - 1}")
            self.set("cpuset.mems", name, "0")
        for file, text in files.items():
            self.set(file, name, text)
        return name

    def set(self, file: str, group: str, text: int | str) -> None:
        self.root.write(self.hierarchy.located(file, group)[0].path, str(text))

    def weight(self, group: str, shares: int) -> None:
        self.set("cpu.shares", group, shares if self.v1 else max(1, shares * 100 // 1024))

    def quota(self, group: str, quota: int) -> None:
        self.set("cpu.cfs_quota_us", group, quota)

    def start(self, group: str, **more: float) -> FakeTask:
        self.pid += 1
        task = FakeTask(self.pid, group, **more)  # type: ignore[arg-type] # numbers of either sort
        self.machine.start(task)
        return task

    def cpus(self, group: str, seconds: int = 10) -> float:
        """CPUs that a group uses while time goes by."""
        before = read_cpu_usage(self.root, self.hierarchy, group)
        self.machine.advance(seconds * SECOND)
        return (read_cpu_usage(self.root, self.hierarchy, group) - before) / (seconds * SECOND)


@pytest.fixture(params=list(CgroupVersion))
def site(request: pytest.FixtureRequest) -> Site:
    return Site(request.param)


def test_time_goes_by_shares_where_all_want_it(site: Site) -> None:
    for name, shares in (("ls", 3072), ("be", 1024)):
        site.group(name)
        site.weight(name, shares)
        site.start(name, demand=8, threads=8)
    assert site.cpus("ls") == pytest.approx(3.0, rel=0.02)
    assert site.cpus("be") == pytest.approx(1.0, rel=0.02)


def test_what_one_does_not_want_goes_to_the_others(site: Site) -> None:
    site.group("ls")
    site.group("be")
    site.weight("be", 12)
    site.start("ls", demand=1.0, threads=4)
    site.start("be", demand=4, threads=4)
    assert site.cpus("be") == pytest.approx(3.0, rel=0.02)
    assert site.cpus("ls") == pytest.approx(1.0, rel=0.02)


def test_a_cpu_set_keeps_work_on_its_cpus_and_others_move_away(site: Site) -> None:
    site.group("ls")
    site.group("be")
    site.set("cpuset.cpus", "be", "3")
    site.start("be", demand=4, threads=4)
    quiet = site.start("ls", demand=3, threads=4)
    assert site.cpus("be") == pytest.approx(1.0, rel=0.3)
    assert quiet.used / (10 * SECOND) == pytest.approx(3.0, rel=0.05)


def test_a_quota_holds_a_group_back_and_is_told(site: Site) -> None:
    site.group("be")
    site.quota("be", 150_000)
    task = site.start("be", demand=4, threads=4)
    before = read_throttling(site.root, site.hierarchy, "be")
    assert site.cpus("be") == pytest.approx(1.5, rel=0.02)
    after = read_throttling(site.root, site.hierarchy, "be")
    assert after.throttled - before.throttled > 0.95 * (after.periods - before.periods) > 0
    assert task.waited == pytest.approx(25 * SECOND, rel=0.02)
    site.set("cpu.cfs_quota_us", "be", -1 if site.v1 else "max")
    assert site.cpus("be") == pytest.approx(4.0, rel=0.02)


def test_a_parents_quota_holds_all_below_it(site: Site) -> None:
    site.group("pods")
    site.quota("pods", 100_000)
    for name in ("pods/a", "pods/b"):
        site.group(name)
        site.start(name, demand=2, threads=2)
    assert site.cpus("pods") == pytest.approx(1.0, rel=0.02)
    assert site.cpus("pods/a") == pytest.approx(0.5, rel=0.05)


def test_what_was_saved_may_be_used_in_a_burst(site: Site) -> None:
    """A group that rests in one period uses more in the next, by as much as its burst."""
    site.group("ls")
    site.quota("ls", 100_000)
    task = site.start("ls", demand=0, threads=4)
    used = []
    for burst in (0, 100_000):
        site.set("cpu.cfs_burst_us", "ls", burst)
        task.demand = 0
        site.machine.advance(SECOND)
        task.demand = 4
        before = task.used
        site.machine.advance(100_000_000)
        used.append(task.used - before)
    assert used[0] == pytest.approx(100_000_000, rel=0.02)
    assert used[1] == pytest.approx(200_000_000, rel=0.02)


def test_time_that_is_passed_over_goes_on_as_the_last_step(site: Site) -> None:
    """Whoever wishes for the same all the time has used and grown as much as in steps."""
    used = []
    for whole in (False, True):
        for name, shares in (("ls", 3072), ("be", 1024)):
            site.group(f"{name}{whole}")
            site.weight(f"{name}{whole}", shares)
        tasks = [
            site.start(f"ls{whole}", demand=3, threads=4, growth=10 * MIB),
            site.start(f"be{whole}", demand=4, threads=4),
        ]
        site.machine.advance(SECOND)
        if whole:
            site.machine.go_on(9 * SECOND)
        else:
            site.machine.advance(9 * SECOND)
        used.append([(task.used, task.memory) for task in tasks])
        for task in tasks:
            site.machine.end(task.pid)
    (ls, be), (ls_whole, be_whole) = used
    assert ls_whole == pytest.approx(ls, rel=0.01)
    assert be_whole == pytest.approx(be, rel=0.01)


def test_memory_runs_short_in_time_that_is_passed_over(site: Site) -> None:
    site.group("be")
    greedy = site.start("be", demand=1, growth=50 * MIB)
    site.machine.advance(SECOND)
    site.machine.go_on(60 * SECOND)
    assert site.machine.killed == [greedy.pid]


def test_page_cache_is_reclaimed_before_anybody_ends(site: Site) -> None:
    site.group("ls")
    site.start("ls", demand=1, reads=200 * MIB)
    site.machine.advance(20 * SECOND)
    memory = read_memory_info(site.root)
    assert memory.used < 100 * MIB < memory.used_with_page_cache
    assert site.machine.killed == []
    site.start("ls", demand=1, growth=100 * MIB, most_memory=500 * MIB)
    site.machine.advance(20 * SECOND)
    assert site.machine.killed == []
    assert read_group_memory(site.root, site.hierarchy, "ls").without_page_cache == pytest.approx(500 * MIB)


def test_a_group_above_its_limit_ends_by_its_own_hand(site: Site) -> None:
    site.group("be")
    site.group("ls")
    site.set("memory.limit_in_bytes", "be", 100 * MIB)
    bystander = site.start("ls", demand=1, memory=600 * MIB)
    greedy = site.start("be", demand=1, growth=50 * MIB)
    site.machine.advance(5 * SECOND)
    assert site.machine.killed == [greedy.pid]
    assert not bystander.ended
    assert read_group_memory(site.root, site.hierarchy, "be").without_page_cache == 0


def test_the_node_ends_the_worst_first(site: Site) -> None:
    site.group("ls")
    site.group("be")
    service = site.start("ls", demand=1, memory=500 * MIB, oom_score_adj=-500)
    batch = site.start("be", demand=1, growth=100 * MIB, oom_score_adj=500)
    site.machine.advance(20 * SECOND)
    assert (site.machine.killed, service.ended) == ([batch.pid], False)
    assert site.machine.free > 400 * MIB


def test_proc_says_what_the_machine_did(site: Site) -> None:
    site.group("ls")
    site.start("ls", demand=2, threads=2)
    site.machine.advance(10 * SECOND)
    ticks = read_cpu_ticks(site.root)
    assert ticks.all.busy / ticks.all.total == pytest.approx(0.5, rel=0.02)
    site.machine.end(101)
    assert site.cpus("ls") == 0
