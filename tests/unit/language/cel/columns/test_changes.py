"""What is kept between calls follows every change of the table."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel.lower.columns import kept
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.access_path import AccessPath
from tests.unit.language.cel.columns.generators import NODES, PODS, expressions
from tests.unit.language.cel.columns.support import ROOT_NAMES, assert_same, columns, table_of, typed

Change = Callable[[NodeTable], object]
_NAMES = st.sampled_from([f"n{at}" for at in range(6)])


def _put(name: str, facts: dict[str, Any]) -> Change:
    return lambda table: table.put(name, facts)


def _update(name: str, facts: dict[str, Any]) -> Change:
    return lambda table: table.update(name, facts, absent=("capacity.cpu",)) if name in table else None


def _remove(name: str) -> Change:
    return lambda table: table.remove(name) if name in table else None


CHANGES = st.one_of(
    st.builds(_put, _NAMES, NODES), st.builds(_update, _NAMES, NODES), st.builds(_remove, _NAMES)
)


@given(expressions(), st.lists(NODES, max_size=6), PODS, st.lists(st.lists(CHANGES, max_size=3), max_size=4))
def test_columns_agree_with_rows_after_changes(
    text: str, nodes: list[dict[str, Any]], pod: dict[str, Any], rounds: list[list[Change]]
) -> None:
    table = table_of(nodes)
    programs = columns(text), compile_row(ROOT_NAMES, typed(text))
    assert_same(text, table, pod, programs)
    for changes in rounds:
        for change in changes:
            change(table)
        assert_same(text, table, pod, programs)


@given(expressions(), st.lists(NODES, max_size=6), PODS, st.lists(st.lists(CHANGES, max_size=3), max_size=4))
def test_touched_rows_alone_are_enough(
    text: str, nodes: list[dict[str, Any]], pod: dict[str, Any], rounds: list[list[Change]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "access_path", lambda rows, total: AccessPath.GATHER)
        test_columns_agree_with_rows_after_changes.hypothesis.inner_test(text, nodes, pod, rounds)  # type: ignore[attr-defined]


def test_one_program_serves_several_tables() -> None:
    text = "node.capacity.cpu + node.allocatable.cpu > cpu('5') && node.pods.size() < 2"
    programs = columns(text), compile_row(ROOT_NAMES, typed(text))
    one = table_of([{"capacity.cpu": 3000, "allocatable.cpu": 1, "pods": []}])
    other = table_of([{"capacity.cpu": 5000, "allocatable.cpu": 1, "pods": []}, {}])
    for table in (one, other, one):
        assert_same(text, table, {}, programs)


@pytest.mark.parametrize(
    "text",
    [
        "node.capacity.cpu > millicores(50)",
        "!node.unschedulable",
        "node.resources.requested[?'cpu'].orValue(amount(0)) == amount(7)",
    ],
)
def test_answers_about_one_column_follow_its_changes(text: str) -> None:
    rows = [
        {"capacity.cpu": 10 * at, "unschedulable": at % 2 == 0, "resources.requested": {"cpu": at}}
        for at in range(9)
    ]
    program, table = columns(text), table_of(rows)
    programs = program, compile_row(ROOT_NAMES, typed(text))
    for at in (3, 7, 3):
        assert_same(text, table, {}, programs)
        value = 45 + at
        changes = {"capacity.cpu": value, "unschedulable": value % 3 == 0, "resources.requested": {"cpu": 7}}
        table.update(f"n{at}", changes)
        assert_same(text, table, {}, programs)
        table.update(f"n{at}", {"unschedulable": True}, absent=["capacity.cpu", "resources.requested"])
        assert_same(text, table, {}, programs)
        other = table_of(rows[:4])
        assert_same(text, other, {}, programs)
