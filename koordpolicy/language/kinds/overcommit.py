"""What the manager publishes as overcommitted resources."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, CPU, DURATION, MEMORY, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel, Text
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "cluster", "now"})
_ZONE = _NODE | {"zone"}


class ZoneOvercommit(PolicyModel):
    """Overcommitted resources of one NUMA zone."""

    cpu: Annotated[
        Value, Slot(CPU, "Overcommitted CPU of the zone; negative counts as none.", roots=_ZONE)
    ] = None
    memory: Annotated[
        Value, Slot(MEMORY, "Overcommitted memory of the zone; negative counts as none.", roots=_ZONE)
    ] = None


class MissingMetrics(PolicyModel):
    """What holds while the node's metrics are missing."""

    after: Annotated[Value, Slot(DURATION, "Age beyond which metrics count as missing.", roots=_NODE)] = None
    action: Annotated[
        Value,
        Slot(
            STRING,
            "`Reset` takes the resources away from the node, `Keep` leaves what was published last.",
            choices=("Reset", "Keep"),
            roots=_NODE,
        ),
    ] = None


class AbnormalNodes(PolicyModel):
    """Which nodes are abnormal, and what that costs them."""

    when: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether something is wrong with the node now; asked while its metrics are there.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long that must hold without a break for the node to count as abnormal; at once without a rule.",
            roots=_NODE,
        ),
    ] = None
    well_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long it must not hold for the node to count as well again; at once without a rule.",
            roots=_NODE,
        ),
    ] = None
    offers: Annotated[
        Value,
        Slot(
            PERCENT,
            "What is left of the amounts while it counts as abnormal; with 0% the node ceases to offer the resource.",
            roots=_NODE,
            default="0%",
        ),
    ] = None


class Publishing(PolicyModel):
    """How a new amount is written to the node, and when."""

    when_changed_by: Annotated[
        Value,
        Slot(
            PERCENT,
            "Relative change that must be exceeded for an amount to be written; a smaller one waits for `atLeastEvery`, or for a revision that changes an Overcommit.",
            roots=_NODE,
        ),
    ] = None
    at_least_every: Annotated[
        Value, Slot(DURATION, "Age beyond which amounts are written anyway.", roots=_NODE)
    ] = None
    normalize_cpu: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether CPU is multiplied by the node's CPU normalisation where that is above 1.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    deduct_third_party: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether what other schedulers have allocated in the band, by the node's annotation, is deducted; "
            "the amount before that is kept in an annotation.",
            roots=_NODE,
            default=False,
        ),
    ] = None


class OvercommitSpec(PolicySpec):
    """Formulas of the resources that are sold a second time."""

    resource: Annotated[str, Text("an overcommitted resource", choices=("batch", "mid"))]
    """Which resource: `batch` (reclaimed from all above) or `mid` (predicted to stay unused)."""
    enabled: Annotated[
        Value, Slot(BOOL, "Whether the resource is offered at all.", roots=_NODE, default=True)
    ] = None
    cpu: Annotated[
        Value, Slot(CPU, "Overcommitted CPU of the node; negative counts as none.", roots=_NODE)
    ] = None
    memory: Annotated[
        Value, Slot(MEMORY, "Overcommitted memory of the node; negative counts as none.", roots=_NODE)
    ] = None
    zone: Given[ZoneOvercommit] = None
    """The same for each NUMA zone."""
    on_missing: Given[MissingMetrics] = None
    """What holds while metrics are missing."""
    abnormal: Given[AbnormalNodes] = None
    """Which nodes are abnormal, and what that costs them."""
    publish: Given[Publishing] = None
    """How a new amount is written to the node, and when."""
