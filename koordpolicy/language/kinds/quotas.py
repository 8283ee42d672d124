"""Kinds on elastic quotas: how they stand together, and how they follow from sets of nodes."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import AMOUNT, BOOL, DOUBLE, DURATION, INT, STRING, list_of, map_of
from koordpolicy.language.facts.table import Component
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.quota_scheduling import (
    QuotaBuiltin,
    QuotaItem,
    QuotaReporting,
    QuotaRevocation,
    QuotaScheduling,
    QuotaSharing,
)
from koordpolicy.language.kinds.slots import Slot, Value

_WEBHOOK = frozenset({Component.WEBHOOK})
_REQUEST = frozenset({"operation", "user", "now"})
_QUOTA = _REQUEST | {"quota", "parentQuota"}
_CHANGE = _REQUEST | {"quota", "oldQuota"}
_POD = _REQUEST | {"pod", "namespaceObject"}
_ANY_POD = frozenset({"pod", "namespaceObject", "now"})
"""Pods as webhooks and schedulers know them."""
_POD_IN_QUOTA = _POD | {"quota"}
_PROFILE = frozenset({"quotaProfile", "now"})
_AMOUNTS = map_of(STRING, AMOUNT)


class QuotaDefaults(PolicyModel):
    """What a new quota gets that its object does not say."""

    parent: Annotated[
        Value, Slot(STRING, "Name of the quota above it.", roots=_QUOTA, components=_WEBHOOK)
    ] = None
    tree: Annotated[
        Value,
        Slot(
            STRING,
            "Id of its tree; `parentQuota` is the one that `parent` gives.",
            roots=_QUOTA,
            components=_WEBHOOK,
        ),
    ] = None
    shared_weight: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "Weights by which spare resources are shared, by resource name.",
            roots=_QUOTA,
            components=_WEBHOOK,
        ),
    ] = None


class QuotaAdmission(PolicyModel):
    """How pods are held to their quota where they are created, before any scheduler sees them.

    What they count for is added to the quota's annotation `quota.scheduling.koordinator.sh/child-request`. Nothing is taken
    back here when pods end: the scheduler that keeps the tree of quotas does that, which koord-scheduler is.
    """

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether pods are held to their quota at admission.",
            roots=_POD,
            default=False,
            components=_WEBHOOK,
        ),
    ] = None
    operations: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Requests that count; an update does where the pod comes to another quota.",
            choices=("CREATE", "UPDATE"),
            roots=frozenset(),
            default=["CREATE"],
            components=_WEBHOOK,
        ),
    ] = None
    tracked: Annotated[
        Value,
        Slot(BOOL, "Whether the quota is looked at.", roots=_POD_IN_QUOTA, default=True, components=_WEBHOOK),
    ] = None
    request: Annotated[
        Value,
        Slot(
            _AMOUNTS, "What the pod counts for, by resource name.", roots=_POD_IN_QUOTA, components=_WEBHOOK
        ),
    ] = None
    limit: Annotated[
        Value,
        Slot(
            _AMOUNTS,
            "The most that pods of the quota may count for together, by resource name; one that is not there has no limit.",
            roots=_POD_IN_QUOTA,
            components=_WEBHOOK,
        ),
    ] = None
    workers: Annotated[
        Value,
        Slot(
            INT,
            "Quotas that are written to at a time; pods of one quota are admitted together.",
            roots=frozenset(),
            minimum=1,
            maximum=256,
            default=16,
            components=_WEBHOOK,
        ),
    ] = None
    timeout: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a pod may wait for its quota; then it is refused.",
            roots=frozenset(),
            default="10s",
            components=_WEBHOOK,
        ),
    ] = None
    retries: Annotated[
        Value,
        Slot(
            INT,
            "How often a write is tried again that met another one; with many pods, once more for each doubling.",
            roots=frozenset(),
            minimum=0,
            maximum=100,
            default=3,
            components=_WEBHOOK,
        ),
    ] = None
    retry_jitter: Annotated[
        Value,
        Slot(
            DURATION,
            "Longest pause before such a write, of which half at least is taken.",
            roots=frozenset(),
            default="0s",
            components=_WEBHOOK,
        ),
    ] = None
    longest_jitter: Annotated[
        Value,
        Slot(
            DURATION,
            "Longest sum of these pauses for one write.",
            roots=frozenset(),
            default="1s",
            components=_WEBHOOK,
        ),
    ] = None
    read_again: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the quota is read from the API server before such a write, and not only from what is watched.",
            roots=frozenset(),
            default=False,
            components=_WEBHOOK,
        ),
    ] = None


class QuotaTreeSpec(PolicySpec):
    """How elastic quotas stand together, and which pods belong to them."""

    defaults: Given[QuotaDefaults] = None
    """What a new quota gets that its object does not say."""
    exempt: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a request passes without a question to any AdmissionRule on quotas, and leaves the tree as it is.",
            roots=_CHANGE,
            default=False,
            components=_WEBHOOK,
        ),
    ] = None
    quota_of_pod: Annotated[
        Value,
        Slot(STRING, "Name of the quota that a pod belongs to.", roots=_ANY_POD | {"namespaceQuotas"}),
    ] = None
    fallback: Annotated[
        Value,
        Slot(STRING, "Name of the quota of pods whose quota does not exist.", roots=_ANY_POD),
    ] = None
    node_affinity: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a new pod is kept to the nodes of its quota's tree: to those that the ElasticQuotaProfile with the id of the "
            "tree selects, beside what the pod asks for itself.",
            roots=_POD_IN_QUOTA,
            default=False,
            components=_WEBHOOK,
        ),
    ] = None
    admission: Given[QuotaAdmission] = None
    """How pods are held to their quota where they are created."""
    quotas: list[QuotaItem] = Field(default=[], max_length=10_000)
    """Quotas that there are without an object."""
    sharing: Given[QuotaSharing] = None
    """How what a quota may use is shared out among those below it."""
    scheduling: Given[QuotaScheduling] = None
    """How the scheduler holds pods to their quota."""
    revocation: Given[QuotaRevocation] = None
    """What is done about a quota that has more than it may."""
    reporting: Given[QuotaReporting] = None
    """What is written into the objects of quotas."""
    builtin: Given[QuotaBuiltin] = None
    """The objects of the quotas that there always are."""


class QuotaProfileSpec(PolicySpec):
    """What the root quota is that follows from an ElasticQuotaProfile and its nodes."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether the profile is followed.", roots=_PROFILE, default=True)
    ] = None
    tree: Annotated[Value, Slot(STRING, "Id of the tree.", roots=_PROFILE)] = None
    unschedulable: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether what a node offers counts as unschedulable; it stays in the total.",
            roots=frozenset({"node", "now"}),
            default=False,
        ),
    ] = None
    ratio: Annotated[
        Value,
        Slot(DOUBLE, "Share of what the nodes offer that counts.", roots=_PROFILE, default=1.0),
    ] = None
    keys: Annotated[Value, Slot(list_of(STRING), "Resources that the quota speaks of.", roots=_PROFILE)] = (
        None
    )
    min: Annotated[
        Value, Slot(AMOUNT, "What the quota is guaranteed of a resource.", roots=_PROFILE | {"resource"})
    ] = None
    max: Annotated[
        Value,
        Slot(AMOUNT, "The most that its pods may request of a resource.", roots=_PROFILE | {"resource"}),
    ] = None
    interval: Annotated[
        Value,
        Slot(DURATION, "How often a profile is looked at.", roots=frozenset(), default="10s"),
    ] = None
    retry_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How much time passes at least after a write that failed; more where it fails again.",
            roots=frozenset(),
            default="2s",
        ),
    ] = None
