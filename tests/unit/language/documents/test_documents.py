"""Documents: data by the core schema, anchors and merges resolved, a place for every key and value."""

from typing import Any

import pytest

from koordpolicy.diagnostics import Diagnostics, Position, Span
from koordpolicy.language.documents import Document, read_documents


def one(text: str) -> Document:
    found = Diagnostics()
    (document,) = read_documents("f.yaml", text, found)
    assert not list(found)
    return document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("~", None),
        ("", None),
        ('"true"', "true"),
        ("'1'", "1"),
        ("12", 12),
        ("-7", -7),
        ("+3", 3),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-03-01", "2026-03-01"),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ("65%", "65%"),
        ("500m", "500m"),
        ("node.capacity.cpu - 5", "node.capacity.cpu - 5"),
        ("a # b", "a"),
        ("a#b", "a#b"),
        ("!!str 12", "12"),
        ("!!float 1", 1.0),
        ("! 12", "12"),
        ("|\n  x\n", "x\n"),
        (">-\n  x\n  y\n", "x y"),
    ],
)
def test_scalars_mean_what_the_core_schema_says(text: str, value: Any) -> None:
    read = one(f"a: {text}\n").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_aliases_and_merges() -> None:
    document = one(
        "base: &base {cpu: 1, memory: 2}\n"
        "more: &more {memory: 3, pods: 4}\n"
        "a: *base\n"
        "b: {<<: *base, cpu: 5}\n"
        "c:\n  <<: [*base, *more]\n  pods: 6\n"
        'd: {"<<": 1}\n'
    )
    assert document.data["a"] == {"cpu": 1, "memory": 2}
    assert document.data["b"] == {"cpu": 5, "memory": 2}
    assert document.data["c"] == {"pods": 6, "cpu": 1, "memory": 2}
    assert document.data["d"] == {"<<": 1}


def test_an_alias_has_its_own_place_and_its_text_the_anchors() -> None:
    document = one("a: &x {cel: node.cpu}\nb: *x\nc: &y 'it''s'\nd: *y\n")
    positions = document.positions
    assert positions.value(("b",)) == Span.at("f.yaml", 2, 4, 2)
    assert positions.origin(("b",)) == Span.at("f.yaml", 1, 7, 15)
    assert positions.origin(("a",)) is None
    assert positions.text_span(("b", "cel"), 5, 8) == Span.at("f.yaml", 1, 18, 3)
    text = positions.text(("d",))
    assert text is not None
    assert text.span(2, 4) == Span.at("f.yaml", 3, 10, 3)


def test_places_of_keys_and_values() -> None:
    document = one(
        "# first\n"
        "kind: Overcommit   # what it is\n"
        "metadata: {name: batch, labels: {'a/b': \"c\"}}\n"
        "spec:\n"
        "  list:\n"
        "  - one\n"
        "  -   two: 2\n"
        "      three:\n"
        "  text: |\n"
        "    first\n"
        "    second\n"
        "\n"
        "# the end\n"
    )
    positions = document.positions

    def key(*path: str | int) -> tuple[int, int, int]:
        span = positions.key(path)
        assert span.start.line == span.end.line
        return span.start.line, span.start.column, span.end.column

    def value(*path: str | int) -> tuple[int, int, int, int]:
        span = positions.value(path)
        return span.start.line, span.start.column, span.end.line, span.end.column

    assert key("kind") == (2, 1, 5)
    assert value("kind") == (2, 7, 2, 17)
    assert key("metadata", "labels", "a/b") == (3, 34, 39)
    assert value("metadata", "labels", "a/b") == (3, 41, 3, 44)
    assert value("metadata") == (3, 11, 3, 46)
    assert value("spec") == (5, 3, 11, 11)
    assert key("spec", "list", 0) == (6, 5, 8)
    assert value("spec", "list", 1) == (7, 7, 8, 13)
    assert key("spec", "list", 1, "three") == (8, 7, 12)
    assert value("spec", "list", 1, "three") == (8, 13, 8, 14)
    assert value("spec", "text") == (9, 9, 11, 11)
    # What is not there has the place of what should hold it.
    assert key("spec", "nothing", "below") == key("spec")
    assert value("spec", "list", 9) == value("spec", "list")
    assert not positions.has(("spec", "nothing"))
    assert positions.start(("spec", "list", 0)) == Position(6, 5)


def test_names_of_a_document() -> None:
    document = one("apiVersion: v1\nkind: K\nmetadata: {name: n}\n")
    assert (document.api_version, document.kind, document.name) == ("v1", "K", "n")
    assert document.span == Span.at("f.yaml", 3, 18)
    bare = one("metadata: [n]\nkind: 5\n")
    assert (bare.api_version, bare.kind, bare.name) == ("", "", "")


def test_later_documents_know_their_lines() -> None:
    found = Diagnostics()
    text = "\ufeffa: 1\r\n---\r\nb: {cel: x}\r\n--- # third\r\nc:\r\n- d: |\r\n    e\r\n"
    documents = read_documents("f.yaml", text, found)
    assert [document.data for document in documents] == [{"a": 1}, {"b": {"cel": "x"}}, {"c": [{"d": "e\n"}]}]
    assert documents[0].positions.key(("a",)) == Span.at("f.yaml", 1, 2)
    assert documents[1].positions.text_span(("b", "cel"), 0, 1) == Span.at("f.yaml", 3, 10)
    assert documents[2].positions.text_span(("c", 0, "d"), 0, 1) == Span.at("f.yaml", 7, 5)


def test_the_digest_tells_files_apart() -> None:
    assert one("a: 1\n").text_digest == one("a: 1\n").text_digest
    assert one("a: 1\n").text_digest != one("a: 1\n\n").text_digest


@pytest.mark.parametrize("text", ["a: {b: [1, 'x']}\nc: |\n  two\n  lines\n", "a: &it {b: 1}\nc: *it\n"])
def test_places_that_were_let_go_are_found_again(text: str) -> None:
    found = Diagnostics()
    _, second = read_documents("f.yaml", f"\ufefffirst: 1\n---\n{text}", found)
    positions = second.positions
    paths: list[tuple[str | int, ...]] = [(), ("a",), ("a", "b"), ("a", "b", 1), ("c",), ("absent",)]

    def seen() -> list[Any]:
        inside = positions.text(("c",))
        return [
            second.span,
            inside and [inside.position(at) for at in range(9)],
            *((positions.value(path), positions.key(path), positions.origin(path)) for path in paths),
        ]

    before = seen()
    positions.let_go()
    assert seen() == before
