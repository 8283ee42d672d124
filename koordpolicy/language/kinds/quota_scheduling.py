"""How the scheduler keeps quotas: what each may use now, whether a pod is within it, whose pods go."""

from typing import Annotated

from koordpolicy.language.cel.types import AMOUNT, BOOL, DURATION, DYN, STRING, list_of, map_of
from koordpolicy.language.facts.table import Component
from koordpolicy.language.kinds.fields import ItemName, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_QUOTA = frozenset({"quota"})
_POD = frozenset({"pod", "namespaceObject", "now"})
_NOWHERE: frozenset[str] = frozenset()
_SCHEDULER = frozenset({Component.SCHEDULER})
_AMOUNTS = map_of(STRING, AMOUNT)


class QuotaItem(PolicyModel):
    """A quota that policy gives; an object of its name takes its place."""

    name: ItemName
    """Name of the quota, which is unique in the cluster."""
    enabled: Annotated[
        Value, Slot(BOOL, "Whether there is this quota.", roots=_NOWHERE, components=_SCHEDULER, default=True)
    ] = None
    parent: Annotated[
        Value,
        Slot(STRING, "Name of the quota above it; none for the root.", roots=_NOWHERE, components=_SCHEDULER),
    ] = None
    tree: Annotated[
        Value, Slot(STRING, "Id of its tree.", roots=_NOWHERE, components=_SCHEDULER, default="")
    ] = None
    min: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "What it is guaranteed, by resource name.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    max: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "The most that its pods may have; its names are the resources that it tracks.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    weight: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "Weights by which it takes part in what is left; `max` without any.",
            roots=_NOWHERE,
            components=_SCHEDULER,
        ),
    ] = None
    lends: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether others may use what it does not ask for of its min.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    namespaces: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Namespaces that are bound to it.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None


class QuotaSharing(PolicyModel):
    """How what a quota may use is shared out among those below it, by the scheduler."""

    tree: Annotated[
        Value,
        Slot(
            STRING,
            "Id of the tree that a quota is kept in; empty for the default one.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default="",
        ),
    ] = None
    min: Annotated[
        Value,
        Slot(_AMOUNTS, "What a quota is guaranteed, by resource name.", roots=_QUOTA, components=_SCHEDULER),
    ] = None
    max: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "The most that pods of a quota may have; its names are the resources that the quota tracks.",
            roots=_QUOTA,
            components=_SCHEDULER,
        ),
    ] = None
    weight: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "Weights by which what is left is shared among quotas that want more than their min; none takes no part.",
            roots=_QUOTA,
            components=_SCHEDULER,
        ),
    ] = None
    lends: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether others may use what a quota does not ask for of its min.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    scales: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the min of a quota shrinks, in proportion, where the quota above it has less than all mins below it.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    guarantees: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a quota is guaranteed what its pods have already, beside its min.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=False,
        ),
    ] = None


class QuotaScheduling(PolicyModel):
    """How the scheduler holds pods to their quota."""

    enabled: Annotated[
        Value,
        Slot(BOOL, "Whether a pod is held to its quota.", roots=_POD, components=_SCHEDULER, default=True),
    ] = None
    overhead: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the overhead of its runtime class counts.",
            roots=_POD,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    terminating: Annotated[
        Value,
        Slot(
            STRING,
            "Until when a pod that is being deleted counts: until it is `Gone`, until its `GracePeriod` is over, or no more "
            "once it is `Deleted`.",
            choices=("Gone", "GracePeriod", "Deleted"),
            roots=_POD,
            components=_SCHEDULER,
            default="Gone",
        ),
    ] = None
    preemptible: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod may have to go for others; the pods of a quota that may not have its min at most.",
            roots=_POD,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    limit: Annotated[
        Value,
        Slot(
            STRING,
            "What pods of a quota may have together: its `Runtime`, or its `Max`.",
            choices=("Runtime", "Max"),
            roots=_QUOTA,
            components=_SCHEDULER,
            default="Runtime",
        ),
    ] = None
    parents: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod has to be within the quotas above its own, too.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=False,
        ),
    ] = None
    of_parents: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods of a quota are placed that has others below it; where they are not, they wait.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    preempts: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod on a node, `victim`, may have to go for a pod of a quota, beside what the profile says of that.",
            roots=_POD | {"victim", "quota", "victimQuota"},
            components=_SCHEDULER,
            default=False,
        ),
    ] = None


class QuotaRevocation(PolicyModel):
    """What is done about a quota that has more than it may, since others want back what they lent."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL, "Whether pods of the quota are evicted.", roots=_QUOTA, components=_SCHEDULER, default=False
        ),
    ] = None
    after: Annotated[
        Value,
        Slot(
            DURATION, "For how long it may have more.", roots=_NOWHERE, components=_SCHEDULER, default="120s"
        ),
    ] = None
    every: Annotated[
        Value,
        Slot(
            DURATION, "How often quotas are looked at.", roots=_NOWHERE, components=_SCHEDULER, default="1s"
        ),
    ] = None
    spared: Annotated[
        Value, Slot(BOOL, "Whether a pod is never evicted.", roots=_POD, components=_SCHEDULER, default=False)
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the pods of a quota, the first deciding first; the pod with the smallest keys goes first.",
            combine=Combine.ORDER,
            roots=frozenset({"pod", "now"}),
            components=_SCHEDULER,
            many=True,
        ),
    ] = None


class QuotaBuiltin(PolicyModel):
    """The objects of the quotas that there always are: root, system and default."""

    created: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the scheduler creates those that are absent.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=False,
        ),
    ] = None
    namespace: Annotated[
        Value,
        Slot(STRING, "Their namespace.", roots=_NOWHERE, components=_SCHEDULER, default="koordinator-system"),
    ] = None
    retry_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How much time passes at least before that is tried again.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default="60s",
        ),
    ] = None


class QuotaReporting(PolicyModel):
    """What is written into the objects of quotas."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the status of a quota and its figures are written.",
            roots=_QUOTA,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    every: Annotated[
        Value, Slot(DURATION, "How often at most.", roots=_NOWHERE, components=_SCHEDULER, default="1s")
    ] = None
