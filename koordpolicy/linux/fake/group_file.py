"""A file of a group of the model."""

from collections.abc import Callable
from dataclasses import dataclass

from koordpolicy.linux.fake.group import Group, GroupTree


@dataclass(frozen=True, slots=True)
class GroupFile:
    """What the file says of a group, and what writing to it does: raises `KernelRefusal`; None where it is only read.

    `root`: whether the hierarchy's own directory has it, too.
    """

    read: Callable[[GroupTree, Group], str]
    write: Callable[[GroupTree, Group, str], None] | None = None
    root: bool = True
