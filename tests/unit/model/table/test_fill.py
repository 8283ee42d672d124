"""One value for a fact in all rows: the same as row by row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import MapFact, ScalarFact, Storage

SCHEMA = {"a": ScalarFact(Storage.INT), "b": ScalarFact(Storage.INT)}
ROWS = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(-5, 5)), max_size=8)


def table(rows: list[dict[str, int]]) -> NodeTable:
    made = NodeTable(SCHEMA)
    for number, row in enumerate(rows):
        made.put(str(number), row)
    made.column("a")
    made.presence("a")
    return made


@given(ROWS, st.integers(-9, 9))
def test_filling_is_updating_every_row_that_has_the_fact(rows: list[dict[str, int]], value: int) -> None:
    filled, updated = table(rows), table(rows)
    before = filled.version
    filled.fill("a", value)
    for number, row in enumerate(rows):
        if "a" in row:
            updated.update(str(number), {"a": value})
    for number, row in enumerate(rows):
        assert filled.row(number) == updated.row(number)
        assert ("a" in filled.row(number)) == ("a" in row)
    one, other = filled.column("a"), updated.column("a")
    assert (one.absent is None) == (other.absent is None)
    if one.absent is None or other.absent is None:
        assert list(one.values) == list(other.values)
    else:
        assert list(one.absent) == list(other.absent)
        assert list(one.values[~one.absent]) == list(other.values[~other.absent])
    touched = filled.touched_since(before)
    assert touched is not None
    assert {number for number, row in enumerate(rows) if "a" in row} <= set(touched.tolist())


def test_the_bounds_follow() -> None:
    made = table([{"a": 1}, {"a": 9}, {}])
    made.fill("a", 5)
    column = made.column("a")
    assert (column.low, column.high) == (5, 5)


def test_a_change_of_all_rows_touches_each_that_is_there() -> None:
    made = table([{"a": number} for number in range(6)])
    before = made.version
    made.write("a", np.arange(6))
    after = made.version
    assert after > before
    assert all_of(made, before) == [0, 1, 2, 3, 4, 5]
    assert all_of(made, after) == []
    made.update("4", {"a": 7})
    made.remove("1")
    assert all_of(made, before) == [0, 1, 2, 3, 4]
    assert all_of(made, after) == [1, 4], "the last row is the second now"
    made.write("a", np.array([1, 2]), np.array([0, 3]))
    made.write("a", np.arange(5), np.arange(5))
    assert all_of(made, after) == [0, 1, 2, 3, 4]
    assert made.column("a").values.tolist() == [0, 1, 2, 3, 4]


def all_of(made: NodeTable, version: int) -> list[int]:
    touched = made.touched_since(version)
    assert touched is not None
    return [int(row) for row in touched]


def test_records_say_what_columns_do_whichever_was_there_first() -> None:
    made = NodeTable(SCHEMA)
    for at in range(2):
        made.put(str(at), {"a": at})
    made.presence("a")
    for numbers in ([3, 4], [5, 6]):
        made.write("a", np.array(numbers))
        assert made.column("a").values.tolist() == numbers
        assert [made.row(at)["a"] for at in range(2)] == numbers


def test_maps_of_one_number_a_key_are_written_at_once() -> None:
    made = NodeTable({"m": MapFact(ScalarFact(Storage.INT)), "n": MapFact(ScalarFact(Storage.INT))})
    for at in range(3):
        made.put(str(at), {"m": {"x": at, "z": 9}} if at else {})
    columns = [made.entry("m", "x"), made.entry("m", "z"), made.entry("n", "y"), made.presence("n")]
    assert columns[0].absent is not None
    made.write_maps(("m", "n"), {"x": np.array([7, 8]), "y": np.array([1, 2])}, np.array([0, 2]))
    assert [made.row(at).get("n") for at in range(3)] == [{"x": 7, "y": 1}, None, {"x": 8, "y": 2}]
    assert [made.row(at).get("m") for at in range(3)] == [
        {"x": 7, "y": 1},
        {"x": 1, "z": 9},
        {"x": 8, "y": 2},
    ]
    for path, key in (("m", "x"), ("m", "z"), ("m", "y"), ("n", "x"), ("n", "y"), ("n", "z")):
        column = made.entry(path, key)
        told = [made.row(at).get(path, {}).get(key) for at in range(3)]  # type: ignore[attr-defined]  # maps
        absent = [False] * 3 if column.absent is None else column.absent.tolist()
        assert [
            None if gone else one for one, gone in zip(column.values.tolist(), absent, strict=True)
        ] == told
    assert made.presence("n").absent is not None
    made.write_maps(("n",), {}, None)
    assert made.presence("n").absent is None
    assert made.row(1)["n"] == {}
