"""Fact records of pods, their containers, and namespaces."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from koordpolicy.model.eviction import eviction_priority, eviction_reasons, priority_label
from koordpolicy.model.facts.record import (
    BASIC,
    REQUESTABLE,
    Record,
    Times,
    paths,
    put_all,
    put_known,
    put_present,
)
from koordpolicy.model.given_devices import given_devices
from koordpolicy.model.numa import cpu_zones
from koordpolicy.model.oom import oom_scores
from koordpolicy.model.pod import Container, Pod, allocated_zones, owned_cpus
from koordpolicy.model.protocol import DAEMON_SET, PHASE_PENDING, PHASE_RUNNING
from koordpolicy.model.reading import NOTHING, Amounts, Json, ObjectError, mapping, text, texts

_REQUEST: Final = paths("request", REQUESTABLE)
_LIMIT: Final = paths("limit", REQUESTABLE)
_NONZERO: Final = paths("nonzeroRequest", REQUESTABLE)
_USAGE: Final = paths("usage", BASIC)
_NOTHING_ASKED: Final[Record] = {**_REQUEST.nothing, **_LIMIT.nothing, **_NONZERO.nothing}
_NOTHING_ASKED_OF_ONE: Final[Record] = {**_REQUEST.nothing, **_LIMIT.nothing}
"""What records of pods, and of containers, begin with. Not to be written."""


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What a pod asks for as a whole, as the algorithm computed it: effective amounts by resource."""

    request: Amounts
    limit: Amounts
    nonzero: Amounts


def pod_facts(pod: Pod, demand: PodDemand, times: Times) -> Record:
    """What follows from a pod alone.

    Left to the component: class and bands (`class_facts`), measured use (`pod_usage_facts`), `queuedAt`.
    """
    controller = pod.controller if pod.owners else None
    phase = pod.phase or PHASE_PENDING
    record: Record = {
        **_NOTHING_ASKED,
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": pod.labels,
        "annotations": pod.annotations,
        "nodeName": pod.node_name,
        "phase": phase,
        "schedulerName": pod.scheduler_name,
        "priorityClassName": pod.priority_class_name,
        "preemptionPolicy": pod.preemption_policy,
        "schedulingGroup": pod.scheduling_group,
        "subPriority": pod.sub_priority,
        "kubernetesQoS": pod.kubernetes_qos,
        "ownedByDaemonSet": bool(pod.owners) and any(owner.kind == DAEMON_SET for owner in pod.owners),
        "ownerKind": "" if controller is None else controller.kind,
        "containers": _containers(pod),
        "numaNodes": _zones(pod),
        "active": phase in (PHASE_PENDING, PHASE_RUNNING),
        "known": True,
        "resources.request": demand.request,
        "resources.limit": demand.limit,
        "resources.nonzeroRequest": demand.nonzero,
    }
    put_known(record, _REQUEST, demand.request)
    put_known(record, _LIMIT, demand.limit)
    put_known(record, _NONZERO, demand.nonzero)
    if pod.priority is not None:
        record["priority"] = pod.priority
    if pod.created_at is not None:
        record["createdAt"] = times.timestamp(pod.created_at)
    if pod.started_at is not None:
        record["startedAt"] = times.timestamp(pod.started_at)
    return record


_BY_THEMSELVES: Final[Mapping[str, Callable[[Pod], object]]] = MappingProxyType(
    {
        "name": attrgetter("name"),
        "namespace": attrgetter("namespace"),
        "uid": attrgetter("uid"),
        "labels": attrgetter("labels"),
        "annotations": attrgetter("annotations"),
        "nodeName": attrgetter("node_name"),
        "schedulerName": attrgetter("scheduler_name"),
        "priority": attrgetter("priority"),
        "priorityClassName": attrgetter("priority_class_name"),
        "preemptionPolicy": attrgetter("preemption_policy"),
        "schedulingGroup": attrgetter("scheduling_group"),
        "subPriority": attrgetter("sub_priority"),
        "kubernetesQoS": attrgetter("kubernetes_qos"),
    }
)
"""Of the facts of `pod_facts` those that need nothing else to be made."""


class SomePodFacts:
    """Records with some of the facts of `pod_facts` alone, for who asks little about many pods."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._made = tuple((path, _BY_THEMSELVES[path]) for path in paths)

    @staticmethod
    def can_make(paths: Collection[str]) -> bool:
        """Whether each of these facts can be made by itself."""
        return _BY_THEMSELVES.keys() >= set(paths)

    def of(self, pod: Pod) -> Record:
        """The record of a pod; without what the pod does not say."""
        return {path: value for path, make in self._made if (value := make(pod)) is not None}


def placed_pod_facts(pod: Pod) -> Record:
    """What is asked of pods on their node alone: their say in evictions, and whether they have CPUs of their own."""
    numbers, ids = given_devices(pod.annotations)
    record: Record = {
        "deviceNumbers": numbers,
        "deviceIDs": ids,
        "evictionPriority": eviction_priority(pod.annotations),
        "ownsCPUs": _owns_cpus(pod),
        "cpuZones": _cpu_zones(pod),
        "oomScores": oom_scores(pod.annotations, [one.name for one in pod.containers]),
    }
    label, reasons = priority_label(pod.labels), eviction_reasons(pod.annotations)
    if label is not None:
        record["priorityLabel"] = label
    if reasons is not None:
        record["evictionReasons"] = list(reasons)
    return record


def class_facts(qos: str, qos_label: str, band: str, raw_band: str) -> Record:
    """What policy says a pod is: effective and labelled QoS class, band with and without default."""
    return {"qos": qos, "qosLabel": qos_label, "band": band, "rawBand": raw_band}


def pod_usage_facts(usage: Amounts, reported_band: str | None) -> Record:
    """What was measured of a pod. `reported_band` is None when the report names no pod of that name."""
    record: Record = {"resources.usage": usage}
    put_present(record, _USAGE, usage)
    if reported_band is not None:
        record["reported.band"] = reported_band
    return record


def unknown_pod_facts(namespace: str, name: str, qos: str, band: str, usage: Amounts) -> Record:
    """A pod that only the node's report names: it counts as active, requests nothing, and is bound to no zone.

    `qos` and `band` are what the report says of it.
    """
    record: Record = {
        "namespace": namespace,
        "name": name,
        "known": False,
        "active": True,
        "numaNodes": [],
        "qos": qos,
        "qosLabel": qos,
        "band": band,
        "rawBand": band,
        "evictionPriority": 0,
        "ownsCPUs": False,
        "cpuZones": [],
        "oomScores": {},
        "deviceNumbers": {},
        "deviceIDs": {},
        **pod_usage_facts(usage, band),
    }
    put_all(record, _REQUEST, NOTHING)
    return record


def container_facts(container: Container, *, init: bool) -> Record:
    """What follows from one container. `init` says that it stands among the init containers."""
    record: Record = {
        **_NOTHING_ASKED_OF_ONE,
        "name": container.name,
        "image": container.image,
        "init": init and not container.sidecar,
        "sidecar": container.sidecar,
        "resources.request": container.requests,
        "resources.limit": container.limits,
    }
    put_known(record, _REQUEST, container.requests)
    put_known(record, _LIMIT, container.limits)
    return record


def namespace_facts(obj: Json) -> Record:
    """What follows from a Namespace object. Raises ObjectError when it is malformed."""
    metadata = mapping(obj, "metadata")
    return {
        "name": text(metadata, "name", "metadata"),
        "labels": texts(metadata, "labels", "metadata"),
        "annotations": texts(metadata, "annotations", "metadata"),
    }


def _containers(pod: Pod) -> list[Record]:
    return [
        *_records(pod.init_containers, init=True),
        *_records(pod.containers, init=False),
    ]


def _records(containers: Iterable[Container], *, init: bool) -> list[Record]:
    return [container_facts(container, init=init) for container in containers]


def _zones(pod: Pod) -> list[int]:
    if not pod.annotations:
        return []
    try:
        return list(allocated_zones(pod.annotations))
    except ObjectError:
        return []  # an unreadable allocation binds the pod to no zone


def _owns_cpus(pod: Pod) -> bool:
    try:
        return bool(pod.annotations) and bool(owned_cpus(pod.annotations))
    except ObjectError:
        return False  # an unreadable allocation gives no CPUs


def _cpu_zones(pod: Pod) -> list[int]:
    try:
        return cpu_zones(pod.annotations) if pod.annotations else []
    except ObjectError:
        return []
