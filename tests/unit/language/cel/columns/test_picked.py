"""Filters over lists that are one for all nodes: how many elements a node keeps, and which comes first."""

import pytest

from tests.unit.language.cel.columns.support import assert_same, columns, table_of

ROWS = (
    {"name": "a", "capacity.cpu": 4000, "resources.load": {"cpu": 3, "memory": 9}},
    {"name": "b", "capacity.cpu": 8000, "resources.load": {"cpu": 8}},
    {"name": "c", "resources.load": {}},
    {"name": "d", "capacity.cpu": 100},
    {"name": "e", "capacity.cpu": 9000, "resources.load": {"cpu": 9, "memory": 9, "gpu": 9}},
)
POD = {"resources.request": {"gpu": 5, "cpu": 1}, "labels": {"a": "x"}}

LOADED = '["cpu", "memory", "gpu"].filter(r, node.resources.load[?r].orValue(amount(0)) > amount(5))'

TEXTS = f"""
size({LOADED}) == 0
{LOADED}.size()
{LOADED}[0]
{LOADED}[1]
{LOADED}[-1]
{LOADED}[0] == "cpu"
"node(s) " + {LOADED}[0] + " too high"
size({LOADED}) > 0 ? "first " + {LOADED}[0] : "none"
[4000, 8000, 9000].filter(c, millicores(c) > node.capacity.cpu).size()
[4000, 8000, 9000].filter(c, millicores(c) > node.capacity.cpu)[0] + 1
[duration("1s"), duration("2s")].filter(d, node.name != "a")[0]
pod.resources.request.filter(r, r in node.resources.load)[0]
pod.labels.filter(l, l != node.name).size()
pod.annotations.filter(l, l != node.name).size()
""".strip().splitlines()


@pytest.mark.parametrize("text", TEXTS)
def test_columns_agree_with_rows(text: str) -> None:
    assert columns(text).fallback == ()
    assert_same(text, table_of(ROWS), POD)
    assert_same(text, table_of(()), POD)


def test_elements_without_a_column_are_left_to_row_programs() -> None:
    text = "pod.containers.filter(c, c.name != node.name).size()"
    assert columns(text).fallback != ()
    assert_same(text, table_of(ROWS), {"containers": [{"name": "a"}, {"name": "z"}]})
