"""Whatever an expression of any type gives: a slot's decision is of the slot's type, or an error of the language."""

from typing import Any

import pytest

from koordpolicy.graph.fits import fitted
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import WrongType
from koordpolicy.language.cel.lower.columns import compile_columns
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import DOUBLE, DYN, Type, list_of, map_of
from koordpolicy.language.cel.values import (
    NONE,
    TRUE_KEY,
    Duration,
    Optional,
    Quantity,
    Timestamp,
    TypeValue,
    UInt,
)
from koordpolicy.language.kinds import slots
from koordpolicy.language.kinds.table import KINDS
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.kinds import OpaqueFact
from tests.unit.language.cel.front.test_soundness import belongs

SHARED: Any = ["a"]
for _ in range(60):
    SHARED = [SHARED, SHARED]

VALUES: tuple[Any, ...] = (
    None, True, 3, 2**62, UInt(3), 1.5, float("nan"), "x", b"x", [], ["a"], [1], ["a", 1], [None], {}, {"a": 1}, {"a": "b"},
    {1: "a"}, {TRUE_KEY: 1}, {"a": 1.5, "b": None}, Duration(1), Timestamp(0), Timestamp(10**20), NONE, Optional(3),
    Optional("x"), Quantity(1), TypeValue("int"), [{"a": [1]}], SHARED,
)  # fmt: skip
ANY = ir.Var(DYN, "x")
WANTED: dict[Type, tuple[Type, ...]] = {
    found.slot.type: found.slot.also for kind in KINDS.values() for found in slots(kind.spec)
}


@pytest.mark.parametrize("given", [ANY, ir.Var(list_of(DYN), "x"), ir.Var(map_of(DYN, DYN), "x")], ids=str)
@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_a_slot_has_a_value_of_its_type_or_none(wanted: Type, given: ir.Var) -> None:
    node = fitted(given, wanted, WANTED[wanted])
    if node is None:
        return
    assert wanted in (node.type, DYN)
    program = compile_row(("x",), node)
    columns = compile_columns(_of_row(node), "node", ("node",))
    for value in VALUES:
        if given.type != DYN and type(value) is not {"list": list, "map": dict}[given.type.name]:
            continue
        error, found = _outcome(lambda value=value: program.call(value))
        assert error is None or isinstance(error, WrongType), value
        assert error is not None or belongs(found, wanted) or isinstance(found, dict), value
        table = NodeTable({"x": OpaqueFact()})
        table.put("n", {"x": value})
        (bound,) = columns.bound({}).ask(table.row(0))
        assert isinstance(bound, WrongType) == (error is not None)
        result = columns.call(table, {})
        assert (result.error(0) is None) == (error is None), value
        if error is None and result.kind is not None:
            again = result.value(0)
            assert type(again) is type(found)
            assert repr(again) == repr(found)


def test_a_whole_number_is_a_double_and_a_value_an_optional_of_it() -> None:
    node = fitted(ANY, DOUBLE)
    assert node is not None
    value = compile_row(("x",), node).call(3)
    assert (type(value), value) == (float, 3.0)


def _of_row(node: ir.Node) -> ir.Node:
    assert isinstance(node, ir.Cast | ir.Var)
    field = ir.Field(DYN, ir.Var(Type("record", record="node"), "node"), "x")
    return ir.Cast(node.type, field) if isinstance(node, ir.Cast) else field


def _outcome(call: Any) -> tuple[Exception | None, Any]:
    try:
        return None, call()
    except WrongType as error:
        return error, None
