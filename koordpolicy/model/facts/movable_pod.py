"""Facts of pods that are asked where pods are to be moved."""

from typing import Final

from koordpolicy.model.eviction_cost import read_eviction_cost
from koordpolicy.model.facts.record import Record
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import DELETION_COST, EVICTION_COST
from koordpolicy.model.reading import Json, ObjectError, integer, mapping, objects

_READY: Final = "Ready"
_TRUE: Final = "True"
_STATUSES: Final = ("initContainerStatuses", "containerStatuses")


def movable_pod_facts(pod: Pod) -> Record:
    """Who owns the pod, what it has on its node, what moving it costs. What cannot be read counts as not said."""
    ready = pod.condition(_READY) if pod.conditions else None
    return {
        "ownerKinds": [owner.kind for owner in pod.owners],
        "terminating": pod.terminating,
        "volumeKinds": _volume_kinds(pod.raw),
        "ready": ready is not None and ready.status == _TRUE,
        "restarts": _restarts(pod.raw),
        "deletionCost": read_eviction_cost(pod.annotations.get(DELETION_COST)),
        "evictionCost": read_eviction_cost(pod.annotations.get(EVICTION_COST)),
    }


def _volume_kinds(raw: Json) -> list[str]:
    try:
        volumes = objects(mapping(raw, "spec"), "volumes", "spec")
    except ObjectError:
        return []
    return sorted({kind for volume in volumes for kind in volume if kind != "name"})


def _restarts(raw: Json) -> int:
    try:
        status = mapping(raw, "status")
        return sum(
            integer(one, "restartCount") or 0 for key in _STATUSES for one in objects(status, key, "status")
        )
    except ObjectError:
        return 0
