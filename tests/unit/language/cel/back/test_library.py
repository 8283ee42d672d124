"""What holds for every function of the table, whatever the values that it is given."""

import random
from typing import Any

import pytest

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.functions import Overload
from koordpolicy.language.cel.library import OVERLOADS
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, NONE, Duration, Optional, Timestamp, UInt
from koordpolicy.language.cel.values_plain import to_plain
from koordpolicy.language.cel.values_time import parse_timestamp
from tests.unit.language.cel.back.expressions import typed

SURROGATES = ("\ud800", "a\udfffb", "\ud83d", "é\udc80")
TEXTS = (
    "",
    "a",
    "é€",
    "10.0.0.1",
    "9e999",
    "%s%d",
    "(a)|",
    "1.5Gi",
    "\x00",
    "9" * 400,
    "1" * 5000,
    "/?a=1;b=%zz",
    *SURROGATES,
)
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, -1, 63, 64, INT_MAX, INT_MIN),
    "uint": (UInt(0), UInt(2**64 - 1)),
    "double": (0.0, -0.0, 1.5, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 2.0**63),
    "bool": (True, False),
    "string": TEXTS,
    "bytes": (b"", b"a", b"\xff"),
    "null_type": (None,),
    "google.protobuf.Timestamp": (parse_timestamp("0001-01-01T00:00:00Z"), parse_timestamp("9999-12-31T23:59:59.999999999Z"), Timestamp(0)),
    "google.protobuf.Duration": (Duration(0), Duration(INT_MAX), Duration(INT_MIN)),
}  # fmt: skip
MADE_OF = ("10.0.0.1", "10.0.0.1/8", "9e999", "-1e-999", "0", "8Ei", "https://a.b/c?d=%20e")
ROUNDS = 60


def value_of(chance: random.Random, kind: Type) -> Any:
    """A hostile value of a type."""
    if kind.name in VALUES:
        return chance.choice(VALUES[kind.name])
    if kind.name == "list":
        return [value_of(chance, kind.params[0]) for _ in range(chance.randrange(4))]
    if kind.name == "map":
        return {chance.choice(TEXTS): value_of(chance, kind.params[1]) for _ in range(chance.randrange(3))}
    if kind.name == "optional_type":
        return NONE if chance.random() < 0.3 else Optional(value_of(chance, kind.params[0]))
    makers = [row for row in OVERLOADS.values() if row.result == kind and row.params[0].name == "string"]
    if makers:
        return made(chance, makers[0])
    return value_of(chance, Type(chance.choice(sorted(VALUES))))


def made(chance: random.Random, overload: Overload) -> Any:
    """A value that a function makes of a text, such as an IP address."""
    while True:
        try:
            return overload.implementation(chance.choice(MADE_OF))
        except CelError:
            continue


@pytest.mark.parametrize("id", sorted(OVERLOADS))
def test_a_function_gives_a_value_or_an_error_of_the_language(id: str) -> None:
    overload, chance = OVERLOADS[id], random.Random(id)
    for _ in range(ROUNDS):
        params = overload.params * (chance.randrange(1, 4) if overload.variadic else 1)
        arguments = [value_of(chance, kind) for kind in params]
        try:
            value = overload.implementation(*arguments)
        except CelError:
            continue
        to_plain(value)


@pytest.mark.parametrize("text", SURROGATES)
@pytest.mark.parametrize(
    "expression",
    ["s.matches('a')", "s.matches(s)", "s.find('a') == ''", "s.findAll('a') == []", "regex.replace(s, 'a', 'b') == s",
     "regex.extract(s, 'a').hasValue()", "regex.extractAll(s, 'a') == []", "bytes(s) == b''"],
)  # fmt: skip
def test_a_text_that_is_no_unicode_is_an_error_that_a_decisive_operand_absorbs(
    expression: str, text: str
) -> None:
    with pytest.raises(CelError):
        compile_row(("s",), typed(expression)).call(text)
    assert compile_row(("s",), typed(f"{expression} || true")).call(text) is True
    assert compile_row(("s",), typed(f"true || {expression}")).call(text) is True
