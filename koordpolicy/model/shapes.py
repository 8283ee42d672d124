"""Which lists of an object merge by key, and which are sets, by kind.

Strategic merge and server-side apply both need it, and nearly agree; where they differ, both are
given. What a shape does not mention is the ordinary case: maps merge, lists are replaced as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Shape:
    """How one field merges.

    `fields` are those of the map, or of each map in the list. `key` is the field by which strategic merge
    finds the items of a list, `apply_keys` those of server-side apply (`key` alone, when empty).
    `unique` marks a list of scalars in which each stands once. `replace` marks a map that strategic
    merge replaces, `atomic` what server-side apply owns as a whole. `null` is what the server reads where
    a member of a map of texts or amounts is null; None where null is an unset field.
    """

    fields: Mapping[str, "Shape"] = field(default_factory=lambda: MappingProxyType({}))
    key: str = ""
    apply_keys: tuple[str, ...] = ()
    unique: bool = False
    replace: bool = False
    atomic: bool = False
    null: str | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that tell items of the list apart in server-side apply; () for other lists."""
        return () if self.atomic else self.apply_keys or ((self.key,) if self.key else ())

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
_TEXTS: Final = Shape(null="")
_AMOUNTS: Final = Shape(null="0")

_SELECTOR: Final = MappingProxyType({"matchLabels": _TEXTS})
_METADATA: Final = _shape(labels=_TEXTS, annotations=_TEXTS, ownerReferences=_by("uid"), finalizers=_SET)
_RESOURCES: Final = _shape(requests=_AMOUNTS, limits=_AMOUNTS)

_CONTAINERS: Final = _shape(
    "name",
    ports=_by("containerPort", "containerPort", "protocol"),
    env=_shape(
        "name",
        valueFrom=_shape(
            configMapKeyRef=_ATOMIC, secretKeyRef=_ATOMIC, fieldRef=_ATOMIC, resourceFieldRef=_ATOMIC
        ),
    ),
    resources=_RESOURCES,
    volumeMounts=_by("mountPath"),
    volumeDevices=_by("devicePath"),
)

_POD_SPEC: Final = _shape(
    nodeSelector=Shape(atomic=True, null=""),
    overhead=_AMOUNTS,
    resources=_RESOURCES,
    volumes=_shape("name", ephemeral=_shape(volumeClaimTemplate=_shape(metadata=_METADATA))),
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

ORDINARY: Final = _shape(metadata=_METADATA, status=_CONDITIONS)
CUSTOM: Final = _shape(metadata=_METADATA)
POD: Final = _shape(
    metadata=_METADATA,
    spec=_POD_SPEC,
    status=_shape(
        conditions=_by("type"),
        hostIPs=Shape(key="ip", atomic=True),
        podIPs=_by("ip"),
        resourceClaimStatuses=_by("name"),
    ),
)
NODE: Final = _shape(
    metadata=_METADATA,
    spec=_shape(podCIDRs=_SET),
    status=_shape(capacity=_AMOUNTS, allocatable=_AMOUNTS, conditions=_by("type"), addresses=_by("type")),
)
SERVICE: Final = _shape(
    metadata=_METADATA,
    spec=_shape(selector=Shape(atomic=True, null=""), ports=_by("port", "port", "protocol")),
    status=_CONDITIONS,
)
CONFIG_MAP: Final = _shape(metadata=_METADATA, data=_TEXTS)
CSI_NODE: Final = _shape(metadata=_METADATA, spec=_shape(drivers=_by("name")))
POD_DISRUPTION_BUDGET: Final = _shape(
    metadata=_METADATA,
    spec=_shape(selector=Shape(_SELECTOR, replace=True, atomic=True)),
    status=_CONDITIONS,
)
TEMPLATED: Final = _shape(
    metadata=_METADATA,
    spec=_shape(selector=Shape(_SELECTOR, atomic=True), template=_shape(metadata=_METADATA, spec=_POD_SPEC)),
    status=_CONDITIONS,
)
"""Deployments and the other kinds that hold a template of pods."""
WEBHOOK_CONFIGURATION: Final = _shape(
    metadata=_METADATA,
    webhooks=_shape(
        "name",
        namespaceSelector=Shape(_SELECTOR, atomic=True),
        objectSelector=Shape(_SELECTOR, atomic=True),
        matchConditions=_by("name"),
    ),
)
ADMISSION_POLICY: Final = _shape(
    metadata=_METADATA, spec=_shape(matchConditions=_by("name"), variables=_by("name"))
)
MUTATING_POLICY: Final = _shape(metadata=_METADATA, spec=_shape(matchConditions=_by("name")))
POLICY_REVISION: Final = _shape(
    metadata=_METADATA, status=_shape(conditions=_by("type"), instances=_by("name", "name", "component"))
)
