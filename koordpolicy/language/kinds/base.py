"""What the specs of all kinds share: matches, variables, parameters, precedence."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from koordpolicy.language.kinds.fields import (
    AnyText,
    Given,
    Identifier,
    LabelKey,
    LabelValue,
    PolicyModel,
    Text,
    Whole,
)
from koordpolicy.language.kinds.literals import LiteralProblem
from koordpolicy.language.kinds.parameters import ParameterValue
from koordpolicy.language.kinds.slots import Cel, refusal

Precedence = Annotated[int, Whole(-1_000_000, 1_000_000)]


_WITH_VALUES = ("In", "NotIn")
_VALUES_BY_OPERATOR: JsonDict = {
    "if": {"properties": {"operator": {"enum": list(_WITH_VALUES)}}},
    "then": {"required": ["values"], "properties": {"values": {"minItems": 1}}},
    "else": {"properties": {"values": {"maxItems": 0}}},
}


class Requirement(PolicyModel):
    """One condition of a label selector."""

    model_config = ConfigDict(json_schema_extra=_VALUES_BY_OPERATOR)

    key: LabelKey
    """Key of the label."""
    operator: Annotated[str, Text("an operator", choices=(*_WITH_VALUES, "Exists", "DoesNotExist"))]
    """How the label is compared."""
    values: list[LabelValue] = Field(default=[], max_length=1000)
    """Values for `In` and `NotIn`; none for the others."""

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        if self.operator in _WITH_VALUES and not self.values:
            problem = LiteralProblem(f"`{self.operator}` needs `values`", "name at least one value")
            raise refusal(problem, "KP105")
        if self.operator not in _WITH_VALUES and self.values:
            problem = LiteralProblem(f"`{self.operator}` takes no values", "remove them", path=("values",))
            raise refusal(problem)
        return self


class LabelSelector(PolicyModel):
    """Labels that must be there. All conditions must hold; an empty selector takes everything."""

    match_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels with exactly these values."""
    match_expressions: list[Requirement] = Field(default=[], max_length=100)
    """Further conditions."""


class Condition(PolicyModel):
    """When an element of a list applies."""

    condition: Annotated[str | None, Cel("When it applies: an expression that gives true or false.")] = None


class Match(PolicyModel):
    """What a document applies to. All parts must hold."""

    nodes: Given[LabelSelector] = None
    """Selects nodes by their labels."""
    namespaces: Given[LabelSelector] = None
    """Selects namespaces by their labels."""
    pods: Given[LabelSelector] = None
    """Selects pods by their labels."""
    condition: Annotated[
        str | None, Cel("A further condition, free but slower than a selector: true or false.")
    ] = None


class Variable(PolicyModel):
    """A name for an expression, usable as `variables.<name>` in the document."""

    name: Identifier
    """Name of the variable."""
    expression: Annotated[str, Cel("The expression that the name stands for.", type=None)]
    description: AnyText = ""
    """What it means."""


class Spec(PolicyModel):
    """Base of the `spec` of every kind."""


class Declaration(Spec):
    """Base of kinds that say what there is (classes, bands) rather than what is done when."""

    precedence: Precedence = 0
    """Which document wins where several say the same field: the higher one."""


class PolicySpec(Spec):
    """Base of kinds that contribute rules to decisions."""

    match: Given[Match] = None
    """What the document applies to; everything when absent."""
    precedence: Precedence = 0
    """Which document wins where several apply: the higher one."""
    parameters: dict[Identifier, ParameterValue] = Field(default_factory=dict)
    """Values that expressions read as `parameters.<name>` and that other documents may set."""
    variables: list[Variable] = Field(default=[], max_length=200)
    """Names for expressions, in any order."""
