"""Which lists of an object merge by key, and which are sets.

Strategic merge and server-side apply both need it, and nearly agree; where they differ, both are
given. What a shape does not mention is the ordinary case: maps merge, lists are replaced as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Shape:
    """How one field merges.

    `fields` are those of the map, or of each map in the list. `key` is the field by which strategic merge
    finds the items of a list, `apply_keys` those of server-side apply (`key` alone, when empty).
    `unique` marks a list of scalars in which each stands once. `replace` marks a map that strategic
    merge replaces, `atomic` one that server-side apply owns as a whole.
    """

    fields: Mapping[str, "Shape"] = field(default_factory=lambda: MappingProxyType({}))
    key: str = ""
    apply_keys: tuple[str, ...] = ()
    unique: bool = False
    replace: bool = False
    atomic: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that tell items of the list apart in server-side apply; () for other lists."""
        return self.apply_keys or ((self.key,) if self.key else ())

    def below(self, name: str) -> "Shape":
        """The shape of a member."""
        return self.fields.get(name, PLAIN)


PLAIN: Final = Shape()

DEFAULTS_OF_KEYS: Final[Mapping[str, Any]] = MappingProxyType({"protocol": "TCP"})
"""What a key of server-side apply counts as when an item leaves it out."""


def _shape(key: str = "", *, apply_keys: tuple[str, ...] = (), **fields: Shape) -> Shape:
    return Shape(MappingProxyType(fields), key, apply_keys)


def _by(key: str, *apply_keys: str) -> Shape:
    return Shape(key=key, apply_keys=apply_keys)


_SET: Final = Shape(unique=True)
_ATOMIC: Final = Shape(atomic=True)

_METADATA: Final = _shape(ownerReferences=_by("uid"), finalizers=_SET)

_CONTAINERS: Final = _shape(
    "name",
    ports=_by("containerPort", "containerPort", "protocol"),
    env=_shape(
        "name",
        valueFrom=_shape(
            configMapKeyRef=_ATOMIC, secretKeyRef=_ATOMIC, fieldRef=_ATOMIC, resourceFieldRef=_ATOMIC
        ),
    ),
    volumeMounts=_by("mountPath"),
    volumeDevices=_by("devicePath"),
)

_POD_SPEC: Final = _shape(
    nodeSelector=_ATOMIC,
    volumes=_by("name"),
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    imagePullSecrets=_by("name"),
    hostAliases=_by("ip"),
    topologySpreadConstraints=_by("topologyKey", "topologyKey", "whenUnsatisfiable"),
    resourceClaims=_by("name"),
    schedulingGates=_by("name"),
)

_CONDITIONS: Final = _shape(conditions=_by("type"))
_TEMPLATED: Final = _shape(
    metadata=_METADATA,
    spec=_shape(selector=_ATOMIC, template=_shape(metadata=_METADATA, spec=_POD_SPEC)),
    status=_CONDITIONS,
)
_ORDINARY: Final = _shape(metadata=_METADATA, status=_CONDITIONS)
_CUSTOM: Final = _shape(metadata=_METADATA)
_REVISION: Final = _shape(
    metadata=_METADATA, status=_shape(conditions=_by("type"), instances=_by("name", "name", "component"))
)

_SHAPES: Final[Mapping[Resource, Shape]] = MappingProxyType(
    {
        resources.PODS: _shape(
            metadata=_METADATA,
            spec=_POD_SPEC,
            status=_shape(conditions=_by("type"), podIPs=_by("ip"), resourceClaimStatuses=_by("name")),
        ),
        resources.NODES: _shape(
            metadata=_METADATA,
            spec=_shape(podCIDRs=_SET),
            status=_shape(conditions=_by("type"), addresses=_by("type")),
        ),
        resources.SERVICES: _shape(
            metadata=_METADATA,
            spec=_shape(selector=_ATOMIC, ports=_by("port", "port", "protocol")),
            status=_CONDITIONS,
        ),
        resources.POD_DISRUPTION_BUDGETS: _shape(
            metadata=_METADATA, spec=_shape(selector=Shape(replace=True, atomic=True)), status=_CONDITIONS
        ),
        resources.DEPLOYMENTS: _TEMPLATED,
        resources.REPLICA_SETS: _TEMPLATED,
        resources.STATEFUL_SETS: _TEMPLATED,
        resources.DAEMON_SETS: _TEMPLATED,
        resources.JOBS: _TEMPLATED,
        resources.REPLICATION_CONTROLLERS: _TEMPLATED,
        resources.POLICY_REVISIONS: _REVISION,
        **dict.fromkeys(resources.POLICIES, _ORDINARY),
    }
)


def shape_of(resource: Resource) -> Shape:
    """How objects of this resource merge. Lists of others' custom resources are replaced as a whole."""
    return _SHAPES.get(resource) or (_CUSTOM if resource.custom else _ORDINARY)
