"""From the short forms of vectors to values of the model.

Vectors write amounts as plain integers (cpu in millicores) and Koordinator's own resources without
their domain.
"""

from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.translate import read_extended_spec
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY, EXTENDED_RESOURCE_SPEC, MID_CPU, MID_MEMORY
from koordpolicy.model.quantity import amount, amount_text

SHORT_NAMES = {
    "batch-cpu": BATCH_CPU,
    "batch-memory": BATCH_MEMORY,
    "mid-cpu": MID_CPU,
    "mid-memory": MID_MEMORY,
}
_FULL_NAMES = {full: short for short, full in SHORT_NAMES.items()}


def full_name(resource: object) -> str:
    """The name of a resource on the wire."""
    return SHORT_NAMES.get(str(resource), str(resource))


def resources(given: object) -> dict[str, int]:
    """A resource map with full names; empty when absent."""
    assert given is None or isinstance(given, Mapping)
    return {full_name(name): amount for name, amount in (given or {}).items()}


def shortened(amounts: Mapping[str, int]) -> dict[str, int]:
    """A resource map with the names that vectors use."""
    return {_FULL_NAMES.get(name, name): amount for name, amount in amounts.items()}


def pod(given: object) -> Pod:
    """A pod of the scheduler's vectors: containers, init containers, overhead, pod-level requests."""
    assert isinstance(given, Mapping)
    level = given.get("pod_level_requests")
    return Pod(
        name=str(given.get("name", "pod")),
        containers=tuple(_container(one) for one in given.get("containers", ())),
        init_containers=tuple(_container(one) for one in given.get("init_containers", ())),
        overhead=resources(given.get("overhead")),
        pod_requests=None if level is None else resources(level),
    )


def _container(given: Mapping[str, object]) -> Container:
    return Container(
        name=str(given.get("name", "")),
        requests=resources(given.get("requests")),
        limits=resources(given.get("limits")),
        sidecar=bool(given.get("sidecar")),
    )


def pod_object(given: Mapping[str, Any]) -> dict[str, Any]:
    """The API's JSON of a pod of the webhook's vectors."""
    spec: dict[str, Any] = {
        key: [{**one, "resources": _written_lists(one.get("resources", {}))} for one in given[key]]
        for key in ("initContainers", "containers")
        if key in given
    }
    for key in ("priority", "priorityClassName", "preemptionPolicy", "schedulerName"):
        if key in given:
            spec[key] = given[key]
    if "overhead" in given:
        spec["overhead"] = _written(given["overhead"])
    metadata = {key: dict(given[key]) for key in ("labels", "annotations") if key in given}
    return {"metadata": metadata, "spec": spec, "status": {"qosClass": given["kube_qos"]}}


def shown_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The short form of the API's JSON of a pod, as the webhook's vectors expect it."""
    metadata, spec = pod["metadata"], pod["spec"]
    shown: dict[str, Any] = {
        "labels": dict(metadata.get("labels", {})),
        "annotations": dict(metadata.get("annotations", {})),
        "kube_qos": pod["status"]["qosClass"],
    }
    for key in ("priority", "priorityClassName", "preemptionPolicy", "schedulerName"):
        if key in spec:
            shown[key] = spec[key]
    for key in ("initContainers", "containers"):
        if key in spec:
            shown[key] = [{**one, "resources": _counted_lists(one["resources"])} for one in spec[key]]
    if "overhead" in spec:
        shown["overhead"] = _counted(spec["overhead"])
    extended = shown["annotations"].pop(EXTENDED_RESOURCE_SPEC, None)
    if extended is not None:
        found = read_extended_spec(extended)
        shown["extended_resource_spec"] = {name: _counted_lists(one) for name, one in found.items()}
    return shown


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: amount_text(name, value) for name, value in amounts.items()}


def _written_lists(lists: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    return {key: _written(amounts) for key, amounts in lists.items()}


def _counted(quantities: Mapping[str, object]) -> dict[str, int]:
    return {name: amount(name, value) for name, value in quantities.items()}


def _counted_lists(lists: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, int]]:
    return {key: _counted(quantities) for key, quantities in lists.items()}
