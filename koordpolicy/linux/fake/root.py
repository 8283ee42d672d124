"""The files of the model: groups in one or both versions of cgroups, and plain files beside them."""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from koordpolicy.linux.errors import NoSuchFile, OutsideRoot, of_os_error
from koordpolicy.linux.fake import resctrl
from koordpolicy.linux.fake.cpu_files import V1_CPU, V1_CPUACCT, V1_CPUSET, V2_CPU, V2_CPUSET, V2_STAT
from koordpolicy.linux.fake.group import Group, GroupTree
from koordpolicy.linux.fake.group_file import GroupFile
from koordpolicy.linux.fake.memory_files import V1_MEMORY, V2_MEMORY
from koordpolicy.linux.fake.refusal import KernelRefusal, number
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.root import CGROUPS, KUBELET, PROC, RESCTRL, SYS, HeldDirectory, HeldFile, KernelRoot

_TREES: Final = (CGROUPS, RESCTRL, SYS, PROC, KUBELET)
_MOUNTS: Final[Mapping[CgroupVersion, Mapping[str, frozenset[str]]]] = {
    CgroupVersion.V1: {
        "cpu,cpuacct": frozenset({"cpu", "cpuacct"}),
        "cpuset": frozenset({"cpuset"}),
        "memory": frozenset({"memory"}),
    },
    CgroupVersion.V2: {"": frozenset({"cpu", "cpuset", "memory"})},
}


def _set_pids(tree: GroupTree, group: Group, text: str) -> None:
    pid = number(text)
    holder = next((one for one in tree.root.below() if pid in one.pids), None)
    if holder is None:
        raise KernelRefusal(errno.ESRCH)
    if tree.version is CgroupVersion.V1 and "cpuset" in tree.controllers and not (group.cpus and group.mems):
        raise KernelRefusal(errno.ENOSPC)
    holder.pids.discard(pid)
    group.pids.add(pid)


_PIDS: Final = GroupFile(lambda tree, one: "\n".join(map(str, sorted(one.pids))), _set_pids)
_V2_CORE: Final = {
    "cgroup.procs": _PIDS,
    "cgroup.threads": _PIDS,
    "cgroup.controllers": GroupFile(lambda tree, one: " ".join(sorted(tree.controllers))),
}
_V1_CORE: Final = {"cgroup.procs": _PIDS, "tasks": _PIDS}
_OF_CONTROLLER: Final[Mapping[CgroupVersion, Mapping[str, Mapping[str, GroupFile]]]] = {
    CgroupVersion.V1: {"cpu": V1_CPU, "cpuacct": V1_CPUACCT, "cpuset": V1_CPUSET, "memory": V1_MEMORY},
    CgroupVersion.V2: {"cpu": V2_CPU, "cpuset": V2_CPUSET, "memory": V2_MEMORY},
}


class FakeRoot:
    """A kernel's files in memory. Implements `KernelRoot`.

    `version` says which cgroups are mounted; `extra` are plain files by their paths, which are kept as they are
    written (`/proc/meminfo`, files of other kernels). `links` are paths that lead to other paths, for those who try to
    be led away.
    """

    def __init__(
        self,
        version: CgroupVersion = CgroupVersion.V2,
        cpus: Iterable[int] = range(4),
        nodes: Iterable[int] = (0,),
        extra: Mapping[str, str] | None = None,
    ) -> None:
        everywhere, memory = frozenset(cpus), frozenset(nodes)
        self.version = version
        self.trees = {
            mount: GroupTree(mount, version, controllers, everywhere, memory)
            for mount, controllers in _MOUNTS[version].items()
        }
        self.plain: dict[str, str] = dict(extra or {})
        self.links: dict[str, str] = {}

    def tree(self, controller: str) -> GroupTree:
        """The groups of a controller. Raises KeyError for one that the model does not have."""
        for one in self.trees.values():
            if controller in one.controllers:
                return one
        raise KeyError(controller)

    def read(self, path: str) -> str:
        path = self._led(path, writes=False)
        if path in self.plain:
            return self.plain[path]
        tree, group, name = self._in_group(path)
        if name in group.extra:
            return group.extra[name]
        return self._file(path, tree, group, name).read(tree, group) + "\n"

    def hold(self, path: str) -> HeldFile:
        self.read(path)
        return ReadAnew(self, path)

    def hold_directory(self, path: str) -> HeldDirectory:
        self.names(path)
        return CountedAnew(self, path)

    def write(self, path: str, content: str) -> None:
        path = self._led(path, writes=True)
        if path in self.plain:
            if resctrl.holds(path):
                resctrl.write(self.plain, path, content)
            else:
                self.plain[path] = content
            return
        tree, group, name = self._in_group(path)
        if name in group.extra:
            group.extra[name] = content
            return
        file = self._file(path, tree, group, name)
        if file.write is None:
            raise of_os_error(path, OSError(errno.EACCES, os.strerror(errno.EACCES)))
        try:
            file.write(tree, group, content)
        except KernelRefusal as refusal:
            raise of_os_error(path, OSError(refusal.number, os.strerror(refusal.number))) from refusal

    def names(self, directory: str) -> Sequence[str]:
        directory = self._led(directory, writes=False)
        found = self._group(directory)
        below = {
            path[len(directory) + 1 :].split("/")[0]
            for path in self.plain
            if path.startswith(f"{directory}/")
        }
        if found is not None:
            tree, group = found
            below |= set(group.children) | set(group.extra) | set(self._files(tree, group))
        if directory == CGROUPS:
            below |= {mount for mount in self.trees if mount}
        if not below:
            raise _missing(directory)
        return sorted(below)

    def exists(self, path: str) -> bool:
        try:
            path = self._led(path, writes=False)
            if path in self.plain or self._group(path) is not None:
                return True
            if any(one.startswith(f"{path}/") for one in self.plain):
                return True
            tree, group, name = self._in_group(path)
            return name in group.extra or name in self._files(tree, group)
        except (NoSuchFile, OutsideRoot):
            return False

    def make_directory(self, path: str) -> None:
        path = self._led(path, writes=True)
        if self._group(path) is not None or (resctrl.holds(path) and resctrl.make(self.plain, path)):
            return
        parent, _, name = path.rpartition("/")
        found = self._group(parent)
        if found is None:
            raise _missing(path)
        found[0].make(found[1], name)

    def remove_directory(self, path: str) -> None:
        path = self._led(path, writes=True)
        if resctrl.holds(path):
            resctrl.remove(self.plain, path)
        found = self._group(path)
        if found is None:
            return
        _, group = found
        if group.children or group.pids or group.parent is None:
            raise of_os_error(path, OSError(errno.EBUSY, os.strerror(errno.EBUSY)))
        del group.parent.children[path.rpartition("/")[2]]
        # What the group still had is its parent's: page cache, and what it had used.
        group.parent.cache += group.cache

    def _led(self, path: str, *, writes: bool) -> str:
        """Where a path leads. Raises `OutsideRoot` where a link must not be followed, or leads away."""
        parts = path.split("/")
        if parts[0] or len(parts) < 2 or any(part in {"", ".", ".."} or "\0" in part for part in parts[1:]):
            raise OutsideRoot(path, "a path of a kernel file is absolute and has no empty parts, `.` or `..`")
        if not any(path == tree or path.startswith(f"{tree}/") for tree in _TREES):
            raise OutsideRoot(path, "none of the trees that may be touched holds this path")
        for link, target in self.links.items():
            if path == link or path.startswith(f"{link}/"):
                tree = next(one for one in _TREES if link.startswith(f"{one}/"))
                if writes or not target.startswith(f"{tree}/"):
                    raise OutsideRoot(path, "a link leads through this path, or out of its tree")
                return target + path[len(link) :]
        return path

    def _in_group(self, path: str) -> tuple[GroupTree, Group, str]:
        directory, _, name = path.rpartition("/")
        found = self._group(directory)
        if found is None:
            raise _missing(path)
        return found[0], found[1], name

    def _group(self, path: str) -> tuple[GroupTree, Group] | None:
        if path != CGROUPS and not path.startswith(f"{CGROUPS}/"):
            return None
        inner = path[len(CGROUPS) + 1 :]
        for mount, tree in self.trees.items():
            if not mount or inner == mount or inner.startswith(f"{mount}/"):
                group = tree.find(inner[len(mount) + 1 :] if mount else inner)
                return None if group is None else (tree, group)
        return None

    def _file(self, path: str, tree: GroupTree, group: Group, name: str) -> GroupFile:
        file = self._files(tree, group).get(name)
        if file is None:
            raise _missing(path)
        return file

    @staticmethod
    def _files(tree: GroupTree, group: Group) -> dict[str, GroupFile]:
        files = dict(_V1_CORE if tree.version is CgroupVersion.V1 else {**_V2_CORE, **V2_STAT})
        for controller, own in _OF_CONTROLLER[tree.version].items():
            if controller in tree.controllers:
                files.update(
                    {name: file for name, file in own.items() if file.root or group.parent is not None}
                )
        return files


def _missing(path: str) -> NoSuchFile:
    return NoSuchFile(path, os.strerror(errno.ENOENT), errno.ENOENT)


class ReadAnew:
    """A file of a root that has nothing to hold: it is looked for at each reading. Implements `HeldFile`."""

    def __init__(self, root: KernelRoot, path: str) -> None:
        self._root = root
        self._path = path

    def read(self) -> bytes:
        return self._root.read(self._path).encode()

    def close(self) -> None:
        """Nothing is held."""


class CountedAnew:
    """A directory of a root that has nothing to hold. Implements `HeldDirectory`."""

    def __init__(self, root: KernelRoot, path: str) -> None:
        self._root = root
        self._path = path

    def links(self) -> int:
        return len(self._root.names(self._path))

    def close(self) -> None:
        """Nothing is held."""
