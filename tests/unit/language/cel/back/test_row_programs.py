"""Row programs mean what the plain interpreter means, folded or not."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower import body
from koordpolicy.language.cel.lower.row import compile_row
from tests.conformance.values import same
from tests.unit.language.cel.back.expressions import ALL_VALUES, RECORDS, VARIABLES, texts, typed
from tests.unit.language.cel.back.reference_interpreter import interpret

ROOTS = (*VARIABLES, *RECORDS)
KINDS = st.sampled_from(("int", "double", "bool", "bool", "string", "ints", "map", "cpu", "optint"))


def run(tree: ir.Node, values: Mapping[str, Any]) -> Any:
    """The value of a row program, or its error as a value."""
    program = compile_row(ROOTS, tree)
    try:
        return program.call(*(values[name] for name in ROOTS))
    except CelError as error:
        return error


def agree(one: Any, other: Any) -> bool:
    if isinstance(one, CelError) or isinstance(other, CelError):
        return isinstance(one, CelError) and isinstance(other, CelError)
    return same(one, other)


@given(KINDS.flatmap(texts), ALL_VALUES)
def test_a_row_program_gives_what_the_interpreter_gives(text: str, values: dict[str, Any]) -> None:
    tree = typed(text)
    note(text)
    try:
        expected = interpret(tree, values)
    except CelError as error:
        expected = error
    plain, folded = run(tree, values), run(fold(tree), values)
    assert agree(plain, expected), (plain, expected)
    assert agree(folded, expected), (folded, expected)


@given(st.lists(KINDS.flatmap(texts), min_size=2, max_size=4), ALL_VALUES)
def test_outputs_compiled_together_are_those_compiled_alone(
    several: list[str], values: dict[str, Any]
) -> None:
    trees = {text: typed(text) for text in several}
    together = compile_row(ROOTS, trees).call(*(values[name] for name in ROOTS))
    for text, tree in trees.items():
        assert agree(together[text], run(tree, values)), text


@given(KINDS.flatmap(texts), ALL_VALUES, st.sampled_from(((1, 1, 1), (2, 2, 2), (3, 1, 6))))
def test_splitting_and_remembering_change_nothing(
    text: str, values: dict[str, Any], thresholds: tuple[int, int, int]
) -> None:
    tree = typed(text)
    usual = run(tree, values)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(
            ("_PART_HEIGHT", "_MAX_NESTING", "_WORTH_REMEMBERING"), thresholds, strict=True
        ):
            patch.setattr(body, name, value)
        assert agree(run(tree, values), usual)
