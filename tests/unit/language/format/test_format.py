"""Formatting moves lines and changes nothing else: data, comments and expressions stay, a second pass does nothing."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from koordpolicy.language.format import format_text

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "cases.yaml")
VALID = sorted((Path(__file__).parents[1] / "kinds" / "valid").glob("*.yaml"))


def formatted(text: str) -> str:
    return format_text("f.yaml", text, Diagnostics())


def data(text: str) -> list[Any]:
    found = Diagnostics()
    documents = read_documents("f.yaml", text, found)
    assert not found.has_errors
    return [document.data for document in documents]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_layouts(case: dict[str, Any]) -> None:
    expected = case.get("after", case["before"])
    assert formatted(case["before"]) == expected
    assert formatted(expected) == expected


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_policies_in_canonical_layout_stay(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_errors_are_reported() -> None:
    found = Diagnostics()
    format_text("f.yaml", "a: [\n", found)
    assert [one.code for one in found] == ["KP002"]


def written(draw: st.DrawFn, depth: int, column: int, in_list: bool) -> list[str]:
    """Lines of a random block below column `column`, laid out in any way that YAML permits."""
    step = draw(st.integers(0 if in_list else 1, 4)) if depth else 0
    indent = " " * (column + step)
    noise = st.sampled_from(["", "", "", "", "\n", "# note", "    # far", "# a: b", "\n\n\n"])
    end = st.sampled_from(["", "", "  ", " # end", "    # e: f"])
    scalars = st.sampled_from(
        ["1", "word", "'a  b'", '"x # y"', "true", "a:b", "[1,2,  3]", "{a: b,c:  'd'}", "5%", "~"]
    )
    lines: list[str] = []
    listed = bool(depth) and draw(st.booleans())
    for number in range(draw(st.integers(1, 3))):
        before = draw(noise)
        lines += (
            [" " * (column + draw(st.integers(0, 3))) + part if part else "" for part in before.split("\n")]
            if before
            else []
        )
        gap = " " * draw(st.integers(1, 3))
        head = indent + ("-" if listed else f"k{number}:")
        kind = draw(st.sampled_from(["scalar", "block", "literal", "plain"]))
        if kind == "block" and depth < 3:
            lines += [head + draw(end), *written(draw, depth + 1, len(indent), not listed)]
            if lines[-1] == head:
                lines.append(indent + "   x")
        elif kind == "literal":
            inner = indent + " " * draw(st.integers(1, 5))
            lines += [
                head + gap + draw(st.sampled_from(["|", ">-", "|+"])),
                inner + "a #",
                "",
                inner + "  b ",
                inner + "c",
            ]
        elif kind == "plain":
            lines += [head + gap + "one", indent + "  two"]
        else:
            lines.append(head + gap + draw(scalars) + draw(end))
    return lines


@st.composite
def layouts(draw: st.DrawFn) -> str:
    lines = written(draw, 0, 0, in_list=False)
    if draw(st.booleans()):
        lines += ["kind: K", *(["# n"] if draw(st.booleans()) else []), "apiVersion:   v"]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n# end\n"]))


@given(layouts())
def test_nothing_but_the_layout_changes(text: str) -> None:
    found = Diagnostics()
    result = format_text("f.yaml", text, found)
    if found.has_errors:
        assert result == text
        return
    assert data(result) == data(text)
    assert formatted(result) == result
    tails = sorted(line.partition("#")[2].strip() for line in text.splitlines() if "#" in line)
    assert sorted(line.partition("#")[2].strip() for line in result.splitlines() if "#" in line) == tails


@given(layouts())
def test_sound_layouts_become_canonical(text: str) -> None:
    """The formatter's doubt is a net: what YAML permits here, it moves."""
    found = Diagnostics()
    result = format_text("f.yaml", text, found)
    if found.has_errors or "|+" in text:
        return
    keys = [line for line in result.splitlines() if line.lstrip("- ").startswith("k") and ":" in line]
    assert all(
        (len(line) - len(line.lstrip(" "))) % 2 == 0 for line in keys if not line.lstrip().startswith("#")
    )
