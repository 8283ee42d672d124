"""One slip in an expression does not hide the next, nor the names that stand in it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.graph.references import walk
from koordpolicy.language.cel import ast
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.lexer import NOT_CLOSED
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.recovery import MAX_PROBLEMS, parse_all
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import DYN, INT
from koordpolicy.language.cel.unparse import unparse

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("recovery.yaml"))
ENVIRONMENT = Environment(functions=FUNCTIONS, variables={"a": INT, "b": DYN}, literal_checks=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_every_slip_is_told_once(case: dict[str, Any]) -> None:
    parsed = parse_all(case["text"])
    found = [[one.start, one.end, *([one.replacement] if one.replacement else [])] for one in parsed.problems]
    assert found == case["problems"]
    assert parsed.tree is not None
    names = {node.name for node in walk(parsed.tree) if isinstance(node, ast.Ident)}
    fields = {node.field for node in walk(parsed.tree) if isinstance(node, ast.SelectExpr)}
    assert set(case["names"]) <= names | fields


PIECES = st.sampled_from(
    [
        *"abxp.,:?()[]{}+-*<!%=&|#$`'\"",
        *(
            "&&",
            "||",
            "==",
            " ",
            "  ",
            "\n",
            "has(",
            ".map(p,",
            "cel.bind(",
            "'t'",
            "1",
            "2.5",
            "9" * 30,
            "if",
            "in",
        ),
        *("true", "and", "?.", ".?", "[?", "//", "\\", "size", "\ud800", "“", "é"),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_recovery_agrees_with_the_parser(text: str) -> None:
    parsed = parse_all(text)
    first = None
    try:
        tree = parse(text)
    except SyntaxProblem as problem:
        first = problem
    else:
        assert parsed.tree == tree
    told = [(one.start, one.message) for one in parsed.problems]
    quoted = (
        first is not None
        and NOT_CLOSED in first.message
        and "is missing before" in str(parsed.problems[-1].help)
    )
    assert quoted or ((first.start, first.message) in told if first else not told)
    assert len(told) <= MAX_PROBLEMS
    starts = [one.start for one in parsed.problems]
    assert starts == sorted(set(starts))
    assert all(0 <= one.start <= one.end <= len(text) + 1 for one in parsed.problems)
    if parsed.tree is not None:
        unparse(parsed.tree)
        problems: list[Problem] = []
        check(parsed.tree, ENVIRONMENT, problems, text)
        assert all(0 <= one.start <= one.end <= len(text) for one in problems)


@pytest.mark.parametrize(
    "text", ["(" * 5000, "a." * 20000, "[" * 300 + "]" * 300 + "x", "(a " * 3000, "-" * 5000]
)
def test_what_is_too_large_is_given_up(text: str) -> None:
    assert parse_all(text).problems
