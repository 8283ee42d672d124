"""Where devices sit on the PCI buses of a machine, from /sys."""

import re
from collections.abc import Mapping
from typing import Final

from koordpolicy.linux.devices.found import UNKNOWN, DevicePlace
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.root import SYS, KernelRoot

_DEVICES: Final = f"{SYS}/devices"
_COMPLEX: Final = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
_FUNCTION: Final = re.compile(r"virtfn\d+")
_MOST: Final = 16_384
"""Devices of a machine that are looked at."""


class PciBuses:
    """The devices on a machine's buses by their address. They are looked for once, and again for one that is not known.

    `sockets` are those of NUMA nodes. No method raises: what the kernel does not tell is unknown.
    """

    def __init__(self, root: KernelRoot, sockets: Mapping[int, int]) -> None:
        self._root = root
        self._sockets = sockets
        self._directories: Mapping[str, str] = {}

    def directory(self, address: str) -> str:
        """Where the files of a device are; "" for one that is not there."""
        wanted = address.lower()
        found = self._directories.get(wanted, "")
        if not found or not self._root.exists(found):
            self._directories = _directories(self._root)
        return self._directories.get(wanted, "")

    def place(self, address: str) -> DevicePlace | None:
        """Where a device sits; None for one that is not there."""
        directory = self.directory(address)
        if not directory:
            return None
        node = _number(self._root, f"{directory}/numa_node")
        if node < 0 and len(self._sockets) <= 1:
            node = 0  # on a machine with one node no device is on another
        complex_ = directory.removeprefix(f"{_DEVICES}/").partition("/")[0]
        return DevicePlace(self._sockets.get(node, UNKNOWN), node, complex_, address.lower())

    def functions(self, address: str) -> tuple[str, ...]:
        """The addresses of the virtual functions of a device, sorted."""
        directory = self.directory(address)
        try:
            names = self._root.names(directory) if directory else ()
        except KernelFileError:
            return ()
        found = (address_of(self._root, f"{directory}/{name}") for name in names if _FUNCTION.fullmatch(name))
        return tuple(sorted(filter(None, found)))

    def is_function(self, address: str) -> bool:
        """Whether a device is a virtual function of another."""
        directory = self.directory(address)
        return bool(directory) and self._root.exists(f"{directory}/physfn")

    def kind(self, address: str) -> str:
        """The class of a device as the bus numbers it, `0x020000`; "" where the kernel does not say."""
        directory = self.directory(address)
        return read_or_nothing(self._root, f"{directory}/class") if directory else ""


def address_of(root: KernelRoot, directory: str) -> str:
    """The PCI address of the device whose files are in a directory, or a link to it; "" for none on that bus."""
    for line in read_or_nothing(root, f"{directory}/uevent").splitlines():
        name, _, value = line.partition("=")
        if name == "PCI_SLOT_NAME":
            return value.strip().lower()
    return ""


def read_or_nothing(root: KernelRoot, path: str) -> str:
    """What a file says, without what surrounds it; "" where it cannot be read."""
    try:
        return root.read(path).strip()
    except KernelFileError:
        return ""


def _directories(root: KernelRoot) -> dict[str, str]:
    """The directory of each device by its address: bridges hold what is behind them."""
    found: dict[str, str] = {}
    try:
        waiting = [f"{_DEVICES}/{name}" for name in root.names(_DEVICES) if _COMPLEX.fullmatch(name)]
    except NoSuchFile:
        return found
    while waiting and len(found) < _MOST:
        directory = waiting.pop()
        try:
            names = root.names(directory)
        except KernelFileError:
            continue  # it was taken out meanwhile
        for name in names:
            if _ADDRESS.fullmatch(name):
                found[name.lower()] = f"{directory}/{name}"
                waiting.append(f"{directory}/{name}")
    return found


def _number(root: KernelRoot, path: str) -> int:
    try:
        return int(read_or_nothing(root, path))
    except ValueError:
        return UNKNOWN
