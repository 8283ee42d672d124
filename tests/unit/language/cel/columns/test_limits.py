"""Whatever the parser accepts, all else takes: wide chains, and every construct nested as deeply as the parser permits.

Texts grow until the parser refuses them; what it still took is checked, folded, priced, spelt, lowered in both ways
and asked. Graphs put documents together beyond what a text can say, so chains of nodes are tried as well.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.cost import estimate
from koordpolicy.language.cel.defects import SEEN
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower.columns import compile_columns, emitter
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import MAX_SOURCE, SyntaxProblem
from koordpolicy.language.cel.types import BOOL, INT, STRING, list_of, map_of, optional_of
from koordpolicy.language.cel.unparse import unparse
from tests.unit.language.cel.columns.support import ROOT_NAMES, assert_same, table_of, typed

ROWS: tuple[dict[str, Any], ...] = (
    {"name": "a", "labels": {"a": "x"}, "capacity.cpu": 1, "unschedulable": True, "pods": [{"known": True}]},
    *({"name": f"x{at}", "capacity.cpu": at} for at in range(8)),
)
POD: dict[str, Any] = {"name": "q", "containers": [{"name": "z"}]}

WIDE: dict[str, tuple[str, str, str]] = {
    "and": ("", " && ", 'node.name != "x{0}"'),
    "or": ("", " || ", 'node.name == "y{0}"'),
    "or of what is missing": ("", " || ", 'node.labels["x{0}"] == "x{0}"'),
    "or of any type": ("", " || ", 'dyn(node.labels["x{0}"]) == {0}'),
    "plus": ("", " + ", "number(node.capacity.cpu)"),
    "plus constants": ("", " + ", "{0}"),
    "texts": ("", " + ", "node.name"),
    "conditionals": ("0", "", 'node.name == "x{0}" ? {0} : '),
    "list": ("node.name in [{}]", ", ", 'node.labels["a{0}"]'),
    "constants": ("node.name in [{}]", ", ", '"a{0}"'),
    "map": ('{{{}}}["a0"] == "a"', ", ", '"a{0}": node.name'),
    "arguments": ("max({})", ", ", "number(node.capacity.cpu) + {0}"),
    "methods": ("node.name", "", ".upperAscii()"),
    "ors": ('node.labels.?a{}.orValue("x")', "", ".or(node.labels.?b{0})"),
    "fields": ("dyn(node.labels){} == 1", "", ".a"),
    "optional fields": ("dyn(node.labels){}.orValue(1) == 1", "", ".?a"),
    "indices": ("dyn(node.labels){} == 1", "", '["a"]'),
    "nots": ("{}node.unschedulable", "", "!"),
    "minuses": ("{}(number(node.capacity.cpu))", "", "-"),
}
"""Around the parts, between them, and a part by number. Without a place in it, what is state comes last."""

DEEP: dict[str, tuple[str, str, str]] = {
    "parentheses": ("(", "node.name", ")"),
    "lists": ("[", "node.name", "]"),
    "maps": ('{{"a": ', "node.name", "}}"),
    "functions": ("max(", "number(node.capacity.cpu)", ", {0})"),
    "binds": ("cel.bind(v{0}, number(node.capacity.cpu) + {0}, v{0} * 2 + ", "1", ")"),
    "macros over facts": ("node.pods.all(p{0}, p{0}.known && ", "true", ")"),
    "macros over the pod": ('pod.containers.exists(p{0}, p{0}.name == "a" || ', 'node.name == "x1"', ")"),
    "macros over constants": ("[1].map(p{0}, ", "node.name", ")"),
    "optionals": ("node.labels.?a.optMap(p{0}, ", "node.name", ").orValue(\"x\")"),
    "orValue": ("node.labels.?a{0}.orValue(", '"x"', ")"),
    "logic": ('(node.name == "x{0}" || (node.name != "y{0}" && ', "true", "))"),
    "arithmetic": ("(1 + 2 * ", "number(node.capacity.cpu)", ")"),
    "then": ('(node.name != "x{0}" ? ', "0", " : {0})"),
    "conditions": ("(", "true", ' ? node.name == "x{0}" : true)'),
    "equality": ("(node.unschedulable == ", "true", ")"),
}  # fmt: skip


def wide(name: str, count: int) -> str:
    state, between, part = WIDE[name]
    parts = between.join(part.format(at) for at in range(count))
    return (
        state.format(parts) if "{}" in state else parts + state if name == "conditionals" else state + parts
    )


def deep(name: str, count: int) -> str:
    before, inside, after = DEEP[name]
    heads = "".join(before.format(at) for at in range(count))
    return heads + inside + "".join(after.format(at) for at in reversed(range(count)))


def longest(make: Callable[[int], str]) -> str:
    """The longest text of a family that the parser accepts."""

    def accepted(count: int) -> bool:
        try:
            parse(make(count))
        except SyntaxProblem:
            return False
        return True

    low, high = 1, 2
    while accepted(high):
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return make(low)


@pytest.mark.parametrize(
    ("write", "name"), [*((wide, name) for name in WIDE), *((deep, name) for name in DEEP)]
)
def test_what_the_parser_accepts_all_else_takes(write: Callable[[str, int], str], name: str) -> None:
    text = longest(lambda count: write(name, count))
    seen = sum(SEEN.values())
    spelt = unparse(parse(text))
    if len(spelt) <= MAX_SOURCE:
        assert unparse(parse(spelt)) == spelt
    estimate(fold(typed(text)))
    assert_same(text, table_of(ROWS), POD)
    assert sum(SEEN.values()) == seen


OPTIONAL = optional_of(STRING)


def conditional(kind: Any, value: Callable[[int], str]) -> Callable[[ir.Node, int], ir.Node]:
    def step(node: ir.Node, at: int) -> ir.Node:
        test = typed(f'node.name == "x{at}"')
        return ir.Cond(kind, test, replace(typed(value(at)), type=kind), replace(node, type=kind))

    return step


def added(node: ir.Node, at: int) -> ir.Node:
    return ir.Call(INT, "_+_(int,int)", (node, typed(f"number(node.capacity.cpu) * {at}")))


def mixed(node: ir.Node, at: int) -> ir.Node:
    return (ir.And if at % 2 else ir.Or)(BOOL, (typed(f'node.name == "x{at}"'), node))


CHAINS: dict[str, tuple[str, Callable[[ir.Node, int], ir.Node], Callable[[ir.Node], ir.Node]]] = {
    "rules": ("0", conditional(INT, str), lambda node: node),
    "optional rules": (
        "optional.none()", conditional(OPTIONAL, lambda at: f'optional.of("{at}")'),
        lambda node: ir.OrElse(STRING, node, typed('"z"'), True),
    ),
    "rules of lists": (
        '["a"]', conditional(list_of(STRING), lambda at: f'["{at}"]'),
        lambda node: ir.Call(INT, "size(list(A))", (node,)),
    ),
    "rules of maps": (
        '{"a": 1}', conditional(map_of(STRING, INT), lambda at: f'{{"a": {at}}}'),
        lambda node: ir.Index(INT, node, typed('"a"')),
    ),
    "sums": ("number(node.capacity.cpu)", added, lambda node: node),
    "logic": ("node.unschedulable", mixed, lambda node: node),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_chains_beyond_what_a_text_can_say(name: str) -> None:
    leaf, step, state = CHAINS[name]
    node = typed(leaf)
    for at in range(300):
        node = step(node, at)
    node, seen = state(node), sum(SEEN.values())
    estimate(fold(node))
    assert_same(
        name, table_of(ROWS), POD, (compile_columns(node, "node", ROOT_NAMES), compile_row(ROOT_NAMES, node))
    )
    assert sum(SEEN.values()) == seen


@pytest.mark.parametrize(
    ("logic", "text"),
    [(ir.And, 'node.name != "x{0}"'), (ir.Or, 'node.labels["a{0}"] == "x"')],
    ids=["and", "or"],
)
@pytest.mark.soak
def test_ten_thousand_clauses(logic: type[ir.And] | type[ir.Or], text: str) -> None:
    node = logic(BOOL, tuple(typed(text.format(at)) for at in range(10, 10_010)))
    programs = compile_columns(node, "node", ROOT_NAMES), compile_row(ROOT_NAMES, node)
    assert_same("many", table_of(ROWS[:2]), POD, programs)


def test_what_no_limit_prevents_is_left_to_row_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "_MAX_LEVELS", 10_000)
    node = typed("0")
    for at in range(400):
        node = conditional(INT, str)(node, at)
    program = compile_columns(node, "node", ROOT_NAMES)
    assert {piece.reason for piece in program.fallback} == {"too large for columns"}
    assert_same("deep", table_of(ROWS), POD, (program, compile_row(ROOT_NAMES, node)))
