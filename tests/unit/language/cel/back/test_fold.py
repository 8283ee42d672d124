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


def _doubled(levels: int, asked: str) -> str:
    """Lists of twice the list before: few values that unfold to two to the power of `levels`."""
    heads = ["cel.bind(a0, [1, 1], "]
    heads += [f"cel.bind(a{at}, [a{at - 1}, a{at - 1}], " for at in range(1, levels)]
    return "".join(heads) + asked.format(last=f"a{levels - 1}") + ")" * levels


def test_values_that_share_their_parts_are_folded_at_once() -> None:
    folded = fold(typed(_doubled(40, "{last}.size() == 2")))
    assert isinstance(folded, ir.Const)
    assert folded.value is True


def test_keys_of_constants_tell_unequal_values_apart_and_no_equal_ones() -> None:
    texts = [
        "[1]",
        "[1.0]",
        "[1u]",
        "[true]",
        "['1']",
        "[[1]]",
        "[1, 1]",
        "['1', '1']",
        "['1 1']",
        "{1: 1}",
        "[optional.of(1)]",
    ]
    keys = [folded.key for text in texts if isinstance(folded := fold(typed(f"dyn({text})")), ir.Const)]
    assert len(set(keys)) == len(texts)
    again = [folded.key for text in texts if isinstance(folded := fold(typed(f"dyn({text})")), ir.Const)]
    assert again == keys
