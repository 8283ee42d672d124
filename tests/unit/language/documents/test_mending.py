"""What is left of a document without the lines that its faults spoil."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from tests.unit.language.documents.test_text import PIECES

LINES = st.sampled_from(
    [
        "apiVersion: a",
        "kind: k",
        "metadata: {name: n}",
        "spec:",
        "  a: b",
        "  c: d: e",
        "  - f",
        "    g: |",
        "      text: [",
        '  h: "i',
        "  j: {k: l",
        "  m: [n",
        "  o",
        "\tp: q",
        "  r: *s",
        "  t: @u",
        "---",
        "  {{ v }}",
        "",
        "# w",
    ]
)


@given(st.lists(st.one_of(LINES, LINES, PIECES), max_size=14).map("\n".join))
def test_mending_only_adds(text: str) -> None:
    plain, mending = Diagnostics(), Diagnostics()
    before = read_documents("f", text, plain)
    after = read_documents("f", text, mending, mend=True)
    assert set(plain) <= set(mending)
    assert [one.data for one in after if not one.mended] == [one.data for one in before]
    assert mending.has_errors or not any(one.mended for one in after)


HEAD = "apiVersion: a\nkind: k\nspec:\n"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("  a: b: c\n  d: e\n", {"d": "e"}),
        ("  a:\n    b: c: d\n    e: f\n  g: h\n", {"a": {"e": "f"}, "g": "h"}),
        ("  a: [b\n  c: d\n", {"c": "d"}),
        ("  a: {b: c\n    , d: [\n  e: f\n", {"e": "f"}),
        ('  a: "b\n  c: d\n', {"c": "d"}),
        ("  a\n  b: c\n", {"b": "c"}),
        ("  a: b\n\tc: d\n  e: f\n", {"a": "b", "e": "f"}),
        ("  a: @b\n  c: d\n  e: `f\n  g: h\n", {"c": "d", "g": "h"}),
        ("  {{ include x }}\n  a: b\n", {"a": "b"}),
        ("  - a: b: c\n  - d: e\n", [{"d": "e"}]),
    ],
)
def test_the_rest_is_read(body: str, left: object) -> None:
    (document,) = read_documents("f", HEAD + body, Diagnostics(), mend=True)
    assert document.mended
    assert document.data["spec"] == left
    for at, line in enumerate((HEAD + body).split("\n"), 1):
        if line.strip() == "g: h":
            assert document.positions.key(("spec", "g")).start.line == at


def test_without_its_kind_nothing_is_left() -> None:
    assert read_documents("f", "kind: [a\nspec: {}\n", Diagnostics(), mend=True) == []
