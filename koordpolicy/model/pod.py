"""Pods as values: what Kubernetes' JSON says, typed, without interpretation.

QoS classes and bands are policy and not decided here; only Kubernetes' own QoS class is, because the
API fixes how it follows from the spec.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.integers import parse_int_any_base
from koordpolicy.model.protocol import (
    CONDITION_RESIZE_PENDING,
    CPU,
    MEMORY,
    PHASE_FAILED,
    PHASE_SUCCEEDED,
    QOS_BEST_EFFORT,
    QOS_BURSTABLE,
    QOS_GUARANTEED,
    RESIZE_INFEASIBLE,
    RESOURCE_STATUS,
    RESTART_ALWAYS,
    SUB_PRIORITY,
)
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
    optional_mapping,
    text,
    texts,
)
from koordpolicy.model.time import parse_time

_QOS_RESOURCES: Final = (CPU, MEMORY)
MOST_RESOURCES: Final = 64
"""Resources that one pod may name: each is looked up for all nodes, and kept at hand for other pods."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container's name, image and resources.

    `sidecar` marks an init container that keeps running (restartPolicy Always). `running` is what the
    node holds for it while a resize is under way: the larger of the status' actual and allocated
    requests a resource, None when the status does not say.
    """

    name: str
    image: str = ""
    requests: Amounts = field(default_factory=lambda: NOTHING)
    limits: Amounts = field(default_factory=lambda: NOTHING)
    sidecar: bool = False
    running: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference."""

    kind: str
    name: str
    uid: str = ""
    controller: bool = False
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A status condition. `since` is its last transition in nanoseconds since 1970."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: int | None = None


PodKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


def reserve_name(name: str) -> str:
    """The name by which the shape of a Reservation is kept: its own is a UID, which any pod may be called."""
    return f"reservation {name}"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod.

    `pod_requests` and `pod_limits` are the pod-level resources (`spec.resources`), None when the pod
    declares none. `kubernetes_qos` is the status' class when set, else computed from the spec. Times are
    nanoseconds since 1970. `raw` is the object as read, for fields that only one plugin needs; it
    takes no part in comparison. `reservation` is the name of the Reservation in whose shape it is, empty for one that nodes run:
    no annotation says so, as anybody may write one.
    """

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    owners: tuple[Owner, ...] = ()
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_group: str = ""
    phase: str = ""
    kubernetes_qos: str = QOS_BEST_EFFORT
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Amounts = field(default_factory=lambda: NOTHING)
    pod_requests: Amounts | None = None
    pod_limits: Amounts | None = None
    conditions: tuple[PodCondition, ...] = ()
    created_at: int | None = None
    deleted_at: int | None = None
    started_at: int | None = None
    nominated_node: str = ""
    resource_version: str = ""
    reservation: str = ""
    raw: Json = field(default_factory=dict, compare=False, repr=False)
    key: PodKey = field(init=False, compare=False, repr=False)
    """Namespace and name, by which everybody keeps pods: made once. That of a Reservation's shape is no pod's, whatever users call theirs."""

    def __post_init__(self) -> None:
        name = reserve_name(self.name) if self.reservation else self.name
        object.__setattr__(self, "key", (self.namespace, name))

    @property
    def controller(self) -> Owner | None:
        """The owner that manages the pod, if one does."""
        return next((owner for owner in self.owners if owner.controller), None)

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended for good and holds nothing on its node."""
        return self.phase in (PHASE_SUCCEEDED, PHASE_FAILED)

    @property
    def terminating(self) -> bool:
        return self.deleted_at is not None

    @property
    def sub_priority(self) -> int:
        """The priority within the band, from its label; 0 without one or with unreadable text."""
        label = self.labels.get(SUB_PRIORITY)
        if label is None:
            return 0
        try:
            return parse_int_any_base(label, 32)
        except ValueError:
            return 0

    @property
    def resize_infeasible(self) -> bool:
        """Whether the node has refused a pending resize for good."""
        pending = self.condition(CONDITION_RESIZE_PENDING)
        return pending is not None and pending.reason == RESIZE_INFEASIBLE

    def condition(self, type: str) -> PodCondition | None:
        """The status condition of that type."""
        return next((found for found in self.conditions if found.type == type), None)


def read_pod(obj: Json) -> Pod:
    """A pod from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata = mapping(obj, "metadata")
    spec = mapping(obj, "spec")
    status = mapping(obj, "status")
    running: Mapping[str, Amounts] = {}
    if status:  # a pod that is created has none
        running = {**_running(status, "initContainerStatuses"), **_running(status, "containerStatuses")}
    containers = _containers(spec, "containers", running)
    init_containers = _containers(spec, "initContainers", running)
    pod_level = optional_mapping(spec, "resources", "spec")
    pod_requests = None if pod_level is None else amounts(pod_level, "requests", "spec.resources")
    pod_limits = None if pod_level is None else amounts(pod_level, "limits", "spec.resources")
    kubernetes_qos = text(status, "qosClass", "status") or computed_qos(
        (*containers, *init_containers), pod_requests, pod_limits
    )
    overhead = amounts(spec, "overhead", "spec")
    _refuse_many((overhead, pod_requests or NOTHING, pod_limits or NOTHING), (*containers, *init_containers))
    return Pod(
        name=text(metadata, "name", "metadata"),
        namespace=text(metadata, "namespace", "metadata") or "default",
        uid=text(metadata, "uid", "metadata"),
        labels=texts(metadata, "labels", "metadata"),
        annotations=texts(metadata, "annotations", "metadata"),
        owners=tuple(map(read_owner, objects(metadata, "ownerReferences", "metadata"))),
        node_name=text(spec, "nodeName", "spec"),
        scheduler_name=text(spec, "schedulerName", "spec"),
        priority=integer(spec, "priority", "spec"),
        priority_class_name=text(spec, "priorityClassName", "spec"),
        preemption_policy=text(spec, "preemptionPolicy", "spec"),
        scheduling_group=text(
            mapping(spec, "schedulingGroup", "spec"), "podGroupName", "spec.schedulingGroup"
        ),
        phase=text(status, "phase", "status"),
        kubernetes_qos=kubernetes_qos,
        containers=containers,
        init_containers=init_containers,
        overhead=overhead,
        pod_requests=pod_requests,
        pod_limits=pod_limits,
        conditions=tuple(map(read_condition, objects(status, "conditions", "status"))),
        created_at=read_time(metadata, "creationTimestamp", "metadata"),
        deleted_at=read_time(metadata, "deletionTimestamp", "metadata"),
        started_at=read_time(status, "startTime", "status"),
        nominated_node=text(status, "nominatedNodeName", "status"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        raw=obj,
    )


def _refuse_many(said: Iterable[Amounts], containers: Iterable[Container]) -> None:
    """Raises ObjectError where a pod names too many resources."""
    total = sum(map(len, said))
    for container in containers:
        total += len(container.requests) + len(container.limits)
    if total > MOST_RESOURCES:
        names = {name for part in said for name in part}
        for container in containers:
            names.update(container.requests, container.limits)
        if len(names) > MOST_RESOURCES:
            raise ObjectError(f"spec: its containers name more than {MOST_RESOURCES} resources")


def computed_qos(
    containers: Iterable[Container], pod_requests: Amounts | None = None, pod_limits: Amounts | None = None
) -> str:
    """Kubernetes' QoS class of a spec: regular and init containers, or pod-level resources if declared.

    Guaranteed: each has cpu and memory limits and the sums of requests equal those of limits.
    BestEffort: no cpu or memory anywhere. Burstable: everything between.
    """
    if pod_requests is not None or pod_limits is not None:
        parts = [(pod_requests or NOTHING, pod_limits or NOTHING)]
    else:
        parts = [(container.requests, container.limits) for container in containers]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    every_limit = True
    for part_requests, part_limits in parts:
        for resource in _QOS_RESOURCES:
            requested, limited = part_requests.get(resource, 0), part_limits.get(resource, 0)
            if requested > 0:
                requests[resource] = requests.get(resource, 0) + requested
            if limited > 0:
                limits[resource] = limits.get(resource, 0) + limited
            else:
                every_limit = False
    if not requests and not limits:
        return QOS_BEST_EFFORT
    return QOS_GUARANTEED if every_limit and requests == limits else QOS_BURSTABLE


def allocated_zones(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """The NUMA nodes that the scheduler allocated a pod to, in its order; empty without an allocation.

    Raises ObjectError when the annotation is malformed.
    """
    source = annotations.get(RESOURCE_STATUS)
    if not source:
        return ()
    zones = []
    for allocated in objects(embedded_object(source, RESOURCE_STATUS), "numaNodeResources", RESOURCE_STATUS):
        zone = integer(allocated, "node", RESOURCE_STATUS)
        zones.append(0 if zone is None else zone)
    return tuple(zones)


def owned_cpus(annotations: Mapping[str, str]) -> frozenset[int]:
    """The CPUs that the scheduler allotted to a pod alone; none without an allocation. Raises ObjectError."""
    source = annotations.get(RESOURCE_STATUS)
    if not source:
        return frozenset()
    listed = text(embedded_object(source, RESOURCE_STATUS), "cpuset", RESOURCE_STATUS)
    try:
        return parse_cpuset(listed)
    except ValueError as error:
        raise ObjectError(f"{RESOURCE_STATUS}.cpuset: {error}") from error


def read_owner(reference: Json) -> Owner:
    """An owner reference from its JSON."""
    at = "metadata.ownerReferences"
    return Owner(
        text(reference, "kind", at),
        text(reference, "name", at),
        text(reference, "uid", at),
        flag(reference, "controller", at),
        text(reference, "apiVersion", at),
    )


def read_condition(found: Json) -> PodCondition:
    """A status condition from its JSON, of a pod or a node."""
    at = "status.conditions"
    return PodCondition(
        text(found, "type", at),
        text(found, "status", at),
        text(found, "reason", at),
        text(found, "message", at),
        read_time(found, "lastTransitionTime", at),
    )


def read_time(parent: Json, key: str, at: str) -> int | None:
    """The RFC 3339 time under a key in nanoseconds since 1970; None when unset."""
    source = text(parent, key, at)
    if not source:
        return None
    try:
        return parse_time(source)
    except ValueError as error:
        raise ObjectError(f"{at}.{key}: {error}") from error


def _containers(spec: Json, key: str, running: Mapping[str, Amounts]) -> tuple[Container, ...]:
    read = []
    for index, container in enumerate(objects(spec, key, "spec")):
        at = f"spec.{key}[{index}]"
        resources = mapping(container, "resources", at)
        name = text(container, "name", at)
        read.append(
            Container(
                name=name,
                image=text(container, "image", at),
                requests=amounts(resources, "requests", at),
                limits=amounts(resources, "limits", at),
                sidecar=key == "initContainers" and text(container, "restartPolicy", at) == RESTART_ALWAYS,
                running=running.get(name),
            )
        )
    return tuple(read)


def _running(status: Json, key: str) -> dict[str, Amounts]:
    """What the node holds for each container whose status states its resources."""
    held: dict[str, Amounts] = {}
    for index, container in enumerate(objects(status, key, "status")):
        at = f"status.{key}[{index}]"
        resources = optional_mapping(container, "resources", at)
        if resources is not None:
            actual = amounts(resources, "requests", at)
            allocated = amounts(container, "allocatedResources", at)
            held[text(container, "name", at)] = larger(actual, allocated)
    return held


def larger(*lists: Amounts) -> dict[str, int]:
    """The larger amount of each resource that any of the lists has."""
    found: dict[str, int] = {}
    for amounts_ in lists:
        for resource, value in amounts_.items():
            if resource not in found or value > found[resource]:
                found[resource] = value
    return found
