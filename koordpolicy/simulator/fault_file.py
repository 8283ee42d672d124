"""The file of `--faults` as a model, of which its JSON Schema is made, too (`schemas/faults.json`)."""

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from koordpolicy.language.kinds.fields import Given, LabelKey, LabelValue, PolicyModel, Text, Whole
from koordpolicy.language.kinds.literals import LiteralProblem
from koordpolicy.language.kinds.slots import refusal

_UNITS: Final = (
    r"(?=[0-9])(?:[0-9]{1,6}(?:\.[0-9]{1,9})?h)?(?:[0-9]{1,7}(?:\.[0-9]{1,9})?m)?"
    r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?s)?(?:[0-9]{1,12}(?:\.[0-9]{1,9})?ms)?"
)
_SOME: Final = r"(?=.*[1-9])"
"""Of more than nothing."""
_SUCH_AS: Final = "write one such as `90s`, `10m` or `1h30m`"

Moment = Annotated[str, Text("a duration", _UNITS, _SUCH_AS, least=1, most=64)]
Length = Annotated[str, Text("a duration of more than nothing", _SOME + _UNITS, _SUCH_AS, least=1, most=64)]
Share = Annotated[
    str,
    Text(
        "a percentage up to 100%",
        _SOME + r"(?:100(?:\.0{1,9})?|[0-9]{1,2}(?:\.[0-9]{1,9})?)%",
        "write one such as `30%`",
        least=2,
        most=16,
    ),
]
NodeName = Annotated[str, Text("the name of a node", least=1, most=253)]


class StruckNodes(PolicyModel):
    """Which nodes a fault strikes: all that fit, or so many of them."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    names: Given[Annotated[list[NodeName], Field(min_length=1, max_length=100_000)]] = None
    """Only nodes with these names."""
    match_labels: Given[dict[LabelKey, LabelValue]] = None
    """Only nodes with these labels."""
    count: Given[Annotated[int, Whole(1, 100_000)]] = None
    """So many of those that fit, drawn by the seed; all of them when absent."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise refusal(LiteralProblem("it names no nodes", "write such as `{count: 2}`"))
        return self


class NodeLoss(PolicyModel):
    """Nodes stand still and say nothing; the node lifecycle controller deletes their pods, as on a real cluster."""

    at: Moment
    """When it begins, counted from the beginning of the simulation."""
    for_: Given[Length] = None
    """How long it lasts; the nodes do not return when absent."""
    nodes: StruckNodes
    """The nodes that are lost."""


class MetricGap(PolicyModel):
    """Agents are silent and do nothing, while pods run on."""

    at: Moment
    """When it begins, counted from the beginning of the simulation."""
    for_: Length
    """How long it lasts."""
    nodes: StruckNodes
    """The nodes whose agents are silent."""


class LateAgents(PolicyModel):
    """Agents measure, report and act later than they should."""

    at: Moment
    """When it begins, counted from the beginning of the simulation."""
    for_: Length
    """How long it lasts."""
    by: Length
    """How much later they act each time; less than the interval of reports (`--interval`)."""
    nodes: StruckNodes
    """The nodes whose agents are late."""


class LateStart(PolicyModel):
    """Agents begin some time after the nodes do, which nobody has heard of until then."""

    by: Length
    """How long after the beginning of the simulation they begin."""
    nodes: StruckNodes
    """The nodes whose agents begin late."""


class APIErrors(PolicyModel):
    """The API server refuses writes of the scheduler, the descheduler and the manager about pods and nodes."""

    at: Moment
    """When it begins, counted from the beginning of the simulation."""
    for_: Length
    """How long it lasts."""
    share: Share = "100%"
    """Share of the writes that are refused."""
    code: Literal[409, 429, 500] = 500
    """What it answers: a conflict, too many requests, or an error of its own."""


class Fault(PolicyModel):
    """Something that goes wrong: just one of these."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    node_loss: Given[NodeLoss] = None
    """Nodes are lost."""
    metric_gap: Given[MetricGap] = None
    """Reports of nodes stop."""
    late_agents: Given[LateAgents] = None
    """Agents act late."""
    late_start: Given[LateStart] = None
    """Agents begin late."""
    api_errors: Given[APIErrors] = None
    """Writes are refused."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            known = ", ".join(f"`{field.alias}`" for field in type(self).model_fields.values())
            raise refusal(
                LiteralProblem("a fault is just one thing", f"write each as an element of its own: {known}")
            )
        return self


class FaultFile(PolicyModel):
    """What goes wrong in a simulation, for `koordpolicy simulate --faults FILE`."""

    faults: Annotated[list[Fault], Field(min_length=1, max_length=1000)]
    """All faults, in any order; they may overlap."""
