"""How the scheduler orders pods, and how it chooses a node."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import (
    AMOUNT,
    BOOL,
    DOUBLE,
    DYN,
    INT,
    PERCENT,
    STRING,
    map_of,
)
from koordpolicy.language.kinds.base import Condition, PolicySpec
from koordpolicy.language.kinds.fields import DNSName, Given, Identifier, ItemName, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_POD = frozenset({"pod", "namespaceObject", "cluster", "now"})
_NODE_AND_POD = frozenset({"pod", "node", "now"})
_NOWHERE: frozenset[str] = frozenset()


class Queue(PolicyModel):
    """In which order pods are taken from the queue."""

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


class Estimator(PolicyModel):
    """What a pod will probably use, until it is measured."""

    request: Annotated[
        Value, Slot(map_of(STRING, AMOUNT), "Estimated use by resource name.", roots=frozenset({"pod"}))
    ] = None
    active: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the estimate of a pod on the node still counts beside what is measured.",
            roots=_NODE_AND_POD,
        ),
    ] = None


class SchedulingFilter(PolicyModel):
    """One condition on nodes: a mechanism with parameters, an expression, or both."""

    name: ItemName
    """Name of the filter, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the filter is in use.", default=True, roots=_POD)] = None
    mechanism: Annotated[Value, Slot(STRING, "Built-in algorithm that filters.", roots=_NOWHERE)] = None
    parameters: dict[Identifier, Annotated[Value, Slot(DYN, "Parameter of the mechanism.")]] = Field(
        default_factory=dict
    )
    """Parameters of the mechanism."""
    match: Given[Condition] = None
    """When the filter applies; always when absent."""
    require: Annotated[
        Value, Slot(BOOL, "What must be true of a node for the pod to go there.", combine=Combine.ALL)
    ] = None
    reason: Annotated[Value, Slot(STRING, "Why a node is refused, for events and explanations.")] = None


class SchedulingScore(PolicyModel):
    """One view of which nodes are better: a mechanism with parameters, or an expression."""

    name: ItemName
    """Name of the score, by which other documents refer to it."""
    enabled: Annotated[Value, Slot(BOOL, "Whether the score is in use.", default=True, roots=_POD)] = None
    weight: Annotated[
        Value, Slot(INT, "Weight of the score in the sum.", roots=_POD, minimum=0, maximum=1_000_000)
    ] = None
    mechanism: Annotated[Value, Slot(STRING, "Built-in algorithm that scores.", roots=_NOWHERE)] = None
    parameters: dict[Identifier, Annotated[Value, Slot(DYN, "Parameter of the mechanism.")]] = Field(
        default_factory=dict
    )
    """Parameters of the mechanism."""
    match: Given[Condition] = None
    """When the score applies; always when absent."""
    value: Annotated[
        Value, Slot(DOUBLE, "How good a node is, 0 to 100.", combine=Combine.WEIGHTED, also=(INT,))
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


class Preemption(PolicyModel):
    """Whether room is made by evicting others."""

    policy: Annotated[
        Value,
        Slot(
            STRING,
            "`Never`, or `PreemptLowerPriority` as far as the pod's own policy permits.",
            choices=("Never", "PreemptLowerPriority"),
            roots=_POD,
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
            roots=_POD,
        ),
    ] = None
    sampling: Annotated[
        Value,
        Slot(PERCENT, "Share of the nodes that must be found feasible before the search ends.", roots=_POD),
    ] = None
    preemption: Given[Preemption] = None
    """Whether room is made by evicting others."""
