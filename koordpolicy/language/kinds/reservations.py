"""The kind on Reservations: as what pods they are scheduled, who takes from which, and how they end."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DURATION, DYN, INT, STRING, map_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_RESERVATION = frozenset({"reservation"})
_PAIR = _RESERVATION | {"pod"}
_NOWHERE: frozenset[str] = frozenset()


class ReservePod(PolicyModel):
    """The pod in whose shape a Reservation waits for a node, and counts there, where its template says nothing else."""

    priority: Annotated[
        Value,
        Slot(
            INT,
            "Its priority, where neither template nor the label `koordinator.sh/priority` say any.",
            roots=_RESERVATION,
            minimum=-(2**31),
            maximum=2**31 - 1,
            default=2**31 - 1,
        ),
    ] = None
    scheduler_name: Annotated[
        Value,
        Slot(STRING, "Who schedules it.", roots=_RESERVATION, default="default-scheduler"),
    ] = None
    preemption_policy: Annotated[
        Value,
        Slot(
            STRING,
            "Whether pods of lower priority go for what is only kept; the template is not asked.",
            choices=("Never", "PreemptLowerPriority"),
            roots=_RESERVATION,
            default="Never",
        ),
    ] = None


class ReservationMatching(PolicyModel):
    """Which pods may take from a Reservation, beside what it says itself."""

    once: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether one pod alone may take from it, and it is over then; as the object says where this is empty.",
            roots=_RESERVATION,
        ),
    ] = None
    allows: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod may take from it that owns it and meets all that it asks for.",
            roots=_PAIR,
            default=True,
        ),
    ] = None
    most_owners: Annotated[
        Value,
        Slot(
            INT,
            "How many terms `spec.owners` may have; nobody takes from one that has more.",
            roots=_NOWHERE,
            minimum=1,
            maximum=100_000,
            default=1000,
        ),
    ] = None


class ReservationChoice(PolicyModel):
    """From which of several a pod takes, and which node is better for it."""

    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the Reservations on a node into which a pod fits; it takes from the first. Names decide last.",
            combine=Combine.ORDER,
            roots=_PAIR,
            many=True,
        ),
    ] = None
    preferred: Annotated[
        Value,
        Slot(
            INT,
            "Score of the node whose Reservation has the smallest order; others have 0 to 100 before they are normalised.",
            roots=_NOWHERE,
            minimum=0,
            maximum=1_000_000,
            default=1000,
        ),
    ] = None
    strategy: Annotated[
        Value,
        Slot(
            STRING,
            "`MostAllocated`: a Reservation scores by how full it would be; `LeastAllocated`: by how empty.",
            choices=("MostAllocated", "LeastAllocated"),
            roots=_NOWHERE,
            default="MostAllocated",
        ),
    ] = None
    weights: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "Weight of each resource in that; one that is not named weighs `otherWeight`.",
            roots=_NOWHERE,
            default={},
        ),
    ] = None
    other_weight: Annotated[
        Value,
        Slot(
            INT,
            "Weight of resources that are not named.",
            roots=_NOWHERE,
            minimum=0,
            maximum=1000,
            default=1,
        ),
    ] = None


class ReservationStatus(PolicyModel):
    """How the status of Reservations is kept up to date."""

    every: Annotated[
        Value,
        Slot(
            DURATION,
            "How often owners and ends are looked at.",
            roots=_NOWHERE,
            default="3s",
        ),
    ] = None
    attempts: Annotated[
        Value,
        Slot(
            INT,
            "How often a status is made anew after somebody else has written the object.",
            roots=_NOWHERE,
            minimum=1,
            maximum=100,
            default=5,
        ),
    ] = None
    workers: Annotated[
        Value,
        Slot(INT, "Objects that are written at a time.", roots=_NOWHERE, minimum=1, maximum=64, default=1),
    ] = None


class ReservationRemoval(PolicyModel):
    """When Reservations are deleted that are over."""

    enabled: Annotated[
        Value,
        Slot(BOOL, "Whether one that is over is deleted at all.", roots=_RESERVATION, default=True),
    ] = None
    every: Annotated[
        Value,
        Slot(DURATION, "How often they are looked for.", roots=_NOWHERE, default="60s"),
    ] = None
    after: Annotated[
        Value,
        Slot(DURATION, "How long one stays that is over.", roots=_RESERVATION, default="24h"),
    ] = None
    orphans: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether one that is over goes at once where its node is gone.",
            roots=_RESERVATION,
            default=True,
        ),
    ] = None
    clears_pods: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the annotation `reservation-allocated` of its pods goes with it.",
            roots=_RESERVATION,
            default=False,
        ),
    ] = None


class PreAllocation(PolicyModel):
    """Who gives the room that it holds already to Reservations that ask for that (`spec.preAllocation`)."""

    cluster_mode: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether Reservations may ask for the pods of the cluster that have a label, instead of those that own them.",
            roots=_NOWHERE,
            default=False,
        ),
    ] = None
    cluster_label: Annotated[
        Value,
        Slot(STRING, "The label that those pods have; empty for none.", roots=_NOWHERE, default=""),
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the pods of a node that may give their room; the first gives it. Names decide last.",
            combine=Combine.ORDER,
            roots=_PAIR,
            many=True,
        ),
    ] = None


class ReservationPolicySpec(PolicySpec):
    """How Reservations are scheduled, who takes from which, and how they end."""

    pods: Given[ReservePod] = None
    """As what pods they are scheduled."""
    matching: Given[ReservationMatching] = None
    """Who may take from them."""
    choice: Given[ReservationChoice] = None
    """From which of several."""
    pre_allocation: Given[PreAllocation] = None
    """Who gives its room to them."""
    status: Given[ReservationStatus] = None
    """How their status is kept."""
    removal: Given[ReservationRemoval] = None
    """When they are deleted."""
