"""Row programs apart from what they compute: sources, missing facts, sharing, depth, limits, mistakes."""

import time
from typing import Any

import pytest

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.defects import SEEN
from koordpolicy.language.cel.errors import (
    CelError,
    DivisionByZero,
    InternalError,
    LimitExceeded,
    MissingFact,
    NoSuchKey,
    NoSuchOverload,
)
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.ir_walk import facts_of, inline_binds, refs_of, rewrite, substitute
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL, CPU, INT, STRING
from tests.unit.language.cel.back.expressions import typed

ROOTS = ("node", "pod", "i", "li")


def call(text: str, **roots: Any) -> Any:
    given = {"node": {}, "pod": {}, "i": 0, "li": [], **roots}
    return compile_row(ROOTS, typed(text)).call(*(given[name] for name in ROOTS))


def test_a_missing_fact_is_named_from_its_root() -> None:
    with pytest.raises(MissingFact) as caught:
        call("node.capacity.cpu > cpu('1')")
    assert caught.value.path == "node.capacity.cpu"
    assert str(caught.value) == "missing_fact: no value for `node.capacity.cpu`"


def test_a_missing_fact_of_an_element_is_named_by_its_record() -> None:
    with pytest.raises(MissingFact) as caught:
        call("node.pods.map(p, p.priority)", node={"pods": [{}]})
    assert caught.value.path == "pod.priority"


def test_a_missing_label_is_no_missing_fact() -> None:
    with pytest.raises(NoSuchKey):
        call("node.labels['a'] == 'b'", node={"labels": {}})
    with pytest.raises(NoSuchKey):  # even when the label is called like a fact that is read
        call("node.labels['labels'] == 'b'", node={"labels": {}})


def test_missing_facts_are_forgiven_by_a_decisive_operand() -> None:
    assert call("node.capacity.cpu > cpu('1') || i == 0") is True
    assert call("node.capacity.cpu > cpu('1') && i != 0") is False
    assert call("node.pods.exists(p, p.priority > 1)", node={"pods": [{}, {"priority": 2}]}) is True


@pytest.mark.parametrize("defect", [KeyError, TypeError, OverflowError, RuntimeError, UnicodeEncodeError])
def test_a_defect_of_a_library_function_is_an_error_like_any_other_and_counted(
    defect: type[Exception],
) -> None:
    def broken(text: str) -> str:
        if text == "a":
            return "b"
        raise UnicodeEncodeError("utf-8", text, 0, 1, "no") if defect is UnicodeEncodeError else defect("oh")

    overload = Overload("broken(string)", (STRING,), STRING, broken)
    functions = {**FUNCTIONS, "broken": Function("broken", "test", "fails", (overload,))}
    tree = ir.Or(
        BOOL,
        (
            ir.Call(BOOL, "_==_", (ir.Call(STRING, overload.id, (typed("s"),)), typed("'b'"))),
            ir.Var(BOOL, "b"),
        ),
    )
    program = compile_row(("s", "b"), tree, functions)
    assert program.call("a", False) is True
    before = SEEN[defect.__name__]
    with pytest.raises(InternalError, match=defect.__name__) as caught:
        program.call("c", False)
    assert isinstance(caught.value.defect, defect)
    assert SEEN[defect.__name__] == before + 1
    assert program.call("c", True) is True  # another operand absorbs it, as it does any error
    together = compile_row(("s", "b"), {"broken": tree, "whole": typed("1 + 1")}, functions).call("c", False)
    assert isinstance(together["broken"], InternalError)
    assert together["whole"] == 2


@pytest.mark.parametrize("defect", [MemoryError, RecursionError])
def test_where_memory_or_the_stack_ends_so_does_the_evaluation(defect: type[Exception]) -> None:
    def broken(text: str) -> bool:
        raise defect

    overload = Overload("broken(string)", (STRING,), BOOL, broken)
    functions = {**FUNCTIONS, "broken": Function("broken", "test", "fails", (overload,))}
    tree = ir.Or(BOOL, (ir.Call(BOOL, overload.id, (typed("s"),)), ir.Var(BOOL, "b")))
    with pytest.raises(LimitExceeded, match=defect.__name__):
        compile_row(("s", "b"), tree, functions).call("a", True)
    found = compile_row(("s", "b"), {"broken": tree, "whole": typed("1 + 1")}, functions).call("a", True)
    assert isinstance(found["broken"], LimitExceeded)
    assert found["whole"] == 2


def test_a_fact_of_another_type_than_declared_is_an_error_of_the_language() -> None:
    with pytest.raises(NoSuchOverload, match="declared type"):
        call("node.capacity.cpu + cpu('1')", node={"capacity.cpu": "4"})


def test_several_outputs_do_not_disturb_each_other() -> None:
    outputs = {"good": typed("i + 1"), "bad": typed("1 / i"), "missing": typed("node.capacity.cpu")}
    found = compile_row(("i", "node"), outputs).call(0, {})
    assert found["good"] == 1
    assert isinstance(found["bad"], DivisionByZero)
    assert isinstance(found["missing"], MissingFact)


def counted(text: str, *, outputs: int = 1) -> int:
    """How often a function with a counter is called by an expression that names it `count()`."""
    calls = 0

    def count(value: int) -> int:
        nonlocal calls
        calls += 1
        return value

    overload = Overload("count(int)", (INT,), INT, count)
    functions = {**FUNCTIONS, "count": Function("count", "test", "counts", (overload,))}

    def change(node: ir.Node) -> ir.Node:
        marked = isinstance(node, ir.Call) and node.overload == "math.abs(int)"
        return ir.Call(INT, overload.id, node.args) if marked and isinstance(node, ir.Call) else node

    tree = rewrite(typed(text), change)
    trees = {str(at): ir.MakeList(tree.type, (tree, typed(str(at)))) for at in range(outputs)}
    compile_row(("i", "b", "li"), trees if outputs > 1 else tree, functions).call(3, True, [1, 2, 3])
    return calls


HEAVY = "math.abs(i * i + i * i - i * i + i)"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAVY} + {HEAVY}",
        f"b ? {HEAVY} : {HEAVY} + 1",
        f"(b ? {HEAVY} : 1) + (b ? {HEAVY} : 2)",
        f"{HEAVY} > 1 && {HEAVY} < 100 && {HEAVY} != 5",
        f"li.map(v, v + {HEAVY}).sum()",
        f"li.all(v, v < {HEAVY}) && li.exists(v, v < {HEAVY})",
        f"cel.bind(v, {HEAVY}, li.map(w, w + v).sum() + v)",
        f"optional.of({HEAVY}).optMap(v, v + v + {HEAVY}).value()",
    ],
)
def test_what_an_expression_repeats_is_computed_once(text: str) -> None:
    assert counted(text) == 1


def test_what_outputs_have_in_common_is_computed_once() -> None:
    assert counted(f"[{HEAVY}, 1]", outputs=3) == 1


def test_what_is_not_needed_is_not_computed() -> None:
    assert counted(f"b ? 1 : {HEAVY} + {HEAVY}") == 0
    assert counted(f"cel.bind(v, {HEAVY}, b ? 1 : v + v)") == 0
    assert counted(f"b || {HEAVY} > 1 ? 1 : 2") == 0
    assert counted(f"optional.of(1).orValue({HEAVY})") == 0
    assert counted(f"[].map(v, {HEAVY}).size()") == 0


@pytest.mark.parametrize("other", ["optional.of(1 / i)", "dyn(optional.of(1 / i))"])
@pytest.mark.parametrize("first", ["optional.of(7)", "dyn(optional.of(7))"])
def test_the_other_optional_is_evaluated_only_of_none(first: str, other: str) -> None:
    assert call(f"{first}.or({other}).value()") == 7
    assert call(f"{first}.orValue({other}.value())") == 7
    with pytest.raises(DivisionByZero):
        call(f"{first.replace('optional.of(7)', 'optional.none()')}.or({other}).value()")


@pytest.mark.parametrize("method", ["or(optional.of(1)).value()", "orValue(1)", "optMap(x, 1).value()"])
def test_what_is_no_optional_is_an_error_that_logic_absorbs(method: str) -> None:
    with pytest.raises(NoSuchOverload, match="an optional is wanted"):
        call(f"dyn(i).{method} == 1")
    assert call(f"dyn(i).{method} == 1 || i == 0") is True


def test_a_value_of_the_loop_is_computed_anew_each_time() -> None:
    text = "li.map(v, b ? math.abs(v * v + v * v + v) + math.abs(v * v + v * v + v) : 0)"
    assert counted(text) == 3


@pytest.mark.parametrize("levels", [50, 500, 5_000])
def test_deep_sums_compile_and_run(levels: int) -> None:
    left = right = typed("i")
    for _ in range(levels):
        left = ir.Call(INT, "_+_(int,int)", (left, typed("1")))
        right = ir.Call(INT, "_+_(int,int)", (typed("1"), right))
    assert compile_row(("i",), {"left": left, "right": right}).call(1) == {
        "left": levels + 1,
        "right": levels + 1,
    }


def test_shared_values_keep_programs_short() -> None:
    tree = typed("i")
    for _ in range(60):
        tree = ir.Cond(INT, typed("b"), ir.Call(INT, "_+_(int,int)", (tree, typed("1"))), tree)
    program = compile_row(("i", "b"), tree)
    assert program.call(1, True) == 61
    assert len(program.source) < 100_000


def test_alternating_logic_over_a_missing_fact_takes_no_exponential_time() -> None:
    tree = typed("node.unschedulable")
    for level in range(300):
        tree = (ir.And if level % 2 else ir.Or)(BOOL, (tree, typed("b" if level % 2 else "i > 5")))
    program = compile_row(("node", "b", "i"), tree)
    began = time.perf_counter()
    with pytest.raises(MissingFact):
        program.call({}, True, 1)
    assert time.perf_counter() - began < 1


def test_nested_loops_beyond_what_python_nests() -> None:
    tree = typed("i > 0")
    for level in range(40):
        name = f"v{level}"
        test = ir.And(
            BOOL, (ir.Call(BOOL, "_>_(int,int)", (ir.Var(INT, name, local=True), typed("0"))), tree)
        )
        tree = ir.Comprehension(BOOL, "exists", typed("li"), (name,), test)
    assert compile_row(("i", "li"), tree).call(1, [0, 1]) is True


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(100000).map(v, lists.range(1000)).size()",
        "lists.range(10000).all(v, lists.range(10000).all(w, w >= 0 || v > w))",
        "lists.range(1000).map(v, lists.range(1000).map(w, 'x' + string(v)).join().replace('x', '0123456789')).size()",
        "cel.bind(s0, 'ab', "
        + "".join(f"cel.bind(s{n + 1}, s{n} + s{n}, " for n in range(40))
        + "size(s40)"
        + ")" * 41,
    ],
)
def test_evaluation_is_bounded(text: str) -> None:
    program = compile_row((), typed(text))
    began = time.perf_counter()
    with pytest.raises(LimitExceeded):
        program.call()
    assert time.perf_counter() - began < 10


def test_no_operand_absorbs_a_limit() -> None:
    with pytest.raises(LimitExceeded):
        call("lists.range(2000000).size() > 1 || true")


def test_roots_of_any_name_become_parameters() -> None:
    tree = ir.Call(INT, "_+_(int,int)", (ir.Var(INT, "com.example.x"), ir.Var(INT, "class")))
    assert compile_row(("com.example.x", "class"), tree).call(1, 2) == 3


def test_texts_never_become_code() -> None:
    hostile = "'); import os; ('\\\"\n{0}%s"
    tree = ir.MakeList(
        typed("[s]").type, (ir.Const(STRING, hostile, "s"), ir.Select(STRING, typed("m"), hostile))
    )
    with pytest.raises(CelError):
        compile_row(("m",), tree).call({})
    assert compile_row(("m",), tree).call({hostile: "x"}) == [hostile, "x"]


def test_what_should_have_been_resolved_before_is_refused() -> None:
    with pytest.raises(ValueError, match="unresolved references"):
        compile_row((), ir.Ref(INT, "variables", "x"))
    with pytest.raises(ValueError, match="not among the roots"):
        compile_row((), typed("i"))
    with pytest.raises(ValueError, match="no function"):
        compile_row((), ir.Call(INT, "nonsense(int)", (typed("1"),)))


def test_facts_are_told() -> None:
    tree = typed(
        "node.capacity.cpu > cpu('1') && has(node.usage.prod.cpu) && node.pods.all(p, p.priority > i)"
    )
    assert facts_of(tree) == {
        ("node", "capacity.cpu"),
        ("node", "usage.prod.cpu"),
        ("node", "pods"),
        ("pod", "priority"),
        ("i", ""),
    }


def test_a_root_read_as_a_whole_is_told_beside_its_facts() -> None:
    whole = ir.Call(INT, "size(map(A,B))", (ir.Var(typed("m").type, "m"),))
    tree = ir.MakeList(typed("li").type, (whole, ir.Select(INT, ir.Var(typed("m").type, "m"), "a")))
    assert compile_row(("m",), tree).facts == facts_of(tree) == {("m", "")}
    assert compile_row(("i",), typed("i")).facts == {("i", "")}


def test_references_are_replaced() -> None:
    ref = ir.Ref(CPU, "variables", "reserve")
    tree = ir.Call(CPU, "_-_(int,int)", (typed("node.capacity.cpu"), ref))
    assert refs_of(tree) == {("variables", "reserve")}
    replaced = substitute(tree, {("variables", "reserve"): typed("cpu('1')")})
    assert replaced == typed("node.capacity.cpu - cpu('1')")
    assert substitute(tree, {}) is tree


def test_bound_names_are_replaced_by_their_values() -> None:
    assert inline_binds(typed("cel.bind(v, i + 1, cel.bind(w, v * 2, w + v))")) == typed(
        "(i + 1) * 2 + (i + 1)"
    )
