"""Faults in YAML: every one found, at its place, in words that help; the rest of the file read all the same."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.language.documents import read_documents
from koordpolicy.language.documents.faults import MAX_DEPTH
from koordpolicy.language.documents.read import MAX_CHARACTERS
from koordpolicy.language.format import format_text
from koordpolicy.language.validate import validate

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "faults.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_faults_are_found_where_they_are(case: dict[str, Any]) -> None:
    found = Diagnostics()
    read_documents("f.yaml", case["text"], found)
    shown = [f"{one.code} {one.span.start.line}:{one.span.start.column} {one.message}" for one in found]
    assert shown == case["findings"]


def test_what_is_sound_is_read_beside_what_is_not() -> None:
    found = Diagnostics()
    documents = read_documents("f.yaml", 'a: "x\n---\nb: 1\n---\nc: [\n---\nd: 2\n...\n---\ne: 3\n', found)
    assert [document.data for document in documents] == [{"b": 1}, {"d": 2}, {"e": 3}]
    assert [document.index for document in documents] == [0, 1, 2]
    assert len(found) == 2


def test_a_stand_in_takes_the_place_of_a_faulty_part() -> None:
    found = Diagnostics()
    (document,) = read_documents("f.yaml", "a: {x: 1, x: 2}\nb: !t c\n7: d\ne: *f\n", found)
    assert document.data == {"a": {"x": 1}, "b": "c", "7": "d", "e": None}


def test_a_duplicate_key_names_the_first() -> None:
    found = Diagnostics()
    read_documents("f.yaml", "a: 1\n\na: 2\n", found)
    (finding,) = found
    assert finding.notes[0].span == Span.at("f.yaml", 1, 1)


def test_an_unquoted_key_can_be_mended_by_a_machine() -> None:
    found = Diagnostics()
    read_documents("f.yaml", "404: gone\n", found)
    (finding,) = found
    assert finding.fix is not None
    assert (finding.fix.span, finding.fix.replacement) == (Span.at("f.yaml", 1, 1, 3), '"404"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "x" * MAX_CHARACTERS, "more than 1,000,000"),
        ("[" * (MAX_DEPTH + 1), "nested deeper"),
        ("\n".join("  " * depth + "a:" for depth in range(MAX_DEPTH + 1)) + " 1", "nested deeper"),
        ("- " * 500_000, "nested deeper"),
        (
            "a: &a0 [x, x]\n"
            + "".join(f"b{level}: &a{level} [*a{level - 1}, *a{level - 1}]\n" for level in range(1, 30)),
            "aliases are expanded",
        ),
        ("a: [" + "1, " * 120_000 + "]", "aliases are expanded"),
    ],
    ids=["long", "deep flow", "deep block", "deep list", "alias bomb", "wide"],
)
def test_limits(text: str, message: str) -> None:
    found = Diagnostics()
    assert read_documents("f.yaml", text, found) == []
    (finding,) = found
    assert finding.code == "KP004"
    assert message in finding.message


def test_numbers_of_hundreds_of_digits_are_refused() -> None:
    found = Diagnostics()
    read_documents("f.yaml", f"a: {'9' * 5000}\nb: 0x{'f' * 5000}\n", found)
    assert [(one.code, one.span.start.line) for one in found] == [("KP107", 1), ("KP107", 2)]


def test_many_number_signs_in_a_comment_are_read_once() -> None:
    found = Diagnostics()
    (document,) = read_documents("f.yaml", "# a " * 5000 + "\nb: 1\n", found)
    assert document.data == {"b": 1}


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "---\n---\n# x\n...\n", "\ufeff"])
def test_nothing_is_no_document(text: str) -> None:
    found = Diagnostics()
    assert read_documents("f.yaml", text, found) == []
    assert not list(found)


def test_directives_belong_to_the_document_that_follows() -> None:
    found = Diagnostics()
    documents = read_documents("f.yaml", "%YAML 1.2\n---\na: yes\n...\n%YAML 1.2\n# b\n---\nb: no\n", found)
    assert not list(found)
    assert [document.data for document in documents] == [{"a": "yes"}, {"b": "no"}]


@given(
    st.text(
        st.sampled_from("abk01 \n\n:-?#&*!|>'\"%@`{}[],\\\t\r~.<=é😀\x00\ufeff\u2028") | st.characters(),
        max_size=60,
    )
)
def test_whatever_stands_in_a_file_reading_and_formatting_go_well(text: str) -> None:
    found = Diagnostics()
    documents = read_documents("f.yaml", text, found)
    for document in documents:
        validate(document, found)
    result = format_text("f.yaml", text, Diagnostics())
    assert [one.data for one in read_documents("f.yaml", result, Diagnostics())] == [
        one.data for one in documents
    ]


def test_numbers_of_directives_have_limits() -> None:
    found = Diagnostics()
    assert read_documents("a.yaml", "%YAML " + "9" * 5_000 + ".1\n---\na: 1\n", found) == []
    assert [(one.code, one.message) for one in found] == [("KP002", "a number with too many digits")]


def test_halves_make_a_character_as_in_json() -> None:
    found = Diagnostics()
    (document,) = read_documents("a.yaml", '{"a \\ud83d\\ude00": "\\uD83D\\uDE00"}', found)
    assert (document.data, list(found)) == ({"a 😀": "😀"}, [])
    span = document.positions.text_span(("a 😀",), 0, 1)
    assert (span.start.column, span.end.column) == (21, 33)
