"""PodMigrationJobs as values, and what is written of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.algorithms.descheduling.migration import (
    DONE,
    Migration,
    MigrationCondition,
    MigrationMode,
)
from koordpolicy.kube.port import Object
from koordpolicy.model.pod import PodKey, read_condition, read_time
from koordpolicy.model.protocol import EVICT_REASON, EVICT_TRIGGER, JOB_CREATED_BY, PASSED_ARBITRATION
from koordpolicy.model.reading import (
    Json,
    ObjectError,
    flag,
    integer,
    mapping,
    objects,
    optional_mapping,
    text,
    texts,
)
from koordpolicy.model.time import NANOSECONDS, parse_duration, time_text

OURS: Final = "koordpolicy-descheduler"
"""Who we are where jobs say who made them: one that somebody else made is that one's to carry out."""

_TRUE: Final = "True"
_FALSE: Final = "False"


@dataclass(frozen=True, slots=True)
class MigrationJob:
    """A PodMigrationJob. `pod_uid` is empty until it is known; `mode` and `ttl` (nanoseconds) are None where it says none.

    `reservation` is the name of its Reservation, empty without one; `changed_at` says when conditions took their status, in nanoseconds
    since 1970.
    """

    name: str
    uid: str
    pod: PodKey
    raw: Object
    pod_uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0
    deleting: bool = False
    paused: bool = False
    ttl: int | None = None
    mode: MigrationMode | None = None
    reservation: str = ""
    template: Json | None = None
    grace_seconds: int | None = None
    phase: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    node: str = ""
    conditions: Mapping[str, MigrationCondition] = field(default_factory=dict)
    changed_at: Mapping[str, int] = field(default_factory=dict)
    resource_version: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is done of it any more."""
        return self.phase in DONE

    @property
    def ours(self) -> bool:
        """Whether it is ours to carry out: we made it, or a user did."""
        return self.annotations.get(JOB_CREATED_BY, OURS) == OURS

    @property
    def passed(self) -> bool:
        """Whether arbitration has let it begin."""
        return self.annotations.get(PASSED_ARBITRATION) == "true"

    @property
    def reservation_name(self) -> str:
        """The name of the Reservation that is made for it."""
        return self.uid

    def migration(self, usual: MigrationMode) -> Migration:
        """What the steps of migrations look at. `usual`: the mode where it says none."""
        return Migration(
            mode=self.mode or usual,
            ttl=(self.ttl or 0) / NANOSECONDS,
            paused=self.paused,
            pod_uid=self.pod_uid,
            has_reservation=bool(self.reservation),
            phase=self.phase,
            status=self.status,
            reason=self.reason,
            message=self.message,
            node=self.node,
            conditions=self.conditions,
        )


def read_job(obj: Object) -> MigrationJob:
    """A job from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata, spec, status = mapping(obj, "metadata"), mapping(obj, "spec"), mapping(obj, "status")
    pod = mapping(spec, "podRef", "spec")
    room = mapping(spec, "reservationOptions", "spec")
    said = text(spec, "mode", "spec")
    if said and said not in tuple(MigrationMode):
        raise ObjectError(f"spec.mode: `{said}` is none of {', '.join(MigrationMode)}")
    found = [read_condition(one) for one in objects(status, "conditions", "status")]
    return MigrationJob(
        name=text(metadata, "name", "metadata"),
        uid=text(metadata, "uid", "metadata"),
        pod=(text(pod, "namespace", "spec.podRef"), text(pod, "name", "spec.podRef")),
        raw=obj,
        pod_uid=text(pod, "uid", "spec.podRef"),
        labels=texts(metadata, "labels", "metadata"),
        annotations=texts(metadata, "annotations", "metadata"),
        created_at=read_time(metadata, "creationTimestamp", "metadata") or 0,
        deleting=bool(metadata.get("deletionTimestamp")),
        paused=flag(spec, "paused", "spec"),
        ttl=_span(text(spec, "ttl", "spec")),
        mode=MigrationMode(said) if said else None,
        reservation=text(mapping(room, "reservationRef", "spec.reservationOptions"), "name"),
        template=optional_mapping(room, "template", "spec.reservationOptions"),
        grace_seconds=integer(
            mapping(spec, "deleteOptions", "spec"), "gracePeriodSeconds", "spec.deleteOptions"
        ),
        phase=text(status, "phase", "status"),
        status=text(status, "status", "status"),
        reason=text(status, "reason", "status"),
        message=text(status, "message", "status"),
        node=text(status, "nodeName", "status"),
        conditions={
            one.type: MigrationCondition(one.status == _TRUE, one.reason, one.message) for one in found
        },
        changed_at={one.type: one.since or 0 for one in found},
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def new_job(
    name: str,
    pod: Object,
    mode: MigrationMode,
    ttl: int,
    grace_seconds: int | None,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """A job for a pod."""
    metadata = pod["metadata"]
    spec: dict[str, Any] = {
        "mode": str(mode),
        "podRef": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if ttl:
        spec["ttl"] = f"{ttl // NANOSECONDS}s"
    if grace_seconds is not None:
        spec["deleteOptions"] = {"gracePeriodSeconds": grace_seconds}
    return {"metadata": {"name": name, "annotations": {JOB_CREATED_BY: OURS, **annotations}}, "spec": spec}


def status_of(job: MigrationJob, migration: Migration, new_pod: PodKey | None, now: int) -> dict[str, Any]:
    """The status that says where a migration stands now. `new_pod`: who took its room."""
    conditions = []
    for type, one in migration.conditions.items():
        before = job.conditions.get(type)
        since = now if before is None or before.status != one.status else job.changed_at.get(type, now)
        conditions.append(
            {
                "type": type,
                "status": _TRUE if one.status else _FALSE,
                "reason": one.reason,
                "message": one.message,
                "lastProbeTime": time_text(now - now % NANOSECONDS),
                "lastTransitionTime": time_text(since - since % NANOSECONDS),
            }
        )
    found: dict[str, Any] = {
        "phase": migration.phase,
        "status": migration.status,
        "reason": migration.reason,
        "message": migration.message,
        "conditions": conditions,
    }
    if migration.node:
        found["nodeName"] = migration.node
    if new_pod is not None:
        found["podRef"] = {"apiVersion": "v1", "kind": "Pod", "namespace": new_pod[0], "name": new_pod[1]}
    return found


def soft_eviction(job: MigrationJob, now: int) -> str:
    """What the annotation of a pod says that is asked to go."""
    said: dict[str, Any] = {"timestamp": time_text(now - now % NANOSECONDS)}
    if job.grace_seconds is not None:
        said["deleteOptions"] = {"gracePeriodSeconds": job.grace_seconds}
    said["initiator"] = job.annotations.get(EVICT_TRIGGER, "")
    said["reason"] = job.annotations.get(EVICT_REASON, "")
    return json.dumps(said, separators=(",", ":"))


def _span(source: str) -> int | None:
    if not source:
        return None
    try:
        return parse_duration(source)
    except ValueError as error:
        raise ObjectError(f"spec.ttl: {error}") from error
