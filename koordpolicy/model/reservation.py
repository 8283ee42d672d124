"""Reservations as values, and the pod in whose shape one is scheduled.

A Reservation keeps room on a node for pods that are to come. Until it has a node, and as long as it is there, it counts as
a pod of its own, the *reserve pod*, which no node runs: what it asks for is the reservation's template.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from koordpolicy.model.integers import parse_int_any_base
from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.node import Taint
from koordpolicy.model.pod import Pod, PodCondition, PodKey, read_condition, read_pod, read_time, reserve_name
from koordpolicy.model.protocol import (
    NODE_RESERVATION,
    PHASE_FAILED,
    PHASE_SUCCEEDED,
    RESERVATION_AVAILABLE,
    RESERVATION_FAILED,
    RESERVATION_ORDER,
    RESERVATION_PENDING,
    RESERVATION_RESIZE,
    RESERVATION_RESTRICTED_OPTIONS,
    RESERVATION_SUCCEEDED,
    RESERVE_POD,
    RESERVE_POD_NODE,
    RESERVE_POD_RESERVATION,
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
    text_list,
    texts,
)
from koordpolicy.model.time import parse_duration

_MOST_OWNERS: Final = 100_000
"""The most that is read at all; how many a reservation may have, policy says."""
_SPEC, _STATUS = "spec", "status"
_PRIORITY, _SCHEDULER = "priority", "schedulerName"


@dataclass(frozen=True, slots=True)
class OwnerObject:
    """A pod by name: what is empty is not compared."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class OwnerController:
    """Pods by their controller: what is empty or None is not compared."""

    namespace: str = ""
    controller: bool | None = None
    uid: str = ""
    kind: str = ""
    name: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class OwnerTerm:
    """One way to say whose a reservation is; all that it says must hold, and the empty term holds for every pod."""

    object: OwnerObject | None = None
    controller: OwnerController | None = None
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class CurrentOwner:
    """A pod that has taken from a reservation, as its status names it."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ReservePodDefaults:
    """What holds of a reserve pod where its reservation's template says nothing of it; the preemption policy holds always."""

    priority: int = 2**31 - 1
    scheduler_name: str = "default-scheduler"
    preemption_policy: str = "Never"


KOORDINATORS: Final = ReservePodDefaults()
"""What holds where no policy is asked: no pod makes a reserve pod go, and nobody goes for one."""


@dataclass(frozen=True, slots=True)
class PreAllocation:
    """Whether a reservation may be placed on what its owners hold already, and whose pods count."""

    enabled: bool = False
    mode: str = ""
    multiple: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """A Reservation. Times and spans in nanoseconds; `ttl` and `expires` are None where it says none.

    `held_back` is what stays inside it for nobody, `restricted` the resources that its options name (None without any), `order` 0
    where it has none. `unusable` says what of it cannot be read though the rest can: nobody may take from it.
    `pod` is its reserve pod, `open` what its template leaves open of that, `of_pod` whether it is a pod that nodes run; `raw_status` the status as read, for whoever writes it anew.
    """

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    owners: tuple[OwnerTerm, ...] = ()
    ttl: int | None = None
    expires: int | None = None
    pre_allocation: PreAllocation = PreAllocation()
    allocate_once: bool = True
    allocate_policy: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    phase: str = RESERVATION_PENDING
    node_name: str = ""
    allocatable: Amounts = field(default_factory=lambda: NOTHING)
    allocated: Amounts = field(default_factory=lambda: NOTHING)
    current_owners: tuple[CurrentOwner, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    order: int = 0
    held_back: Amounts = field(default_factory=lambda: NOTHING)
    restricted: tuple[str, ...] | None = None
    resized: Json = field(default_factory=dict, compare=False)
    unusable: str = ""
    created_at: int | None = None
    deleted_at: int | None = None
    resource_version: str = field(default="", compare=False)
    pod: Pod = field(default_factory=lambda: Pod(""))
    open: frozenset[str] = frozenset()
    of_pod: bool = False
    raw_status: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def over(self) -> bool:
        """Whether it has ended for good and keeps nothing."""
        return self.phase in (RESERVATION_SUCCEEDED, RESERVATION_FAILED)

    @property
    def available(self) -> bool:
        """Whether it keeps room on a node."""
        return self.phase == RESERVATION_AVAILABLE and bool(self.node_name)

    @property
    def deleting(self) -> bool:
        """Whether somebody has deleted it, though it is still there."""
        return self.deleted_at is not None

    def condition(self, type: str) -> PodCondition | None:
        """The status condition of that type."""
        return next((found for found in self.conditions if found.type == type), None)


def read_reservation(obj: Json) -> Reservation:
    """A Reservation from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata, spec, status = mapping(obj, "metadata"), mapping(obj, _SPEC), mapping(obj, _STATUS)
    labels, annotations = texts(metadata, "labels", "metadata"), texts(metadata, "annotations", "metadata")
    template = optional_mapping(spec, "template", _SPEC)
    if template is None:
        raise ObjectError("spec.template: a reservation needs one; it says what is reserved")
    ttl, expires = _span(spec, "ttl"), read_time(spec, "expires", _SPEC)
    policy = mapping(spec, "preAllocationPolicy", _SPEC)
    restricted, held_back, resized, unusable = _said_aside(annotations)
    phase = text(status, "phase", _STATUS) or RESERVATION_PENDING
    return Reservation(
        name=text(metadata, "name", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        labels=labels,
        annotations=annotations,
        owners=read_owner_terms(objects(spec, "owners", _SPEC), "spec.owners"),
        ttl=ttl,
        expires=expires,
        pre_allocation=PreAllocation(
            flag(spec, "preAllocation", _SPEC),
            text(policy, "mode", "spec.preAllocationPolicy"),
            flag(policy, "enableMultiple", "spec.preAllocationPolicy"),
        ),
        allocate_once=spec.get("allocateOnce") is None or flag(spec, "allocateOnce", _SPEC),
        allocate_policy=text(spec, "allocatePolicy", _SPEC),
        unschedulable=flag(spec, "unschedulable", _SPEC),
        taints=tuple(
            Taint(text(one, "key"), text(one, "effect"), text(one, "value"))
            for one in objects(spec, "taints", _SPEC)
        ),
        phase=phase,
        node_name=text(status, "nodeName", _STATUS),
        allocatable=amounts(status, "allocatable", _STATUS),
        allocated=amounts(status, "allocated", _STATUS),
        current_owners=tuple(
            CurrentOwner(*(text(one, key, "status.currentOwners") for key in ("namespace", "name", "uid")))
            for one in objects(status, "currentOwners", _STATUS)
        ),
        conditions=tuple(read_condition(one) for one in objects(status, "conditions", _STATUS)),
        order=_int64(labels.get(RESERVATION_ORDER, "")),
        held_back=held_back,
        restricted=restricted,
        resized=resized,
        unusable=unusable,
        created_at=read_time(metadata, "creationTimestamp", "metadata"),
        deleted_at=read_time(metadata, "deletionTimestamp", "metadata"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        pod=replace(
            read_pod(_reserve_pod(metadata, template, status, phase)),
            reservation=text(metadata, "name", "metadata"),
        ),
        open=_left_open(template, {**texts(mapping(template, "metadata"), "labels"), **labels}),
        raw_status=status,
    )


def reserve_pod_key(obj: Json) -> PodKey:
    """By what the pod is kept in whose shape a Reservation is scheduled, of one that need not be readable otherwise."""
    metadata, spec = obj.get("metadata"), obj.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    about = template.get("metadata") if isinstance(template, Mapping) else None
    namespace = about.get("namespace") if isinstance(about, Mapping) else None
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return (
        namespace if isinstance(namespace, str) and namespace else "default",
        reserve_name(uid if isinstance(uid, str) else ""),
    )


def missing(reservation: Reservation) -> str:
    """What a reservation has to say and does not; empty where nothing is missing."""
    if not reservation.owners:
        return "`spec.owners` is empty: nobody may take from it"
    if reservation.ttl is None and reservation.expires is None:
        return "it says neither `spec.ttl` nor `spec.expires`: it would never end"
    return ""


def schedulable(reservation: Reservation) -> bool:
    """Whether it waits for a node, or has one."""
    return not reservation.over and (bool(reservation.node_name) or not missing(reservation))


def read_owner_terms(found: Any, at: str) -> tuple[OwnerTerm, ...]:
    """Owner terms from their JSON objects. Raises ObjectError."""
    terms = []
    for index, one in enumerate(found):
        if index >= _MOST_OWNERS:
            raise ObjectError(f"{at}: more than {_MOST_OWNERS} entries")
        terms.append(_owner_term(one, f"{at}[{index}]"))
    return tuple(terms)


def _owner_term(one: Json, at: str) -> OwnerTerm:
    named = optional_mapping(one, "object", at)
    controlled = optional_mapping(one, "controller", at)
    selector = optional_mapping(one, "labelSelector", at)
    return OwnerTerm(
        None
        if named is None
        else OwnerObject(
            *(text(named, key, f"{at}.object") for key in ("uid", "namespace", "name", "apiVersion"))
        ),
        None
        if controlled is None
        else OwnerController(
            text(controlled, "namespace", f"{at}.controller"),
            None
            if controlled.get("controller") is None
            else flag(controlled, "controller", f"{at}.controller"),
            *(text(controlled, key, f"{at}.controller") for key in ("uid", "kind", "name", "apiVersion")),
        ),
        None if selector is None else read_selector(selector, f"{at}.labelSelector"),
    )


def _span(spec: Json, key: str) -> int | None:
    source = text(spec, key, _SPEC)
    if not source:
        return None
    try:
        return parse_duration(source)
    except ValueError as error:
        raise ObjectError(f"{_SPEC}.{key}: {error}") from error


def _int64(source: str) -> int:
    try:
        return parse_int_any_base(source, 64) if source.strip() == source and source else 0
    except ValueError:
        return 0


def _said_aside(
    annotations: Mapping[str, str],
) -> tuple[tuple[str, ...] | None, Amounts, Json, str]:
    """What annotations add: restricted resources, what is held back, another size; and what of it cannot be read."""
    restricted: tuple[str, ...] | None = None
    held_back: Amounts = NOTHING
    resized: Json = {}
    try:
        if source := annotations.get(RESERVATION_RESTRICTED_OPTIONS):
            said = embedded_object(source, RESERVATION_RESTRICTED_OPTIONS)
            restricted = tuple(text_list(said, "resources", RESERVATION_RESTRICTED_OPTIONS))
        if source := annotations.get(NODE_RESERVATION):
            held_back = amounts(embedded_object(source, NODE_RESERVATION), "resources", NODE_RESERVATION)
        if source := annotations.get(RESERVATION_RESIZE):
            said = embedded_object(source, RESERVATION_RESIZE)
            amounts(said, "resources", RESERVATION_RESIZE)
            resized = mapping(said, "resources", RESERVATION_RESIZE)
    except ObjectError as problem:
        return None, NOTHING, {}, str(problem)
    return restricted, held_back, resized, ""


def _reserve_pod(metadata: Json, template: Json, status: Json, phase: str) -> dict[str, Any]:
    """The JSON of the pod in whose shape a reservation is scheduled."""
    at = "spec.template"
    about, spec = mapping(template, "metadata", at), {**mapping(template, _SPEC, at)}
    wanted = text(spec, "nodeName", f"{at}.spec")
    labels = {**texts(about, "labels", at), **texts(metadata, "labels", "metadata")}
    annotations = {
        **texts(about, "annotations", at),
        **texts(metadata, "annotations", "metadata"),
        RESERVE_POD: "true",
        RESERVE_POD_RESERVATION: text(metadata, "name", "metadata"),
        **({RESERVE_POD_NODE: wanted} if wanted else {}),
    }
    spec.pop("nodeName", None)
    if node := text(status, "nodeName", _STATUS):
        spec["nodeName"] = node
    if integer(spec, "priority", f"{at}.spec") is None:
        spec["priority"] = _priority(labels.get(SUB_PRIORITY, ""))
    spec["preemptionPolicy"] = KOORDINATORS.preemption_policy
    spec["schedulerName"] = text(spec, "schedulerName", f"{at}.spec") or KOORDINATORS.scheduler_name
    allocatable = mapping(status, "allocatable", _STATUS)
    if phase == RESERVATION_AVAILABLE and allocatable:
        containers = [*objects(spec, "containers", f"{at}.spec")][:1] or [{"name": "reserved"}]
        spec["containers"] = [{**containers[0], "resources": {"requests": dict(allocatable)}}]
        for part in ("initContainers", "overhead", "resources"):
            spec.pop(part, None)
    uid = text(metadata, "uid", "metadata")
    named = {
        "name": uid,
        "uid": uid,
        "namespace": text(about, "namespace", at) or "default",
        "labels": labels,
        "annotations": annotations,
        **{
            key: metadata[key]
            for key in ("creationTimestamp", "deletionTimestamp", "resourceVersion")
            if metadata.get(key) is not None
        },
    }
    over = {RESERVATION_SUCCEEDED: PHASE_SUCCEEDED, RESERVATION_FAILED: PHASE_FAILED}.get(phase, "Pending")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": named,
        "spec": spec,
        "status": {"phase": over, "conditions": _as_of_pods(status)},
    }


def _priority(label: str) -> int:
    found = _label_priority(label)
    return KOORDINATORS.priority if found is None else found


def _label_priority(label: str) -> int | None:
    try:
        return parse_int_any_base(label, 32)
    except ValueError:
        return None


def _left_open(template: Json, labels: Mapping[str, str]) -> frozenset[str]:
    spec = mapping(template, _SPEC)
    found = set()
    if spec.get("priority") is None and _label_priority(labels.get(SUB_PRIORITY, "")) is None:
        found.add(_PRIORITY)
    if not spec.get("schedulerName"):
        found.add(_SCHEDULER)
    return frozenset(found)


def reserve_pod(reservation: Reservation, defaults: ReservePodDefaults) -> Pod:
    """The pod in whose shape a reservation is scheduled, with other defaults than where it was read."""
    pod, left = reservation.pod, reservation.open
    priority = defaults.priority if _PRIORITY in left else pod.priority
    scheduler = defaults.scheduler_name if _SCHEDULER in left else pod.scheduler_name
    if (priority, scheduler, defaults.preemption_policy) == (
        pod.priority,
        pod.scheduler_name,
        pod.preemption_policy,
    ):
        return pod
    said = {
        _PRIORITY: priority,
        _SCHEDULER: scheduler,
        "preemptionPolicy": defaults.preemption_policy,
    }
    return replace(
        pod,
        priority=priority,
        scheduler_name=scheduler,
        preemption_policy=defaults.preemption_policy,
        raw={**pod.raw, _SPEC: {**mapping(pod.raw, _SPEC), **said}},
    )


def _as_of_pods(status: Json) -> list[dict[str, Any]]:
    """What a reservation's conditions say of scheduling, as pods say it."""
    return [
        {**one, "type": "PodScheduled"}
        for one in objects(status, "conditions", _STATUS)
        if one.get("type") == "Scheduled"
    ]
