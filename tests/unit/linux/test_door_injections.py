"""10,000 random injections on the model: no exception leaves the door, and nothing outside the root is touched."""

import errno
import os
import random

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.errors import of_os_error
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.files.kernel_file import CgroupVersion, FilePlace, FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import ARRIVED, FileOutcome, FileWrite

INJECTIONS = 10_000
SECRET = "/proc/sys/kernel/core_pattern"
WRONG = (
    errno.EINVAL,
    errno.EBUSY,
    errno.EACCES,
    errno.ENOENT,
    errno.ENODEV,
    errno.EIO,
    errno.EAGAIN,
    errno.EINTR,
)
GROUPS = ("kubepods", "kubepods/besteffort", "kubepods/besteffort/pod1", "kubepods/besteffort/pod1/c")
STRANGE = (
    "..",
    "../..",
    "/",
    "kubepods/../../proc",
    "led",
    "led/x",
    "",
    "kubepods/gone",
    "a\0b",
    ".",
    "1",
    "self",
)


WRITTEN = sorted(name for name, row in KERNEL_FILES.items() if row.writers)


class Clock:
    now = 0

    def read(self) -> int:
        return self.now


class Hostile(FakeRoot):
    """A kernel that fails at random, and notes every file that it is made to change."""

    def __init__(self, version: CgroupVersion, chance: random.Random) -> None:
        extra = {SECRET: "core", "/sys/fs/resctrl/schemata": "L3:0=f\n", "/sys/fs/resctrl/tasks": "1\n"}
        super().__init__(
            version, extra={**extra, "/proc/1/oom_score_adj": "0", "/proc/sys/vm/min_free_kbytes": "1"}
        )
        self.chance, self.injected = chance, 0
        self.changed: set[str] = set()

    def read(self, path: str) -> str:
        self._perhaps(path)
        text = super().read(path)
        if self.chance.random() < 0.05:
            self.injected += 1
            return self.chance.choice(["", "what?", "\n", "max max max", "9" * 5000, "-", "0-", "\0"])
        return text

    def write(self, path: str, content: str) -> None:
        self._perhaps(path)
        super().write(path, content)
        self.changed.add(path)

    def _perhaps(self, path: str) -> None:
        if self.chance.random() < 0.3:
            self.injected += 1
            number = self.chance.choice(WRONG)
            raise of_os_error(path, OSError(number, os.strerror(number)))


def restore(root: FakeRoot, chance: random.Random) -> None:
    """Pods come and go."""
    for tree in root.trees.values():
        tree.root.children.clear()
        depth = chance.randint(0, len(GROUPS))
        for group in GROUPS[:depth]:
            parent, _, name = group.rpartition("/")
            above = tree.find(parent)
            assert above is not None
            tree.make(above, name)


def value(chance: random.Random) -> FileValue:
    values: list[FileValue] = [
        chance.randint(-3, 1 << chance.randint(1, 66)),
        -1,
        frozenset(chance.sample(range(6), chance.randint(0, 4))),
        "8:0 5",
        "L3:0=f",
        chance.choice(["", "\n", "a\nb", "L3", "9" * 5000, "NO_X", "1"]),
    ]
    return chance.choice(values)


def write(chance: random.Random) -> FileWrite:
    name = chance.choice([*WRITTEN, "cpu.stat", "no.such.file"])
    row = KERNEL_FILES.get(name)
    writers = sorted(row.writers) if row is not None and row.writers and chance.random() < 0.95 else None
    place = FilePlace.CGROUP if row is None else row.place
    usual = {FilePlace.CGROUP: GROUPS, FilePlace.PROCESS: ("1", "99")}.get(place, ("",))
    target = chance.choice(usual) if chance.random() < 0.9 else chance.choice(STRANGE)
    entry = row.of(chance.choice(list(CgroupVersion))) if row is not None else None
    fitting = (
        one for one in (value(chance) for _ in range(30)) if entry is not None and not entry.refusal(one)
    )
    fit = value(chance) if chance.random() < 0.1 else next(fitting, 0)
    return FileWrite(name, fit, chance.choice(writers or list(FileWriter)), target)


def test_no_exception_leaves_the_door_and_nothing_outside_is_written() -> None:
    chance, injected, outcomes = random.Random(16), 0, set()
    for version in CgroupVersion:
        root = Hostile(version, chance)
        mount = "cpu,cpuacct/" if version is CgroupVersion.V1 else ""
        root.links = {f"/sys/fs/cgroup/{mount}led": "/proc/sys/kernel"}
        hierarchy = discover_hierarchy(root)
        clock = Clock()
        door = KernelDoor(root, hierarchy, clock.read, DoorLimits(60, 3, 1, 8, 50), WriteLog(64))
        rounds = 0
        while root.injected < INJECTIONS // 2 and rounds < 3 * INJECTIONS:
            rounds += 1
            clock.now += chance.choice([0, 1, 5, 100, -50])
            if chance.random() < 0.1:
                restore(root, chance)
            writes = [write(chance) for _ in range(chance.randint(1, 4))]
            results = (
                door.write(writes) if chance.random() < 0.5 else door.write_leveled([[one] for one in writes])
            )
            assert len(results) == len(writes)
            assert all(bool(one.problem) or one.outcome in ARRIVED for one in results)
            outcomes |= {one.outcome for one in results}
            if chance.random() < 0.05:
                door.undo(lambda one: one.target.endswith("pod1"))
            if chance.random() < 0.05:
                door.forget(chance.choice(GROUPS))
        injected += root.injected
        assert root.plain[SECRET] == "core"
        assert all(
            path.startswith(("/sys/fs/cgroup/", "/sys/fs/resctrl/", "/proc/sys/vm/"))
            or path == "/proc/1/oom_score_adj"
            for path in root.changed
        )
    assert injected >= INJECTIONS
    assert outcomes == set(FileOutcome) - {FileOutcome.PLANNED}
