"""How a revision goes live: step by step, beside the one before, and back when it does not do well."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import BOOL, DURATION, INT, PERCENT, STRING
from koordpolicy.language.kinds.base import Condition, LabelSelector, PolicySpec
from koordpolicy.language.kinds.fields import Given, ItemName, PolicyModel, Text
from koordpolicy.language.kinds.slots import Slot, Value

_ROOTS = frozenset({"rollout", "now"})
_KIND_NAME = Text("the name of a kind", "[A-Z][A-Za-z]*", "kinds are such as `CPUSuppress`", least=1, most=63)


class Shadow(PolicyModel):
    """How much the new revision is asked beside the old one; of the scheduler whole placements are compared."""

    sample: Annotated[
        Value,
        Slot(PERCENT, "Share of the decisions on which both are asked; one of them acts.", default="100%"),
    ] = None
    keep: Annotated[
        Value,
        Slot(
            INT,
            "How many differing answers each process keeps with their facts, for people to look at.",
            minimum=0,
            maximum=1000,
            default=20,
        ),
    ] = None


class Canary(PolicyModel):
    """What the new revision decides about, besides what it does since earlier steps: nodes, and which pods its SchedulingProfile places.

    A share alone is one of all nodes and one of all pods. Where only one of the two is selected, the step lets none of the
    other go ahead. Queue, back-off, classes and estimates of pods are the old revision's until the last step ends, as is all
    that an extender answers.
    """

    nodes: Given[LabelSelector] = None
    """Only nodes with these labels."""
    pods: Given[LabelSelector] = None
    """Only pods with these labels."""
    share: Annotated[
        Value,
        Slot(
            PERCENT,
            "Share of these nodes, and of these pods. A place is found from the name: who is among 10 % is among 20 %.",
        ),
    ] = None


class Step(PolicyModel):
    """One step. Without `canary` the new revision decides about no further nodes and pods."""

    name: ItemName
    """Name of the step."""
    shadow: Given[Shadow] = None
    """The new revision is asked beside the old one, and differences are counted."""
    canary: Given[Canary] = None
    """The new revision decides about some nodes and pods."""
    hold: Annotated[Value, Slot(DURATION, "How long the step lasts, at least.")] = None
    until_resumed: Annotated[
        Value,
        Slot(BOOL, "Whether it then waits until somebody says `koordpolicy rollout resume`.", default=False),
    ] = None


class Guard(PolicyModel):
    """What must hold for the rollout to go on."""

    name: ItemName
    """Name of the guard."""
    match: Given[Condition] = None
    """When it counts; always when absent."""
    require: Annotated[
        Value,
        Slot(BOOL, "What must hold. While it cannot be told, for want of facts, the step is not left."),
    ] = None
    reason: Annotated[Value, Slot(STRING, "What is told where it does not hold.")] = None
    patience: Annotated[
        Value, Slot(DURATION, "How long it may fail before something is done.", default="0s", roots=_ROOTS)
    ] = None
    known_within: Annotated[
        Value,
        Slot(
            DURATION,
            "How long in a step it may be that it cannot be told; then that counts as a failure. As long as it takes where nothing "
            "is said.",
            roots=_ROOTS,
        ),
    ] = None
    action: Annotated[
        Value,
        Slot(
            STRING,
            "`Abort` returns to the old revision, `Pause` waits for a person.",
            choices=("Abort", "Pause"),
            default="Abort",
            roots=_ROOTS,
        ),
    ] = None


class RolloutSpec(PolicySpec):
    """How the next revision goes live. Without steps it does so at once, everywhere."""

    kinds: list[Annotated[str, _KIND_NAME]] = Field(default=[], max_length=100)
    """Kinds whose changes go step by step; a revision that changes no other goes live at once. All when empty."""
    steps: list[Step] = Field(default=[], max_length=50)
    """Steps in order. After the last one the new revision decides everywhere."""
    guards: list[Guard] = Field(default=[], max_length=50)
    """What must hold at every step."""
    every: Annotated[
        Value, Slot(DURATION, "How often the guards are looked at and the steps advanced.", default="10s")
    ] = None
