"""Conditions that fail: columns, rows, folded and bound programs give the same, and forgiving changes no value."""

import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koordpolicy.graph.conditions import concerned, forgiving, required, settled
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import EvaluationError
from koordpolicy.language.cel.ir_walk import inline_binds
from koordpolicy.language.cel.lower.row import compile_row
from tests.unit.language.cel.back.reference_interpreter import interpret
from tests.unit.language.cel.columns.generators import NODES, PODS, expressions
from tests.unit.language.cel.columns.support import (
    NOW,
    ROOT_NAMES,
    assert_same_of,
    outcome,
    small,
    table_of,
    typed,
)

EXAMPLES = int(os.environ.get("KOORDPOLICY_COLUMN_EXAMPLES", "300"))
TESTS = expressions(kind="bool")
Nodes = list[dict[str, Any]]
Pod = dict[str, Any]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(TESTS, TESTS, TESTS, st.lists(NODES, max_size=6), PODS)
def test_the_programs_agree(text: str, value: str, below: str, nodes: Nodes, pod: Pod) -> None:
    test = typed(text)
    table, few = table_of(small(nodes)), small(pod)
    for node in (
        settled(test, "here"),
        concerned(test),
        required(test, "here", typed(value), typed(below)),
        ir.Cond(test.type, settled(test, ""), typed(value), typed(below)),
    ):
        assert_same_of(f"{text} -> {value} | {below}", node, table, few)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(TESTS, TESTS, NODES, PODS)
def test_rows_agree_with_an_interpreter(text: str, value: str, node: Pod, pod: Pod) -> None:
    test = typed(text)
    roots = {"node": node, "pod": pod, "now": NOW}
    for whole in (settled(test, ""), required(test, "", typed(value), typed(value)), concerned(test)):
        try:
            expected: tuple[str, Any] = "value", interpret(inline_binds(whole), roots)
        except EvaluationError:
            expected = "error", None
        kind, found = outcome(compile_row(ROOT_NAMES, whole), *roots.values())
        assert (kind, found if kind == "value" else None) == expected, text


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(TESTS, NODES, PODS)
def test_forgiving_changes_no_value(text: str, node: Pod, pod: Pod) -> None:
    test = typed(text)
    before = outcome(compile_row(ROOT_NAMES, test), node, pod, NOW)
    after = outcome(compile_row(ROOT_NAMES, forgiving(test)), node, pod, NOW)
    assert before[0] == "error" or before == after, text
