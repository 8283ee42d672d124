"""The kernels that the contract tests run on: the model in both versions of cgroups, and this machine's."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, discover_hierarchy
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.root import KernelRoot

CONTROLLERS = ("cpu", "cpuset", "memory")
_ALL = (*CONTROLLERS, "cpuacct")
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Kernel:
    """A root with a group of the test's own in each controller's hierarchy, whose CPU set is the whole machine's."""

    root: KernelRoot
    hierarchy: Hierarchy
    group: str
    cpus: frozenset[int]

    def make(self, name: str) -> str:
        """A group below the test's own in all hierarchies."""
        group = f"{self.group}/{name}"
        make_group(self.root, self.hierarchy, group)
        return group


def make_group(root: KernelRoot, hierarchy: Hierarchy, group: str) -> None:
    for controller in _ALL:
        root.make_directory(hierarchy.directory(controller, group))
    if "cpuset" in hierarchy.v1:
        # Groups of version 1 begin without CPUs.
        above = hierarchy.directory("cpuset", group.rpartition("/")[0])
        for name in ("cpuset.cpus", "cpuset.mems"):
            root.write(f"{hierarchy.directory('cpuset', group)}/{name}", root.read(f"{above}/{name}").strip())


def remove_groups(root: KernelRoot, directory: str) -> None:
    """Remove a group and all below it, whose processes have ended."""
    with suppress(KernelFileError):
        for name in root.names(directory):
            if root.exists(f"{directory}/{name}/cgroup.procs"):
                remove_groups(root, f"{directory}/{name}")
        root.remove_directory(directory)


@contextmanager
def host(version: CgroupVersion) -> Iterator[Kernel | None]:
    """This machine's kernel; None where it, or who runs this, may not write that version's groups."""
    root = HostRoot()
    group = f"koordpolicy-test-{os.getpid()}-{next(_NUMBERS)}"
    try:
        hierarchy = discover_hierarchy(root)
        usable = all((one in hierarchy.v1) == (version is CgroupVersion.V1) for one in CONTROLLERS)
        if os.geteuid() != 0 or not usable or (not hierarchy.v1 and not _delegates(root, hierarchy)):
            yield None
            return
        make_group(root, hierarchy, group)
    except KernelFileError:
        yield None
        return
    try:
        yield Kernel(root, hierarchy, group, frozenset(os.sched_getaffinity(0)))
    finally:
        for controller in _ALL:
            remove_groups(root, hierarchy.directory(controller, group))
        root.close()


def _delegates(root: KernelRoot, hierarchy: Hierarchy) -> bool:
    said = root.read(f"{hierarchy.directory('')}/cgroup.subtree_control").split()
    return set(CONTROLLERS) <= set(said)


def fake(version: CgroupVersion) -> Kernel:
    root = FakeRoot(version, cpus=range(2))
    hierarchy = discover_hierarchy(root)
    group = f"test-{next(_NUMBERS)}"
    make_group(root, hierarchy, group)
    return Kernel(root, hierarchy, group, frozenset(range(2)))
