"""The Device object of a node, and what NodeMetric says of devices in use, as Koordinator's scheduler and manager read them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.collectors.devices import DeviceFindings
from koordpolicy.kube.port import Object
from koordpolicy.linux.devices.found import GPU, RDMA_CARD, UNKNOWN, DeviceUse, FoundDevice, FoundGPUs
from koordpolicy.model.protocol import (
    GPU_CORE,
    GPU_DRIVER,
    GPU_MEMORY,
    GPU_MEMORY_RATIO,
    GPU_MODEL,
    GPU_PARTITION_POLICY,
    GPU_PARTITIONS,
    GPU_VENDOR,
    SCHEDULING_API,
)
from koordpolicy.model.quantity import amount
from koordpolicy.model.reading import integer, mapping, objects, text, texts
from koordpolicy.model.time import time_text

_PLACE: Final = "spec.devices"
_HEALTHY: Final = "Healthy"
_REASON, _MESSAGE = "DeviceHealthy", "device is healthy"
_UNKNOWN_REASON, _UNKNOWN_MESSAGE = "Unknown", "device is unhealthy"
_HONOUR, _PREFER = "Honor", "Prefer"
_FULL: Final = 100


def device_object(node: Object, found: DeviceFindings, standing: Object | None, now: int) -> dict[str, Any]:
    """The object that says what was found; of one that is `standing` everything stays that was not looked at.

    `now` is nanoseconds since 1970, of which conditions tell that changed. Raises ObjectError for an object that cannot be read.
    """
    kept = {} if standing is None else dict(standing)
    metadata = dict(mapping(kept, "metadata"))
    of_node = mapping(node, "metadata")
    name = text(of_node, "name", "metadata")
    labels = dict(texts(metadata, "labels", "metadata"))
    annotations = dict(texts(metadata, "annotations", "metadata"))
    if found.gpus is not None:
        labels |= _labels(found.gpus)
        annotations |= _annotations(found.gpus)
    metadata |= {"name": name}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    if standing is None:
        uid = text(of_node, "uid", "metadata")
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    spec = dict(mapping(kept, "spec"))
    spec["devices"] = _devices(found, list(objects(spec, "devices", "spec")), now)
    return {**kept, "apiVersion": SCHEDULING_API, "kind": "Device", "metadata": metadata, "spec": spec}


def says_devices(standing: Object | None, wanted: Object) -> bool:
    """Whether an object says all that is wanted already."""
    return standing is not None and all(
        mapping(standing, part).get(key) == mapping(wanted, part).get(key)
        for part, key in (("metadata", "labels"), ("metadata", "annotations"), ("spec", "devices"))
    )


def _devices(found: DeviceFindings, before: Sequence[Mapping[str, Any]], now: int) -> list[dict[str, Any]]:
    """By type and number. Types that were not looked at, or could not be, stay as they stand."""
    told: dict[str, Sequence[FoundDevice]] = {}
    if found.gpus is not None:
        told[GPU] = found.gpus.devices
    if found.cards is not None:
        told[RDMA_CARD] = found.cards
    known = {(text(one, "type", _PLACE), text(one, "id", _PLACE)): one for one in before}
    listed = [dict(one) for one in before if text(one, "type", _PLACE) not in told]
    for devices in told.values():
        listed += [_device(one, known.get((one.type, one.id), {}), now) for one in devices]
    return sorted(listed, key=lambda one: (text(one, "type", _PLACE), integer(one, "minor", _PLACE) or 0))


def _device(found: FoundDevice, before: Mapping[str, Any], now: int) -> dict[str, Any]:
    said: dict[str, Any] = {
        "type": found.type,
        "id": found.id,
        "minor": found.minor,
        "health": found.healthy,
        "resources": dict(found.resources),
    }
    if found.module is not None:
        said["moduleID"] = found.module
    place = found.place
    if place is not None and (place.root or place.node != UNKNOWN):
        said["topology"] = {
            "socketID": place.socket,
            "nodeID": place.node,
            "pcieID": place.root,
            "busID": place.bus,
        }
    if found.functions:
        # Koordinator numbers no virtual function: it is told by its address.
        said["vfGroups"] = [{"vfs": [{"minor": UNKNOWN, "busID": one} for one in found.functions]}]
    if found.state is not None:
        state = found.state
        status = "True" if state.healthy else "False"
        conditions = {text(one, "type", _PLACE): one for one in objects(before, "conditions", _PLACE)}
        since = conditions.get(_HEALTHY, {})
        changed = since.get("lastTransitionTime") if since.get("status") == status else None
        said["conditions"] = [
            {
                "type": _HEALTHY,
                "status": status,
                "lastTransitionTime": changed or time_text(now),
                "reason": _REASON if state.healthy else state.code or _UNKNOWN_REASON,
                "message": _MESSAGE if state.healthy else state.message or _UNKNOWN_MESSAGE,
            }
        ]
    return said


def _labels(found: FoundGPUs) -> dict[str, str]:
    if not found.devices:
        return {}
    said = {GPU_VENDOR: found.vendor, GPU_MODEL: found.model, GPU_DRIVER: found.driver}
    if found.partitions:
        said[GPU_PARTITION_POLICY] = _HONOUR if found.honoured else _PREFER
    return {key: value for key, value in said.items() if value}


def _annotations(found: FoundGPUs) -> dict[str, str]:
    if not found.partitions:
        return {}
    sizes: dict[str, list[dict[str, Any]]] = {}
    for minors, link in found.partitions:
        partition = {"minors": list(minors), "gpuLinkType": link, "allocationScore": 1}
        sizes.setdefault(str(len(minors)), []).append(partition)
    return {GPU_PARTITIONS: json.dumps(sizes)}


@dataclass(frozen=True, slots=True)
class DevicesInUse:
    """What NodeMetric says of devices: of the node, and of its pods by namespace and name; each as `DeviceInfo` has it."""

    node: Sequence[Mapping[str, Any]] = ()
    pods: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]] = field(default_factory=dict)


NONE_IN_USE: Final = DevicesInUse()


def used_devices(devices: Sequence[FoundDevice], use: Mapping[str, DeviceUse]) -> Iterator[Mapping[str, Any]]:
    """Those of the devices of which something is in use, or known to be free: cores in percent, bytes, percent of the memory."""
    for one in devices:
        used = use.get(one.id)
        if used is None:
            continue
        resources = {GPU_CORE: str(int(used.cores)), GPU_MEMORY: str(int(used.memory))}
        total = amount(GPU_MEMORY, one.resources.get(GPU_MEMORY, "0"))
        if total > 0:
            resources[GPU_MEMORY_RATIO] = str(int(_FULL * used.memory / total))
        yield {"type": one.type, "id": one.id, "minor": one.minor, "resources": resources}
