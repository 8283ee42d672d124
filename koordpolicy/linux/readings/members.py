"""Who is in a group."""

from collections.abc import Sequence

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.errors import Malformed
from koordpolicy.linux.readings.fields import lines
from koordpolicy.linux.readings.value import read_located
from koordpolicy.linux.root import KernelRoot


def read_processes(root: KernelRoot, hierarchy: Hierarchy, group: str) -> Sequence[int]:
    """The PIDs in a group itself, not in those below it; without those of other PID namespaces. Raises `KernelFileError`."""
    place, content = read_located(root, hierarchy, "cgroup.procs", group)
    words = [word for line in lines(content) for word in line]
    if not all(word.isdecimal() for word in words):
        raise Malformed(place.path, "not a list of processes")
    # The kernel writes 0 for a process that this PID namespace does not see.
    return tuple(pid for pid in map(int, words) if pid > 0)
