"""Values that no column can hold, such as points in time outside of int64 nanoseconds."""

import pytest

from koordpolicy.language.cel.lower.columns.held import instant
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.columns import BeyondColumnsError
from koordpolicy.model.table.kinds import ScalarFact, Storage

FAR = Timestamp(-62_000_000_000 * 10**9)
NEAR = Timestamp(1_750_000_000 * 10**9)


def table() -> NodeTable:
    return NodeTable({"at": ScalarFact(Storage.INT, instant)})


def test_the_row_is_taken_and_only_the_column_is_refused() -> None:
    nodes = table()
    nodes.put("a", {"at": NEAR})
    assert nodes.column("at").values.tolist() == [NEAR.ns]
    nodes.put("b", {"at": FAR})
    assert nodes.row(1)["at"] == FAR
    for _ in range(2):  # a refusal leaves no half-made column behind
        with pytest.raises(BeyondColumnsError):
            nodes.column("at")


def test_a_column_that_was_never_asked_for_is_refused_each_time() -> None:
    nodes = table()
    nodes.put("a", {"at": FAR})
    for _ in range(2):
        with pytest.raises(BeyondColumnsError):
            nodes.column("at")


def test_it_ends_with_an_update_a_removal_or_a_fill() -> None:
    nodes = table()
    for name in "abc":
        nodes.put(name, {"at": FAR if name == "c" else NEAR})
    with pytest.raises(BeyondColumnsError):
        nodes.column("at")
    nodes.remove("a")  # the last row takes its place
    with pytest.raises(BeyondColumnsError):
        nodes.column("at")
    nodes.update("c", {"at": NEAR})
    assert nodes.column("at").absent is None
    nodes.fill("at", FAR)
    with pytest.raises(BeyondColumnsError):
        nodes.column("at")
    nodes.fill("at", NEAR)
    column = nodes.column("at")
    assert column.values.tolist() == [NEAR.ns] * 2
    assert column.absent is None
    nodes.put("d", {"at": FAR})
    nodes.remove("d")
    assert nodes.column("at").values.tolist() == [NEAR.ns] * 2


def test_rows_that_lack_the_fact_stay_without_it_through_a_fill() -> None:
    nodes = table()
    nodes.put("a", {"at": FAR})
    nodes.put("b", {})
    with pytest.raises(BeyondColumnsError):
        nodes.column("at")
    nodes.fill("at", NEAR)
    column = nodes.column("at")
    assert column.absent is not None
    assert column.absent.tolist() == [False, True]
