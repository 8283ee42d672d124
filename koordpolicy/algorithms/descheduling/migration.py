"""The life of one migration: what is to be done next for a pod that is to leave its node, and what is to be written of it.

Each step looks at what there is now and nothing else, so that whoever takes over goes on where the last one ended. The states,
conditions and reasons are those of Koordinator's PodMigrationJob.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

DONE: Final = frozenset({"Succeeded", "Failed", "Aborted"})
"""Phases in which nothing is done any more."""

_RUNNING: Final = "Running"
_EVICTION: Final = "Eviction"
_NO_CONDITIONS: Final[Mapping[str, "MigrationCondition"]] = MappingProxyType({})


class MigrationMode(StrEnum):
    """Whether room is kept elsewhere before the pod goes."""

    RESERVATION_FIRST = "ReservationFirst"
    EVICT_DIRECTLY = "EvictDirectly"


class MigrationAction(StrEnum):
    """What is to be done, before what the step gives is written."""

    CREATE_RESERVATION = "create-reservation"
    DELETE_RESERVATION = "delete-reservation"
    EVICT = "evict"
    REQUEUE = "requeue"
    """Look again a little later."""


@dataclass(frozen=True, slots=True)
class MigrationCondition:
    """One condition of a migration; its type is the key that it stands under."""

    status: bool
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status}/{self.reason}" if self.reason else str(self.status)


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration as it is written down. `ttl` is in seconds, 0 for none; `pod_uid` is empty until it begins.

    `status`: the condition that changed last, or `Complete`; `node`: where room is kept.
    """

    mode: MigrationMode
    ttl: float = 0.0
    paused: bool = False
    pod_uid: str = ""
    has_reservation: bool = False
    phase: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    node: str = ""
    conditions: Mapping[str, MigrationCondition] = field(default_factory=lambda: _NO_CONDITIONS)

    def told(self, type: str, status: bool, reason: str = "", message: str = "") -> "Migration":
        """With a condition; unchanged where it is just so already."""
        condition = MigrationCondition(status, reason, message)
        if self.conditions.get(type) == condition:
            return self
        conditions = MappingProxyType({**self.conditions, type: condition})
        return replace(self, conditions=conditions, status=type, reason=reason, message=message)

    def failed(self, reason: str, message: str = "") -> "Migration":
        """Ended without success."""
        return replace(self, phase="Failed", reason=reason, message=message)

    def succeeded(self, message: str = "") -> "Migration":
        """Ended with success."""
        return replace(self, phase="Succeeded", status="Complete", reason="", message=message)

    def holds(self, type: str) -> bool:
        """Whether a condition is true."""
        condition = self.conditions.get(type)
        return condition is not None and condition.status


@dataclass(frozen=True, slots=True)
class MigratingPod:
    """The pod of a migration, as it is now. `node` is empty while it has none."""

    uid: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """The pod that took what a reservation keeps; `gone` where it is not there any more."""

    ready: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """The reservation of a migration, as it is now.

    `unschedulable` is what it says of why it has no node, None where it does not. `for_pending_pod`: it is for that one pod,
    which waits for a node. `bound`: another pod has it.
    """

    phase: str = ""
    node: str = ""
    scheduled: bool = False
    unschedulable: str | None = None
    expired: bool = False
    bound: BoundPod | None = None
    for_pending_pod: bool = False


@dataclass(frozen=True, slots=True)
class MigrationSeen:
    """What there is now: the age of the migration in seconds, its pod, its reservation, and whether its workload has lost as many
    pods as it may for now. None for what is not there. `pod_key` is how messages call the pod.
    """

    age: float
    pod: MigratingPod | None
    reservation: KeptRoom | None = None
    limited: bool = False
    pod_key: str = ""


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """The migration as it is to be written once all actions have succeeded; one that fails is tried again from the start."""

    migration: Migration
    actions: tuple[MigrationAction, ...] = ()


_LATER: Final = (MigrationAction.REQUEUE,)


def next_step(migration: Migration, seen: MigrationSeen) -> MigrationStep:
    """What is to be done now."""
    if migration.paused or migration.phase in DONE:
        return MigrationStep(migration)
    if migration.ttl > 0 and seen.age >= migration.ttl:
        failed = migration.failed("Timeout", "Abort job caused by timeout")
        return MigrationStep(
            failed, (MigrationAction.DELETE_RESERVATION,) if migration.has_reservation else ()
        )
    if migration.phase != _RUNNING:
        if seen.pod is None:
            return MigrationStep(migration.failed("MissingPod"))
        migration = replace(migration, phase=_RUNNING, pod_uid=seen.pod.uid)
    if seen.limited and seen.pod is not None:
        return MigrationStep(migration, _LATER)
    if migration.mode is MigrationMode.EVICT_DIRECTLY:
        step = _evict(migration, seen)
        if step.migration.phase != _RUNNING or not step.migration.holds(_EVICTION):
            return step
        return MigrationStep(step.migration.succeeded(f'Pod "{seen.pod_key}" has been evicted'))
    return _with_reservation(migration, seen)


def _with_reservation(migration: Migration, seen: MigrationSeen) -> MigrationStep:
    if not migration.has_reservation:
        if seen.pod is None:
            return MigrationStep(migration.failed("MissingPod"))
        return MigrationStep(replace(migration, has_reservation=True), (MigrationAction.CREATE_RESERVATION,))
    room = seen.reservation
    if room is None:
        return MigrationStep(migration)  # it may not be seen yet; the time of the migration is limited anyway
    migration = migration.told("ReservationCreated", True)
    if room.unschedulable is not None and not migration.holds("ReservationScheduled"):
        migration = migration.told("ReservationScheduled", False, "Unschedulable", room.unschedulable)
    if room.phase in {"", "Pending"}:
        return MigrationStep(migration, _LATER)
    if room.phase == "Failed" and room.expired:
        return MigrationStep(migration.failed("ReservationExpired"))
    if not room.scheduled or not room.node:
        return MigrationStep(migration.failed("Unschedulable"))
    if not migration.holds("ReservationScheduled"):
        if seen.pod is not None and seen.pod.node == room.node:
            return MigrationStep(
                migration.failed("ForbiddenMigratePod", "the reservation is on the node of the pod")
            )
        migration = replace(migration.told("ReservationScheduled", True), node=room.node)
    if room.for_pending_pod:
        return _assign(migration, seen, room)
    step = _evict(migration, seen)
    if step.migration.phase != _RUNNING or not step.migration.holds(_EVICTION):
        return step
    return _bound(step.migration, room)


def _assign(migration: Migration, seen: MigrationSeen, room: KeptRoom) -> MigrationStep:
    """A pod that waits for a node gets the one that the reservation has."""
    if seen.pod is None:
        return MigrationStep(migration.failed("MissingPod"))
    if seen.pod.node:
        message = f'Assign Pod "{seen.pod_key}" to node "{seen.pod.node}"'
        return MigrationStep(migration.told("PodScheduled", True).succeeded(message))
    if room.phase == "Succeeded" and room.bound is not None:
        return MigrationStep(
            migration.failed("ForbiddenMigratePod", "Reservation is already bound by another Pod")
        )
    return MigrationStep(migration.told("PodScheduled", False, "Unschedulable"), _LATER)


def _evict(migration: Migration, seen: MigrationSeen) -> MigrationStep:
    """The pod goes; the migration holds `Eviction` once it has gone."""
    if migration.holds(_EVICTION):
        return MigrationStep(migration)
    condition = migration.conditions.get(_EVICTION)
    pod = seen.pod
    if pod is None or (condition is not None and pod.uid != migration.pod_uid):
        if migration.status != _EVICTION:
            return MigrationStep(migration.failed("MissingPod"))
        return MigrationStep(migration.told(_EVICTION, True, "EvictComplete"))
    if condition is not None and condition.reason == "Evicting":
        return MigrationStep(migration, _LATER)
    if seen.reservation is not None and migration.has_reservation and seen.reservation.phase == "Succeeded":
        return MigrationStep(
            migration.failed("ForbiddenMigratePod", "Reservation is already bound by another Pod")
        )
    return MigrationStep(
        migration.told(_EVICTION, False, "Evicting"), (MigrationAction.EVICT, MigrationAction.REQUEUE)
    )


def _bound(migration: Migration, room: KeptRoom) -> MigrationStep:
    """Another pod takes the room, and is ready."""
    if room.bound is None:
        return MigrationStep(
            migration.told("PodBoundReservation", False, "WaitForPodBindReservation"), _LATER
        )
    migration = migration.told("ReservationBound", True)
    if not room.bound.ready and not room.bound.gone:
        return MigrationStep(migration.told("BoundPodReady", False, "WaitForBoundPodReady"), _LATER)
    return MigrationStep(migration.told("BoundPodReady", True).told("PodBoundReservation", True).succeeded())
