"""Expressions over nodes and a pod, and the comparison of column programs with row programs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import check
from koordpolicy.language.cel.defects import SEEN
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns, table_schema
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.cel.values_equality import equal
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.model.table import NodeTable

ROOT_NAMES = ("node", "pod", "now")
ENVIRONMENT = Environment(
    variables={name: ROOTS[name].type for name in ROOT_NAMES}, functions=FUNCTIONS, facts=FACTS
)
NODE_SCHEMA = table_schema(FACTS, "node")
NOW = Timestamp(1_700_000_000 * 10**9)


def typed(text: str) -> ir.Node:
    """The typed form of an expression; a problem fails the test."""
    problems: list[Any] = []
    node = check(parse(text), ENVIRONMENT, problems, text)
    assert not problems, (text, problems)
    return node


def columns(text: str) -> ColumnProgram:
    return compile_columns(typed(text), "node", ROOT_NAMES)


def table_of(rows: Sequence[Mapping[str, Any]]) -> NodeTable:
    """A table with the rows n0, n1, ..."""
    table = NodeTable(NODE_SCHEMA)
    for at, facts in enumerate(rows):
        table.put(f"n{at}", facts)
    return table


def small(value: Any) -> Any:
    """Facts with all ints brought within 2**40."""
    if isinstance(value, Mapping):
        return {key: small(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [small(held) for held in value]
    return int(math.fmod(value, 2**40)) if type(value) is int else value


def outcome(program: RowProgram, *roots: object) -> tuple[str, Any]:
    """What a row program gives: ("value", it) or ("error", its kind)."""
    try:
        return "value", program.call(*roots)
    except CelError as error:
        return "error", error.kind


def assert_same(
    text: str,
    table: NodeTable,
    pod: Mapping[str, Any],
    programs: tuple[ColumnProgram, RowProgram] | None = None,
) -> None:
    """Row by row, a column program gives what the row program gives, errors included; so it does when asked
    for one row after another, and so does the row program of the folded expression. No defect hides among the errors.
    """
    if programs is None:
        assert_same_of(text, typed(text), table, pod)
    else:
        _assert_same(text, table, pod, *programs, programs[1])


def assert_same_of(text: str, node: ir.Node, table: NodeTable, pod: Mapping[str, Any]) -> None:
    """The same of a typed form, `text` being what is told of it."""
    by_columns, by_row = compile_columns(node, "node", ROOT_NAMES), compile_row(ROOT_NAMES, node)
    _assert_same(text, table, pod, by_columns, by_row, compile_row(ROOT_NAMES, fold(node)))


def _assert_same(
    text: str,
    table: NodeTable,
    pod: Mapping[str, Any],
    program: ColumnProgram,
    by_row: RowProgram,
    folded: RowProgram,
) -> None:
    seen = SEEN.total()
    result = program.call(table, {"pod": pod, "now": NOW})
    bound = program.bound({"pod": pod, "now": NOW})
    assert len(result) == len(table)
    for at in range(len(table)):
        expected = outcome(by_row, table.row(at), pod, NOW)
        error = result.error(at)
        found = ("error", error.kind) if error is not None else ("value", result.value(at))
        same = found[0] == expected[0] and (
            found[1] == expected[1] if found[0] == "error" else same_value(found[1], expected[1])
        )
        assert same, (
            f"{text}\nrow {at}: {dict(table.row(at))}\npod {pod}\ncolumns {found}, row {expected}\n{program.source}"
        )
        again = outcome(folded, table.row(at), pod, NOW)
        assert same_answer(again[1] if again[0] == "value" else CelError(again[1]), expected), (
            f"{text}\nrow {at}: {dict(table.row(at))}\npod {pod}\nfolded {again}, row {expected}"
        )
        (answer,) = bound.ask(table.row(at))
        assert same_answer(answer, expected), (
            f"{text}\nrow {at}: {dict(table.row(at))}\npod {pod}\n{answer}, row {expected}"
        )
    assert SEEN.total() == seen, (text, SEEN)


def same_answer(answer: object, expected: tuple[str, Any]) -> bool:
    """Whether a bound program's answer is what a row program gives. Which of several errors shows is not defined."""
    if expected[0] == "error" or isinstance(answer, CelError):
        return expected[0] == "error" and isinstance(answer, CelError)
    value = expected[1]
    if isinstance(value, (Duration, Timestamp)):
        return same_value(answer, value) or same_value(answer, value.ns)
    return same_value(answer, value)


def same_value(a: Any, b: Any) -> bool:
    """Equal, of one type, a NaN like another."""
    return type(a) is type(b) and (equal(a, b) or (a != a and b != b))
