"""Block devices: disks, their partitions, volumes on them, and what is mounted where."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.linux.cgroups.hierarchy import LocatedFile
from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.fields import lines
from koordpolicy.linux.root import PROC, SYS, KernelRoot

_BLOCK = f"{SYS}/block"
_MOST_STEPS = 16


@dataclass(frozen=True, slots=True)
class DiskOrPart:
    """A disk, partition or volume. `number` is `major:minor`; `on` names what it lies on, "" for a disk.

    `volume` is the device mapper's name of a logical volume, `group-volume`, "" for others.
    """

    name: str
    number: str
    on: str = ""
    volume: str = ""


@dataclass(frozen=True, slots=True)
class BlockDevices:
    """All of them by name."""

    by_name: Mapping[str, DiskOrPart]

    def disk(self, device: str) -> DiskOrPart | None:
        """The disk that a device, told by its name, path in /dev or number, lies on; None for none that is known."""
        wanted = device.rpartition("/")[2]
        found = self.by_name.get(wanted) or next(
            (one for one in self.by_name.values() if wanted in {one.number, one.volume}), None
        )
        for _ in range(_MOST_STEPS):
            if found is None or not found.on:
                return found
            found = self.by_name.get(found.on)
        return None

    def disk_of_group(self, group: str) -> DiskOrPart | None:
        """A disk that volumes of a volume group lie on; None where there is none of them."""
        prefix = group.replace("-", "--") + "-"  # as the device mapper writes names with dashes in them
        volume = next((one for one in self.by_name.values() if one.volume.startswith(prefix)), None)
        return None if volume is None else self.disk(volume.name)


def read_block_devices(root: KernelRoot) -> BlockDevices:
    """All block devices; those that go meanwhile are left out. Raises `KernelFileError` where there is no /sys/block."""
    found: dict[str, DiskOrPart] = {}
    for disk in root.names(_BLOCK):
        try:
            directory = f"{_BLOCK}/{disk}"
            slaves = root.names(f"{directory}/slaves") if root.exists(f"{directory}/slaves") else ()
            volume = root.read(f"{directory}/dm/name").strip() if root.exists(f"{directory}/dm/name") else ""
            number = root.read(f"{directory}/dev").strip()
            found[disk] = DiskOrPart(disk, number, slaves[0] if slaves else "", volume)
            for part in root.names(directory):
                if part.startswith(disk) and root.exists(f"{directory}/{part}/partition"):
                    found[part] = DiskOrPart(part, root.read(f"{directory}/{part}/dev").strip(), disk)
        except NoSuchFile:
            continue
    return BlockDevices(found)


def read_mounts(root: KernelRoot, pid: int = 1) -> Mapping[str, str]:
    """Where devices are mounted in the mount namespace of a process: mount point → `major:minor`. Raises `KernelFileError`."""
    found = {}
    for line in root.read(f"{PROC}/{pid}/mountinfo").splitlines():
        words = line.split(" ")
        if len(words) > 4:
            # The kernel writes blanks and backslashes in octal.
            point = (
                words[4]
                .replace(r"\040", " ")
                .replace(r"\011", "\t")
                .replace(r"\012", "\n")
                .replace(r"\134", "\\")
            )
            found[point] = words[2]
    return found


def limited_of(place: LocatedFile, content: str) -> frozenset[str]:
    """The numbers of devices that a file of a group has a line for, beyond no limit, of its text."""
    devices = {words[0] for words in lines(content) if words and ":" in words[0]}
    before = place.entry.form.before
    # In version 2 one line holds all limits of a device: those that are none say so.
    return frozenset(one for one in devices if not (before(f"{one} 1", content) or "").endswith("=max"))
