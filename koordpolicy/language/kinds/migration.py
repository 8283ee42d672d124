"""The kind on migrations: how a pod that is to leave its node gets to another one."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_NOWHERE: frozenset[str] = frozenset()
_POD = frozenset({"pod", "now"})
_WORKLOAD = _POD | {"replicas"}
_MANY = 1_000_000


def _most(meaning: str, default: int | None = None) -> Slot:
    return Slot(INT, meaning, roots=_NOWHERE, minimum=0, maximum=_MANY, default=default)


def _of_replicas(meaning: str) -> Slot:
    return Slot(INT, meaning, roots=_WORKLOAD, minimum=0, maximum=_MANY, default=1)


class MigrationLimits(PolicyModel):
    """How many migrations are under way at once; 0 is no limit."""

    total: Annotated[Value, _most("Migrations at once at all.", 0)] = None
    per_node: Annotated[Value, _most("Migrations at once of pods of one node.", 2)] = None
    per_namespace: Annotated[Value, _most("Migrations at once of pods of one namespace.", 0)] = None


class WorkloadLimits(PolicyModel):
    """How many pods of one workload may be away at once: at least 1, and never more than it has."""

    migrating: Annotated[Value, _of_replicas("Pods of the workload that migrate at once.")] = None
    unavailable: Annotated[
        Value, _of_replicas("Pods of the workload that migrate, are not ready, or are not there, at once.")
    ] = None
    checks_replicas: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods stay of a workload that has one replica, or no more than may be away at once.",
            roots=_POD,
            default=True,
        ),
    ] = None


_BURST = Slot(
    INT, "Pods that may go right after each other.", roots=_NOWHERE, minimum=1, maximum=1_000, default=1
)


class WorkloadFrequency(PolicyModel):
    """How often pods of one workload go."""

    period: Annotated[
        Value, Slot(DURATION, "In which so many go; 0s for no limit.", roots=_NOWHERE, default="5m")
    ] = None
    most: Annotated[Value, _of_replicas("Pods that go in a period.")] = None
    burst: Annotated[Value, _BURST] = None


class NamespaceFrequency(PolicyModel):
    """How often pods of one namespace go."""

    period: Annotated[
        Value, Slot(DURATION, "In which so many go; 0s for no limit.", roots=_NOWHERE, default="0s")
    ] = None
    most: Annotated[
        Value,
        Slot(
            INT, "Pods that go in a period; 0 for no limit.", roots=_POD, minimum=0, maximum=_MANY, default=0
        ),
    ] = None
    burst: Annotated[Value, _BURST] = None


class MigrationFrequency(PolicyModel):
    """How often pods go for good, however few are away at once."""

    workload: Given[WorkloadFrequency] = None
    """Of one workload."""
    namespace: Given[NamespaceFrequency] = None
    """Of one namespace."""


class MigrationPace(PolicyModel):
    """How fast pods are evicted, one after the other."""

    per_second: Annotated[
        Value,
        Slot(DOUBLE, "Pods that are evicted in a second at most.", roots=_NOWHERE, also=(INT,), default=10.0),
    ] = None
    burst: Annotated[
        Value,
        Slot(
            INT,
            "Pods that may be evicted at once after a rest.",
            roots=_NOWHERE,
            minimum=1,
            maximum=1_000,
            default=1,
        ),
    ] = None


class MigrationArbitration(PolicyModel):
    """Which of the migrations that wait begins next."""

    interval: Annotated[
        Value,
        Slot(
            DURATION,
            "From one look at those that wait to the next, which is how often those under way are looked at, too.",
            roots=_NOWHERE,
            default="500ms",
        ),
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of pods, the first deciding first; the pod with the smallest keys goes first, of equal ones the one whose "
            "migration is newest.",
            combine=Combine.ORDER,
            many=True,
            roots=_POD,
        ),
    ] = None
    together: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods of the pod's controller go right after each other, those first of whom most are under way.",
            roots=_POD,
            default=False,
        ),
    ] = None
    limited: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether limits are about the pod; where they are not it goes at once.",
            roots=_POD,
            default=True,
        ),
    ] = None
    conditions_of: Annotated[
        Value,
        Slot(
            STRING,
            "The profile of Descheduling whose conditions a pod has to meet; those of the profile that made a migration count for it, as long as"
            " there is that profile.",
            roots=_POD,
            default="koord-descheduler",
        ),
    ] = None


class MigrationRecord(PolicyModel):
    """How long PodMigrationJobs are kept."""

    after_ttl: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a job is kept after its time is over, done or not.",
            roots=_NOWHERE,
            default="5m",
        ),
    ] = None
    without_ttl: Annotated[
        Value,
        Slot(DURATION, "How long a job is kept that has no time limit.", roots=_NOWHERE, default="30m"),
    ] = None
    interval: Annotated[
        Value,
        Slot(DURATION, "From one look for jobs that may go to the next.", roots=_NOWHERE, default="1m"),
    ] = None


class MigrationSpec(PolicySpec):
    """How a pod that is to leave its node gets to another one."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether PodMigrationJobs are carried out; where not, those that are there end when their time is over.",
            roots=_NOWHERE,
            default=True,
        ),
    ] = None
    mode: Annotated[
        Value,
        Slot(
            STRING,
            "Whether room is kept elsewhere before the pod goes (`ReservationFirst`), or not (`EvictDirectly`).",
            choices=("ReservationFirst", "EvictDirectly"),
            roots=_POD,
            default="ReservationFirst",
        ),
    ] = None
    reservable: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the scheduler of the pod knows Reservations; where room is to be kept first, only such pods are moved.",
            roots=_POD,
            default=True,
        ),
    ] = None
    ttl: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a migration may take before it is given up; 0s for no limit.",
            roots=_POD,
            default="5m",
        ),
    ] = None
    evictor: Annotated[
        Value,
        Slot(
            STRING,
            "How the pod goes: evicted, which heeds disruption budgets; deleted; or asked to by an annotation (`SoftEviction`). The "
            "label `koordinator.sh/evict-policy` of the pod, then of its migration, goes before it.",
            choices=("Eviction", "Delete", "SoftEviction"),
            roots=_POD,
            default="Eviction",
        ),
    ] = None
    grace_seconds: Annotated[
        Value,
        Slot(
            INT,
            "Seconds in which the pod has to end; its own where nothing says it.",
            roots=_POD,
            minimum=0,
            maximum=_MANY,
        ),
    ] = None
    retry_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long after a pod was not let go it is tried again.",
            roots=_NOWHERE,
            default="3s",
        ),
    ] = None
    pace: Given[MigrationPace] = None
    """How fast pods are evicted."""
    limits: Given[MigrationLimits] = None
    """How many migrations are under way at once."""
    workload: Given[WorkloadLimits] = None
    """How many pods of one workload may be away at once."""
    frequency: Given[MigrationFrequency] = None
    """How often pods go for good."""
    arbitration: Given[MigrationArbitration] = None
    """Which migrations begin."""
    kept: Given[MigrationRecord] = None
    """How long what is told of migrations is kept."""
