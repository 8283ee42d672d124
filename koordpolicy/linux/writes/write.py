"""Writes, what becomes of them, and the protocol of the door that makes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.files.kernel_file import FileWriter


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A value for a file.

    `file` is a name of the table, `target` the cgroup, resctrl group or PID that it belongs to ("" for files of
    the node), `value` in the table's unit whatever the version of cgroups: shares, also where the file is
    cpu.weight. `reason` is told in the audit log: the rule behind it, which tells no two writes apart. `otherwise` is written
    where the kernel knows the file and does not take the value.
    """

    file: str
    value: FileValue
    writer: FileWriter
    target: str = ""
    reason: str = field(default="", compare=False)
    otherwise: FileValue | None = None


class FileOutcome(StrEnum):
    """What became of a write."""

    WRITTEN = "written"
    PLANNED = "planned"
    """It would be written; the door only plans."""
    EQUAL = "equal"
    """The file said so already."""
    REMEMBERED = "remembered"
    """It was written lately, and the file was not looked at."""
    DELAYED = "delayed"
    """The kernel refused the same lately; it is tried again later."""
    UNSUPPORTED = "unsupported"
    """This kernel or version of cgroups has no such file, or the target has ended."""
    REFUSED = "refused"
    """It is out of the file's range, by somebody who may not write it, or outside the root."""
    FAILED = "failed"
    """The kernel refused it."""


ARRIVED = frozenset({FileOutcome.WRITTEN, FileOutcome.EQUAL, FileOutcome.REMEMBERED, FileOutcome.PLANNED})
"""Outcomes after which the file is as wanted, as far as is known."""

CHANGED = frozenset({FileOutcome.WRITTEN, FileOutcome.PLANNED})
"""Outcomes after which the file says something else than before, or would."""


@dataclass(frozen=True, slots=True)
class FileWriteResult:
    """What became of a write.

    `path` is the file, "" where there is none; `before` what it said when it was looked at; `problem` a phrase,
    empty where the file is as wanted; `held` what the kernel holds where that is not what it was told, else empty.
    """

    write: FileWrite
    outcome: FileOutcome
    path: str = ""
    before: str | None = None
    problem: str = ""
    held: str = ""


class WriteDoor(Protocol):
    """Where writes go. No method raises for what a file, a target or the kernel does: results say it.

    Each write stands for itself: one that fails keeps none of the others from being made.
    """

    def write(self, writes: Sequence[FileWrite]) -> tuple[FileWriteResult, ...]:
        """Make writes in their order."""
        ...

    def write_leveled(self, levels: Sequence[Sequence[FileWrite]]) -> tuple[FileWriteResult, ...]:
        """Make writes of levels from parents to children, so that a parent always holds what its children need.

        First from the top down by the files' merge rules, then from the bottom up what is to be in the end. There is a
        result for each write, in the order given, of its end.
        """
        ...

    def write_with_parent(
        self, child: FileWrite, parent: FileWrite, *, parent_first: bool
    ) -> tuple[FileWriteResult, FileWriteResult]:
        """Make a child's write, and one of its parent that has no other reason: the results of both, the child's first.

        With `parent_first` the parent makes room beforehand, and gets back what it said where the child does not change; it is
        left alone while that is delayed. Else it follows a child that changed.
        """
        ...

    def restore(self) -> int:
        """Know what a process before this one wrote and did not undo, so that `undo` gives it back; how many files are known."""
        ...

    def undo(self, choose: Callable[[FileWrite], bool]) -> tuple[FileWriteResult, ...]:
        """Give the chosen files back what they said before this door's first write, children before parents.

        `choose` is asked with the last write of each file. What is given back is forgotten.
        """
        ...

    def forget(self, target: str) -> None:
        """Forget all that is known of a target that has ended, and of all below it."""
        ...

    def quiet_until(self, results: Sequence[FileWriteResult]) -> int:
        """Before which time of the door's clock the same writes, which gave these results, would do nothing."""
        ...
