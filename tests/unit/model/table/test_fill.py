"""One value for a fact in all rows: the same as row by row."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import ScalarFact, Storage

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
