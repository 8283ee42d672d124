"""What runs on the model: tasks in groups, on a clock that its user moves.

The model is a fluid one: in each step CPU time is divided as CFS divides it in the long run, not slice by slice. What
each number stands for, and where it is from, is said with `MachineSettings`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.linux.fake.cpu import divide, refill
from koordpolicy.linux.fake.group import Group, GroupTree
from koordpolicy.linux.fake.memory import fit_memory
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.root import PROC

_SECOND: Final = 1_000_000_000
_TICK: Final = 10_000_000
"""Nanoseconds of a tick of /proc/stat: USER_HZ is 100 on every architecture."""
_MOST_STEPS: Final = 10_000_000
_LEAST: Final = 1e-9


@dataclass(frozen=True, slots=True)
class MachineSettings:
    """The machine that is modelled.

    `step`: nanoseconds of one step; it divides the 100 ms of the kernel's default quota period
    (`default_cfs_period`, kernel/sched/fair.c), so that quotas run out within a period as they do there. `memory` is
    all there is, in bytes. Below `reserve` bytes free, page cache is reclaimed, and where none is left a task is
    ended: the kernel's low watermark, which is near min_free_kbytes × 1.25 (Documentation/admin-guide/sysctl/vm.rst).
    """

    memory: int
    reserve: int
    step: int = 10_000_000


@dataclass(slots=True)
class FakeTask:
    """Work in a group, by the group's path.

    It would use `demand` CPUs (of at most `threads` at once), grows by `growth` bytes of its own memory and reads `reads`
    bytes of files a second while it runs, up to `most_memory`. `oom_score_adj` as the kernel's. What it got: `used`
    nanoseconds of CPU, `waited` nanoseconds in which it would have run; `ended` by the OOM killer.
    """

    pid: int
    group: str
    demand: float = 0.0
    threads: int = 1
    growth: int = 0
    reads: int = 0
    most_memory: int = 1 << 62
    memory: int = 0
    oom_score_adj: int = 0
    used: int = 0
    waited: int = 0
    runs: float = 0.0
    """CPUs that it ran on in the last step."""
    ended: bool = False

    @property
    def wants(self) -> float:
        """CPUs that it would use now."""
        return 0.0 if self.ended else max(0.0, min(self.demand, float(self.threads)))


@dataclass(slots=True)
class FakeMachine:
    """A root with work on it. `now` is nanoseconds since it began; nothing moves but by `advance`."""

    root: FakeRoot
    settings: MachineSettings
    tasks: dict[int, FakeTask] = field(default_factory=dict)
    now: int = 0
    busy: int = 0
    """Nanoseconds of all CPUs together."""
    killed: list[int] = field(default_factory=list)
    """PIDs that the OOM killer ended, in order."""

    def __post_init__(self) -> None:
        self._show()

    def start(self, task: FakeTask) -> None:
        """Begin work. The group has to be there in all hierarchies; raises KeyError otherwise."""
        for tree in self.root.trees.values():
            group = tree.find(task.group)
            if group is None:
                raise KeyError(task.group)
            group.pids.add(task.pid)
        self._charge(task, task.memory)
        self.tasks[task.pid] = task
        self.root.plain[f"{PROC}/{task.pid}/oom_score_adj"] = str(task.oom_score_adj)

    def end(self, pid: int) -> None:
        """End work: its memory is free, its page cache stays. Nothing where it has ended."""
        task = self.tasks.pop(pid, None)
        if task is None:
            return
        task.ended = True
        self._charge(task, -task.memory)
        task.memory = 0
        for tree in self.root.trees.values():
            for group in tree.root.below():
                group.pids.discard(pid)
        self.root.plain.pop(f"{PROC}/{pid}/oom_score_adj", None)

    def advance(self, time: int) -> None:
        """Move the clock by `time` nanoseconds, in steps. Raises ValueError for more steps than a day of them."""
        steps = time // self.settings.step
        if not 0 <= steps <= _MOST_STEPS:
            raise ValueError(f"{steps} steps are none, or more than {_MOST_STEPS}")
        for _ in range(steps):
            self._step()
        self._show()

    def go_on(self, time: int) -> None:
        """Move the clock by `time` nanoseconds in one go: everything runs on as it did in the last step.

        Memory grows and runs short as in steps. Periods of quotas are not counted.
        """
        for task in tuple(self.tasks.values()):
            group, used = self.group_of(task, "cpu"), round(task.runs * time)
            if group is not None and used:
                self._count(task, group, used)
                task.waited += max(0, round(task.wants * time) - used)
                self._grow(task, task.runs / max(task.wants, _LEAST), time)
        self.now += time
        self._fit()
        self._show()

    def group_of(self, task: FakeTask, controller: str) -> Group | None:
        """Where a task is in the hierarchy of a controller: where it was begun, or its PID was written to."""
        tree = self.root.tree(controller)
        group = tree.find(task.group)
        if group is not None and task.pid in group.pids:
            return group
        return next((one for one in tree.root.below() if task.pid in one.pids), None)

    @property
    def free(self) -> int:
        """Bytes that nothing holds."""
        return self.settings.memory - self.root.tree("memory").root.memory

    def _step(self) -> None:
        step = self.settings.step
        cpu, cpuset = self.root.tree("cpu"), self.root.tree("cpuset")
        refill(cpu.root, self.now, step)
        for task in self.tasks.values():
            task.runs = 0.0
        running = list(self._running(cpu, cpuset))
        got = divide(cpu, running, step)
        for task, group, _ in running:
            used = min(round(got[task.pid]), step * task.threads)
            self._count(task, group, used)
            task.runs = used / step
            task.waited += max(0, round(task.wants * step) - used)
            self._grow(task, used / max(1.0, task.wants * step), step)
        self.now += step
        self._fit()

    def _count(self, task: FakeTask, group: Group, used: int) -> None:
        task.used += used
        self.busy += used
        for one in group.above():
            one.used += used

    def _fit(self) -> None:
        """Reclaim, and end who does not fit."""
        for pid in fit_memory(self.root.tree("memory"), self._by_group(), self.settings):
            self.killed.append(pid)
            self.end(pid)

    def _running(self, cpu: GroupTree, cpuset: GroupTree) -> Iterator[tuple[FakeTask, Group, frozenset[int]]]:
        for task in self.tasks.values():
            group, places = self.group_of(task, "cpu"), self.group_of(task, "cpuset")
            if task.wants > 0 and group is not None:
                cpus = cpuset.effective_cpus(places) if places is not None else cpuset.all_cpus
                yield task, group, cpus or cpu.all_cpus

    def _grow(self, task: FakeTask, share: float, time: int) -> None:
        """Memory that a task takes in a time of which it ran that share."""
        seconds = time / _SECOND * share
        grown = min(round(task.growth * seconds), max(0, task.most_memory - task.memory))
        task.memory += grown
        self._charge(task, grown)
        group = self.group_of(task, "memory")
        if group is not None:
            group.cache += round(task.reads * seconds)

    def _charge(self, task: FakeTask, amount: int) -> None:
        group = self.group_of(task, "memory")
        if group is not None:
            group.anonymous += amount

    def _by_group(self) -> dict[int, tuple[FakeTask, Group]]:
        found = {}
        for pid, task in self.tasks.items():
            group = self.group_of(task, "memory")
            said = self.root.plain.get(f"{PROC}/{pid}/oom_score_adj", "")
            if said.strip().removeprefix("-").isdecimal():
                task.oom_score_adj = int(said)
            if group is not None:
                found[pid] = (task, group)
        return found

    def _show(self) -> None:
        """What /proc says of the machine."""
        cpus = sorted(self.root.tree("cpu").all_cpus)
        total = self.now // _TICK
        busy = self.busy // _TICK // max(1, len(cpus))
        together = self.busy // _TICK
        lines = [f"cpu  {together} 0 0 {max(0, total * len(cpus) - together)} 0 0 0 0 0 0"]
        lines += [f"cpu{cpu} {busy} 0 0 {total - busy} 0 0 0 0 0 0" for cpu in cpus]
        self.root.plain[f"{PROC}/stat"] = "\n".join(lines) + "\n"
        cache = self.root.tree("memory").root.inactive_cache
        self.root.plain[f"{PROC}/meminfo"] = (
            f"MemTotal: {self.settings.memory >> 10} kB\nMemFree: {max(0, self.free) >> 10} kB\n"
            f"MemAvailable: {max(0, self.free + cache) >> 10} kB\n"
        )
