"""The Reservation that keeps room for a pod that is to move, as our scheduler or a Koordinator's places it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from koordpolicy.algorithms.descheduling.migration import BoundPod, KeptRoom
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import POD_MIGRATION_JOBS, RESERVATIONS
from koordpolicy.model.pod import Owner, Pod
from koordpolicy.model.protocol import (
    CONDITION_RESERVATION_READY,
    CONDITION_RESERVATION_SCHEDULED,
    DEVICE_ALLOCATED,
    RESERVATION_ALLOCATED,
    RESERVATION_ORDER,
    RESOURCE_STATUS,
)
from koordpolicy.model.reservation import Reservation
from koordpolicy.model.time import NANOSECONDS

CREATED_BY_LABEL: Final = "app.kubernetes.io/created-by"
CREATED_BY: Final = "koord-descheduler"
"""What Koordinator's descheduler calls itself, too: who selects Reservations by it finds ours."""

_OF_THE_NODE: Final = frozenset({RESOURCE_STATUS, DEVICE_ALLOCATED, RESERVATION_ALLOCATED})
"""Annotations by which a pod has something on its present node, which it does not have on another."""
_TRUE: Final = "True"
_MILLISECOND: Final = NANOSECONDS // 1000


def reservation_of(job: MigrationJob, pod: Pod, ttl: int, now: int) -> dict[str, Any]:
    """The Reservation that a job makes. What its user says of it stays. `ttl` in nanoseconds, 0 for none."""
    said: Any = job.template or {}
    metadata, spec = dict(said.get("metadata") or {}), dict(said.get("spec") or {})
    labels = {CREATED_BY_LABEL: CREATED_BY, RESERVATION_ORDER: str(now // _MILLISECOND)}
    metadata["name"] = job.reservation_name
    metadata["labels"] = {**labels, **(metadata.get("labels") or {})}
    metadata["ownerReferences"] = [
        {
            "apiVersion": POD_MIGRATION_JOBS.api_version,
            "kind": POD_MIGRATION_JOBS.kind,
            "name": job.name,
            "uid": job.uid,
        }
    ]
    spec.setdefault("template", _template(pod))
    spec["template"] = {
        **spec["template"],
        "spec": _elsewhere(spec["template"].get("spec") or {}, pod.node_name),
    }
    spec.setdefault("owners", _owners(pod))
    spec.setdefault("allocateOnce", True)
    if "ttl" not in spec and "expires" not in spec and ttl:
        spec["ttl"] = f"{ttl // NANOSECONDS}s"
    return {
        "apiVersion": RESERVATIONS.api_version,
        "kind": RESERVATIONS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def made_by(reservation: Object, job: MigrationJob) -> bool:
    """Whether a Reservation is one that a job has made."""
    return any(one.get("uid") == job.uid for one in reservation["metadata"].get("ownerReferences", ()))


def room_of(found: Reservation, pod: Pod | None, bound: BoundPod | None) -> KeptRoom:
    """What a Reservation says now. `pod` is the one that migrates, `bound` the first of its owners that has taken from it."""
    scheduled = found.condition(CONDITION_RESERVATION_SCHEDULED)
    ready = found.condition(CONDITION_RESERVATION_READY)
    return KeptRoom(
        phase=found.phase,
        node=found.node_name,
        scheduled=scheduled is not None and scheduled.status == _TRUE,
        unschedulable=scheduled.message
        if scheduled is not None and scheduled.reason == "Unschedulable"
        else None,
        expired=ready is not None and ready.reason == "Expired",
        bound=bound,
        for_pending_pod=pod is not None
        and any(one.object is not None and one.object.uid == pod.uid for one in found.owners),
    )


def _template(pod: Pod) -> dict[str, Any]:
    raw: Any = pod.raw
    metadata: Mapping[str, Any] = raw["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _OF_THE_NODE
    }
    return {
        "metadata": {
            "namespace": pod.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": annotations,
        },
        "spec": {key: value for key, value in raw["spec"].items() if key != "nodeName"},
    }


def _owners(pod: Pod) -> list[dict[str, Any]]:
    condition = pod.condition("PodScheduled")
    if not pod.node_name and condition is not None and condition.status == "False":
        return [
            {
                "object": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": pod.namespace,
                    "name": pod.name,
                    "uid": pod.uid,
                }
            }
        ]
    owner: Owner | None = pod.controller
    if owner is None:
        return []
    controller = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "namespace": pod.namespace,
    }
    return [{"controller": controller}]


def _elsewhere(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """A pod's spec that fits no longer on the node that it leaves."""
    found = {key: value for key, value in spec.items() if key != "nodeName"}
    if not node:
        return found
    affinity = dict(found.get("affinity") or {})
    of_nodes = dict(affinity.get("nodeAffinity") or {})
    required = dict(of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    terms: Sequence[Mapping[str, Any]] = required.get("nodeSelectorTerms") or ({},)
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), elsewhere]} for term in terms
    ]
    of_nodes["requiredDuringSchedulingIgnoredDuringExecution"] = required
    affinity["nodeAffinity"] = of_nodes
    return {**found, "affinity": affinity}
