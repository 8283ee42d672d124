"""How the scheduler orders pods, and how it chooses a node."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import (
    AMOUNT,
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
from koordpolicy.language.kinds.base import Condition, PolicySpec
from koordpolicy.language.kinds.fields import DNSName, Given, Identifier, ItemName, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_POD = frozenset({"pod", "namespaceObject", "cluster", "now"})
_NODE = frozenset({"node"})
_NOWHERE: frozenset[str] = frozenset()


class Queue(PolicyModel):
    """In which order pods are taken from the queue, and when those that found no node come back to it."""

    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys, the first deciding first; the pod with the smallest keys is next.",
            combine=Combine.ORDER,
            roots=_POD,
            many=True,
        ),
    ] = None
    initial_backoff: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a pod waits after its first attempt; each further attempt doubles it.",
            default="1s",
            roots=_POD,
        ),
    ] = None
    maximum_backoff: Annotated[
        Value, Slot(DURATION, "The longest that a pod waits after an attempt.", default="10s", roots=_POD)
    ] = None
    retry_after: Annotated[
        Value,
        Slot(
            DURATION,
            "After how long a pod is tried again although nothing has happened that could help it.",
            default="5m",
            roots=_POD,
        ),
    ] = None
    try_when_idle: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod that backs off after it was refused is tried early when something happened that may help it "
            "and no pod waits to be tried. After an early attempt it waits for the end of its back-off.",
            default=True,
            roots=_POD,
        ),
    ] = None
    confirm_within: Annotated[
        Value,
        Slot(
            DURATION,
            "How long a pod keeps its place on a node without the cluster confirming it; 0 for ever.",
            default="0s",
            roots=_POD,
        ),
    ] = None


class Estimator(PolicyModel):
    """What a pod will probably use, until it is measured."""

    request: Annotated[
        Value, Slot(map_of(STRING, AMOUNT), "Estimated use by resource name.", roots=frozenset({"pod"}))
    ] = None
    hold_after_scheduled: Annotated[
        Value,
        Slot(
            DURATION,
            "How long after its scheduling the estimate of a pod counts even where it is measured; 0 for no longer "
            "than until it is measured.",
            roots=frozenset({"pod"}),
        ),
    ] = None
    hold_after_initialized: Annotated[
        Value,
        Slot(
            DURATION,
            "The same, counted from the end of its init containers; decides where it is above 0.",
            roots=frozenset({"pod"}),
        ),
    ] = None


class LoadWindow(PolicyModel):
    """Which measured use load is built on: the last one, or a percentile over a time."""

    aggregation: Annotated[
        Value,
        Slot(
            STRING,
            "A percentile or average, or `last` for the use measured last.",
            roots=_NODE,
            choices=("last", "avg", "p50", "p90", "p95", "p99"),
            default="last",
            unknown="what no node reports: the load counts as not measured",
        ),
    ] = None
    window: Annotated[
        Value,
        Slot(DURATION, "Over exactly this time; 0 for the longest there is.", roots=_NODE, default="0s"),
    ] = None


class Load(PolicyModel):
    """How the load of nodes is counted: what is measured, plus estimates for pods that are new."""

    resources: Annotated[
        Value, Slot(list_of(STRING), "Names of the resources that load is known of.", roots=_NODE)
    ] = None
    prod_bands: Annotated[
        Value,
        Slot(list_of(STRING), "Bands whose pods make up `node.load.prod`.", roots=_NODE),
    ] = None
    prod_includes_system: Annotated[
        Value,
        Slot(BOOL, "Whether `node.load.prod` includes use outside pods.", default=False, roots=_NODE),
    ] = None
    filter: Given[LoadWindow] = None
    """What `node.resources.filterLoad` is built on."""
    score: Given[LoadWindow] = None
    """What `node.resources.scoreLoad` is built on."""


class SchedulingFilter(PolicyModel):
    """One condition on nodes: a plugin with parameters, an expression, or both."""

    name: ItemName
    """Name of the filter, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the filter is in use.", default=True, roots=_POD)] = None
    plugin: Annotated[Value, Slot(STRING, "Built-in algorithm that filters.", roots=_NOWHERE)] = None
    parameters: dict[Identifier, Annotated[Value, Slot(DYN, "Parameter of the plugin.", roots=_POD)]] = Field(
        default_factory=dict
    )
    """Parameters of the plugin."""
    match: Given[Condition] = None
    """When the filter applies; always when absent."""
    require: Annotated[
        Value,
        Slot(BOOL, "What must be true of a node for the pod to go there.", combine=Combine.ALL, default=True),
    ] = None
    reason: Annotated[
        Value,
        Slot(
            STRING,
            "Why a node is refused, for events and explanations; where it is empty, what the plugin says.",
            default="",
        ),
    ] = None


class SchedulingScore(PolicyModel):
    """One view of which nodes are better: a plugin with parameters, or an expression."""

    name: ItemName
    """Name of the score, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the score is in use.", default=True, roots=_POD)] = None
    weight: Annotated[
        Value,
        Slot(INT, "Weight of the score in the sum.", roots=_POD, minimum=0, maximum=1_000_000, default=1),
    ] = None
    plugin: Annotated[Value, Slot(STRING, "Built-in algorithm that scores.", roots=_NOWHERE)] = None
    parameters: dict[Identifier, Annotated[Value, Slot(DYN, "Parameter of the plugin.", roots=_POD)]] = Field(
        default_factory=dict
    )
    """Parameters of the plugin."""
    match: Given[Condition] = None
    """When the score applies; always when absent."""
    value: Annotated[
        Value,
        Slot(
            DOUBLE,
            "How good a node is, 0 to 100; 0 where the score does not apply.",
            combine=Combine.WEIGHTED,
            also=(INT,),
            default=0.0,
        ),
    ] = None
    normalize: Annotated[
        Value,
        Slot(
            STRING,
            "How the values of all nodes are brought to 0 to 100: not at all (`None`), so that the best has 100 "
            "(`Maximum`), so that the worst has 0 as well (`MinMax`), or these turned round, where little is good "
            "(`ReverseMaximum`, `ReverseMinMax`).",
            choices=("None", "Maximum", "ReverseMaximum", "MinMax", "ReverseMinMax"),
            default="None",
            roots=_NOWHERE,
        ),
    ] = None


class PreemptionSearch(PolicyModel):
    """How many nodes are looked at before one is chosen."""

    share: Annotated[
        Value,
        Slot(
            PERCENT,
            "Share of the nodes that must be found to be candidates before the search ends.",
            default="100%",
            roots=_POD,
        ),
    ] = None
    least: Annotated[
        Value,
        Slot(
            INT,
            "How many candidates are sought in any case.",
            default=100,
            minimum=1,
            maximum=1_000_000,
            roots=_POD,
        ),
    ] = None
    most: Annotated[
        Value,
        Slot(
            INT,
            "How many times filters are asked of single nodes, with fewer pods on them, before the search ends with the "
            "best candidate found. A node is asked about once, and once more for each pod that may go from it, where "
            "something else than room refuses it; meanwhile no other pod is placed.",
            default=5000,
            minimum=1,
            maximum=100_000_000,
            roots=_POD,
        ),
    ] = None


class Preemption(PolicyModel):
    """Whether room is made by evicting others, and who they are."""

    plugin: Annotated[
        Value,
        Slot(STRING, "Built-in algorithm that finds who has to go; none makes no room.", roots=_NOWHERE),
    ] = None
    policy: Annotated[
        Value,
        Slot(
            STRING,
            "Whether a pod without a node may displace others: `Never`, or `PreemptLowerPriority`.",
            choices=("Never", "PreemptLowerPriority"),
            roots=_POD,
        ),
    ] = None
    eligible: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod on a node may be displaced by the pod that is decided on.",
            default=False,
            roots=_POD | {"victim"},
        ),
    ] = None
    importance: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the pods that may be displaced, the first deciding first; the pod with the smallest keys "
            "is the most important one and stays wherever it can.",
            combine=Combine.ORDER,
            roots=frozenset({"victim", "now"}),
            many=True,
        ),
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the nodes on which pods would have to go, the first deciding first; the node with the "
            "smallest keys is taken.",
            combine=Combine.ORDER,
            roots=_POD | {"candidate"},
            many=True,
        ),
    ] = None
    search: Given[PreemptionSearch] = None
    """How many nodes are looked at."""
    look_ahead: Annotated[
        Value,
        Slot(
            DURATION,
            "How long those who go are expected to take: nobody goes from a node that would refuse the pod by then, its "
            "measurements too old, say. Pods have 30 s to end unless they say otherwise; 0 looks at the present alone, "
            "and more than a day counts as one.",
            default="30s",
            roots=_POD,
        ),
    ] = None
    respects: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether a pod counts as if it were already on the node that others are leaving for it, when the pod "
            "that is decided on looks at that node.",
            default=False,
            roots=_POD | {"nominated"},
        ),
    ] = None


class Diagnosis(PolicyModel):
    """What is found out about pods that wait, while none is due to be tried: whether something else refuses them by
    now, and what would help. It never delays a decision by more than one slice.
    """

    advice: Annotated[
        Value,
        Slot(BOOL, "Whether a pod that found no node is told what would help.", default=True, roots=_NOWHERE),
    ] = None
    evaluations: Annotated[
        Value,
        Slot(
            INT,
            "How often a filter's expression is evaluated at most on all its nodes for one pod's advice. Advice says "
            "when not all was tried.",
            default=400,
            minimum=1,
            maximum=100_000,
            roots=_NOWHERE,
        ),
    ] = None
    share: Annotated[
        Value,
        Slot(
            PERCENT,
            "Share of the scheduler's time that this takes at most; 0% for none of it.",
            default="10%",
            roots=_NOWHERE,
        ),
    ] = None
    slice: Annotated[
        Value,
        Slot(
            DURATION,
            "After how long everything else has its turn; an evaluation that has begun is brought to its end.",
            default="10ms",
            roots=_NOWHERE,
        ),
    ] = None
    renew_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long what was found out about a pod is left as it is, at least. A pod that something else refuses by "
            "then is tried again, which brings its condition up to date.",
            default="15s",
            roots=_NOWHERE,
        ),
    ] = None
    pods_per_second: Annotated[
        Value,
        Slot(
            INT,
            "For how many pods a second something follows from that at most: an attempt, or a message. What is left "
            "over in ten seconds may come at once.",
            default=20,
            minimum=1,
            maximum=10_000,
            roots=_NOWHERE,
        ),
    ] = None
    slow_decision: Annotated[
        Value,
        Slot(
            DURATION,
            "A filter or score that makes a decision take longer is told of: in the log, `/statusz` and an Event on the "
            "PolicyRevision, with its place and what it takes. 0s tells of none.",
            default="100ms",
            roots=_NOWHERE,
        ),
    ] = None


class SchedulingProfileSpec(PolicySpec):
    """How pods of one scheduler name are ordered and placed."""

    scheduler_name: DNSName
    """The scheduler name of the pods that the profile is for."""
    queue: Given[Queue] = None
    """In which order pods are taken."""
    estimator: Given[Estimator] = None
    """What pods will probably use until they are measured."""
    load: Given[Load] = None
    """How the load of nodes is counted."""
    filters: list[SchedulingFilter] = Field(default=[], max_length=200)
    """Conditions on nodes, cheap ones first."""
    scores: list[SchedulingScore] = Field(default=[], max_length=200)
    """Views of which nodes are better."""
    ties: Annotated[
        Value,
        Slot(
            STRING,
            "Which of several best nodes is taken: the `First` in order of names, or a `Random` one.",
            choices=("First", "Random"),
            default="Random",
            roots=_POD,
        ),
    ] = None
    sampling: Annotated[
        Value,
        Slot(
            PERCENT,
            "Share of the nodes that must be found feasible before the search ends, at least 100 nodes; 0% adapts "
            "the share to the number of nodes.",
            default="100%",
            roots=_POD,
        ),
    ] = None
    preferred_nodes: Annotated[
        Value,
        Slot(
            INT,
            "How many of the nodes that a pod's scheduling hint prefers are tried in turn: the first that no filter refuses is taken, "
            "whatever scores say. Where all are refused, scores decide; 0 for always.",
            default=100,
            minimum=0,
            roots=_POD,
        ),
    ] = None
    preemption: Given[Preemption] = None
    """Whether room is made by evicting others."""
    diagnosis: Given[Diagnosis] = None
    """What is found out about pods that wait."""
