"""Cookies of core scheduling by name: which processes share one. Not files, and told of like writes of files."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.core_scheduling import CoreScheduling
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.readings.members import read_processes
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.write import FileOutcome, FileWrite, FileWriteResult

_MOST_NAMES: Final = 10_000


class CoreCookies:
    """Gives the processes of a group the cookie of a name, made anew or taken over from processes that have it.

    A write's target is a group, its value the name of those that share a cookie, empty for none; with `plan_only` nothing
    is changed. The members of a name are those of its last writes.
    """

    def __init__(
        self, root: KernelRoot, hierarchy: Hierarchy, kernel: CoreScheduling, *, plan_only: bool = False
    ) -> None:
        self._root = root
        self._hierarchy = hierarchy
        self._kernel = kernel
        self._plan_only = plan_only
        self._members: OrderedDict[str, dict[int, int]] = OrderedDict()
        """By name: the cookies of its processes, as last seen."""

    def write(self, write: FileWrite) -> FileWriteResult:
        """Bring a group to its name. Raises nothing: the result says it."""
        path = f"core scheduling of {write.target}"
        name = str(write.value)
        try:
            processes = read_processes(self._root, self._hierarchy, write.target)
            held = {pid: self._kernel.cookie(pid) for pid in processes}
            outcome = self._cleared(held) if not name else self._shared(name, held)
        except NoSuchFile as error:
            return FileWriteResult(write, FileOutcome.UNSUPPORTED, path, problem=error.problem)
        except KernelFileError as error:
            return FileWriteResult(write, FileOutcome.FAILED, path, problem=error.problem)
        return FileWriteResult(write, outcome, path)

    def _cleared(self, held: dict[int, int]) -> FileOutcome:
        own = [pid for pid, cookie in held.items() if cookie]
        return self._done(own, lambda: self._kernel.clear(own))

    def _shared(self, name: str, held: dict[int, int]) -> FileOutcome:
        if not held:
            return FileOutcome.EQUAL
        cookie, source = self._source(name, held)
        lacking = [pid for pid, one in held.items() if one != cookie or not one]

        def share() -> None:
            first = source
            if first is None:
                first = lacking[0]
                self._kernel.create(first)
            others = [pid for pid in lacking if pid != first]
            if others:
                self._kernel.share(first, others)
            held.update({pid: self._kernel.cookie(pid) for pid in lacking})

        outcome = self._done(lacking, share)
        members = self._members.setdefault(name, {})
        members.update({pid: one for pid, one in held.items() if one})
        self._members.move_to_end(name)
        while len(self._members) > _MOST_NAMES:
            self._members.popitem(last=False)
        return outcome

    def _source(self, name: str, held: dict[int, int]) -> tuple[int, int | None]:
        """The name's cookie and a process that has it: one of its members, else one of the group that no other name has."""
        members = self._members.get(name, {})
        for pid, cookie in list(members.items()):
            try:
                if self._kernel.cookie(pid) == cookie:
                    return cookie, pid
            except KernelFileError:
                pass
            del members[pid]  # it has ended, or is somebody else by now
        others = {
            cookie for other, known in self._members.items() if other != name for cookie in known.values()
        }
        return next(
            ((cookie, pid) for pid, cookie in held.items() if cookie and cookie not in others), (0, None)
        )

    def _done(self, needed: list[int], act: Callable[[], None]) -> FileOutcome:
        if not needed:
            return FileOutcome.EQUAL
        if self._plan_only:
            return FileOutcome.PLANNED
        act()
        return FileOutcome.WRITTEN
