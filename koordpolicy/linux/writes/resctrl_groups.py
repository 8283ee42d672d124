"""Groups of resctrl, made and removed: not files, and told of like writes of files."""

from typing import Final

from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.root import RESCTRL, KernelRoot
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

MADE: Final = "made"
REMOVED: Final = "removed"
_NOT_GROUPS: Final = frozenset({"", ".", "..", "info", "mon_data", "mon_groups"})


class ResctrlGroups:
    """Makes and removes groups by writes whose value is `made` or `removed`; with `plan_only` none is."""

    def __init__(self, root: KernelRoot, *, plan_only: bool = False) -> None:
        self._root = root
        self._plan_only = plan_only

    def write(self, write: FileWrite) -> FileWriteResult:
        """Make or remove the group that the write's target names. Raises nothing: the result says it."""
        name = write.target
        if name in _NOT_GROUPS or "/" in name or "\0" in name or write.value not in (MADE, REMOVED):
            return FileWriteResult(
                write, FileOutcome.REFUSED, problem=f"{name!r} is not the name of a resctrl group"
            )
        path = f"{RESCTRL}/{name}"
        there = self._root.exists(f"{path}/schemata")
        if there == (write.value == MADE):
            return FileWriteResult(write, FileOutcome.EQUAL, path)
        if self._plan_only:
            return FileWriteResult(write, FileOutcome.PLANNED, path)
        try:
            if write.value == MADE:
                self._root.make_directory(path)
            else:
                self._root.remove_directory(path)
        except NoSuchFile as error:
            return FileWriteResult(write, FileOutcome.UNSUPPORTED, path, problem=error.problem)
        except KernelFileError as error:
            return FileWriteResult(write, FileOutcome.FAILED, path, problem=error.problem)
        return FileWriteResult(write, FileOutcome.WRITTEN, path)
