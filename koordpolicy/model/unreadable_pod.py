"""What can be read of a pod that cannot be read as a whole, so that the room it takes is not given away."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from koordpolicy.model.pod import Container, Pod, computed_qos, larger, read_condition, read_owner, read_time
from koordpolicy.model.protocol import CPU, MEMORY, RESTART_ALWAYS
from koordpolicy.model.quantity import INT64_MAX
from koordpolicy.model.reading import (
    NO_TEXT,
    Amounts,
    Json,
    ObjectError,
    integer,
    mapping,
    objects,
    optional_mapping,
    read_amounts,
    sequence,
    text,
    texts,
)

T = TypeVar("T")
Other = TypeVar("Other")

_EVERYTHING: Final[Amounts] = {CPU: INT64_MAX, MEMORY: INT64_MAX}
"""What stands for amounts of which not even the resources can be read."""

_HIGHEST: Final = 2**31 - 1
_NOTHING: Final[Json] = {}
_WRONG: Final[Json] = {"requests": ()}
"""Resources of which nothing can be read."""


def readable_part(obj: Json) -> Pod:
    """The pod with what can be read of it.

    An amount that cannot be read counts as more than any node has: the pod fills its node rather than freeing room.
    A priority that cannot be read is the highest, so that the pod is nobody's victim. Anything else is as if it
    were not there.
    """
    metadata, spec, status = (_or(mapping, _NOTHING, obj, key) for key in ("metadata", "spec", "status"))
    running = {**_running(status, "initContainerStatuses"), **_running(status, "containerStatuses")}
    containers = tuple(_containers(spec, "containers", running))
    init_containers = tuple(_containers(spec, "initContainers", running))
    pod_level = _or(optional_mapping, None, spec, "resources")
    pod_requests = None if pod_level is None else _amounts(pod_level, "requests")
    pod_limits = None if pod_level is None else _amounts(pod_level, "limits")
    return Pod(
        name=_or(text, "", metadata, "name"),
        namespace=_or(text, "", metadata, "namespace") or "default",
        uid=_or(text, "", metadata, "uid"),
        labels=_or(texts, NO_TEXT, metadata, "labels"),
        annotations=_or(texts, NO_TEXT, metadata, "annotations"),
        owners=_each(metadata, "ownerReferences", read_owner),
        node_name=_or(text, "", spec, "nodeName"),
        scheduler_name=_or(text, "", spec, "schedulerName"),
        priority=_or(integer, _HIGHEST, spec, "priority"),
        priority_class_name=_or(text, "", spec, "priorityClassName"),
        preemption_policy=_or(text, "", spec, "preemptionPolicy"),
        phase=_or(text, "", status, "phase"),
        kubernetes_qos=_or(text, "", status, "qosClass")
        or computed_qos((*containers, *init_containers), pod_requests, pod_limits),
        containers=containers,
        init_containers=init_containers,
        overhead=_amounts(spec, "overhead"),
        pod_requests=pod_requests,
        pod_limits=pod_limits,
        conditions=_each(status, "conditions", read_condition),
        created_at=_time(metadata, "creationTimestamp"),
        deleted_at=_time(metadata, "deletionTimestamp"),
        started_at=_time(status, "startTime"),
        nominated_node=_or(text, "", status, "nominatedNodeName"),
        resource_version=_or(text, "", metadata, "resourceVersion"),
        raw=obj,
    )


def _or(read: Callable[[Json, str], T], otherwise: Other, parent: Json, key: str) -> T | Other:
    try:
        return read(parent, key)
    except ObjectError:
        return otherwise


def _time(parent: Json, key: str) -> int | None:
    return _or(lambda obj, name: read_time(obj, name, ""), None, parent, key)


def _each(parent: Json, key: str, read: Callable[[Json], T]) -> tuple[T, ...]:
    found: tuple[T, ...] = _or(
        lambda obj, name: tuple(read(one) for one in objects(obj, name)), (), parent, key
    )
    return found


def _amounts(parent: Json, key: str) -> Amounts:
    """A resource list of which each amount that cannot be read is more than there is."""
    try:
        listed = mapping(parent, key)
    except ObjectError:
        return _EVERYTHING
    found: dict[str, int] = {}
    for name, value in listed.items():
        try:
            found.update(read_amounts({name: value}))
        except ObjectError:
            found[name] = INT64_MAX
    return found


def _containers(spec: Json, key: str, running: Mapping[str, Amounts]) -> Iterator[Container]:
    for container in _listed(spec, key):
        if container is None:
            yield Container("", requests=_EVERYTHING)
            continue
        name = _or(text, "", container, "name")
        resources = _or(optional_mapping, _WRONG, container, "resources") or {}
        yield Container(
            name=name,
            image=_or(text, "", container, "image"),
            requests=_amounts(resources, "requests"),
            limits=_amounts(resources, "limits"),
            sidecar=key == "initContainers" and _or(text, "", container, "restartPolicy") == RESTART_ALWAYS,
            running=running.get(name),
        )


def _running(status: Json, key: str) -> dict[str, Amounts]:
    """What the node holds for each container whose status states its resources."""
    held: dict[str, Amounts] = {}
    for container in _listed(status, key):
        if container is None:
            continue
        resources = _or(optional_mapping, _WRONG, container, "resources")
        if resources is not None:
            actual, allocated = _amounts(resources, "requests"), _amounts(container, "allocatedResources")
            held[_or(text, "", container, "name")] = larger(actual, allocated)
    return held


def _listed(parent: Json, key: str) -> Iterator[Json | None]:
    """The objects of a list, None for what is none, and once for what is no list."""
    try:
        found = sequence(parent, key)
    except ObjectError:
        yield None
        return
    for one in found:
        yield one if isinstance(one, Mapping) else None
