"""Runners of what the node agent writes: through the door, to the model of a kernel."""

from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion, FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import FileOutcome, FileWrite
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


class _Plain(FakeRoot):
    """Groups that hold whatever they are told: what a kernel refuses is no part of these vectors, and quotas are small."""

    written: list[tuple[str, str]]

    def write(self, path: str, content: str) -> None:
        super().write(path, content)
        self.written.append((path.split("/")[-2], content))


def leveled_update(given: Given) -> Given:
    """Levels of groups, each with a value, as `memory.min` or `cpuset.cpus`."""
    root = _Plain(CgroupVersion.V2)
    root.written = []
    levels: Sequence[Sequence[Given]] = given["levels"]
    union = given["merge"] == "union"
    file = "cpuset.cpus" if union else "memory.min"
    writer = FileWriter.CPUSET if union else FileWriter.MEMORY_QOS
    for name, value in given["current"].items():
        root.make_directory(f"/sys/fs/cgroup/{name}")
        group = root.tree("cpu").find(name)
        assert group is not None
        group.extra[file] = cpuset_text(value) if union else "max" if value == -1 else str(value)
    door = KernelDoor(root, discover_hierarchy(root), lambda: 0, DoorLimits(1, 1, 1, 1, 100), WriteLog(100))
    results = door.write_leveled(
        [
            [
                FileWrite(file, frozenset(one["value"]) if union else one["value"], writer, one["path"])
                for one in level
            ]
            for level in levels
        ]
    )
    assert {one.outcome for one in results} <= {FileOutcome.WRITTEN, FileOutcome.EQUAL}
    entry = KERNEL_FILES[file].of(CgroupVersion.V2)
    assert entry is not None
    return {
        "writes_in_order": [
            [name, sorted(parse_cpuset(text)) if union else entry.form.parse(text)]
            for name, text in root.written
        ]
    }


RUNNERS: Mapping[str, Runner] = {"leveled_update": Runner(leveled_update)}
