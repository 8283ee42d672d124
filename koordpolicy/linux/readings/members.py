"""Who is in a group."""

from collections.abc import Sequence
from typing import Final

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.readings.fields import is_number, lines
from koordpolicy.linux.readings.value import read_located
from koordpolicy.linux.root import KernelRoot

MOST_TASKS: Final = 4096
"""Of one container: whoever looks at each of them looks at so many at most."""


def read_processes(root: KernelRoot, hierarchy: Hierarchy, group: str) -> Sequence[int]:
    """The PIDs in a group itself, not in those below it; without those of other PID namespaces. Raises `KernelFileError`."""
    # The kernel writes 0 for a process that this PID namespace does not see.
    return tuple(pid for pid in _listed(root, hierarchy, group) if pid > 0)


def read_tasks(root: KernelRoot, hierarchy: Hierarchy, group: str, most: int = MOST_TASKS) -> Sequence[int]:
    """The thread IDs in a group itself, at most so many of them; without those of other PID namespaces.

    Raises `KernelFileError`.
    """
    return tuple(task for task in _listed(root, hierarchy, group, "tasks") if task > 0)[:most]


def sees_all_processes(root: KernelRoot, hierarchy: Hierarchy) -> bool:
    """Whether this PID namespace has all processes of the root group: the node's own has. Raises `KernelFileError`."""
    return 0 not in _listed(root, hierarchy, "")


def _listed(root: KernelRoot, hierarchy: Hierarchy, group: str, file: str = "cgroup.procs") -> Sequence[int]:
    place, content = read_located(root, hierarchy, file, group)
    words = [word for line in lines(content) for word in line]
    if not all(map(is_number, words)):
        raise Malformed(place.path, "not a list of processes")
    return tuple(map(int, words))
