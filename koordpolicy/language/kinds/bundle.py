"""The root of a repository, shared functions and constants, and tests."""

from typing import Annotated, Any

from pydantic import Field

from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.kinds.base import Spec
from koordpolicy.language.kinds.fields import (
    AnyText,
    DNSName,
    Flag,
    FreeObject,
    Given,
    Glob,
    Identifier,
    PolicyModel,
    Text,
    Whole,
)
from koordpolicy.language.kinds.parameters import TYPE_NAME, Constant, ParameterValue
from koordpolicy.language.kinds.slots import Cel


class Budgets(PolicyModel):
    """What decisions may cost."""

    cost_per_decision: Annotated[int, Whole(1, 1_000_000_000)] = DEFAULT_BUDGET
    """Highest cost of one decision, as estimated and whenever it is made, in units of 50 ns at most. The operators'
    `--max-cost-per-decision` is the highest there is."""
    containers_per_pod: Annotated[int, Whole(1, 100_000)] = 1000
    """Most containers of a pod that is admitted: each costs time for which other reviews wait."""
    containers_per_review: Annotated[int, Whole(1000, 1_000_000_000)] = 100_000
    """Most containers that the profiles of one pod look at together, each at the pod's and 30 more; a quarter of a second at 100,000."""


class TestOptions(PolicyModel):
    """How `koordpolicy test` treats the bundle."""

    required: Annotated[bool, Flag()] = True
    """Whether a failing test keeps the revision from becoming active."""
    minimum_coverage: Annotated[int, Whole(0, 100)] = 0
    """Share of the branches of expressions, in percent, that tests must take."""


class ExceptionOptions(PolicyModel):
    """How `koordpolicy check` speaks of the bundle's PolicyExceptions."""

    warn_days: Annotated[int, Whole(0, 100_000)] = 14
    """How many days before its end an exception is warned of."""


class PolicyBundleSpec(Spec):
    """The root of a policy repository: what it extends and what it reads."""

    extends: list[DNSName] = Field(default=[], max_length=20)
    """Built-in packs below this bundle; `koordinator` is the one shipped. Later packs lie above earlier ones."""
    include: list[Glob] = Field(default=["**/*.yaml", "**/*.yml"], max_length=100)
    """Patterns of the files that belong to the bundle, relative to this file."""
    exclude: list[Glob] = Field(default=[], max_length=100)
    """Patterns of files that do not belong to it, although included."""
    budgets: Given[Budgets] = None
    """Limits of what decisions may cost."""
    tests: Given[TestOptions] = None
    """How tests are treated."""
    exceptions: Given[ExceptionOptions] = None
    """How exceptions are treated."""


class FunctionParameter(PolicyModel):
    """A parameter of a library function."""

    name: Identifier
    """Name of the parameter."""
    type: Annotated[str, TYPE_NAME]
    """Its type, such as `cpu` or `node`."""


class LibraryFunction(PolicyModel):
    """A function that expressions of the bundle may call."""

    name: Identifier
    """Name of the function."""
    parameters: list[FunctionParameter] = Field(default=[], max_length=20)
    """Parameters in order."""
    result: Given[Annotated[str, TYPE_NAME]] = None
    """Type of the result; found from the expression when absent."""
    expression: Annotated[
        str, Cel("What the function gives; its parameters are names here.", type=None, roots=frozenset())
    ]
    description: AnyText = ""
    """What it means."""


class LibrarySpec(Spec):
    """Constants and functions shared by all documents of a bundle."""

    constants: dict[Identifier, Constant] = Field(default_factory=dict)
    """Values that expressions read as `constants.<name>`."""
    functions: list[LibraryFunction] = Field(default=[], max_length=500)
    """Functions that expressions call by name."""


class PolicyCase(PolicyModel):
    """One input and what is decided on it."""

    name: Annotated[str, Text("a name", least=1, most=200)]
    """What the case shows, in a phrase."""
    given: Annotated[dict[str, Any], FreeObject()] = Field(default_factory=dict)
    """Facts by root, nested: `{node: {capacity: {cpu: 16}}}`; quantities as in any policy."""
    parameters: dict[Identifier, ParameterValue] = Field(default_factory=dict)
    """Parameters that hold in this case."""
    expect: Annotated[dict[str, Any], FreeObject()]
    """Answer by decision, such as `Overcommit/batch.cpu: 4`; `{error: text}` for a decision that fails."""
    tolerance: Annotated[dict[str, Any], FreeObject()] = Field(default_factory=dict)
    """Permitted difference by decision; exact without one."""


class PolicyTestSpec(Spec):
    """Inputs and the decisions expected on them, run by `koordpolicy test`."""

    given: Annotated[dict[str, Any], FreeObject()] = Field(default_factory=dict)
    """Facts that all cases share; a case's own are laid over them."""
    cases: list[PolicyCase] = Field(min_length=1, max_length=10_000)
    """The cases."""
