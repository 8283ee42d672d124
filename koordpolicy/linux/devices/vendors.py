"""Accelerators whose drivers tell of themselves in /sys: a table of where each figure stands, and one reader for all.

Another driver is another row. Vendors whose drivers do not (Huawei, Cambricon, MetaX, Baidu) write files for agents instead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.linux.devices.found import GPU, DeviceState, DeviceUse, FoundDevice, FoundGPUs
from koordpolicy.linux.devices.pci import PciBuses, address_of, read_or_nothing
from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.fields import is_number
from koordpolicy.linux.root import SYS, KernelRoot
from koordpolicy.model.protocol import GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO

_MOST: Final = 1024
"""Devices of one vendor that are looked at."""
_WHOLE: Final = "100"


@dataclass(frozen=True, slots=True)
class VendorFields:
    """Where one driver tells what of its devices. A field that is empty is not told.

    `directory` has an entry a device, whose name matches `entry`; its group is the device's number. Of a device of another
    `maker` (as the bus numbers makers) the entry is passed over. Files are below the entry: `memory` and `used` in bytes,
    `busy` in percent; `driver` is a path of its own. `state` says one of `well` while the device works.
    """

    vendor: str
    directory: str
    entry: str
    maker: str
    identity: str = ""
    model: str = ""
    memory: str = ""
    used: str = ""
    busy: str = ""
    driver: str = ""
    state: str = ""
    well: frozenset[str] = frozenset()


_HABANA: Final = VendorFields(
    "habana",
    f"{SYS}/class/accel",
    r"accel(\d+)",
    "0x1da3",
    identity="device/pci_addr",
    model="device/device_type",
    driver=f"{SYS}/module/habanalabs/version",
    state="device/status",
    well=frozenset({"operational"}),
)

VENDORS: Final = (
    # Documentation/gpu/amdgpu/driver-misc.rst of the kernel
    VendorFields(
        "amd",
        f"{SYS}/class/drm",
        r"card(\d+)",
        "0x1002",
        identity="device/unique_id",
        model="device/product_name",
        memory="device/mem_info_vram_total",
        used="device/mem_info_vram_used",
        busy="device/gpu_busy_percent",
        driver=f"{SYS}/module/amdgpu/version",
    ),
    # Documentation/ABI/testing/sysfs-driver-habanalabs, since 6.2 and before
    _HABANA,
    replace(
        _HABANA,
        directory=f"{SYS}/class/habanalabs",
        entry=r"hl(\d+)",
        identity="pci_addr",
        model="device_type",
        state="status",
    ),
)
"""The drivers that are known, in the order in which they are looked for."""


def read_vendor_devices(root: KernelRoot, buses: PciBuses) -> FoundGPUs | None:
    """The devices of the first driver of the table that has any; None for none. Raises `KernelFileError`."""
    for row in VENDORS:
        found = list(_found(root, buses, row))[:_MOST]
        if found:
            devices = tuple(sorted((device for device, _use in found), key=lambda one: one.minor))
            models = {read_or_nothing(root, f"{entry}/{row.model}") for entry in _entries(root, row)}
            return FoundGPUs(
                devices,
                row.vendor,
                label_of(models.pop()) if row.model and len(models) == 1 else "",
                read_or_nothing(root, row.driver) if row.driver else "",
                use={device.id: use for device, use in found if use is not None},
            )
    return None


def label_of(model: str) -> str:
    """A name of a model as labels take it: `A100-SXM4-80GB`."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", model.strip())
    return words[:63].strip("-_.")


def _entries(root: KernelRoot, row: VendorFields) -> Iterator[str]:
    """The entries of the vendor's own devices."""
    try:
        names = root.names(row.directory)
    except NoSuchFile:
        return
    for name in names:
        entry = f"{row.directory}/{name}"
        if re.fullmatch(row.entry, name) and read_or_nothing(root, f"{entry}/device/vendor") == row.maker:
            yield entry


def _found(
    root: KernelRoot, buses: PciBuses, row: VendorFields
) -> Iterator[tuple[FoundDevice, DeviceUse | None]]:
    for entry in _entries(root, row):
        matched = re.fullmatch(row.entry, entry.rpartition("/")[2])
        assert matched is not None
        address = address_of(root, f"{entry}/device")
        memory, used, busy = (_number(root, entry, name) for name in (row.memory, row.used, row.busy))
        resources = {GPU_CORE: _WHOLE, GPU_MEMORY_RATIO: _WHOLE}
        if memory:
            resources[GPU_MEMORY] = str(memory)
        identity = read_or_nothing(root, f"{entry}/{row.identity}") if row.identity else ""
        device = FoundDevice(
            GPU,
            identity or address or entry.rpartition("/")[2],
            int(matched[1]),
            resources,
            buses.place(address) if address else None,
            _state(root, entry, row),
        )
        known = busy is not None and used is not None
        yield device, DeviceUse(float(busy or 0), float(used or 0)) if known else None


def _state(root: KernelRoot, entry: str, row: VendorFields) -> DeviceState | None:
    if not row.state:
        return None
    said = read_or_nothing(root, f"{entry}/{row.state}")
    if said.casefold() in row.well:
        return DeviceState()
    return DeviceState(healthy=False, code="NotOperational", message=f"its driver says `{said[:200]}`")


def _number(root: KernelRoot, entry: str, name: str) -> int | None:
    said = read_or_nothing(root, f"{entry}/{name}") if name else ""
    return int(said) if is_number(said) else None
