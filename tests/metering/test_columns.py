"""What decisions about all nodes may cost: each row its budget, and all rows together a bound."""

import time
from contextlib import suppress

import pytest

from koordpolicy.language.cel.errors import CostExceeded
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns
from koordpolicy.model.table import NodeTable
from tests.metering.test_metering import HANG
from tests.unit.language.cel.columns.support import NOW, ROOT_NAMES, table_of, typed

MANY = 2_000
POD = {"name": "web-0", "labels": {"app": "web"}, "containers": [{"name": f"c{at}"} for at in range(100)]}
BY_ROWS = "node.labels.all(l, lists.range({steps}).all(k, l != string(k)))"
"""No column form: a row program for each node."""


@pytest.fixture(scope="module")
def table() -> NodeTable:
    return table_of([{"name": f"n{at}", "labels": {"pool": f"p{at % 7}"}} for at in range(MANY)])


def _program(text: str, budget: int) -> ColumnProgram:
    return compile_columns(typed(text), "node", ROOT_NAMES, budget)


def test_rows_share_one_meter(table: NodeTable) -> None:
    program = _program(BY_ROWS.format(steps=400), 200_000)
    assert program.fallback
    few = program.call(table, {"pod": POD, "now": NOW}, None)
    assert few.errors is None
    small = _program(BY_ROWS.format(steps=400), 50_000)
    with pytest.raises(CostExceeded):
        small.call(table, {"pod": POD, "now": NOW})


def test_a_row_over_its_budget_is_an_error_of_that_row() -> None:
    table = table_of([{"name": "n" * at, "labels": {"pool": "p"}} for at in range(1, 21)])
    program = _program(
        "node.labels.all(l, lists.range(size(node.name) * 1000).all(k, l != string(k)))", 100_000
    )
    found = program.call(table, {"pod": POD, "now": NOW})
    assert found.errors is not None
    assert found.errors.tolist() == sorted(found.errors)
    assert 0 < found.errors.sum() < len(table)


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(100000).all(k, node.name != string(k))",
        "pod.containers.all(a, pod.containers.all(b, pod.containers.all(c, a.name + b.name != c.name + node.name)))",
        "pod.containers.all(a, pod.containers.all(b, pod.containers.all(c, node.capacity.cpu > c.request.cpu)))",
    ],
)
def test_a_decision_about_all_nodes_ends_in_time(table: NodeTable, text: str) -> None:
    program = _program(text, 1_000_000)
    began = time.perf_counter()
    with suppress(CostExceeded):
        program.call(table, {"pod": POD, "now": NOW})
    assert time.perf_counter() - began < HANG
