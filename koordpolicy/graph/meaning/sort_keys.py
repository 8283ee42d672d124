"""Sort keys that put nothing in order: texts where an expression was meant, the same value for all, what has no order."""

import json
import re
from typing import Final

from koordpolicy.diagnostics import Fix
from koordpolicy.graph.references import walk
from koordpolicy.graph.state import Draft, State
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.kinds import Combine
from koordpolicy.language.kinds.slots import Expression

_ORDERED: Final = frozenset(
    (
        "int",
        "uint",
        "double",
        "string",
        "bool",
        "dyn",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
    )
)
_PLAIN: Final = re.compile(r"[\w(][\w.()+*/ -]*|-[\w(][\w.()+*/ -]*")
"""Expressions that YAML takes without quotes."""


def sort_keys(state: State) -> None:
    """KP107 for sort keys of the bundle that are alike for everything, or that nothing can be put in order by."""
    for draft in state.drafts:
        if draft.slot.combine is not Combine.ORDER or not isinstance(draft.raw, tuple):
            continue
        if draft.unit.layer_name != state.own.name:
            continue
        decision = state.decisions.get(draft.key)
        value = next(
            (
                rule.value
                for rule in (() if decision is None else decision.rules)
                if (rule.layer, rule.document) == (draft.unit.layer_name, draft.unit.id)
            ),
            None,
        )
        for at, raw in enumerate(draft.raw):
            if not isinstance(raw, Expression):
                _literal(state, draft, at, raw)
            elif isinstance(value, ir.MakeList):
                _expression(state, draft, at, state.resolve_constants(value.elements[at]))


def _literal(state: State, draft: Draft, at: int, raw: object) -> None:
    """A literal is the same for everything, whatever it says."""
    meant = isinstance(raw, str) and _names_a_root(state, draft, raw)
    shown = raw if isinstance(raw, str) else json.dumps(raw)
    place = draft.unit.document.positions.value((*draft.path, at))
    what = "the text" if isinstance(raw, str) else "the value"
    written = (
        "{cel: " + (str(raw) if _PLAIN.fullmatch(str(raw)) else json.dumps(raw, ensure_ascii=False)) + "}"
    )
    state.found.add(
        "KP107",
        place,
        f"this sort key of `{draft.key}` is {what} `{shown}`, the same for everything",
        help=f"an expression stands in braces: `{written}`"
        if meant
        else 'write an expression, such as `{cel: "-pod.?priority.orValue(0)"}`, or remove it',
        fix=Fix(f"write `{written}`", place, written, safe=True) if meant else None,
    )


def _names_a_root(state: State, draft: Draft, text: str) -> bool:
    """Whether a text is an expression that reads a record of the decision."""
    decision = state.decisions.get(draft.key)
    try:
        tree = parse(text)
    except SyntaxProblem:
        return False
    named = {node.name for node in walk(tree) if isinstance(node, ast.Ident)}
    return decision is not None and bool(named & {*decision.roots, "variables"})


def _expression(state: State, draft: Draft, at: int, node: ir.Node) -> None:
    place = draft.unit.document.positions.value((*draft.path, at))
    if isinstance(node, ir.Const):
        problem, help = "is the same for everything", "read what tells one from another, or remove it"
    elif node.type.name == "optional_type":
        problem, help = "may be no value", "say what counts where there is none: `.orValue(0)`"
    elif node.type.name not in _ORDERED:
        problem, help = (
            f"is a {node.type.record or node.type.name}, which has no order",
            "name one of its values",
        )
    else:
        return
    state.found.add("KP107", place, f"this sort key of `{draft.key}` {problem}", help=help)
