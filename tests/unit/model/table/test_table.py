"""Whatever happens to a table, its columns say what its rows say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import (
    ELEMENT,
    ListFact,
    MapFact,
    OpaqueFact,
    ScalarFact,
    Schema,
    Storage,
    Strings,
)

SCHEMA: Schema = {
    "cpu": ScalarFact(Storage.INT),
    "share": ScalarFact(Storage.DOUBLE),
    "ready": ScalarFact(Storage.BOOL),
    "name": ScalarFact(Storage.STRING),
    "age": ScalarFact(Storage.INT, lambda value: int(value[1:])),  # type: ignore[index]
    "labels": MapFact(ScalarFact(Storage.STRING)),
    "requested": MapFact(ScalarFact(Storage.INT)),
    "pods": ListFact({"cpu": ScalarFact(Storage.INT), "band": ScalarFact(Storage.STRING), "labels": MapFact(ScalarFact(Storage.STRING)),
                      "numa": ListFact({ELEMENT: ScalarFact(Storage.INT)})}),
    "zones": ListFact({ELEMENT: ScalarFact(Storage.INT)}),
    "other": OpaqueFact(),
}  # fmt: skip

INTS = st.one_of(st.integers(-5, 5), st.sampled_from((-(2**63), 2**63 - 1)))
WORDS = st.sampled_from(("a", "b", "", "long one"))


def optional(**paths: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=paths)


FACTS = optional(
    cpu=INTS,
    share=st.floats(),
    ready=st.booleans(),
    name=WORDS,
    age=INTS.map(lambda value: f"s{value}"),
    labels=st.dictionaries(st.sampled_from(("x", "y")), WORDS),
    requested=st.dictionaries(st.sampled_from(("x", "y")), INTS),
    pods=st.lists(
        optional(
            cpu=INTS, band=WORDS, numa=st.lists(INTS, max_size=2), labels=st.dictionaries(st.just("x"), WORDS)
        ),
        max_size=4,
    ),
    zones=st.lists(INTS, max_size=3),
    other=st.just(["anything"]),
)
NAMES = st.sampled_from([f"n{at}" for at in range(5)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, FACTS),
        st.tuples(st.just("update"), NAMES, FACTS),
        st.tuples(st.just("forget"), NAMES, st.sampled_from(sorted(SCHEMA))),
        st.tuples(st.just("remove"), NAMES, st.none()),
    ),
    max_size=30,
)


def apply(table: NodeTable, model: dict[str, dict[str, Any]], step: tuple[str, str, Any]) -> None:
    """One step on the table and on a plain dictionary."""
    what, name, argument = step
    if what == "put":
        table.put(name, argument)
        model[name] = dict(argument)
    elif name not in model:
        with pytest.raises(KeyError):
            table.remove(name) if what == "remove" else table.update(name, {})
    elif what == "update":
        table.update(name, argument)
        model[name].update(argument)
    elif what == "forget":
        table.update(name, {}, absent=[argument])
        model[name].pop(argument, None)
    else:
        table.remove(name)
        del model[name]


def read(table: NodeTable) -> dict[str, dict[str, Any]]:
    """What the columns say, as records."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(table))]
    for path, fact in SCHEMA.items():
        absent = table.presence(path).absent
        for at in range(len(table)):
            if absent is None or not absent[at]:
                rows[at][path] = (
                    {} if isinstance(fact, MapFact) else [] if isinstance(fact, ListFact) else None
                )
        if isinstance(fact, ScalarFact):
            fill(rows, path, table.column(path), table.strings, path == "age")
        elif isinstance(fact, MapFact):
            for key in ("x", "y"):
                fill([row.get(path, {}) for row in rows], key, table.entry(path, key), table.strings)
        elif isinstance(fact, ListFact):
            for row, elements in zip(rows, lists_of(table, path, fact, len(table)), strict=True):
                if path in row:
                    row[path] = elements
        else:
            for at, row in enumerate(rows):
                if path in row:
                    row[path] = table.row(at)[path]
    return dict(zip(table.names, rows, strict=True))


def fill(rows: list[dict[str, Any]], path: str, column: Any, strings: Strings, encoded: bool = False) -> None:
    assert len(column.values) == len(rows)
    numbers = column.values.dtype in (np.int64, np.float64)
    for at, row in enumerate(rows):
        value = column.values[at].item()
        if column.absent is None or not column.absent[at]:
            text = column.values.dtype == np.int32
            row[path] = strings.texts[value] if text else f"s{value}" if encoded else value
        if numbers and value == value:
            assert column.low <= value <= column.high, "absent entries keep within the bounds too"
        if numbers and value != value:
            assert (column.low, column.high) == (-np.inf, np.inf)
    if numbers:
        doubles = column.values.astype(float)
        if column.absent is not None:
            doubles[column.absent] = 0.0
        assert np.array_equal(column.doubles, doubles, equal_nan=True)


def lists_of(store: Any, path: str, schema: ListFact, count: int) -> list[list[Any]]:
    segments, store = store.segments(path), store.elements(path)
    result: list[list[Any]] = [[] for _ in range(count)]
    assert (segments.starts[1:] > segments.starts[:-1]).all()
    ends = [*segments.starts[1:], segments.size][: len(segments.starts)]
    records: list[dict[str, Any]] = [{} for _ in range(segments.size)]
    for inner, fact in schema.elements.items():
        if isinstance(fact, MapFact):
            absent = store.presence(inner).absent
            for at, record in enumerate(records):
                if absent is None or not absent[at]:
                    record[inner] = {}
            fill([record.get(inner, {}) for record in records], "x", store.entry(inner, "x"), store.strings)
        elif isinstance(fact, ListFact):
            absent = store.presence(inner).absent
            for at, elements in enumerate(lists_of(store, inner, fact, len(records))):
                if absent is None or not absent[at]:
                    records[at][inner] = elements
        else:
            assert isinstance(fact, ScalarFact)
            fill(records, inner, store.column(inner), store.strings)
    for start, end, row in zip(segments.starts, ends, segments.rows, strict=True):
        live = segments.live is None or segments.live[start]
        assert live == (row >= 0)
        if live:
            assert (segments.owners[start:end] == row).all()
            assert segments.lengths[row] == end - start
            result[row] = records[start:end]
    for row, length in enumerate(segments.lengths):
        assert len(result[row]) == length
    return [[element.get(ELEMENT, element) for element in elements] for elements in result]


def same(a: Any, b: Any) -> bool:
    """Equal, a NaN like another."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b or (a != a and b != b))


@given(STEPS, STEPS)
def test_columns_say_what_rows_say(before: list[Any], after: list[Any]) -> None:
    """Columns are made between the two halves, so the second half changes columns that exist."""
    table, model = NodeTable(SCHEMA), dict[str, dict[str, Any]]()
    for steps in (before, after):
        for step in steps:
            apply(table, model, step)
        assert same(read(table), model)
        assert {name: dict(table.row(table.index(name))) for name in table.names}.keys() == model.keys()
        assert all(table.name(table.index(name)) == name and name in table for name in model)


@given(STEPS, STEPS)
def test_every_changed_row_counts_as_touched(before: list[Any], after: list[Any]) -> None:
    table, model = NodeTable(SCHEMA), dict[str, dict[str, Any]]()
    for step in before:
        apply(table, model, step)
    old = {at: (table.name(at), dict(table.row(at))) for at in range(len(table))}
    version, stamps = table.version, {path: table.stamp([path]) for path in SCHEMA}
    for step in after:
        apply(table, model, step)
    touched = table.touched_since(version)
    assert touched is not None
    for at in range(len(table)):
        name, facts = old.get(at, ("", {}))
        if table.name(at) != name or not same(dict(table.row(at)), facts):
            assert at in touched
    if len(old) == len(table):
        for path, stamp in stamps.items():
            changed = any(not same(table.row(at).get(path), old[at][1].get(path)) for at in old)
            assert table.stamp([path]) > stamp or not changed


def test_a_value_of_another_class_is_refused_and_missing_from_then_on() -> None:
    table = NodeTable(SCHEMA)
    table.put("n0", {"cpu": "many"})
    with pytest.raises(ValueError, match="`cpu`: 'many' is no int"):
        table.column("cpu")
    assert table.column("cpu").absent is not None
    table.put("n1", {"cpu": 2**63})
    assert table.column("cpu").values.tolist()[1] == 2**63 - 1, "beyond int64 is the end of int64"
    with pytest.raises(ValueError, match="`cpu`: True is no int"):
        table.update("n1", {"cpu": True})
    table.update("n1", {"cpu": 5})
    assert table.column("cpu").values.tolist()[1] == 5
    assert table.column("cpu").present is not None


def test_a_list_that_is_none_is_refused_and_missing_from_then_on() -> None:
    table = NodeTable(SCHEMA)
    table.put("n0", {"pods": [{"cpu": 1}], "cpu": 1})
    table.column("cpu")
    table.segments("pods")
    with pytest.raises(ValueError, match="`pods`: 5 is no list"):
        table.put("n1", {"pods": 5, "cpu": 2})
    with pytest.raises(ValueError, match="`pods`: 'x' is no list"):
        table.update("n0", {"pods": "x", "cpu": 3})
    assert table.column("cpu").values.tolist() == [3, 2]
    absent = table.segments("pods").absent
    assert absent is not None
    assert absent.tolist() == [True, True]


def test_paths_that_are_no_columns_are_refused() -> None:
    table = NodeTable(SCHEMA)
    for ask in (table.column, table.segments, table.elements):
        with pytest.raises(KeyError):
            ask("labels")
    with pytest.raises(KeyError):
        table.entry("cpu", "x")
    with pytest.raises(KeyError):
        table.presence("nothing")


def test_many_changes_keep_little_more_than_the_last() -> None:
    """Lists that change again and again do not grow, and the journal forgets."""
    table = NodeTable(SCHEMA)
    for name in ("a", "b"):
        table.put(name, {"pods": [{"cpu": 1}] * 50})
    table.segments("pods")
    old = table.version
    for at in range(140_000):
        table.update("a", {"cpu": at})
    for _ in range(200):
        table.update("a", {"pods": [{"cpu": 2}] * 50})
    assert table.segments("pods").size < 1_000
    assert table.touched_since(old) is None
    recent = table.touched_since(table.version - 10)
    assert recent is not None
    assert recent.tolist() == [0]


def test_bounds_follow_when_extremes_go() -> None:
    table = NodeTable(SCHEMA)
    for at in range(100):
        table.put(f"n{at}", {"cpu": at})
    table.column("cpu")
    table.update("n0", {"cpu": 10**9})
    for _ in range(102):
        for value in (10**9, 7):
            table.update("n0", {"cpu": value})
            table.column("cpu")
    assert table.column("cpu").high <= 10**9
    for _ in range(202):
        table.update("n99", {"cpu": 99})
        assert table.column("cpu").values.max() <= table.column("cpu").high
    assert (table.column("cpu").low, table.column("cpu").high) == (1, 99)


def test_the_columns_of_keys_are_limited() -> None:
    table = NodeTable(SCHEMA)
    table.put("n0", {"labels": {"k1": "a"}})
    for at in range(5_000):
        assert (table.entry("labels", f"k{at}").absent is None) == (at == 1)
    assert table.entry("labels", "k1").absent is None


def test_doubles_are_zero_where_there_is_nothing() -> None:
    table = NodeTable(SCHEMA)
    table.put("n0", {"cpu": 7})
    table.put("n1", {})
    assert table.column("cpu").doubles.tolist() == [7.0, 0.0]
    table.put("n1", {"cpu": 9})
    table.put("n0", {})
    assert table.column("cpu").doubles.tolist() == [0.0, 9.0]
    assert table.column("cpu").pick(np.array([0])).doubles.tolist() == [0.0]
