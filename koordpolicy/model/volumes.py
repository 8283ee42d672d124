"""Volumes and what surrounds them: persistent volumes, claims, classes, drivers, what is attached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.placement import NodeRequirement, NodeTerm, read_node_terms
from koordpolicy.model.protocol import BIND_COMPLETED, LEGACY_STORAGE_CLASS, SELECTED_NODE
from koordpolicy.model.quantity import QuantityError, amount
from koordpolicy.model.reading import (
    NO_TEXT,
    Json,
    ObjectError,
    flag,
    integer,
    mapping,
    objects,
    optional_mapping,
    sequence,
    text,
    texts,
)

ClaimKey = tuple[str, str]
"""Namespace and name of a claim."""

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
FILESYSTEM: Final = "Filesystem"
AVAILABLE: Final = "Available"
LOST: Final = "Lost"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume. `claim` and `claim_uid` say whom it is for; `affinity` is None for any node.

    `driver` and `handle` are those of CSI. Bytes are None where no capacity is stated.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    storage_class: str = ""
    size: int | None = None
    modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    affinity: tuple[NodeTerm, ...] | None = None
    claim: ClaimKey | None = None
    claim_uid: str = ""
    phase: str = ""
    driver: str = ""
    handle: str = ""
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim. `storage_class` is None where it names none."""

    namespace: str
    name: str
    uid: str = ""
    storage_class: str | None = None
    request: int | None = None
    modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    selector: LabelSelector | None = None
    volume: str = ""
    bound: bool = False
    selected_node: str = ""
    phase: str = ""
    terminating: bool = False
    owners: frozenset[str] = frozenset()

    @property
    def key(self) -> ClaimKey:
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass. `topologies` are the nodes that it provisions for; None for all."""

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """A CSIStorageCapacity: what a class can provide for the nodes that `nodes` matches. Bytes or None."""

    namespace: str
    name: str
    storage_class: str
    nodes: LabelSelector | None = None
    capacity: int | None = None
    largest: int | None = None

    def suffices(self, size: int) -> bool:
        """Whether a volume of so many bytes can be had."""
        limit = self.capacity if self.largest is None else self.largest
        return limit is not None and limit >= size


@dataclass(frozen=True, slots=True)
class Attachment:
    """A VolumeAttachment: a persistent volume that is attached to a node."""

    name: str
    node: str
    volume: str


def read_volume(obj: Json) -> Volume:
    """A PersistentVolume from its JSON. Raises ObjectError."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    reference = optional_mapping(spec, "claimRef", "spec")
    csi = mapping(spec, "csi", "spec")
    required = optional_mapping(mapping(spec, "nodeAffinity", "spec"), "required", "spec.nodeAffinity")
    annotations = texts(metadata, "annotations", "metadata")
    return Volume(
        name=text(metadata, "name", "metadata"),
        labels=texts(metadata, "labels", "metadata"),
        storage_class=annotations.get(LEGACY_STORAGE_CLASS) or text(spec, "storageClassName", "spec"),
        size=_bytes(mapping(spec, "capacity", "spec"), "storage", "spec.capacity"),
        modes=_texts(spec, "accessModes"),
        volume_mode=text(spec, "volumeMode", "spec") or FILESYSTEM,
        attributes_class=text(spec, "volumeAttributesClassName", "spec"),
        affinity=None if required is None else read_node_terms(required),
        claim=None
        if reference is None
        else (text(reference, "namespace", "spec.claimRef"), text(reference, "name", "spec.claimRef")),
        claim_uid="" if reference is None else text(reference, "uid", "spec.claimRef"),
        phase=text(mapping(obj, "status"), "phase", "status"),
        driver=text(csi, "driver", "spec.csi"),
        handle=text(csi, "volumeHandle", "spec.csi"),
        terminating=bool(metadata.get("deletionTimestamp")),
    )


def read_claim(obj: Json) -> VolumeClaim:
    """A PersistentVolumeClaim from its JSON. Raises ObjectError."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    annotations = texts(metadata, "annotations", "metadata")
    named = annotations.get(LEGACY_STORAGE_CLASS)
    if named is None and spec.get("storageClassName") is not None:
        named = text(spec, "storageClassName", "spec")
    requests = mapping(mapping(spec, "resources", "spec"), "requests", "spec.resources")
    selector = optional_mapping(spec, "selector", "spec")
    volume = text(spec, "volumeName", "spec")
    return VolumeClaim(
        namespace=text(metadata, "namespace", "metadata") or "default",
        name=text(metadata, "name", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        storage_class=named,
        request=_bytes(requests, "storage", "spec.resources.requests"),
        modes=_texts(spec, "accessModes"),
        volume_mode=text(spec, "volumeMode", "spec") or FILESYSTEM,
        attributes_class=text(spec, "volumeAttributesClassName", "spec"),
        selector=None if selector is None else read_selector(selector, "spec.selector"),
        volume=volume,
        bound=bool(volume) and BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED_NODE, ""),
        phase=text(mapping(obj, "status"), "phase", "status"),
        terminating=bool(metadata.get("deletionTimestamp")),
        owners=frozenset(
            text(owner, "uid", "metadata.ownerReferences")
            for owner in objects(metadata, "ownerReferences", "metadata")
            if owner.get("controller") is True
        ),
    )


def read_storage_class(obj: Json) -> StorageClass:
    """A StorageClass from its JSON. Raises ObjectError."""
    topologies = tuple(
        NodeTerm(
            tuple(
                NodeRequirement(text(one, "key", "allowedTopologies"), "In", tuple(_texts(one, "values")))
                for one in objects(term, "matchLabelExpressions", "allowedTopologies")
            )
        )
        for term in objects(obj, "allowedTopologies")
    )
    return StorageClass(
        name=text(mapping(obj, "metadata"), "name", "metadata"),
        provisioner=text(obj, "provisioner"),
        waits=text(obj, "volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER,
        topologies=topologies or None,
    )


def read_attach_limits(obj: Json) -> tuple[str, Mapping[str, int]]:
    """The name of the node that a CSINode's JSON speaks of, and its limit by driver. Raises ObjectError."""
    limits: dict[str, int] = {}
    for driver in objects(mapping(obj, "spec"), "drivers", "spec"):
        count = integer(mapping(driver, "allocatable", "spec.drivers"), "count", "spec.drivers.allocatable")
        if count is not None:
            limits[text(driver, "name", "spec.drivers")] = count
    return text(mapping(obj, "metadata"), "name", "metadata"), limits


def read_capacity_tracking(obj: Json) -> tuple[str, bool]:
    """The name of a CSIDriver, and whether it publishes what it can provide. Raises ObjectError."""
    name = text(mapping(obj, "metadata"), "name", "metadata")
    return name, flag(mapping(obj, "spec"), "storageCapacity", "spec")


def read_storage_capacity(obj: Json) -> StorageCapacity:
    """A CSIStorageCapacity from its JSON. Raises ObjectError."""
    metadata = mapping(obj, "metadata")
    nodes = optional_mapping(obj, "nodeTopology")
    return StorageCapacity(
        namespace=text(metadata, "namespace", "metadata"),
        name=text(metadata, "name", "metadata"),
        storage_class=text(obj, "storageClassName"),
        nodes=None if nodes is None else read_selector(nodes, "nodeTopology"),
        capacity=_bytes(obj, "capacity", ""),
        largest=_bytes(obj, "maximumVolumeSize", ""),
    )


def read_attachment(obj: Json) -> Attachment:
    """A VolumeAttachment from its JSON. Raises ObjectError."""
    spec = mapping(obj, "spec")
    return Attachment(
        text(mapping(obj, "metadata"), "name", "metadata"),
        text(spec, "nodeName", "spec"),
        text(mapping(spec, "source", "spec"), "persistentVolumeName", "spec.source"),
    )


def _bytes(parent: Json, key: str, at: str) -> int | None:
    value = parent.get(key)
    if value is None:
        return None
    try:
        return amount(key, value)
    except QuantityError as error:
        raise ObjectError(f"{at}.{key}: {error}" if at else f"{key}: {error}") from error


def _texts(parent: Json, key: str) -> frozenset[str]:
    return frozenset(one for one in sequence(parent, key) if isinstance(one, str))
