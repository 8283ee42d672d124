"""Text made safe to show: which characters that concerns, and what they become."""

import json
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.diagnostics.escaping import encodable, is_plain, json_text, one_line, safe

TEXTS = st.text(st.characters(exclude_categories=()))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def is_unsafe(character: str) -> bool:
    code = ord(character)
    nothing = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return nothing or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def test_every_character_of_unicode() -> None:
    """Also those that are not assigned yet in a range of format characters."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        plain = is_plain(character)
        assert not (plain and is_unsafe(character)), hex(code)
        assert plain or is_unsafe(character) or unicodedata.category(character) == "Cn", hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("policies/a b.yaml", "policies/a b.yaml"),
        ("gilt für 日本 \N{NO-BREAK SPACE}😀", "gilt für 日本 \N{NO-BREAK SPACE}😀"),
        (b"pol\xff.yaml".decode("utf-8", "surrogateescape"), r"pol\xff.yaml"),
        ("\x1b[31mred\x9b0m\x7f", r"\x1b[31mred\x9b0m\x7f"),
        ("tab\tcr\rlf\n", r"tab\tcr\rlf\n"),
        ("\u202eyml.exe\u2028", r"\u202eyml.exe\u2028"),
        ("\ud83d \ufffe \U000e0041", r"\ud83d \ufffe \U000e0041"),
    ],
)
def test_names(text: str, shown: str) -> None:
    assert one_line(text) == shown
    assert is_plain(text) == (text == shown)


def test_line_feeds_stay_where_there_may_be_lines() -> None:
    assert safe("a\nb\r\nc\rd") == "a\nb\nc\\rd"


@given(TEXTS)
def test_what_is_safe_stays_as_it_is(text: str) -> None:
    for make in (one_line, safe):
        shown = make(text)
        assert make(shown) == shown
        assert not any(is_unsafe(character) and character != "\n" for character in shown)


def replaced(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [replaced(one) for one in value]
    return {encodable(key): replaced(one) for key, one in value.items()} if isinstance(value, dict) else value


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_json_means_the_same_and_is_safe(value: Any, only_ascii: bool, indent: int | None) -> None:
    text = json_text(value, indent=indent, only_ascii=only_ascii)
    assert json.loads(text) == replaced(value)
    assert not any(is_unsafe(character) and character != "\n" for character in text)
    assert text.isascii() or not only_ascii


@given(TEXTS)
def test_encodable(text: str) -> None:
    encodable(text).encode("utf-8")
    assert len(encodable(text)) == len(text)
