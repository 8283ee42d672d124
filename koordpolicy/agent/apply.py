"""Carrying a plan out: its groups become paths, its writes go through the one door to the kernel's files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Protocol

from koordpolicy.agent.plan import Group, Level, Order, Plan, Write
from koordpolicy.linux.files.kernel_file import FilePlace, FileWriter
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.writes.write import ARRIVED, CHANGED, FileWrite, FileWriteResult, WriteDoor

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

    Those that are to be last are. A parent that changes for a child's sake does so where the child takes its value.
    Raises nothing for what a file or a group does: results say it. Evictions are not its business.
    """
    results: list[FileWriteResult] = []
    elsewhere: list[Write] = []
    vanished: list[Write] = []
    listed_last = sorted(plan.writes, key=lambda write: write.order is Order.LAST)
    for order, listed in groupby(listed_last, key=lambda write: write.order):
        made: list[tuple[Write, FileWrite]] = []
        for write in listed:
            if write.file not in KERNEL_FILES:
                elsewhere.append(write)
                continue
            found = list(_file_writes(write, paths))
            made += [(write, one) for one in found]
            if not found:
                vanished.append(write)
        if order is Order.LEVELLED:
            levels = [(_depth(write.group), one) for write, one in made]
            depths = sorted({depth for depth, _one in levels})
            results += door.write_leveled([[one for at, one in levels if at == depth] for depth in depths])
        else:
            results += _as_listed(made, door)
    return Applied(tuple(results), tuple(elsewhere), tuple(vanished))


def _as_listed(made: Sequence[tuple[Write, FileWrite]], door: WriteDoor) -> Iterator[FileWriteResult]:
    """Make writes in their order, those of a parent for a child together with the child's."""
    missed: dict[tuple[str, str], int] = {}
    """By file and target of parents: how much of what was planned did not come, as children's writes failed."""
    at = 0
    while at < len(made):
        write, one = made[at]
        following = made[at + 1] if at + 1 < len(made) else None
        parent_first = following is not None and _is_parent(write, following[0])
        if following is None or not (parent_first or _is_parent(following[0], write)):
            at += 1
            if write.child is None:  # a parent whose child is not written stays as it is
                yield from door.write([one])
            continue
        above, child = (one, following[1]) if parent_first else (following[1], one)
        change = (write if parent_first else following[0]).child
        key = (above.file, above.target)
        if isinstance(above.value, int):
            above = replace(above, value=above.value - missed.get(key, 0))
        found = door.write_with_parent(child, above, parent_first=parent_first)
        if change is not None and (found[0].outcome not in CHANGED or found[1].outcome not in ARRIVED):
            missed[key] = missed.get(key, 0) + change.by
        yield from reversed(found) if parent_first else found
        at += 2


def _is_parent(write: Write, other: Write) -> bool:
    """Whether a write changes a parent for the sake of the other one's group."""
    return write.child is not None and write.child.group == other.group and write.file == other.file


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
