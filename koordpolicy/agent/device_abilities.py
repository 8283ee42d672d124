"""What the doctor says of devices: which source tells of any, and what nobody is told of without it."""

from collections.abc import Callable, Iterator
from typing import Final

from koordpolicy.agent.ability import Ability
from koordpolicy.agent.collectors.device_infos import read_device_infos
from koordpolicy.agent.collectors.devices import DeviceSources
from koordpolicy.linux.devices.nvml import NvidiaLibrary
from koordpolicy.linux.devices.pci import PciBuses
from koordpolicy.linux.devices.rdma import read_rdma_cards
from koordpolicy.linux.devices.vendors import VENDORS, read_vendor_devices
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.block import read_block_devices
from koordpolicy.linux.root import KernelRoot
from koordpolicy.model.reading import ObjectError

_KIND: Final = "MetricCollection.devices"


def device_abilities(root: KernelRoot, sources: DeviceSources) -> Iterator[Ability]:
    """Each source of devices, looked at once."""
    buses = PciBuses(root, {})
    vendors = " or ".join(dict.fromkeys(row.vendor for row in VENDORS))

    def of_files() -> str:
        found = read_device_infos(sources.infos)
        return "" if found is None else f"{len(found.devices)} of {found.vendor or 'somebody'}"

    def of_vendors() -> str:
        found = read_vendor_devices(root, buses)
        return "" if found is None else f"{len(found.devices)} of {found.vendor}"

    yield _looked("GPUs of NVIDIA", f"{_KIND}.gpus tells of none of NVIDIA's", lambda: _nvidia(sources), "")
    yield _looked(
        "files about accelerators",
        f"{_KIND}.gpus tells of none that only its vendor's daemon knows",
        of_files,
        f"none in {sources.infos}",
    )
    yield _looked(
        "accelerators by their drivers",
        f"{_KIND}.gpus tells of none of {vendors}",
        of_vendors,
        "no driver of the table tells of any",
    )
    yield _looked(
        "RDMA cards",
        f"{_KIND}.rdma tells of none",
        lambda: _count(len(read_rdma_cards(root, buses))),
        "the kernel lists none",
    )
    yield _looked(
        "block devices",
        "Isolation.blocks finds no disk to limit",
        lambda: _count(len(read_block_devices(root).by_name)),
        "the kernel lists none",
    )


def _nvidia(sources: DeviceSources) -> str:
    library = NvidiaLibrary(sources.library)
    try:
        return f"{library.count()} by {library.name}, driver {library.driver()}"
    finally:
        library.close()


def _looked(name: str, means: str, look: Callable[[], str], otherwise: str) -> Ability:
    try:
        found = look()
    except KernelFileError as error:
        return Ability(name, False, f"{error.path}: {error.problem}", means)
    except ObjectError as error:
        return Ability(name, False, str(error), means)
    return Ability(name, bool(found), found or otherwise, means)


def _count(number: int) -> str:
    return f"{number} of them" if number else ""
