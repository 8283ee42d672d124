"""The checker as a whole: it never raises, and works up to every limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import Problem, check, check_as
from koordpolicy.language.cel.environment import Environment, UserFunction
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import MAX_DEPTH
from koordpolicy.language.cel.types import BOOL, CPU, ERROR, INT, STRING, map_of
from tests.unit.language.cel.front.expressions import expressions
from tests.unit.language.cel.front.trees import trees
from tests.unit.language.cel.front.world import PLAIN, POLICY, as_locals, checked

UNCHECKED = Environment(variables={"a": INT}, functions=FUNCTIONS, unchecked=True)


@given(trees, st.sampled_from([POLICY, PLAIN, UNCHECKED]))
def test_any_tree_is_checked_without_raising(tree: ast.Expr, environment: Environment) -> None:
    problems: list[Problem] = []
    node = check(tree, environment, problems)
    assert all(problem.message and problem.code.startswith("KP") for problem in problems)
    if not problems:
        assert all(part.type != ERROR for part in walk(node))
    check_as(tree, CPU, environment, [])


@given(expressions())
def test_an_error_node_stands_exactly_where_something_was_reported(source: str) -> None:
    node, problems = checked(source)
    assert node is not None
    errors = [problem for problem in problems if problem.severity == "error"]
    holes = any(part.type == ERROR for part in walk(node))
    if errors:
        assert holes
    elif holes:
        assert "broken" in source
    for problem in problems:
        assert 0 <= problem.start < problem.end <= len(source)
        assert "None" not in problem.message


@given(expressions())
def test_a_second_check_says_the_same(source: str) -> None:
    assert checked(source) == checked(source)


LIMITS = {
    "sums": "1" + " + 1" * (MAX_DEPTH - 1),
    "negations": "!" * (MAX_DEPTH - 1) + "true",
    "lists": "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1),
    "calls": "dyn(" * (MAX_DEPTH - 21) + "1" + ")" * (MAX_DEPTH - 21),
    "methods": "'a'" + ".trim()" * (MAX_DEPTH - 1),
    "selections": "anything" + ".a" * (MAX_DEPTH - 1),
    "indexings": "anything" + "[0]" * (MAX_DEPTH - 1),
    "macros": "[1].map(x, " * 45 + "1" + ")" * 45,
    "binds": "cel.bind(x, 1, " * 45 + "x" + ")" * 45,
    "conditionals": "anything ? 1 : " * (MAX_DEPTH - 10) + "1",
    "block": f"cel.block([{', '.join(['1'] * MAX_DEPTH)}], cel.index({MAX_DEPTH - 1}))",
}


@pytest.mark.parametrize("source", LIMITS.values(), ids=LIMITS)
def test_what_can_be_read_can_be_checked(source: str) -> None:
    def deeper(levels: int) -> list[Problem]:
        return deeper(levels - 1) if levels else checked(source)[1]

    assert deeper(150) == []


def test_a_block_is_bounded() -> None:
    _, problems = checked(f"cel.block([{', '.join(['1'] * (MAX_DEPTH + 1))}], cel.index(0))")
    assert [problem.code for problem in problems] == ["KP211"]


def test_functions_that_call_functions_are_bounded() -> None:
    environment, body = POLICY, "[a, a]"
    for level in range(40):
        source = (
            body if level == 0 else f"f{level - 1}(a).all(x, f{level - 1}(a) == f{level - 1}(a)) ? [a] : [a]"
        )
        environment, problems = define(environment, f"f{level}", source)
        if problems:
            assert {problem.code for problem in problems} == {"KP211"}
            return
    pytest.fail("the functions grew without end")


def test_functions_that_nest_too_deeply_are_refused() -> None:
    environment, problems = define(POLICY, "f0", "1" + " + 1" * (MAX_DEPTH - 3))
    for level in range(1, 5):
        environment, problems = define(
            environment, f"f{level}", f"f{level - 1}(a)" + " + 1" * (MAX_DEPTH - 5)
        )
        if problems:
            break
    assert [problem.code for problem in problems] == ["KP211"]


def define(environment: Environment, name: str, source: str) -> tuple[Environment, list[Problem]]:
    problems: list[Problem] = []
    body = check(parse(source), environment.extended({"a": INT}), problems, source)
    function = UserFunction(name, (("a", INT),), as_locals(body, frozenset(("a",))))
    return environment.extended(user_functions={name: function}), problems


# --- names ------------------------------------------------------------------------------------------


def resolved(source: str, container: str = "", **variables: str) -> ir.Node:
    names = {name.replace("__", "."): STRING for name in variables}
    environment = Environment(variables=names, functions=FUNCTIONS, container=container)
    problems: list[Problem] = []
    node = check(parse(source), environment, problems, source)
    assert problems == []
    return node


@pytest.mark.parametrize(
    ("source", "container", "found"),
    [
        ("y", "a.b", "a.b.y"),
        ("y", "a", "a.y"),
        ("y", "c.d", "y"),
        ("y", "", "y"),
        (".y", "a.b", "y"),
        ("b.y", "a", "a.b.y"),
        (".a.y", "a.b", "a.y"),
    ],
)
def test_a_name_is_searched_for_from_the_innermost_container(source: str, container: str, found: str) -> None:
    node = resolved(source, container, a__b__y="", a__y="", y="")
    assert isinstance(node, ir.Var)
    assert node.name == found


def test_the_longest_declared_name_wins() -> None:
    environment = Environment({"a.b": map_of(STRING, STRING), "a.b.c": STRING}, FUNCTIONS)
    longest = check(parse("a.b.c"), environment, [], "")
    assert isinstance(longest, ir.Var)
    assert longest.name == "a.b.c"
    field = check(parse("a.b.d"), environment, [], "")
    assert isinstance(field, ir.Select)
    grouped = check(parse("(a.b).c"), environment, [], "")
    assert isinstance(grouped, ir.Var | ir.Select)


def test_a_local_name_hides_a_declared_one() -> None:
    node = resolved("['x'].all(y, y == .y)", "a", a__y="", y="")
    equality = next(part for part in walk(node) if isinstance(part, ir.Call))
    local, outer = equality.args
    assert isinstance(local, ir.Var)
    assert local.local
    assert isinstance(outer, ir.Var)
    assert (outer.local, outer.name) == (False, "y")


def test_a_local_name_hides_a_qualified_one() -> None:
    node = resolved("[{'z': 'x'}].all(y, y.z == 'x')", y__z="")
    assert not any(isinstance(part, ir.Var) and part.name == "y.z" for part in walk(node))


def test_a_local_name_hides_a_library() -> None:
    environment = Environment(functions=FUNCTIONS)
    problems: list[Problem] = []
    check(parse("['127.0.0.1'].all(ip, ip.isCanonical())"), environment, problems, "")
    assert [problem.code for problem in problems] == ["KP207"] or problems[0].code == "KP205"


def test_more_names_hide_old_ones_space_by_space() -> None:
    wider = POLICY.extended({"node": INT}, {"variables": {"reserve": BOOL}, "own": {"x": STRING}})
    assert check(parse("node"), wider, []).type == INT
    assert check(parse("variables.reserve"), wider, []).type == BOOL
    assert check(parse("variables.share"), wider, []).type == check(parse("variables.share"), POLICY, []).type
    assert check(parse("own.x"), wider, []).type == STRING


def test_without_macros_they_are_calls() -> None:
    environment = Environment(functions=FUNCTIONS, macros=False, unchecked=True)
    node = check(parse("has(a.b)", macros=False), environment, [], "")
    assert isinstance(node, ir.Call)
    assert node.overload == "error(unbound)"


UNCHECKED_CALLS = [
    ("x", "error(unbound)"),
    ("f(1)", "error(unbound)"),
    ("'a'.nonsense()", "error(unbound)"),
    ("size(1, 2)", "error(no_such_overload)"),
    ("size(1)", "size(dyn)"),
    ("1.contains('a')", ".contains(dyn,dyn)"),
    ("1 + 'a'", "_+_(dyn,dyn)"),
    ("1 < 'a'", "_<_(dyn,dyn)"),
    ("!1", "!_(dyn)"),
    ("-true", "-_(dyn)"),
    ("1 in 2", "@in(dyn,dyn)"),
    ("1 == 'a'", "_==_"),
]


@pytest.mark.parametrize(("source", "overload"), UNCHECKED_CALLS)
def test_unchecked_mistakes_wait_for_run_time(source: str, overload: str) -> None:
    problems: list[Problem] = []
    node = check(parse(source), UNCHECKED, problems, source)
    assert problems == []
    assert isinstance(node, ir.Call)
    assert node.overload == overload


WRAPPERS = [
    ("google.protobuf.Int32Value{value: 34}", 34, "int"),
    ("Int64Value{}", 0, "int"),
    ("FloatValue{value: 0.1}", 0.10000000149011612, "double"),
    ("StringValue{value: 'a'}", "a", "string"),
    ("Value{null_value: NullValue.NULL_VALUE}", None, "null_type"),
    ("Value{}", None, "null_type"),
    ("UInt32Value{value: 1u}", 1, "uint"),
]


@pytest.mark.parametrize(("source", "value", "type"), WRAPPERS)
def test_a_wrapper_is_the_value_in_it(source: str, value: object, type: str) -> None:
    problems: list[Problem] = []
    environment = Environment(functions=FUNCTIONS, container="google.protobuf")
    node = check(parse(source), environment, problems, source)
    assert problems == []
    assert isinstance(node, ir.Const)
    assert (node.value, node.type.name) == (value, type)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("google.protobuf.Int32Value{value: 3000000000}", "KP210"),
        ("google.protobuf.Int32Value{value: 'a'}", "KP205"),
        ("google.protobuf.Int32Value{wert: 1}", "KP203"),
        ("google.protobuf.Int32Value{value: node.capacity.pods}", "KP205"),
        ("google.protobuf.Value{bool_value: true, string_value: 'a'}", "KP205"),
        ("google.protobuf.Any{}", "KP202"),
    ],
)
def test_a_faulty_wrapper_is_refused(source: str, code: str) -> None:
    _, problems = checked(source)
    assert [problem.code for problem in problems] == [code]
