"""Device objects as values: what devices a node has, and what each of them offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.reading import (
    NO_TEXT,
    NOTHING,
    Amounts,
    Json,
    amounts,
    flag,
    mapping,
    objects,
    text,
    texts,
)

_MOST: Final = 4096
"""More devices than any machine has; what comes after them is passed over."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Amounts by resource name, as the node is to offer them."""

    type: str
    healthy: bool = False
    resources: Amounts = field(default_factory=lambda: NOTHING)
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a node, and the labels of the object that lists them."""

    devices: tuple[Device, ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)


NO_DEVICES: Final = NodeDevices()


def read_devices(obj: Json) -> NodeDevices:
    """The devices of a Device object. Raises ObjectError with the place of what is malformed."""
    listed = list(objects(mapping(obj, "spec"), "devices", "spec"))[:_MOST]
    return NodeDevices(
        tuple(
            Device(
                text(one, "type", f"spec.devices[{at}]"),
                flag(one, "health", f"spec.devices[{at}]"),
                amounts(one, "resources", f"spec.devices[{at}]"),
                texts(one, "labels", f"spec.devices[{at}]"),
            )
            for at, one in enumerate(listed)
        ),
        texts(mapping(obj, "metadata"), "labels", "metadata"),
    )
