"""RDMA cards of a node, from /sys/class/infiniband."""

import re
from typing import Final

from koordpolicy.linux.devices.found import RDMA_CARD, DeviceState, FoundDevice
from koordpolicy.linux.devices.pci import PciBuses, address_of, read_or_nothing
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.root import SYS, KernelRoot
from koordpolicy.model.protocol import RDMA

CARDS: Final = f"{SYS}/class/infiniband"
_WHOLE: Final = "100"
"""Percent of one."""
_NETWORK: Final = "0x02"
"""The class of network controllers on the PCI bus."""
_LAST_NUMBER: Final = re.compile(r"(\d{1,6})$")
_ACTIVE: Final = "ACTIVE"


def read_rdma_cards(root: KernelRoot, buses: PciBuses) -> tuple[FoundDevice, ...]:
    """The cards by number, each with its virtual functions; what shares another's port is none itself.

    A card works while all of its ports are active. Its number is the one that its name ends in, or the next that is free.
    Raises `KernelFileError`; a kernel without RDMA has none.
    """
    try:
        names = root.names(CARDS)
    except NoSuchFile:
        return ()
    found: dict[str, FoundDevice] = {}
    taken: set[int] = set()
    for name in sorted(names, key=lambda name: (len(name), name)):
        address = address_of(root, f"{CARDS}/{name}/device")
        if not address or address in found or buses.is_function(address):
            continue
        if not buses.kind(address).startswith(_NETWORK):
            continue
        number = _LAST_NUMBER.search(name)
        minor = int(number[1]) if number else 0
        while minor in taken:
            minor += 1
        taken.add(minor)
        found[address] = FoundDevice(
            RDMA_CARD,
            address,
            minor,
            {RDMA: _WHOLE},
            buses.place(address),
            _state(root, name),
            buses.functions(address),
        )
    return tuple(sorted(found.values(), key=lambda one: one.minor))


def _state(root: KernelRoot, name: str) -> DeviceState | None:
    """None while it works: only what does not is worth a condition."""
    ports = f"{CARDS}/{name}/ports"
    try:
        states = {port: read_or_nothing(root, f"{ports}/{port}/state") for port in root.names(ports)}
    except KernelFileError:
        states = {}
    silent = sorted(port for port, state in states.items() if _ACTIVE not in state)
    if states and not silent:
        return None
    message = f"port {', '.join(silent)} of {name} is not active" if silent else f"{name} shows no port"
    return DeviceState(healthy=False, code="PortNotActive", message=message)
