"""The text format: carets under what they speak of, within the width, and nothing a terminal would obey."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostic, Note, Position, Severity, Span
from koordpolicy.diagnostics.render import render
from koordpolicy.diagnostics.render.display import cells, clip, width_of, wrap
from tests.unit.diagnostics.render.sample import FINDINGS, SOURCES, findings, sources

CASES = YAML(typ="safe", pure=True).load(Path(__file__).with_name("text_cases.yaml"))


def finding_of(case: dict[str, Any]) -> Diagnostic:
    def span(place: list[int], file: str = "a.yaml") -> Span:
        line, column, end_line, end_column = (
            place if len(place) == 4 else (*place[:2], place[0], place[1] + place[2])
        )
        return Span(file, Position(line, column), Position(end_line, end_column))

    notes = [
        Note(note["message"], span(note["at"], note.get("file", "a.yaml")) if "at" in note else None)
        for note in case.get("notes", [])
    ]
    return Diagnostic(
        "KP107",
        case.get("message", "value not permitted"),
        span(case["at"]),
        Severity(case.get("severity", "error")),
        tuple(notes),
        case.get("help"),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_drawing(case: dict[str, Any]) -> None:
    texts = {"a.yaml": case["source"], **case.get("others", {})}
    text = render("text", [finding_of(case)], texts, width=case.get("width", 80))
    assert text.rsplit("\n\n", 1)[0] == case["expect"].rstrip("\n")


def test_colour_only_adds_colour() -> None:
    plain = render("text", FINDINGS, SOURCES)
    coloured = render("text", FINDINGS, SOURCES, colour=True)
    assert "\x1b[1;31merror[KP204]\x1b[0m" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@given(st.lists(findings, min_size=1, max_size=4), sources, st.sampled_from([0, 20, 80]))
def test_each_finding_has_its_place(found: list[Diagnostic], texts: dict[str, str], width: int) -> None:
    text = render("text", found, texts, width=width)
    assert len([line for line in text.split("\n") if " --> " in line]) >= len(found)


@given(st.text("ab値\t\u0301\x1b", max_size=40), st.data())
def test_the_caret_stands_under_its_character(line: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(line)))
    shown, offset, length = clip(line, at, at + 1, 0)
    assert offset == width_of(line[:at])
    assert length == max(1, width_of(line[at : at + 1]))
    assert width_of(shown) == width_of(line)


@given(st.text("ab値\t x", max_size=200), st.integers(0, 210), st.integers(0, 30), st.integers(8, 60))
def test_a_cut_line_fits_and_shows_where_its_stretch_begins(
    line: str, start: int, length: int, columns: int
) -> None:
    shown, offset, marked = clip(line, start, start + length, columns)
    assert width_of(shown) <= columns
    assert offset <= columns
    assert marked >= 1
    if start < len(line) and width_of(line[start]) > 0:
        seen = ""
        for character in shown:
            if width_of(seen) >= offset:
                break
            seen += character
        rest = shown[len(seen) :]
        assert rest.startswith(cells(line[start])[0][0])


@given(st.text("ab `値\n", max_size=120), st.integers(1, 40))
def test_wrapping_keeps_every_word_and_fits(text: str, columns: int) -> None:
    lines = list(wrap(text, columns))
    assert " ".join(lines).split() == text.split()
    for line in lines:
        assert width_of(line) <= columns or len(line.split()) == 1
