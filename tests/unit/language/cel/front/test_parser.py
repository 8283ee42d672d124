"""Trees: precedence, positions, limits, and that what is written out reads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.cel import ast
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import MAX_DEPTH, MAX_NODES, SyntaxProblem
from koordpolicy.language.cel.unparse import unparse
from tests.unit.language.cel.front.trees import bare, trees


def walk(node: ast.Expr) -> list[ast.Expr]:
    return [node, *(inner for child in ast.children(node) for inner in walk(child))]


def attempt(text: str) -> ast.Expr | SyntaxProblem:
    try:
        return parse(text)
    except SyntaxProblem as problem:
        return problem


@given(trees)
def test_what_is_written_out_reads_back(tree: ast.Expr) -> None:
    text = unparse(tree)
    again = parse(text)
    assert unparse(again) == text
    assert bare(parse(unparse(again))) == bare(again)


@given(trees)
def test_the_stretch_of_a_node_is_its_own_text(tree: ast.Expr) -> None:
    text = unparse(tree)
    for node in walk(parse(text)):
        assert 0 <= node.start < node.end <= len(text)
        assert bare(parse(text[node.start : node.end])) == bare(node)


_PIECES = st.sampled_from(
    [*"+-*/%!<>?:.,()[]{}", "&&", "||", "==", "in", "a", "b.c", "has", "1", "2u", "1.5", "'s'", "b'x'", "null", "`q`", " "]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_any_text_is_a_tree_or_one_syntax_problem(text: str) -> None:
    tree = attempt(text)
    if isinstance(tree, SyntaxProblem):
        assert 0 <= tree.start <= tree.end <= len(text)
        return
    assert bare(parse(unparse(tree))) == bare(tree)


GROUPED = [
    ("a || b && c == d + e * -f.g", "a || (b && (c == (d + (e * (-(f.g))))))"),
    ("a - b - c", "(a - b) - c"),
    ("a / b * c % d", "((a / b) * c) % d"),
    ("a < b == c", "(a < b) == c"),
    ("a in b in c", "(a in b) in c"),
    ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
    ("a || b ? c || d : e || f", "(a || b) ? (c || d) : (e || f)"),
    ("!a.b", "!(a.b)"),
    ("!!a", "!(!a)"),
    ("- -a", "-(-a)"),
    ("!a == b", "(!a) == b"),
    ("-a.b()", "-(a.b())"),
    ("-1.abs()", "(-1).abs()"),
    ("a.b[c].d(e)", "((a.b)[c]).d(e)"),
    ("a -1", "a - 1"),
    ("a\n// note\n+ b", "a + b"),
]


@pytest.mark.parametrize(("source", "grouped"), GROUPED)
def test_operators_bind_as_the_language_says(source: str, grouped: str) -> None:
    assert bare(parse(source)) == bare(parse(grouped))


def test_a_minus_before_a_number_is_written_with_parentheses() -> None:
    for source in ("-(1)", "-(1).f()", "-(.5)", "-(1u)[0]"):
        tree = parse(source)
        assert bare(parse(unparse(tree))) == bare(tree)


SAME = [
    "[1, 2,]",
    "{1: 2,}",
    "[?a, b]",
    "{?a: b}",
    "a.?b",
    "a[?b]",
    "a.`b-c`",
    ".a.b",
    "a.if",
    "a.if()",
    "Foo{a: 1,}",
]


@pytest.mark.parametrize("source", SAME)
def test_the_whole_syntax_is_read(source: str) -> None:
    assert unparse(parse(source)) == source.replace(",]", "]").replace(",}", "}")


def test_chains_of_conditions_are_one_call() -> None:
    for operator, name in (("&&", "_&&_"), ("||", "_||_")):
        node = parse(f" {operator} ".join("abcd"))
        assert isinstance(node, ast.CallExpr)
        assert node.function == name
        assert len(node.args) == 4
    node = parse("a && (b && c)")
    assert isinstance(node, ast.CallExpr)
    assert len(node.args) == 2


def test_a_minus_belongs_to_its_literal() -> None:
    node = parse("-9223372036854775808")
    assert isinstance(node, ast.Literal)
    assert node.value == -(2**63)
    assert isinstance(parse("-(1)"), ast.CallExpr)
    assert isinstance(parse("-1u"), ast.CallExpr)


def test_has_is_a_test_of_a_selection() -> None:
    node = parse("has(a.b.c)")
    assert isinstance(node, ast.SelectExpr)
    assert (node.field, node.test, node.start, node.end) == ("c", True, 0, 10)
    plain = parse("has(a.b.c)", macros=False)
    assert isinstance(plain, ast.CallExpr)
    assert plain.function == "has"


def test_positions_of_names() -> None:
    source = "  abc.def( g ) + .h"
    names = {source[node.start : node.end] for node in walk(parse(source))}
    assert names == {"abc.def( g ) + .h", "abc.def( g )", "abc", "g", ".h"}
    call = parse("abc . def()")
    assert isinstance(call, ast.CallExpr)
    assert call.name_start == 6


MUST_PARSE = {
    "or": " || ".join(["a"] * 300),
    "and": " && ".join(["a"] * 300),
    "arguments": f"f({', '.join(['a'] * 300)})",
    "list": f"[{', '.join(['a'] * 300)}]",
    "map": "{" + ", ".join(f"{n}: a" for n in range(300)) + "}",
    "conditionals": "a ? b : " * 32 + "c",
    "sums": " + ".join(["a"] * 33),
    "products": " * ".join(["a"] * 33),
    "relations": " < ".join(["a"] * 33),
    "selections": "a" + ".b" * 32,
    "indexings": "a" + "[b]" * 32,
    "calls": "f(" * 32 + "a" + ")" * 32,
    "methods": "a" + ".f()" * 32,
    "lists": "[" * 32 + "]" * 32,
    "maps": "{1: " * 32 + "2" + "}" * 32,
    "parentheses": "(" * 64 + "a" + ")" * 64,
    "all at once": "(a || b && c == d + e * -" * 16 + "f" + ")" * 16,
    "negations": "!" * 32 + "a",
}


@pytest.mark.parametrize("source", MUST_PARSE.values(), ids=MUST_PARSE)
def test_what_the_language_promises_can_be_read(source: str) -> None:
    parse(source)


TOO_MUCH = {
    "parentheses": "(" * 50_000,
    "closed parentheses": "(" * 24_000 + "a" + ")" * 24_000,
    "lists": "[" * 1_000,
    "maps": "{a:" * 1_000,
    "calls": "f(" * 1_000,
    "indexings": "a[" * 1_000,
    "methods": "a" + ".f()" * 2_000,
    "conditionals": "a?b:" * 1_000 + "c",
    "prefixes": "!" * 10_000 + "a",
    "minuses": "-" * 10_000 + "a",
    "sums": "a" + "+a" * 5_000,
    "selections": "a" + ".b" * 5_000,
    "mixed": "-(a+[{1:f(" * 1_000,
    "parts": "a||" * 20_000 + "a",
    "length": "a" * 60_000,
    "depth by one": "a" + "+a" * MAX_DEPTH,
    "tokens by one": "a||" * (MAX_NODES // 2) + "a",
}


@pytest.mark.parametrize("source", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_much_is_refused_in_words(source: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse(source)
    assert caught.value.code == "KP211"
    assert caught.value.help


def test_just_enough_is_not_too_much() -> None:
    parse("a" + "+a" * (MAX_DEPTH - 1))
    parse("a||" * (MAX_NODES // 2 - 1) + "a")


def test_the_limits_do_not_depend_on_how_deep_python_is() -> None:
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
            return
        parse(MUST_PARSE["all at once"])
        with pytest.raises(SyntaxProblem):
            parse(TOO_MUCH["mixed"])

    deeper(200)
