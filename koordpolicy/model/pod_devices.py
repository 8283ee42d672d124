"""What pods say of devices in annotations: what they have been given, and how they want it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from koordpolicy.model.devices import VirtualFunction, read_function
from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.protocol import (
    DEVICE_ALLOCATE_HINT,
    DEVICE_ALLOCATED,
    DEVICE_JOINT_ALLOCATE,
    GPU_PARTITION_SPEC,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import (
    Amounts,
    Json,
    amounts,
    embedded_object,
    integer,
    mapping,
    objects,
    read_amounts,
    text,
    text_list,
)
from koordpolicy.model.scheduling_hint import DEVICES, hinted_plugins
from koordpolicy.model.scheduling_hint import KEYS as HINT_KEYS

KEYS: Final = frozenset({DEVICE_ALLOCATE_HINT, DEVICE_JOINT_ALLOCATE, GPU_PARTITION_SPEC}) | HINT_KEYS
"""The annotations by which a pod says how it wants devices."""

RESTRICTED: Final = "Restricted"
SAME_PCIE: Final = "SamePCIe"


class DeviceShare(NamedTuple):
    """So much of one device."""

    minor: int
    resources: Amounts
    id: str = ""
    functions: tuple[VirtualFunction, ...] = ()
    """The virtual functions of it that are the pod's."""
    template: str = ""
    """The template of shared resources that it is divided by; empty for none."""


Shares = Mapping[str, tuple[DeviceShare, ...]]
"""What a pod has of devices, by their type."""


@dataclass(frozen=True, slots=True)
class DeviceHint:
    """How a pod wants devices of a type."""

    selector: LabelSelector = field(default_factory=LabelSelector)
    strategy: str = ""
    scope: str = ""
    exclusive: str = ""
    functions: LabelSelector | None = None
    """Of which groups it wants a virtual function of each; None: it wants none."""


@dataclass(frozen=True, slots=True)
class DeviceWishes:
    """All that a pod says of how it wants devices. `joint` are types that are to be near each other, the first one leads.

    `partition` says whether it wants cards that are linked, `bandwidth` what their ring is to carry.
    """

    hints: Mapping[str, DeviceHint] = field(default_factory=dict)
    joint: tuple[str, ...] = ()
    same_pcie: bool = False
    partition: bool = False
    restricted: bool = False
    bandwidth: int = 0
    given: Shares = field(default_factory=dict)
    """Devices that somebody else has chosen for it: it gets these, and no others of their types."""


NO_WISHES: Final = DeviceWishes()


def read_shares(annotations: Mapping[str, str]) -> Shares:
    """What a pod was given; empty without the annotation. Raises ObjectError."""
    source = annotations.get(DEVICE_ALLOCATED)
    if not source:
        return {}
    table = embedded_object(source, DEVICE_ALLOCATED)
    found: dict[str, tuple[DeviceShare, ...]] = {}
    for type in table:
        listed = []
        for at, one in enumerate(objects(table, type, DEVICE_ALLOCATED)):
            where = f"{DEVICE_ALLOCATED}.{type}[{at}]"
            minor = integer(one, "minor", where) or 0
            extension = mapping(one, "extension", where)
            functions = tuple(
                read_function(vf, f"{where}.extension.vfs[{place}]")
                for place, vf in enumerate(objects(extension, "vfs", f"{where}.extension"))
            )
            resources = amounts(one, "resources", where)
            template = text(extension, "gpuSharedResourceTemplate", f"{where}.extension")
            listed.append(DeviceShare(minor, resources, text(one, "id", where), functions, template))
        found[type] = tuple(listed)
    return found


def shares_text(shares: Shares) -> str:
    """The annotation that says so."""
    return json.dumps(
        {
            type: [
                {
                    "minor": one.minor,
                    **({"id": one.id} if one.id else {}),
                    "resources": {
                        name: amount_text(name, number) for name, number in sorted(one.resources.items())
                    },
                    **({"extension": extension} if (extension := _extension(one)) else {}),
                }
                for one in listed
            ]
            for type, listed in shares.items()
        },
        separators=(",", ":"),
    )


def _extension(share: DeviceShare) -> Json:
    functions = [{"minor": one.minor, "busID": one.bus} for one in share.functions]
    return {
        **({"vfs": functions} if functions else {}),
        **({"gpuSharedResourceTemplate": share.template} if share.template else {}),
    }


def read_wishes(annotations: Mapping[str, str]) -> DeviceWishes:
    """What a pod says of how it wants devices. Raises ObjectError."""
    if KEYS.isdisjoint(annotations):
        return NO_WISHES
    hints = _object(annotations, DEVICE_ALLOCATE_HINT)
    joint = _object(annotations, DEVICE_JOINT_ALLOCATE)
    spec = _object(annotations, GPU_PARTITION_SPEC)
    bandwidth = text(spec, "ringBusBandwidth", GPU_PARTITION_SPEC)
    found = DeviceWishes(
        {type: _hint(hints, type) for type in hints},
        tuple(text_list(joint, "deviceTypes", DEVICE_JOINT_ALLOCATE)),
        text(joint, "requiredScope", DEVICE_JOINT_ALLOCATE) == SAME_PCIE,
        bool(annotations.get(GPU_PARTITION_SPEC)),
        text(spec, "allocatePolicy", GPU_PARTITION_SPEC) == RESTRICTED,
        read_amounts({"bandwidth": bandwidth}, GPU_PARTITION_SPEC)["bandwidth"] if bandwidth else 0,
        read_shares(annotations) if DEVICES in hinted_plugins(annotations) else {},
    )
    return NO_WISHES if found == NO_WISHES else found


def _object(annotations: Mapping[str, str], key: str) -> Json:
    source = annotations.get(key)
    return embedded_object(source, key) if source else {}


def _hint(hints: Json, type: str) -> DeviceHint:
    at = f"{DEVICE_ALLOCATE_HINT}.{type}"
    one = mapping(hints, type, DEVICE_ALLOCATE_HINT)
    virtual = mapping(one, "vfSelector", at) if one.get("vfSelector") is not None else None
    return DeviceHint(
        read_selector(mapping(one, "selector", at), f"{at}.selector"),
        text(one, "allocateStrategy", at),
        text(one, "requiredTopologyScope", at),
        text(one, "exclusivePolicy", at),
        None if virtual is None else read_selector(virtual, f"{at}.vfSelector"),
    )
