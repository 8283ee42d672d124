"""Strategies of Descheduling profiles, as checks of meaning ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from koordpolicy.graph.meaning.constants import reached_constants
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir

PAIRS: Final = (("low", "high"), ("prodLow", "prodHigh"))
"""Fields of `load` that belong together."""

_FIELD: Final = "strategies["


@dataclass(frozen=True, slots=True)
class DeschedulingStrategy:
    """One strategy of a profile. `own` are its rules that the bundle itself says, in the order of the text."""

    state: State
    target: str
    name: str
    own: Sequence[Rule]

    def decision(self, field: str) -> Decision | None:
        """What is said of one of its fields."""
        kind, _, subject = self.target.partition("/")
        return self.state.decisions.get(DecisionKey(kind, subject, f"strategies[{self.name}].{field}"))

    def said(self, field: str) -> tuple[Rule, object] | None:
        """The constant that holds for a field, and who says it; None where none does, or it depends."""
        decision = self.decision(field)
        found = [] if decision is None else reached_constants(self.state, decision)
        return found[0] if found else None

    def value(self, field: str) -> ir.Node | None:
        """The expression of a field, parameters replaced; None where nothing is said."""
        decision = self.decision(field)
        return None if decision is None else self.state.expressions.value(decision)

    @property
    def seen(self) -> list[ir.Node]:
        """What must be true of a node for the strategy to look at it."""
        kind, _, subject = self.target.partition("/")
        whole = self.state.decisions.get(DecisionKey(kind, subject, "nodes"))
        said = [] if whole is None else [self.state.expressions.value(whole)]
        own = self.value("nodes")
        return said if own is None else [*said, own]

    def always(self, field: str, *, default: bool) -> bool:
        """Whether a field is true whatever it is asked of."""
        value = self.value(field)
        return default if value is None else isinstance(value, ir.Const) and value.value is True

    def holds(self, field: str, *, default: bool) -> bool:
        """Whether a field is true; so, too, where that depends."""
        if self.decision(field) is None:
            return default
        said = self.said(field)
        return said is None or said[1] is True

    @property
    def enabled(self) -> bool:
        """Whether it may be in use, and its profile."""
        kind, _, subject = self.target.partition("/")
        whole = self.state.decisions.get(DecisionKey(kind, subject, "enabled"))
        found = [] if whole is None else reached_constants(self.state, whole)
        return self.holds("enabled", default=True) and not (found and found[0][1] is False)


def strategy_in(field: str) -> str | None:
    """The name of the strategy that a decision's field belongs to."""
    if not field.startswith(_FIELD):
        return None
    return field.removeprefix(_FIELD).partition("]")[0]


def shares_of(strategy: DeschedulingStrategy, field: str) -> tuple[Rule, Mapping[str, float]] | None:
    """The shares by resource, in percent, that a field says whatever the node, with the rule; None where that depends."""
    said = strategy.said(field)
    return (said[0], said[1]) if said is not None and isinstance(said[1], Mapping) else None


def may_deviate(strategy: DeschedulingStrategy) -> bool:
    """Whether thresholds of a strategy may be distances from a mean."""
    return strategy.holds("load.deviation", default=False)


def are_apart(state: State, tests: Sequence[ir.Node]) -> bool:
    """Whether it is proved that conditions never hold together."""
    # Loaded where something is asked alone, as for rules that conflict.
    from koordpolicy.graph.proof.examples import texts_named_by  # noqa: PLC0415
    from koordpolicy.graph.proof.together import held_together  # noqa: PLC0415

    if not tests:
        return False
    named = texts_named_by(state.classes.resolver)
    found, _ = state.cache.get(("together", *tests, *named.items()), partial(held_together, tests, named))
    return found == "apart"
