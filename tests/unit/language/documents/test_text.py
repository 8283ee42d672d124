"""A caret lands where it should: decoded strings map back to the file exactly, in every style."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.language.documents import TextMap, read_documents
from koordpolicy.language.documents.text import decode
from koordpolicy.language.documents.tree import Place

PIECES = st.sampled_from(
    [
        "a",
        "b",
        "é",
        "😀",
        " ",
        "  ",
        "\n",
        "\n  ",
        "\n   ",
        "\n    ",
        "\n\n",
        "'",
        '"',
        "''",
        "\\n",
        "\\\\",
        '\\"',
        "\\x41",
        "\\u00e9",
        "\\ud83d",
        "\\ude00",
        "\\\n",
        "\\t",
        "|",
        ">",
        "-",
        "+",
        "1",
        "2",
        "#",
        " #c",
        ": ",
        "- ",
        "\t",
        "&x ",
        "*x",
        "!!str ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "? ",
        "\r\n",
        "---\n",
    ]
)
HEADS = st.sampled_from(
    [
        "k: ",
        "k:\n  j: ",
        "k: |\n  ",
        "k: >\n  ",
        "k: >-\n ",
        "k: |+\n  ",
        "k: |2\n",
        "k: >1\n",
        "- k: |2\n",
        "k: x",
        "- - |1\n",
        'k: "',
        "k: '",
        "k: &a |\n  ",
        "k: !!str >\n  ",
        "k: {a: ",
        "k: [",
        "? |2\n",
    ]
)
TAILS = st.sampled_from(["", "\n", '"', "'", "\n\nz: y\n", '"\nz: y\n', "}", "]"])


def texts_of(place: Place, seen: set[int]) -> list[Place]:
    """Every string scalar below a place, keys too."""
    if id(place) in seen:
        return []
    seen.add(id(place))
    below = [*(place.keys or {}).values()]
    below += place.children.values() if isinstance(place.children, dict) else place.children or []
    own = [place] if place.style is not None and isinstance(place.data, str) and place.origin is None else []
    return own + [text for child in below for text in texts_of(child, seen)]


@given(HEADS, st.lists(PIECES, max_size=14).map("".join), TAILS)
@example("k: |+\n", "  a\n\n  b\n\n", "")
@example("k: >\n", "  a\n  b\n\n   more\n  c\n", "z: y\n")
@example('k: "', "a\n   b\\\n   c\n\n  d\\u00e9", '"')
@example("k: &a |\n  ", "a\n\t\n  b", "")
def test_every_character_of_every_scalar_is_found_again(head: str, body: str, tail: str) -> None:
    """Whatever YAML makes of a scalar, reading it again gives the same string and the place of each character."""
    text = head + body + tail
    found = Diagnostics()
    documents = read_documents("f", text, found)
    assume(documents and not list(found))
    for document in documents:
        for place in texts_of(document.positions.root, set()):
            assert place.style is not None
            value, sources = decode(text, place.start, place.text_end or place.end, place.style)
            assert value == place.data
            assert len(sources) == len(value) + 1
            assert sources == sorted(sources)
            for character, source in zip(value, sources, strict=False):
                at = text[source]
                escaped = place.style == '"' and at == "\\"
                folded = character in " \n" and at in " \t\r\n"
                assert at == character or escaped or folded


EXPRESSION = (
    "node.capacity.cpu * percent(65)\n  - variables.protected // \"don't\" \\ 'é😀'\n\nmax(cpu('1'), x[0])"
)


def literal(indent: str) -> str:
    return "|-\n" + "\n".join(indent + line if line else "" for line in EXPRESSION.split("\n"))


def double() -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "é": "\\u00e9", "😀": "\\U0001F600"}
    return '"' + "".join(escapes.get(character, character) for character in EXPRESSION) + '"'


@pytest.mark.parametrize(
    "written",
    [literal("  "), literal("      "), "|2-\n" + literal("  ")[3:], double()],
    ids=["literal", "deep literal", "explicit indentation", "double"],
)
def test_a_whole_expression_maps(written: str) -> None:
    text = f"a: 1\nexpression: {written}\nb: 2\n"
    found = Diagnostics()
    (document,) = read_documents("f", text, found)
    assert document.data["expression"] == EXPRESSION
    map_ = document.positions.text(("expression",))
    assert map_ is not None
    lines = text.split("\n")
    for index, character in enumerate(EXPRESSION):
        position = map_.position(index)
        there = lines[position.line - 1][position.column - 1 : position.column]
        assert there in (character, "\\") or (character == "\n" and there == "")


@pytest.mark.parametrize(
    ("text", "piece", "span"),
    [
        ("cel: node.cpu + pod.memory\n", "pod.memory", Span.at("f", 1, 17, 10)),
        ("cel: 'a == ''b'' && c'\n", "'b'", Span.at("f", 1, 12, 5)),
        ('cel: "a == \\"b\\" && c"\n', '"b"', Span.at("f", 1, 12, 5)),
        ('cel: "a\\x3db"\n', "=", Span.at("f", 1, 8, 4)),
        ('cel: "a\\\\b"\n', "\\", Span.at("f", 1, 8, 2)),
        ("cel: a +\n  b +\n  c\n", "b +", Span.at("f", 2, 3, 3)),
        ("cel: >-\n  a +\n  bcd\n", "bcd", Span.at("f", 3, 3, 3)),
        ("cel: |\n\n  a +\n    bcd\n", "bcd", Span.at("f", 4, 5, 3)),
        ("cel: |4-\n      a\n", "a", Span.at("f", 2, 7)),
        ('cel: "a +\n  \\  b"\n', "  b", Span.at("f", 2, 3, 4)),
        ('cel: "a\\\n  b"\n', "b", Span.at("f", 2, 3)),
        ("cel: &x !!str abc\n", "b", Span.at("f", 1, 16)),
        ("cel:\n- - cel: |2\n          a\n", "a", Span.at("f", 3, 11)),
        ("cel: 😀é - x\n", "x", Span.at("f", 1, 11)),
    ],
)
def test_a_piece_of_text_is_underlined(text: str, piece: str, span: Span) -> None:
    found = Diagnostics()
    (document,) = read_documents("f", text, found)
    (scalar,) = [one for one in texts_of(document.positions.root, set()) if one.data != "cel"]
    assert isinstance(scalar.data, str)
    end = scalar.text_end or scalar.end
    map_ = TextMap(document.positions.lines, scalar.start, end, scalar.style or "", scalar.data)
    start = scalar.data.index(piece)
    assert map_.span(start, start + len(piece)) == span


def test_the_end_of_a_text_is_after_its_last_character() -> None:
    found = Diagnostics()
    (document,) = read_documents("f", "a: 1 +\nb: |\n  2 *\nc: '3 -'\n", found)
    assert document.positions.text_span(("a",), 3, 3) == Span.at("f", 1, 7)
    assert document.positions.text_span(("b",), 3, 3) == Span.at("f", 3, 6)
    assert document.positions.text_span(("c",), 3, 3) == Span.at("f", 4, 8)


def test_offsets_outside_the_text_stay_within() -> None:
    found = Diagnostics()
    (document,) = read_documents("f", "a: xyz\n", found)
    map_ = document.positions.text(("a",))
    assert map_ is not None
    assert map_.offset(-5) == 3
    assert map_.offset(99) == 6


def test_what_is_no_text_has_no_map() -> None:
    found = Diagnostics()
    (document,) = read_documents("f", "a: 1\nb: [c]\n", found)
    assert document.positions.text(("a",)) is None
    assert document.positions.text(("b",)) is None
    assert document.positions.text_span(("a",), 0, 1) == Span.at("f", 1, 4)
