"""Types and units that the checker finds, and the typed form it makes."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.types import DYN, ERROR, Type
from tests.unit.language.cel.front.world import PLAIN, checked

TYPES: list[tuple[str, str]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "types.yaml")


@pytest.mark.parametrize(("source", "type"), TYPES)
def test_a_sound_expression_has_its_type(source: str, type: str) -> None:
    node, problems = checked(source)
    assert problems == []
    assert node is not None and str(node.type) == type


@pytest.mark.parametrize("source", [source for source, _ in TYPES])
def test_no_type_is_left_open_or_in_error(source: str) -> None:
    node, _ = checked(source)
    assert node is not None

    def closed(kind: Type) -> bool:
        return kind.name not in ("param", ERROR.name) and all(map(closed, kind.params))

    assert all(closed(part.type) for part in walk(node))


@pytest.mark.parametrize("source", [source for source, _ in TYPES])
def test_a_typed_node_lies_within_its_source(source: str) -> None:
    node, _ = checked(source)
    assert node is not None
    assert all(0 <= part.start <= part.end <= len(source) for part in walk(node))


CALLS = [
    # units: how quantities are carried out
    ("node.capacity.cpu + node.usage.total.cpu", "_+_(int,int)"),
    ("node.capacity.cpu * 2", "_*_(int,int)"),
    ("2 * node.capacity.cpu", "_*_(int,int)"),
    ("node.capacity.cpu * 0.5", "scale(int,double)"),
    ("0.5 * node.capacity.cpu", "scale(int,double)"),
    ("node.capacity.cpu * percent(65)", "percent_of(int,double)"),
    ("percent(65) * node.capacity.cpu", "percent_of(int,double)"),
    ("node.usage.total.cpu / node.capacity.cpu", "quotient(int,int)"),
    ("node.pressure / percent(5)", "quotient(double,double)"),
    ("node.capacity.cpu / 2", "_/_(int,int)"),
    ("node.capacity.cpu / 1.5", "divide(int,double)"),
    ("node.pressure * 2", "_*_(double,double)"),
    ("node.pressure / node.capacity.pods", "_/_(double,double)"),
    ("node.pressure > 0", "_>_(double,double)"),
    ("node.pressure > 0.5", "_>_(double,double)"),
    ("-node.pressure", "-_(double)"),
    ("max(node.capacity.cpu, 0)", "max(int)"),
    ("max(node.pressure, 0)", "max(double)"),
    ("string(number(node.capacity.cpu))", "string(int)"),
    # plain CEL: static overloads, numbers across types, run-time dispatch
    ("node.capacity.pods > 1.5", "_>_(int,double)"),
    ("1u < 2.5", "_<_(uint,double)"),
    ("now - now", "_-_(google.protobuf.Timestamp,google.protobuf.Timestamp)"),
    ("now + duration('1s')", "_+_(google.protobuf.Timestamp,google.protobuf.Duration)"),
    ("[1] + [2]", "_+_(list,list)"),
    ("1 in [1]", "@in(dyn,list)"),
    ("'a' in node.labels", "@in(dyn,map)"),
    ("1 in anything", "@in(dyn,dyn)"),
    ("1 == 2", "_==_"),
    ("anything + 1", "_+_(dyn,dyn)"),
    ("anything < 1", "_<_(dyn,dyn)"),
    ("-anything", "-_(dyn)"),
    ("!anything", "!_(dyn)"),
    ("!node.schedulable", "!_(bool)"),
    ("size(node.name)", "size(string)"),
    ("node.name.size()", ".size(string)"),
    ("size(anything)", "size(dyn)"),
    ("anything.size()", ".size(dyn)"),
    ("math.greatest(1, 2.0)", "math.greatest(dyn,dyn)"),
    ("math.greatest(anything, 2)", "math.greatest(dyn,dyn)"),
    ("math.ceil(anything)", "math.ceil(dyn)"),
    ("node.name.contains(anything)", ".contains(dyn,dyn)"),
    ("node.usage.estimated(pod)", "usage.estimated(node,pod)"),
]


@pytest.mark.parametrize(("source", "overload"), CALLS)
def test_a_call_names_its_overload(source: str, overload: str) -> None:
    node, problems = checked(source)
    assert [problem for problem in problems if problem.code != "KP214"] == []
    assert isinstance(node, ir.Call)
    assert node.overload == overload


def test_a_percentage_meets_a_ratio_as_a_share() -> None:
    node, _ = checked("0.5 <= node.pressure")
    assert isinstance(node, ir.Call)
    share = node.args[1]
    assert isinstance(share, ir.Call) and share.overload == "ratio(percent)"


def test_a_count_times_a_percentage_is_converted() -> None:
    constant, _ = checked("node.pressure * 2")
    computed, _ = checked("node.pressure * node.capacity.pods")
    assert isinstance(constant, ir.Call) and isinstance(constant.args[1], ir.Const)
    assert constant.args[1].value == 2.0 and isinstance(constant.args[1].value, float)
    assert isinstance(computed, ir.Call) and isinstance(computed.args[1], ir.Call)
    assert computed.args[1].overload == "double(int)"


def test_a_path_of_a_record_is_one_field() -> None:
    node, _ = checked("node.usage.prod.cpu")
    assert isinstance(node, ir.Field) and node.path == "usage.prod.cpu"
    assert isinstance(node.base, ir.Var) and node.base.name == "node"


def test_records_nest_in_lists_and_fields() -> None:
    node, _ = checked("node.pods[0].request.cpu")
    assert isinstance(node, ir.Field) and node.path == "request.cpu" and isinstance(node.base, ir.Index)
    node, _ = checked("node.best.request.cpu")
    assert isinstance(node, ir.Field) and node.path == "request.cpu" and isinstance(node.base, ir.Field)


def test_presence_of_a_group_is_presence_of_any_fact_in_it() -> None:
    node, _ = checked("has(node.usage.prod)")
    assert isinstance(node, ir.HasField) and node.paths == ("usage.prod.cpu", "usage.prod.memory")
    node, _ = checked("has(node.usage.prod.cpu)")
    assert isinstance(node, ir.HasField) and node.paths == ("usage.prod.cpu",)
    node, _ = checked("has(node.labels.zone)")
    assert isinstance(node, ir.Select) and node.test


@pytest.mark.parametrize("source", ["node.usage.prod.?cpu", "node.?usage.prod.cpu", "node.usage.?prod.?cpu"])
def test_a_question_mark_anywhere_makes_the_fact_optional(source: str) -> None:
    node, _ = checked(source)
    assert isinstance(node, ir.OptField) and node.path == "usage.prod.cpu"


def test_chains_of_conditions_are_one_node() -> None:
    node, _ = checked("node.schedulable && anything && true && false")
    assert isinstance(node, ir.And) and len(node.args) == 4


def test_equal_comprehensions_are_equal_nodes() -> None:
    node, _ = checked("node.pods.all(p, p.priority > 0) && node.pods.all( p, p.priority > 0 )")
    assert isinstance(node, ir.And) and node.args[0] == node.args[1]


def test_nested_comprehensions_never_share_a_name() -> None:
    node, _ = checked("[[1]].all(x, x.all(x, [x].all(x, x > 0)))")
    assert node is not None
    names = [name for part in walk(node) if isinstance(part, ir.Comprehension) for name in part.variables]
    assert len(names) == len(set(names)) == 3


def test_equal_texts_in_different_scopes_are_different_nodes() -> None:
    node, _ = checked("[1].map(x, [x].map(y, y)) == [2].map(x, [x].map(y, y))")
    assert node is not None
    maps = [part for part in walk(node) if isinstance(part, ir.Comprehension)]
    inner = [
        part.variables
        for part in maps
        if isinstance(part.range, ir.MakeList) and isinstance(part.range.elements[0], ir.Var)
    ]
    assert len(inner) == 2 and inner[0] != inner[1]


def test_a_library_function_is_put_in_place() -> None:
    node, _ = checked("twice([node.capacity.cpu, 0])")
    assert isinstance(node, ir.Bind) and isinstance(node.body, ir.Comprehension)
    assert isinstance(node.body.range, ir.Var) and node.body.range.name == node.name and node.body.range.local


def test_two_calls_of_a_library_function_do_not_meet() -> None:
    node, _ = checked("twice(twice([node.capacity.cpu]))")
    assert node is not None
    bound = [part.name for part in walk(node) if isinstance(part, ir.Bind)]
    walked = [part.variables for part in walk(node) if isinstance(part, ir.Comprehension)]
    assert len(set(bound)) == len(bound) == 2 and len(set(walked)) == 2


def test_a_block_becomes_nested_bindings() -> None:
    node, problems = checked("cel.block([1, cel.index(0) + 1], cel.index(1) * cel.index(0))")
    assert problems == []
    assert isinstance(node, ir.Bind) and isinstance(node.body, ir.Bind)


def test_types_stay_open_where_policies_would_refuse_them() -> None:
    node, problems = checked("[1, 'a']", PLAIN)
    assert problems == [] and node is not None and node.type.params == (DYN,)
