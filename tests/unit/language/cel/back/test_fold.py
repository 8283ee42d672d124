"""What folding leaves of an expression."""

import pytest

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import walk
from tests.conformance.values import same
from tests.unit.language.cel.back.expressions import typed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("number(cpu('4') * percent(65))", 2600),
        ("duration('1h').getMinutes()", 60),
        ("{'a': [1, 2]}['a'][1]", 2),
        ("has({'a': 1}.a)", True),
        ("{'a': 1}.?b.orValue(5)", 5),
        ("true || node.unschedulable", True),
        ("node.unschedulable && false", False),
        ("false ? i : 3", 3),
        ("cel.bind(x, 2, x * x)", 4),
        ("[1, 2, 3].map(x, x * x).sum()", 14),
        ("[1, 2, 3].filter(x, x > 1).size()", 2),
        ("[1, 2].exists_one(x, x == 1)", True),
        ("['a'].transformList(i, v, v + string(i))", ["a0"]),
        ("optional.of(2).optMap(x, x + 1).value()", 3),
        ("[].all(x, x)", True),
        ("'grey'.matches('gr(a|e)y')", True),
    ],
)
def test_constants_are_computed(text: str, value: object) -> None:
    folded = fold(typed(text))
    assert isinstance(folded, ir.Const)
    assert same(folded.value, value)
    assert folded.type == typed(text).type


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "9223372036854775807 + 1",
        "duration('x')",
        "'a'.matches('(')",
        "[1][2]",
        "optional.none().value()",
        "lists.range(5000)",
    ],
)
def test_what_fails_or_is_large_stays(text: str) -> None:
    assert not isinstance(fold(typed(text)), ir.Const)


def test_neutral_operands_go() -> None:
    assert fold(typed("true && b && true")) == typed("b")
    assert fold(typed("b || (false || i > 1)")) == typed("b || i > 1")


def test_an_operand_of_unknown_type_is_still_checked() -> None:
    assert isinstance(fold(typed("true && x")), ir.And)


def test_macros_over_small_constant_lists_are_written_out() -> None:
    folded = fold(typed("['a', 'b'].exists(v, s == v)"))
    assert folded == typed("s == 'a' || s == 'b'")
    assert not any(isinstance(node, ir.Comprehension) for node in walk(folded))


def test_macros_over_long_constant_lists_stay() -> None:
    text = f"[{', '.join(map(str, range(100)))}].exists(v, i == v)"
    assert isinstance(fold(typed(text)), ir.Comprehension)
