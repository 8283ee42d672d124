"""Files in which other vendors' daemons tell agents of accelerators, one JSON list a file, as koordlet reads them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from koordpolicy.linux.devices.found import GPU, UNKNOWN, DevicePlace, DeviceState, FoundDevice, FoundGPUs
from koordpolicy.linux.devices.vendors import label_of
from koordpolicy.model.protocol import GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO
from koordpolicy.model.quantity import QuantityError, parse_quantity
from koordpolicy.model.reading import (
    ObjectError,
    flag,
    mapping,
    objects,
    optional_mapping,
    parse_json,
    text,
    texts,
)

_MOST_FILES: Final = 256
_MOST_BYTES: Final = 1 << 20
_MOST_DEVICES: Final = 1024
_MOST_DIGITS: Final = 9
_SHORT: Final[Mapping[str, str]] = {
    name.partition("/")[2]: name for name in (GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO)
}
"""Files may leave out whose names these are."""


def read_device_infos(directory: Path) -> FoundGPUs | None:
    """The devices of all files in a directory; None where there is none. Raises ObjectError with file and place."""
    found: list[Mapping[str, Any]] = []
    devices: list[FoundDevice] = []
    for file in _files(directory):
        for at, one in enumerate(_listed(file)):
            try:
                devices.append(_device(one))
            except ObjectError as error:
                raise ObjectError(f"{file}: [{at}].{error}") from error
            found.append(one)
    if not devices:
        return None
    partitions = dict.fromkeys(link for one in found for link in _links(one))
    return FoundGPUs(
        tuple(sorted(devices, key=lambda one: one.minor)),
        label_of(text(found[0], "vendor")),
        label_of(text(found[0], "model")),
        partitions=tuple(sorted(partitions)),
        honoured=flag(mapping(found[0], "topology"), "mustHonorPartition", "topology"),
    )


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.is_file())[:_MOST_FILES]
    except OSError:
        return []


def _listed(file: Path) -> list[Mapping[str, Any]]:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ObjectError(f"{file}: more than {_MOST_BYTES >> 20} MiB")
        said = parse_json(content.decode()) if content.strip() else []
    except (OSError, ValueError) as error:
        raise ObjectError(f"{file}: {error}") from error
    listed = said if isinstance(said, list) else [said]
    if not all(isinstance(one, Mapping) for one in listed):
        raise ObjectError(f"{file}: not a list of devices")
    return listed[:_MOST_DEVICES]


def _device(said: Mapping[str, Any]) -> FoundDevice:
    resources = {GPU_MEMORY_RATIO: "100"}
    for name, amount in texts(said, "resources", "").items():
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise ObjectError(f"resources.{name}: {error}") from error
        resources[_SHORT.get(name, name)] = amount
    minor = _number(text(said, "minor"), "minor")
    if minor < 0:
        raise ObjectError(f"minor: devices are numbered from 0, not {minor}")
    topology = optional_mapping(said, "topology", "")
    status = optional_mapping(said, "status", "")
    return FoundDevice(
        GPU,
        text(said, "uuid"),
        minor,
        resources,
        None if topology is None else _place(topology),
        None
        if status is None
        else DeviceState(
            flag(status, "healthy", "status"),
            text(status, "errCode", "status"),
            text(status, "errMessage", "status"),
        ),
    )


def _place(said: Mapping[str, Any]) -> DevicePlace:
    node, socket = text(said, "nodeID", "topology"), text(said, "socketID", "topology")
    return DevicePlace(
        _number(socket, "topology.socketID") if socket else UNKNOWN,
        _number(node, "topology.nodeID") if node else UNKNOWN,
        text(said, "pcieID", "topology"),
        text(said, "busID", "topology"),
    )


def _links(said: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The sets of minors that a device is linked in; what names no sort of link or no minor is none."""
    topology = mapping(said, "topology")
    for link in objects(topology, "p2pLinks", "topology"):
        peers, sort = text(link, "peerMinor", "p2pLinks"), text(link, "type", "p2pLinks")
        words = [word.strip() for word in f"{peers},{text(said, 'minor')}".split(",")]
        minors = sorted({int(word) for word in words if word.isdecimal() and len(word) <= _MOST_DIGITS})
        if peers and sort:
            yield tuple(minors), sort


def _number(said: str, place: str) -> int:
    number = said.strip()
    if not (number.isascii() and number.removeprefix("-").isdecimal()) or len(number) > _MOST_DIGITS:
        raise ObjectError(f"{place}: `{said[:40]}` is no number")
    return int(number)
