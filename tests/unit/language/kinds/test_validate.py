"""Findings on the shape of documents: one a cause, at the key or value to change, with what to write instead."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics, Fix, Span
from koordpolicy.language.documents import read_documents
from koordpolicy.language.kinds import Spec
from koordpolicy.language.kinds.overcommit import OvercommitSpec
from koordpolicy.language.validate import validate

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "faults.yaml")
HEAD = "apiVersion: koordpolicy.io/v1alpha1\nkind: {}\nmetadata:\n  name: a\nspec:\n"


def validated(text: str) -> tuple[list[Spec | None], Diagnostics]:
    found = Diagnostics()
    return [validate(document, found) for document in read_documents("f.yaml", text, found)], found


def whole(kind: str, spec: str) -> str:
    return HEAD.format(kind) + "".join(f"  {line}\n" for line in spec.splitlines())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_faults_are_told_where_they_are(case: dict[str, Any]) -> None:
    specs, found = validated(case.get("text") or whole(case["kind"], case["spec"]))
    assert specs == [None]
    shown = []
    for one in found:
        help = f" | {one.help}" if one.help else ""
        shown.append(f"{one.code} {one.span.start.line}:{one.span.start.column} {one.message}{help}")
    assert sorted(shown) == sorted(case["findings"])


def test_a_sound_document_gives_its_spec() -> None:
    specs, found = validated(whole("Overcommit", "resource: mid\ncpu: 4"))
    assert not list(found)
    (spec,) = specs
    assert isinstance(spec, OvercommitSpec)
    assert (spec.resource, spec.cpu) == ("mid", 4)


def test_misspellings_and_units_can_be_mended_by_a_machine() -> None:
    _, found = validated(whole("Overcommit", "resorce: batch\npublish: {whenChangedBy: 10}"))
    fixes = [one.fix for one in found]
    assert fixes == [
        Fix("change to `resource`", Span.at("f.yaml", 6, 3, 7), "resource"),
        Fix("write `10%`", Span.at("f.yaml", 7, 28, 2), "10%", safe=True),
    ]


def test_an_alias_names_where_its_value_comes_from() -> None:
    _, found = validated(whole("CPUSuppress", 'minimum: &four "4z"\ntarget: *four'))
    notes = [note.span for one in found for note in one.notes]
    assert notes == [Span.at("f.yaml", 6, 18, 4)]


def test_long_texts_are_shortened_in_messages() -> None:
    _, found = validated(whole("CPUSuppress", f"mechanism: {'x' * 5000}\ninterval: |\n  one\n  two"))
    messages = [one.message for one in found]
    assert all(len(message) < 120 and "\n" not in message for message in messages)
    assert len(messages) == 2


def test_texts_of_a_megabyte_are_refused_quickly() -> None:
    for text in ("a" * 900_000, "a." * 450_000, "a(" * 400_000, "-" * 900_000, "9" * 900_000):
        _, found = validated(
            whole("CPUSuppress", f'target: "{text}"\nvariables: [{{name: "{text[:900]}", expression: x}}]')
        )
        assert found.has_errors
