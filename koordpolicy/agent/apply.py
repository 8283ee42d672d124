"""Carrying a plan out: its groups become paths, its writes go through the one door to the kernel's files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

from koordpolicy.agent.plan import Group, Level, Order, Plan, Write
from koordpolicy.linux.files.kernel_file import FilePlace, FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.write import FileWrite, FileWriteResult, WriteDoor

_DEPTH: Final[Mapping[Level, int]] = {
    Level.ROOT: 0,
    Level.QOS: 1,
    Level.POD: 3,
    Level.CONTAINER: 4,
}
"""How deep groups stand; the two classes below that of all pods are one deeper than it."""


class GroupPaths(Protocol):
    """Where groups are on this node now."""

    def path(self, group: Group) -> str | None:
        """The path of a group below the hierarchy, without a slash at either end; None where it is not there (any more)."""
        ...

    def processes(self, group: Group) -> Sequence[int]:
        """The PIDs in a container's group; empty where it is not there."""
        ...


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of the writes of a plan, and those that go through no file or whose group is not there."""

    results: Sequence[FileWriteResult] = ()
    elsewhere: Sequence[Write] = ()
    vanished: Sequence[Write] = ()


def apply(plan: Plan, door: WriteDoor, paths: GroupPaths) -> Applied:
    """Make the writes of a plan, in its order; levels that follow each other grow from parents and shrink from children.

    Raises nothing for what a file or a group does: results say it. Evictions are not its business.
    """
    results: list[FileWriteResult] = []
    elsewhere: list[Write] = []
    vanished: list[Write] = []
    for order, listed in groupby(plan.writes, key=lambda write: write.order):
        made: list[tuple[int, FileWrite]] = []
        for write in listed:
            if write.file not in KERNEL_FILES:
                elsewhere.append(write)
                continue
            found = list(_file_writes(write, paths))
            made += [(_depth(write.group), one) for one in found]
            if not found:
                vanished.append(write)
        if order is Order.LEVELLED:
            depths = sorted({depth for depth, _one in made})
            results += door.write_leveled([[one for at, one in made if at == depth] for depth in depths])
        else:
            results += door.write([one for _depth, one in made])
    return Applied(tuple(results), tuple(elsewhere), tuple(vanished))


def _file_writes(write: Write, paths: GroupPaths) -> Iterator[FileWrite]:
    """A write for each target; none where there is none."""
    place, targets = KERNEL_FILES[write.file].place, [""]
    if place is FilePlace.RESCTRL:
        targets = [write.group.name]
    elif place is FilePlace.PROCESS:
        targets = [str(process) for process in paths.processes(write.group)]
    elif place is FilePlace.CGROUP:
        path = paths.path(write.group)
        targets = [] if path is None else [path]
    for target in targets:
        yield FileWrite(
            write.file, write.value, FileWriter(write.strategy), target, write.reason, write.otherwise
        )


def _depth(group: Group) -> int:
    deeper = group.level is Level.QOS and group.name != "Guaranteed"
    return _DEPTH.get(group.level, 0) + deeper
