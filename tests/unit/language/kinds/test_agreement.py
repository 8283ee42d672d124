"""Models and JSON Schemas accept the same documents: all valid ones, and every mutation of them."""

import copy
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from koordpolicy.language.kinds import KINDS
from koordpolicy.language.kinds.document import DOCUMENTS
from koordpolicy.language.schema import schemas
from koordpolicy.language.validate import validate
from tests.unit.language.kinds.samples import sample

VALID = Path(__file__).parent / "valid"

STRANGERS: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 1.0, 1.5, -0.25, 10**12, 10**18, 10**20, 1e300, "", " ", "x", "4", "500m", "1.5", "-2",
    "65%", "65.5%", "%", "15m", "1h30m", "30m1h", "900s", "-5s", "1ns", "1e3", "200Mi", "4Gi", "1.5G", "9999999Ei",
    "50M", "yes", "true", "batch", "First", "None", "In", "CREATE", "v1", "a\n", "x y", "é", "😀", "a-b", "a_b", "A.b",
    "-a", "1a", "example.com/x", "a/b/c", "2026-03-01T12:00:00Z", "2026-02-30T12:00:00Z", "a" * 64, "a" * 254, "a" * 5000,
    "b" * 10001, "int", "list(cpu)", "map(string, cpu)", "map(string,cpu)", "list(list(int))", [], [1], ["x"], ["x", 1],
    ["CREATE", "CREATE"], [None], [{}], [{"cel": "x"}], [["x"]], ["x"] * 1001, {}, {"a": 1}, {"a": None}, {"a": "4Gi"},
    {"cel": "x"}, {"cel": ""}, {"cel": " "}, {"cel": 5}, {"cel": "x", "y": 1}, {"cel": None}, {"cel": "x" * 10001},
    {"value": 1}, {"type": "cpu"}, {"type": "cpu", "value": "4"}, {"type": "cpus", "value": "4"}, {"optional": "yes"},
    {"type": "cpu", "optional": True, "description": "d"}, {"value": {"cel": "x"}}, {"value": {"a": [1]}}, {"": 1},
    {"A b": "c"}, {"condition": "x"}, {"matchLabels": {"a": 1}}, {"key": "a", "operator": "Has"}, {"from": 1, "to": 2},
    {"name": "x"}, {"name": "x", "expression": "y"},
)  # fmt: skip
KEYS = ("unknown", "cel", "Name", "", "a b", "a\n", "x" * 400)


def documents() -> dict[str, Any]:
    yaml = YAML(typ="safe", pure=True)
    return {path.stem: yaml.load(path) for path in sorted(VALID.glob("*.yaml"))}


WRITTEN = documents()
FULL = {kind: sample(kind) for kind in KINDS}
SHARE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 80
"""One of how many mutations is tried; which ones changes from field to field."""


@cache
def validators() -> dict[str, Draft202012Validator]:
    return {name: Draft202012Validator(schema) for name, schema in schemas().items()}


def by_model(kind: str, document: Any) -> bool:
    try:
        DOCUMENTS[kind].model_validate(document)
    except ValidationError:
        return False
    return True


def paths(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from paths(item, (*here, step))


def inside(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def changed(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    result = copy.deepcopy(document)
    inside(result, path[:-1])[path[-1]] = copy.deepcopy(value)
    return result


def mutations(document: Any) -> Iterator[tuple[str, Any]]:
    """Each value replaced by each stranger, each key left out, renamed, or joined by another."""
    for path in paths(document):
        if not path:
            continue
        for stranger in STRANGERS:
            yield f"{path} = {str(stranger)[:40]!r}", changed(document, path, stranger)
        without = copy.deepcopy(document)
        del inside(without, path[:-1])[path[-1]]
        yield f"{path} left out", without
        holder = inside(document, path[:-1])
        if isinstance(holder, dict):
            for key in KEYS:
                renamed = copy.deepcopy(without)
                inside(renamed, path[:-1])[key] = holder[path[-1]]
                yield f"{path} renamed {key[:10]!r}", renamed
    for path in paths(document):
        if isinstance(inside(document, path), dict):
            for key in KEYS:
                yield f"{path} with {key[:10]!r}", changed(document, (*path, key), "x")


def disagreement(kind: str, name: str, document: Any) -> str | None:
    model = by_model(kind, document)
    own = validators()[kind].is_valid(document)
    if model != own:
        return f"{name}: the model {'accepts' if model else 'refuses'}, the schema does not agree"
    return None


def assert_valid(kind: str, document: Any) -> None:
    DOCUMENTS[kind].model_validate(document)
    validators()[kind].validate(document)
    validators()["all"].validate(document)
    assert not any(validators()[other].is_valid(document) for other in KINDS if other != kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_with_every_field_is_valid(kind: str) -> None:
    assert_valid(kind, FULL[kind])


@pytest.mark.parametrize("kind", WRITTEN)
def test_documents_as_people_write_them_are_valid(kind: str) -> None:
    assert_valid(kind, WRITTEN[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_model_and_schema_agree_on_mutations(kind: str) -> None:
    cases = [*mutations(FULL[kind]), *(mutations(WRITTEN[kind]) if kind in WRITTEN else ())]
    found = [
        disagreement(kind, name, document)
        for at, (name, document) in enumerate(cases)
        if at % SHARE == at // 97 % SHARE
    ]
    assert [one for one in found if one] == []
    accepted = sum(by_model(kind, document) for _, document in cases[:: SHARE * 5])
    assert 0 < accepted < len(cases[:: SHARE * 5])


@st.composite
def twice_mutated(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(list(KINDS)))
    document = draw(st.sampled_from([FULL[kind], WRITTEN.get(kind, FULL[kind])]))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in paths(document) if path]))
        document = changed(document, path, draw(st.sampled_from(STRANGERS)))
    return kind, document


@given(twice_mutated())
def test_model_schema_and_findings_agree_on_several_mutations(case: tuple[str, Any]) -> None:
    kind, document = case
    model = by_model(kind, document)
    assert validators()["all"].is_valid(document) == model
    found = Diagnostics()
    read = read_documents("f.yaml", json.dumps(document, ensure_ascii=False), found)
    specs = [validate(one, found) for one in read]
    assert (bool(specs) and specs[0] is not None and not list(found)) == model
    assert model or list(found)
