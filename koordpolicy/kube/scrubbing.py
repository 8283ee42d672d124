"""Objects without what may hold secrets and what no decision reads.

Environments, commands, probes, the contents of volumes, parameters of storage and last-applied texts never stay.
Of objects that only say whom they select, or what storage there is, nothing but that stays, and how many there are to be.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import (
    PERSISTENT_VOLUMES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)

_CONTAINER_LISTS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_CONTAINER_KEYS: Final = frozenset(
    {
        "name", "image", "imagePullPolicy", "resources", "ports", "restartPolicy", "resizePolicy", "securityContext",
    }
)  # fmt: skip
_DROPPED: Final = frozenset({"managedFields", "volumesAttached", "volumesInUse", "selfLink"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_VOLUME_PARTS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "persistentVolumeClaim": ("claimName", "readOnly"),
        "hostPath": ("path",),
        "gcePersistentDisk": ("pdName", "readOnly"),
        "awsElasticBlockStore": ("volumeID", "readOnly"),
        "iscsi": ("iqn", "readOnly"),
        "rbd": ("pool", "image", "monitors", "readOnly"),
    }
)
"""What stays of a pod's volume, by its kind: which claim, disk or path it is, since placement and admission depend on it."""

_SELECTOR: Final = ("apiVersion", "kind", "metadata", "spec.selector")
_SCALED: Final = (*_SELECTOR, "spec.replicas")
_PARTS: Final[Mapping[Resource, Sequence[str]]] = MappingProxyType(
    {
        SERVICES: _SELECTOR,
        REPLICATION_CONTROLLERS: _SCALED,
        REPLICA_SETS: _SCALED,
        STATEFUL_SETS: _SCALED,
        STORAGE_CLASSES: (
            "apiVersion", "kind", "metadata", "provisioner", "volumeBindingMode", "allowedTopologies",
        ),
        PERSISTENT_VOLUMES: (
            "apiVersion", "kind", "metadata", "spec.capacity", "spec.accessModes", "spec.storageClassName",
            "spec.volumeMode", "spec.volumeAttributesClassName", "spec.nodeAffinity", "spec.claimRef",
            "spec.csi.driver", "spec.csi.volumeHandle", "status.phase",
        ),
        VOLUME_ATTACHMENTS: (
            "apiVersion", "kind", "metadata", "spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName",
        ),
    }
)  # fmt: skip
"""What stays of objects of which most is not asked for; of others all does but what `scrubbed` drops."""


def scrubbed_object(resource: Resource, obj: Object) -> Object:
    """A copy of an object of a resource, with no more than decisions read."""
    parts = _PARTS.get(resource)
    found: Object = scrubbed(obj if parts is None else _only(obj, parts))
    return found


def scrubbed(value: Any) -> Any:
    """A copy without what may hold secrets, wherever it stands (templates too)."""
    if isinstance(value, Mapping):
        return {key: _kept(key, inner) for key, inner in value.items() if key not in _DROPPED}
    return [scrubbed(one) for one in value] if isinstance(value, list | tuple) else value


def _kept(key: str, value: Any) -> Any:
    if key in _CONTAINER_LISTS and _is_objects(value):
        return [
            {name: scrubbed(inner) for name, inner in one.items() if name in _CONTAINER_KEYS} for one in value
        ]
    if key == "volumes" and _is_objects(value):
        return [_volume(one) for one in value]
    if key == "annotations" and isinstance(value, Mapping):
        return {name: text for name, text in value.items() if name != _LAST_APPLIED}
    return scrubbed(value)


def _is_objects(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value)


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    """A volume's name and kind, and which claim, disk or path it is."""
    return {
        key: scrubbed(value if key == "name" else _only(value, _VOLUME_PARTS.get(key, ())))
        for key, value in volume.items()
    }


def _only(value: Any, paths: Sequence[str]) -> Any:
    """The parts of an object at dotted paths. What is no object has no parts and stays as it is, malformed."""
    if not isinstance(value, Mapping):
        return value
    below: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        below.setdefault(head, []).append(rest)
    return {
        head: value[head] if "" in rests else _only(value[head], rests)
        for head, rests in below.items()
        if head in value
    }
