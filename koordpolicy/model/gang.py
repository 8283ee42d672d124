"""Gangs as values: PodGroup objects, and what pods and PodGroups say of a gang."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeAlias

from koordpolicy.model.pod import Pod, read_time
from koordpolicy.model.protocol import (
    GANG_GROUPS,
    GANG_MATCH_POLICY,
    GANG_MINIMUM,
    GANG_MODE,
    GANG_TOTAL,
    GANG_WAITING_TIME,
    POD_GROUP_MATCH_POLICY,
    POD_GROUP_MINIMUM,
)
from koordpolicy.model.reading import (
    NO_TEXT,
    Json,
    ObjectError,
    embedded,
    integer,
    mapping,
    objects,
    optional_mapping,
    text,
    texts,
)
from koordpolicy.model.time import NANOSECONDS, parse_duration

GangKey: TypeAlias = tuple[str, str]
"""Namespace and name of a gang."""

_ONE_BY_ONE: Final = (None, "", "Pod")
"""Disruption modes in which pods of a PodGroup may go without the others."""
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT32: Final = 2**31
_INT64: Final = 2**63


@dataclass(frozen=True, slots=True)
class GangDeclaration:
    """What an object says of a gang: a PodGroup, or a pod. `minimum`, `total` and `waiting_time` (nanoseconds, above 0) are None
    where it says none, or none that can be read; texts are empty.
    """

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    minimum: int | None = None
    total: int | None = None
    mode: str = ""
    match_policy: str = ""
    waiting_time: int | None = None
    topology_keys: tuple[str, ...] = ()
    """Node labels of which all of its pods are to have one value."""

    @property
    def id(self) -> str:
        """`NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The gangs that an annotation lists as placed together, as it does; empty for none, or none that can be read. Read when it is
        asked, so that no list is held beside its text.
        """
        return _groups(self.annotations.get(GANG_GROUPS, ""))


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A PodGroup object: what it says, and the status that it has. Times in nanoseconds since 1970."""

    declaration: GangDeclaration
    uid: str = ""
    created_at: int | None = None
    resource_version: str = field(default="", compare=False)
    status: Json = field(default_factory=dict)
    of_kubernetes: bool = False
    """Whether it is one of Kubernetes' own, of scheduling.k8s.io."""
    unheeded: tuple[str, ...] = ()
    """What it asks for beside its gang that nobody sees to here, in phrases that name where it does."""

    @property
    def key(self) -> GangKey:
        """Namespace and name."""
        return self.declaration.namespace, self.declaration.name

    @property
    def minimum(self) -> int:
        """How many pods it needs."""
        return self.declaration.minimum or 0


def read_pod_group(obj: Json) -> PodGroup:
    """A PodGroup from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    status = mapping(obj, "status")
    text(status, "phase", "status")
    seconds = integer(spec, "scheduleTimeoutSeconds", "spec") or 0
    said = _declaration(
        "PodGroup",
        text(metadata, "namespace", "metadata") or "default",
        text(metadata, "name", "metadata"),
        texts(metadata, "labels", "metadata"),
        texts(metadata, "annotations", "metadata"),
        minimum=integer(spec, "minMember", "spec") or 0,
        waiting_time=seconds * NANOSECONDS if seconds > 0 else None,
    )
    return PodGroup(
        said,
        text(metadata, "uid", "metadata"),
        read_time(metadata, "creationTimestamp", "metadata"),
        text(metadata, "resourceVersion", "metadata"),
        status,
    )


def read_kubernetes_pod_group(obj: Json) -> PodGroup:
    """A PodGroup of scheduling.k8s.io from its JSON: its gang needs `minCount` pods; without a gang, its pods go one by one.

    Its topology constraints are the keys of its declaration; what else it asks for is `unheeded`. Raises ObjectError with the place of what is malformed.
    """
    metadata, spec = mapping(obj, "metadata"), mapping(obj, "spec")
    policy = mapping(spec, "schedulingPolicy", "spec")
    gang = optional_mapping(policy, "gang", "spec.schedulingPolicy")
    minimum = None if gang is None else integer(gang, "minCount", "spec.schedulingPolicy.gang")
    annotations = texts(metadata, "annotations", "metadata")
    said = _declaration(
        "PodGroup",
        text(metadata, "namespace", "metadata") or "default",
        text(metadata, "name", "metadata"),
        texts(metadata, "labels", "metadata"),
        annotations,
        minimum=max(1, minimum or 0),
        waiting_time=None,
    )
    return PodGroup(
        replace(
            said,
            mode=said.mode if gang is not None else "NonStrict",
            topology_keys=tuple(_topology_keys(spec)),
        ),
        text(metadata, "uid", "metadata"),
        read_time(metadata, "creationTimestamp", "metadata"),
        text(metadata, "resourceVersion", "metadata"),
        mapping(obj, "status"),
        of_kubernetes=True,
        unheeded=tuple(_unheeded(spec)),
    )


def _topology_keys(spec: Json) -> Iterator[str]:
    """The node labels of which all pods of a PodGroup of scheduling.k8s.io are to have one value. Raises ObjectError."""
    listed = "spec.schedulingConstraints.topology"
    constraints = mapping(spec, "schedulingConstraints", "spec")
    known: set[str] = set()
    for at, one in enumerate(objects(constraints, "topology", "spec.schedulingConstraints")):
        key = text(one, "key", f"{listed}[{at}]")
        if not key:
            raise ObjectError(
                f"{listed}[{at}].key: name the node label of which all pods are to have one value"
            )
        if key not in known:
            known.add(key)
            yield key


def _unheeded(spec: Json) -> Iterator[str]:
    """What a PodGroup of scheduling.k8s.io asks for beside its gang and where that goes. Raises ObjectError."""
    for at, one in enumerate(objects(spec, "resourceClaims", "spec")):
        name = text(one, "name", f"spec.resourceClaims[{at}]")
        yield f"the claim {name} for all of its pods (spec.resourceClaims)"
    if spec.get("disruptionMode") not in _ONE_BY_ONE:
        yield "going as a whole (spec.disruptionMode; policy says who does: GangScheduling.preemption.wholeGangs)"


def declared_by_pod(pod: Pod, name: str) -> GangDeclaration:
    """What a pod says of the gang of that name that it belongs to."""
    written = pod.labels.get(POD_GROUP_MINIMUM) or pod.annotations.get(GANG_MINIMUM, "")
    return _declaration(
        "Pod",
        pod.namespace,
        name,
        pod.labels,
        pod.annotations,
        minimum=_integer(written, _INT32),
        waiting_time=_waiting_time(pod.annotations.get(GANG_WAITING_TIME, "")),
    )


def _declaration(
    kind: str,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    *,
    minimum: int | None,
    waiting_time: int | None,
) -> GangDeclaration:
    return GangDeclaration(
        kind,
        namespace,
        name,
        labels,
        annotations,
        minimum,
        _integer(annotations.get(GANG_TOTAL, ""), _INT64),
        annotations.get(GANG_MODE, ""),
        annotations.get(GANG_MATCH_POLICY) or annotations.get(POD_GROUP_MATCH_POLICY, ""),
        waiting_time,
    )


def _integer(source: str, limit: int) -> int | None:
    """A whole number within -`limit` and `limit` - 1; None for any other text."""
    if len(source) > 20 or not _INTEGER.fullmatch(source):
        return None
    found = int(source)
    return found if -limit <= found < limit else None


def _waiting_time(source: str) -> int | None:
    try:
        found = parse_duration(source)
    except ValueError:
        return None
    return found if found > 0 else None


@lru_cache(maxsize=32)  # so few, as each may be as long as an object may be
def _groups(source: str) -> tuple[str, ...]:
    """The gangs that an annotation lists. What is no text there stands for a gang that never is. Pods of one group say the same."""
    if not source:
        return ()
    try:
        found = embedded(source, GANG_GROUPS)
    except ObjectError:
        return ()
    return tuple(one if isinstance(one, str) else "" for one in found) if isinstance(found, list) else ()
