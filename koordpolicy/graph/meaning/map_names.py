"""Names in maps that an expression makes, where its slot takes some names only."""

import re
from collections.abc import Iterator

from koordpolicy.graph.analysis.possible import PossibleValue
from koordpolicy.graph.meaning.constants import place_of
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.kinds.literals import name_problem


def map_names(state: State) -> None:
    """KP107 for a name that an expression writes down and its slot does not take."""
    for draft in state.drafts:
        slot, decision = draft.slot, state.decisions.get(draft.key)
        if not slot.names or decision is None:
            continue
        for rule in decision.rules:
            for node, name in _names(rule.value):
                if re.search(slot.names, name):
                    continue
                problem = name_problem(name, slot.named)
                span = place_of(state, PossibleValue(node, rule, known=True, value=name)).span
                state.found.add("KP107", span, problem.message, help=problem.help)


def _names(node: ir.Node) -> Iterator[tuple[ir.Node, str]]:
    """The names of the maps that an expression may give."""
    match node:
        case ir.Cast(operand=operand):
            yield from _names(operand)
        case ir.Cond(then=then, otherwise=otherwise):
            yield from _names(then)
            yield from _names(otherwise)
        case ir.MakeMap(entries=entries):
            for key, _ in entries:
                if isinstance(key, ir.Const) and isinstance(key.value, str):
                    yield key, key.value
        case ir.Const(value=dict() as whole):
            for name in whole:
                if isinstance(name, str):
                    yield node, name
