"""Which nodes give pods away, which pods these are, and how many go."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import (
    BOOL,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    PERCENT,
    STRING,
    list_of,
    map_of,
)
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, ItemName, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_NODE = frozenset({"node", "now"})
_POD = frozenset({"pod", "node", "now"})
_RANKED = _POD | {"relief"}
_THERE = _POD | {"target"}
_NOWHERE: frozenset[str] = frozenset()
_SHARES = map_of(STRING, PERCENT)
_MANY = 1_000_000


def _share(meaning: str) -> Slot:
    return Slot(_SHARES, meaning, roots=_NODE, default={})


class EvictionLimits(PolicyModel):
    """How many pods go in one round at most; without a number, any."""

    total: Annotated[Value, Slot(INT, "Pods that go at all.", roots=_NOWHERE, minimum=0, maximum=_MANY)] = (
        None
    )
    per_node: Annotated[
        Value, Slot(INT, "Pods that go from one node.", roots=_NOWHERE, minimum=0, maximum=_MANY)
    ] = None
    per_namespace: Annotated[
        Value, Slot(INT, "Pods of one namespace that go.", roots=_NOWHERE, minimum=0, maximum=_MANY)
    ] = None


class EvictionPace(PolicyModel):
    """How fast pods go, one after the other."""

    per_second: Annotated[
        Value,
        Slot(DOUBLE, "Pods that go in a second at most.", roots=_NOWHERE, also=(INT,), default=10.0),
    ] = None
    burst: Annotated[
        Value,
        Slot(
            INT, "Pods that may go at once after a rest.", roots=_NOWHERE, minimum=1, maximum=1_000, default=1
        ),
    ] = None
    refused_for: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a pod is passed over that was not let go, so that others have their turn.",
            roots=_NOWHERE,
            default="5m",
        ),
    ] = None


class EvictionCondition(PolicyModel):
    """What must be true of a pod for it to go, whatever strategy wants it to."""

    name: ItemName
    """Name of the condition, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the condition is asked.", default=True, roots=_NOWHERE)] = (
        None
    )
    require: Annotated[
        Value,
        Slot(BOOL, "What must be true of a pod.", combine=Combine.ALL, default=True, roots=_POD),
    ] = None
    reason: Annotated[Value, Slot(STRING, "Why a pod stays, for explanations.", roots=_POD, default="")] = (
        None
    )


class Anomaly(PolicyModel):
    """For how long a node must be too full before it gives pods away, so that one that flaps gives none."""

    rounds: Annotated[
        Value,
        Slot(
            INT,
            "After more than so many rounds in which the node was too full it gives pods away; 1 means at once.",
            roots=_NODE,
            minimum=1,
            maximum=10_000,
            default=5,
        ),
    ] = None
    consecutive: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether these rounds have to follow each other: one in which the node is not too full begins the count anew.",
            roots=_NODE,
            default=True,
        ),
    ] = None
    relieved_rounds: Annotated[
        Value,
        Slot(
            INT,
            "After more than so many rounds in which pods were taken from it the node counts as any other again.",
            roots=_NODE,
            minimum=1,
            maximum=10_000,
            default=3,
        ),
    ] = None
    lasts: Annotated[
        Value,
        Slot(DURATION, "How long a node gives pods away before it counts anew.", roots=_NODE, default="1m"),
    ] = None
    forgotten_after: Annotated[
        Value,
        Slot(
            DURATION,
            "After how long without being too full what was counted of a node is forgotten; at least the interval.",
            roots=_NODE,
            default="5m",
        ),
    ] = None


class LoadBalancing(PolicyModel):
    """When a node is too full, and when it can take more. For the plugin LowNodeLoad."""

    pool: Annotated[
        Value,
        Slot(
            STRING,
            "The pool that a node is in: pods move within pools, and means are those of a pool.",
            roots=_NODE,
            default="",
        ),
    ] = None
    measure: Annotated[
        Value,
        Slot(
            STRING,
            "What of a node counts: what is measured (`Usage`), or what its pods request (`Requests`).",
            choices=("Usage", "Requests"),
            roots=_NOWHERE,
            default="Usage",
        ),
    ] = None
    stale_after: Annotated[
        Value,
        Slot(
            DURATION,
            "Age at which a node's metrics are expired: it neither gives nor takes pods then.",
            roots=_NODE,
            default="3m",
        ),
    ] = None
    resources: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources that are looked at even where no threshold names them: a target is not filled beyond what it has.",
            roots=_NOWHERE,
            default=["memory"],
        ),
    ] = None
    high: Annotated[Value, _share("Use from which a node gives pods away, as a share of what it has.")] = None
    low: Annotated[Value, _share("Use up to which a node takes pods, of every resource named.")] = None
    prod_high: Annotated[
        Value, _share("Use by prod pods from which a node gives prod pods away, as a share of what it has.")
    ] = None
    prod_low: Annotated[Value, _share("Use by prod pods up to which a node takes prod pods.")] = None
    deviation: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether thresholds are distances from the mean of the pool, in percentage points.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    prod: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod is a prod pod here.",
            roots=frozenset({"pod", "now"}),
            default=False,
        ),
    ] = None
    weights: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "Weights of resources where nodes and pods are compared; 1 for those that are not named.",
            roots=_NODE,
            default={},
        ),
    ] = None
    least_targets: Annotated[
        Value,
        Slot(
            INT,
            "Pods move only where more nodes than so many can take some.",
            roots=_NOWHERE,
            minimum=0,
            maximum=_MANY,
            default=0,
        ),
    ] = None
    fits_load: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod goes only if another node has room for what it requests and for what it uses.",
            roots=_NOWHERE,
            default=True,
        ),
    ] = None
    anomaly: Given[Anomaly] = None
    """For how long a node must be too full."""


class Relocating(PolicyModel):
    """What the scheduler has to say of a pod that is to go. It is asked as if the pod came anew, its own node among those that may
    take it, and what it uses there does not count against that node.
    """

    better: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod goes only where the scheduler would put it on another node, and that counts for more than its own. "
            "Koordinator does not ask: `false` does as it does.",
            default=True,
            roots=_POD,
        ),
    ] = None
    by_more_than: Annotated[
        Value,
        Slot(
            DOUBLE,
            "By more than how many points of its SchedulingProfile's weighted scores the other node has to be better.",
            also=(INT,),
            minimum=0,
            maximum=_MANY,
            default=0.0,
            roots=_POD,
        ),
    ] = None


class DeschedulingStrategy(PolicyModel):
    """One reason for which pods leave their nodes: a plugin, or expressions."""

    name: ItemName
    """Name of the strategy, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the strategy is in use.", default=True, roots=_NOWHERE)] = (
        None
    )
    plugin: Annotated[
        Value,
        Slot(
            STRING,
            "Built-in algorithm that says which of the `candidates` go: `LowNodeLoad` by the load of nodes, the others by how pods are "
            "beside each other; without one, `release` says which nodes give pods away.",
            choices=(
                "LowNodeLoad",
                "RemoveDuplicates",
                "RemovePodsViolatingInterPodAntiAffinity",
                "RemovePodsViolatingTopologySpreadConstraint",
                "ScaleDownBinPack",
            ),
            roots=_NOWHERE,
        ),
    ] = None
    dry_run: Annotated[
        Value,
        Slot(BOOL, "Whether the strategy only says what it would do.", default=False, roots=_NOWHERE),
    ] = None
    nodes: Annotated[
        Value,
        Slot(BOOL, "Whether the strategy looks at a node at all.", default=True, roots=_NODE),
    ] = None
    candidates: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod may go for this reason; none may where nothing says so.",
            combine=Combine.ALL,
            default=False,
            roots=_POD,
        ),
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys, the first deciding first; the pod with the smallest keys goes first.",
            combine=Combine.ORDER,
            many=True,
            roots=_RANKED,
        ),
    ] = None
    release: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a node gives pods away. Asked again, of the node without it, after each pod that goes. A plugin "
            "decides that itself.",
            default=True,
            roots=_NODE,
        ),
    ] = None
    node_order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of nodes, the first deciding first; the node with the smallest keys is the first that is asked to release pods. A "
            "plugin decides that itself.",
            combine=Combine.ORDER,
            many=True,
            roots=_NODE,
        ),
    ] = None
    most: Annotated[
        Value,
        Slot(
            INT,
            "Pods that one node gives away in a round at most; without a number, any.",
            roots=_NODE,
            minimum=0,
            maximum=_MANY,
        ),
    ] = None
    total: Annotated[
        Value,
        Slot(
            INT,
            "Pods that go for this reason in one round at most; without a number, any.",
            roots=_NOWHERE,
            minimum=0,
            maximum=_MANY,
        ),
    ] = None
    ended: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the strategy looks at pods that have ended and are still there, instead of those that run. They are deleted by an "
            "eviction, without a migration.",
            default=False,
            roots=_NOWHERE,
        ),
    ] = None
    constraints: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "For the plugin RemovePodsViolatingTopologySpreadConstraint: by which of pods' constraints it goes.",
            choices=("DoNotSchedule", "ScheduleAnyway"),
            roots=_NOWHERE,
            default=["DoNotSchedule"],
        ),
    ] = None
    weights: Annotated[
        Value,
        Slot(
            map_of(STRING, DOUBLE),
            "For the plugin ScaleDownBinPack: the resources by which pods are large or small, with their weights.",
            roots=_NOWHERE,
            default={"cpu": 1.0, "memory": 1.0},
        ),
    ] = None
    whole: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a node gives away all pods that may go for this reason, or none: each has to find room beside the others.",
            default=False,
            roots=_NODE,
        ),
    ] = None
    takes: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether another node, `target`, that has room for the pod is meant to take it; where the scheduler would put it has to be, "
            "too. `node` is the one that it leaves.",
            combine=Combine.ALL,
            default=True,
            roots=_THERE,
        ),
    ] = None
    fits: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod goes only if another node has room for what it requests.",
            default=True,
            roots=_POD,
        ),
    ] = None
    relocating: Given[Relocating] = None
    """What the scheduler has to say of a pod that is to go."""
    reason: Annotated[
        Value, Slot(STRING, "Why a pod goes, for Events and reports; a plugin says more.", roots=_POD)
    ] = None
    load: Given[LoadBalancing] = None
    """When a node is too full, for the plugin LowNodeLoad."""


class DeschedulingSpec(PolicySpec):
    """Which nodes give pods away, which pods these are, and how many go."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether pods are moved by this profile.", default=True, roots=_NOWHERE)
    ] = None
    interval: Annotated[
        Value, Slot(DURATION, "From one round to the next.", default="2m", roots=_NOWHERE)
    ] = None
    dry_run: Annotated[
        Value, Slot(BOOL, "Whether it is only said what would be done.", default=False, roots=_NOWHERE)
    ] = None
    nodes: Annotated[
        Value, Slot(BOOL, "Whether the profile looks at a node at all.", default=True, roots=_NODE)
    ] = None
    least_nodes: Annotated[
        Value,
        Slot(
            INT,
            "Nothing moves where fewer nodes are ready: pods would have nowhere to go.",
            roots=_NOWHERE,
            minimum=1,
            maximum=_MANY,
            default=2,
        ),
    ] = None
    migrate: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod that is to go gets a PodMigrationJob, which goes on as the kind Migration says; else it is evicted at once.",
            default=True,
            roots=_NOWHERE,
        ),
    ] = None
    limits: Given[EvictionLimits] = None
    """How many pods go in one round."""
    pace: Given[EvictionPace] = None
    """How fast pods go."""
    conditions: list[EvictionCondition] = Field(default=[], max_length=200)
    """What must be true of every pod that goes."""
    strategies: list[DeschedulingStrategy] = Field(default=[], max_length=100)
    """For which reasons pods go, one after the other."""
