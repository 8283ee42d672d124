"""Decisions about a pod or a node, as programs made once."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.row import RowProgram

Records = Mapping[str, Any]
"""The records of a decision by root. One that is absent counts as empty: all its facts are missing."""

NO_FACTS: Final[Mapping[str, Any]] = {}
"""The record that stands for one that is absent. Not to be written."""

_NOTHING: Final = repeat(NO_FACTS)


@dataclass(frozen=True, slots=True)
class PreparedDecision:
    """A decision, ready to be asked. `facts` are what it reads, as (root, path).

    Most decisions are constants of a revision; those have no program, and cost nothing to ask.
    """

    program: RowProgram | None
    roots: tuple[str, ...]
    constant: Any
    facts: frozenset[tuple[str, str]]

    def value(self, records: Records) -> Any:
        """The decision's value on these records; None when no rule matches. Raises CelError."""
        if self.program is None:
            return self.constant
        return self.program.call(*map(records.get, self.roots, _NOTHING))


def prepared(graph: RuleGraph, decision: str) -> PreparedDecision:
    """A decision of a graph. Raises UnknownDecision."""
    roots, expression = graph.decision(decision).roots, graph.expression(decision)
    if isinstance(expression, ir.Const):
        return PreparedDecision(None, roots, expression.value, frozenset())
    return PreparedDecision(graph.program(decision), roots, None, facts_of(expression))
