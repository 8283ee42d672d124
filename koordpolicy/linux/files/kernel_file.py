"""What is known of a kernel file: a row of the table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from koordpolicy.linux.files.forms import UNLIMITED, FileValue, Form


class CgroupVersion(StrEnum):
    """The version of cgroups that a controller is used by; on a hybrid machine they differ."""

    V1 = "v1"
    V2 = "v2"


class FilePlace(StrEnum):
    """Where a file stands, and so what its target is."""

    CGROUP = "cgroup"
    """In a cgroup; the target is its path below the hierarchy, `kubepods/besteffort`."""
    NODE = "node"
    """Once a node; there is no target."""
    RESCTRL = "resctrl"
    """In a resctrl group; the target is its name, "" the default group."""
    PROCESS = "process"
    """Once a process; the target is its PID."""


class FileUnit(StrEnum):
    """What the numbers of a file count."""

    SHARES = "shares"
    MICROSECONDS = "µs"
    NANOSECONDS = "ns"
    SECONDS = "s"
    BYTES = "bytes"
    KIBIBYTES = "KiB"
    PERCENT = "%"
    PERMILL = "‱"
    """Ten-thousandths, as the kernel's watermark scale."""
    CPUS = "CPUs"
    NUMBER = "number"
    FLAG = "0 or 1"
    LINES = "lines"


class MergeRule(StrEnum):
    """What is written on the way down while groups above and below still differ."""

    NONE = "none"
    """The final value at once: order among groups does not matter."""
    LARGER = "larger"
    """The final value where it is larger, else nothing yet: a parent holds what its children need."""
    UNION = "union"
    """Old and new CPUs together: a parent holds those of its children."""


class FileWriter(StrEnum):
    """Who may write: the parts of the agent, named for what they do."""

    CPU_SUPPRESS = "cpu-suppress"
    CPU_BURST = "cpu-burst"
    CPU_NORMALIZATION = "cpu-normalization"
    CPUSET = "cpuset"
    BATCH_RESOURCES = "batch-resources"
    GROUP_IDENTITY = "group-identity"
    CORE_SCHEDULING = "core-scheduling"
    MEMORY_QOS = "memory-qos"
    RESCTRL = "resctrl"
    BLOCK_IO = "block-io"
    NETWORK = "network"
    SYSTEM = "system"
    OOM_SCORE = "oom-score"
    COLD_MEMORY = "cold-memory"
    INTERFERENCE = "interference"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The file in one version of cgroups, or on the node.

    `name` is the file's name within its group; for files of the node and of processes a path with `{}` for the
    target. `least` and `most` bound numbers, both inclusive; None leaves that side to the kernel.
    `unlimited`: whether -1, no limit, may be written whatever the bounds.
    """

    name: str
    form: Form
    least: int | None = None
    most: int | None = None
    unlimited: bool = False

    def refusal(self, value: FileValue) -> str | None:
        """Why the file cannot hold the value, as a phrase; None where it can."""
        try:
            self.form.render(value)
        except ValueError as error:
            return str(error)
        if not isinstance(value, int) or (value == UNLIMITED and self.unlimited):
            return None
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            return f"{value} is outside {self.bounds}"
        return None

    @property
    def bounds(self) -> str:
        """The range in words."""
        least = "-∞" if self.least is None else self.least
        most = "∞" if self.most is None else self.most
        return f"{least} to {most}" + (", or -1 for no limit" if self.unlimited else "")


_NO_ENTRIES: Final[Mapping[CgroupVersion, FileEntry]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A row of the table.

    `name` is what the file is called here: its name in cgroup v1 where there is one. `controller` is the
    hierarchy of version 1 that it stands in, and what has to be switched on in version 2. `entries` has one entry
    a version; a file that stands in no cgroup has one `entry` instead. A file without `writers` is only read.
    `appends`: what is written is added to what is there, and never compared from memory.
    """

    name: str
    unit: FileUnit
    place: FilePlace = FilePlace.CGROUP
    controller: str = ""
    entries: Mapping[CgroupVersion, FileEntry] = field(default_factory=lambda: _NO_ENTRIES)
    entry: FileEntry | None = None
    merge: MergeRule = MergeRule.NONE
    writers: frozenset[FileWriter] = frozenset()
    appends: bool = False

    def of(self, version: CgroupVersion) -> FileEntry | None:
        """The file by a version of cgroups; None where that version has none."""
        return self.entry or self.entries.get(version)
