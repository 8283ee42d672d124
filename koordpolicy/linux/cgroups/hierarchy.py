"""The cgroup hierarchies of a machine: which version has which controller, and where it is mounted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.files.kernel_file import CgroupVersion, FileEntry, FilePlace, KernelFile
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.linux.root import CGROUPS, RESCTRL, KernelRoot

_UNIFIED: Final = "unified"
_MOST_NAMES: Final = 256


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A file of a target: its path, its row, and its entry of the version that the path belongs to."""

    path: str
    file: KernelFile
    entry: FileEntry


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """What is mounted below `root`.

    `v1` maps each controller of version 1 to its directory's name; several share one where they are mounted
    together. `v2` is the directory of version 2, "" for `root` itself and None where there is none: on a hybrid
    machine it stands beside version 1's, often without controllers, and still tells pressure.
    """

    v1: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    v2: str | None = None
    root: str = CGROUPS

    @property
    def version(self) -> CgroupVersion:
        """The version that has the CPU controller."""
        return CgroupVersion.V1 if self.v1 else CgroupVersion.V2

    def directory(self, controller: str, group: str = "") -> str:
        """The path of a group in the hierarchy that has the controller; version 2's where version 1 has not."""
        mount = self.v1.get(controller, self.v2 or "")
        return "/".join(part for part in (self.root, mount, group) if part)

    def located(self, name: str, target: str = "") -> tuple[LocatedFile, ...]:
        """The places where a file of the table may be for a target, the likeliest first; none where neither version has it.

        There is at most one for a file that is written. Raises KeyError for a name that is not in the table.
        """
        row = KERNEL_FILES[name]
        return tuple(LocatedFile(path, row, entry) for path, entry in self._places(row, target))

    def _places(self, row: KernelFile, target: str) -> Iterator[tuple[str, FileEntry]]:
        if row.entry is not None:
            yield _beside(row, row.entry, target), row.entry
            return
        entry = row.of(CgroupVersion.V1)
        owned = row.controller in self.v1
        if entry is not None and owned:
            yield f"{self.directory(row.controller, target)}/{entry.name}", entry
        entry = row.of(CgroupVersion.V2)
        # What is only read may stand in version 2 though version 1 has the controller: pressure does.
        if entry is not None and self.v2 is not None and not (owned and row.writers):
            parts = (self.root, self.v2, target, entry.name)
            yield "/".join(part for part in parts if part), entry


def _beside(row: KernelFile, entry: FileEntry, target: str) -> str:
    if row.place is FilePlace.RESCTRL:
        return "/".join(part for part in (RESCTRL, target, entry.name) if part)
    return entry.name.format(target)


def discover_hierarchy(root: KernelRoot, at: str = CGROUPS) -> Hierarchy:
    """What is mounted at `at`, seen by its files. Raises `KernelFileError` where it cannot be read."""
    if root.exists(f"{at}/cgroup.controllers"):
        return Hierarchy(v2="", root=at)
    v1: dict[str, str] = {}
    for name in list(root.names(at))[:_MOST_NAMES]:
        # `cpu,cpuacct` is the mount, `cpu` a link to it: the mount's own name wins, which no link leads through.
        for controller in name.split(","):
            if (
                root.exists(f"{at}/{name}/cgroup.procs")
                and name != _UNIFIED
                and ("," in name or controller not in v1)
            ):
                v1[controller] = name
    v2 = _UNIFIED if root.exists(f"{at}/{_UNIFIED}/cgroup.controllers") else None
    if not v1 and v2 is None:
        raise KernelFileError(at, "no cgroup hierarchy is mounted here")
    return Hierarchy(MappingProxyType(v1), v2, at)
