"""Tokens: literals and their escapes, names, comments, and what is refused."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koordpolicy.language.cel.escapes import quote_bytes, quote_string
from koordpolicy.language.cel.lexer import Token, tokens
from koordpolicy.language.cel.syntax import MAX_SOURCE, SyntaxProblem

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def only(source: str) -> Token:
    token, end = tokens(source)
    assert end.kind == "end"
    return token


def attempt(text: str) -> list[Token] | SyntaxProblem:
    try:
        return tokens(text)
    except SyntaxProblem as problem:
        return problem


@given(TEXTS)
@example("'\"\\\n\r\t\0\x7f\u2028")
def test_a_quoted_string_reads_back(text: str) -> None:
    token = only(quote_string(text))
    assert (token.kind, token.value) == ("string", text)


@given(st.binary())
def test_quoted_bytes_read_back(octets: bytes) -> None:
    token = only(quote_bytes(octets))
    assert (token.kind, token.value) == ("bytes", octets)


@given(TEXTS.filter(lambda text: "'" not in text and "\n" not in text and "\r" not in text))
def test_a_raw_string_is_what_it_looks_like(text: str) -> None:
    assert only(f"r'{text}'").value == text
    assert only(f"bR'{text}'").value == text.encode()


@given(TEXTS.filter(lambda text: "'''" not in text and not text.endswith("'") and "\r" not in text))
def test_three_quotes_hold_lines_and_quotes(text: str) -> None:
    assert only(f"r'''{text}'''").value == text


@given(st.integers(min_value=0, max_value=2**80))
def test_whole_numbers_read_back(number: int) -> None:
    assert only(str(number)) == ("int", number, 0, len(str(number)))
    assert only(hex(number)).value == number
    assert only(f"{number}u") == ("uint", number, 0, len(str(number)) + 1)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_doubles_read_back(number: float) -> None:
    token = only(repr(number))
    assert token.kind == "double"
    assert isinstance(token.value, float) and math.copysign(1, token.value) == 1 and token.value == number


@given(st.text())
@example("'" * 7)
@example('"\\')
@example("0x")
@example("1" * 5000)
@example("\ud800")
def test_any_text_gives_tokens_or_one_syntax_problem(text: str) -> None:
    found = attempt(text)
    if isinstance(found, SyntaxProblem):
        assert 0 <= found.start <= found.end <= len(text)
        assert found.message
        return
    # Tokens lie in order, and only space and comments lie between them.
    position = 0
    for token in found:
        assert position <= token.start <= token.end <= len(text)
        position = token.end
    assert found[-1] == ("end", None, len(text), len(text))


ESCAPES = [
    (r"'\a\b\f\n\r\t\v\\\?\"\'\`'", "\a\b\f\n\r\t\v\\?\"'`"),
    (r"'\x41\X41\u0041\U00000041\101'", "AAAAA"),
    (r"'\xff\377'", "ÿÿ"),
    (r"'\U0001F62C'", "😬"),
    (r'"""a "quoted" \""" """', 'a "quoted" """ '),
    ("'''a\nb'''", "a\nb"),
    ("'''a\r\nb\rc'''", "a\nb\nc"),
    ("''", ""),
    ("''''''", ""),
    ('r"\\"', "\\"),
    ("R'\\n'", "\\n"),
]


@pytest.mark.parametrize(("source", "value"), ESCAPES)
def test_escapes_of_strings(source: str, value: str) -> None:
    assert only(source).value == value


BYTES = [
    (r"b'\xff\377'", b"\xff\xff"),
    ("b'ÿ'", b"\xc3\xbf"),
    (r"B'\a\?'", b"\a?"),
    (r"rb'\x00'", b"\\x00"),
    (r"Br'\x00'", b"\\x00"),
    ("b'''a\nb'''", b"a\nb"),
]


@pytest.mark.parametrize(("source", "value"), BYTES)
def test_escapes_of_bytes(source: str, value: bytes) -> None:
    assert only(source).value == value


KINDS = [
    ("a && b", ["name", "&&", "name", "end"]),
    ("a // b\n + c", ["name", "+", "name", "end"]),
    ("// only", ["end"]),
    (" \t\n\f\r", ["end"]),
    ("in true false null inn", ["in", "true", "false", "null", "name", "end"]),
    ("a.b", ["name", ".", "name", "end"]),
    ("a.`b-c/d.e f`", ["name", ".", "quoted", "end"]),
    (".5 1.5 1e3 1.5E-3", ["double", "double", "double", "double", "end"]),
    ("1.a", ["int", ".", "name", "end"]),
    ("-1", ["-", "int", "end"]),
    ("a[?0].?b", ["name", "[", "?", "int", "]", ".", "?", "name", "end"]),
    ("rb r b", ["name", "name", "name", "end"]),
    ("r'a'b", ["string", "name", "end"]),
    ("<=>=!=!", ["<=", ">=", "!=", "!", "end"]),
]


@pytest.mark.parametrize(("source", "kinds"), KINDS)
def test_kinds(source: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokens(source)] == kinds


def test_a_text_may_be_long_but_not_endless() -> None:
    assert only("'" + "a" * (MAX_SOURCE - 2) + "'").kind == "string"
    with pytest.raises(SyntaxProblem) as caught:
        tokens("a" * (MAX_SOURCE + 1))
    assert caught.value.code == "KP211"


@pytest.mark.parametrize(
    "source", ["'" + "\\" * 49_999, '"""' + '"a' * 20_000, "'''" + "\\'" * 20_000, "r'" + "a" * 49_000]
)
def test_an_open_quote_takes_no_time(source: str) -> None:
    with pytest.raises(SyntaxProblem):
        tokens(source)
