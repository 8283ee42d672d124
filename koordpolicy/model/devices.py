"""Device objects as values: what devices a node has, and what each of them offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from koordpolicy.model.protocol import GPU_PARTITIONS
from koordpolicy.model.reading import (
    NO_TEXT,
    NOTHING,
    Amounts,
    Json,
    ObjectError,
    amounts,
    embedded_object,
    flag,
    integer,
    mapping,
    objects,
    read_amounts,
    sequence,
    text,
    texts,
)

_MOST: Final = 4096
"""More devices than any machine has; what comes after them is passed over."""

_MOST_ZONES: Final = 1024
"""More NUMA zones than the kernel counts; a device said to be in one beyond is in none that is known."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Amounts by resource name, as the node is to offer them."""

    type: str
    healthy: bool = False
    resources: Amounts = field(default_factory=lambda: NOTHING)
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    minor: int = 0
    id: str = ""
    numa: int = -1
    pcie: str = ""
    functions: "tuple[FunctionGroup, ...]" = ()
    """Its virtual functions, by SR-IOV, in groups."""


class VirtualFunction(NamedTuple):
    """A virtual function of a device: its number, and its address on the bus, which tells it from all others of the node."""

    minor: int
    bus: str


class FunctionGroup(NamedTuple):
    """Virtual functions that are chosen by the same labels."""

    labels: Mapping[str, str]
    functions: tuple[VirtualFunction, ...]


class LinkedCards(NamedTuple):
    """Cards that are linked with each other: by their minors, how good they are together, what their ring carries."""

    minors: frozenset[int]
    score: int
    bandwidth: int | None


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a node, the labels of the object that lists them, and its sets of linked cards by their number."""

    devices: tuple[Device, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    partitions: Mapping[int, tuple[LinkedCards, ...]] = field(default_factory=lambda: NO_PARTITIONS)


NO_PARTITIONS: Final[Mapping[int, tuple[LinkedCards, ...]]] = MappingProxyType({})

NO_DEVICES: Final = NodeDevices()


def read_devices(obj: Json) -> NodeDevices:
    """The devices of a Device object. Raises ObjectError with the place of what is malformed."""
    listed = list(objects(mapping(obj, "spec"), "devices", "spec"))[:_MOST]
    metadata = mapping(obj, "metadata")
    return NodeDevices(
        tuple(_device(one, f"spec.devices[{at}]") for at, one in enumerate(listed)),
        texts(metadata, "labels", "metadata"),
        _partitions(texts(metadata, "annotations", "metadata").get(GPU_PARTITIONS, "")),
    )


def _device(one: Json, at: str) -> Device:
    topology = mapping(one, "topology", at)
    where = f"{at}.topology"
    numa = integer(topology, "nodeID", where)
    return Device(
        text(one, "type", at),
        flag(one, "health", at),
        amounts(one, "resources", at),
        texts(one, "labels", at),
        integer(one, "minor", at) or 0,
        text(one, "id", at),
        -1 if numa is None or not 0 <= numa < _MOST_ZONES else numa,
        text(topology, "pcieID", where),
        tuple(
            _group(group, f"{at}.vfGroups[{place}]")
            for place, group in enumerate(list(objects(one, "vfGroups", at))[:_MOST])
        ),
    )


def _group(one: Json, at: str) -> FunctionGroup:
    listed = list(objects(one, "vfs", at))[:_MOST]
    return FunctionGroup(
        texts(one, "labels", at),
        tuple(read_function(vf, f"{at}.vfs[{place}]") for place, vf in enumerate(listed)),
    )


def read_function(one: Json, at: str) -> VirtualFunction:
    """A virtual function. Raises ObjectError."""
    return VirtualFunction(integer(one, "minor", at) or 0, text(one, "busID", at))


def _partitions(source: str) -> Mapping[int, tuple[LinkedCards, ...]]:
    """The table of an annotation, `{"2": [{"minors": [0, 1], "allocationScore": 1}]}`; none without it."""
    if not source:
        return NO_PARTITIONS
    table = embedded_object(source, GPU_PARTITIONS)
    found: dict[int, tuple[LinkedCards, ...]] = {}
    for size in table:
        at = f"{GPU_PARTITIONS}.{size}"
        if not (size.isascii() and size.isdecimal() and 0 < int(size) <= _MOST):
            raise ObjectError(f"{at}: expected a number of cards, 1 to {_MOST}, as key")
        found[int(size)] = tuple(
            _linked(one, int(size), f"{at}[{place}]")
            for place, one in enumerate(objects(table, size, GPU_PARTITIONS))
        )
    return found


def _linked(one: Json, size: int, at: str) -> LinkedCards:
    minors = sequence(one, "minors", at)
    if len(minors) != size or not all(type(minor) is int for minor in minors):
        raise ObjectError(f"{at}.minors: expected {size} whole numbers, the minors of the cards")
    bandwidth = text(one, "ringBusBandwidth", at)
    score = integer(one, "allocationScore", at)
    return LinkedCards(
        frozenset(minor for minor in minors if isinstance(minor, int)),
        1 if score is None else score,
        read_amounts({"bandwidth": bandwidth}, at)["bandwidth"] if bandwidth else None,
    )
