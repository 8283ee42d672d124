"""JSON Schemas (draft 2020-12) of all kinds, made from their models for editors and other tools.

One schema a kind, and `all`, which takes any document and judges it by its `kind`. Each file stands
alone, so that an editor can use it from disk:

    # yaml-language-server: $schema=../schemas/all.json
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
)
from koordpolicy.language.kinds import API_VERSION, KINDS, type_name
from koordpolicy.language.kinds.document import DOCUMENTS
from koordpolicy.language.kinds.forms import any_of, form_of
from koordpolicy.language.kinds.slots import EXPRESSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = "#/$defs/{model}"


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, without titles nobody wrote, and with rules for the keys of mappings."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        result: JsonSchemaValue = {"type": "object"}
        names = {
            key: rule for key, rule in self.generate_inner(schema["keys_schema"]).items() if key != "type"
        }
        values = self.generate_inner(schema["values_schema"])
        if names:
            result["propertyNames"] = names
        if values:
            result["additionalProperties"] = values
        sizes = {"minProperties": schema.get("min_length"), "maxProperties": schema.get("max_length")}
        return result | {key: size for key, size in sizes.items() if size is not None}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None or "default_factory" in schema or schema["default"] == []:
            return self.generate_inner(schema["schema"])  # absent is all that such a default says
        return super().default_schema(schema)


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by the name of its file without `.json`: the kinds, and `all`."""
    by_model, shared = models_json_schema(
        [(model, "validation") for model in DOCUMENTS.values()],
        by_alias=True,
        ref_template=_REFERENCES,
        schema_generator=_Generator,
    )
    definitions: dict[str, Any] = {name: _shared(_tidy(rule)) for name, rule in shared["$defs"].items()}
    definitions |= _COMMON
    roots = {
        kind: by_model[model, "validation"]["$ref"].rpartition("/")[2] for kind, model in DOCUMENTS.items()
    }
    result = {kind: _of_kind(definitions[root], definitions) for kind, root in roots.items()}
    result["all"] = _of_all(roots, definitions)
    return result


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a file that is no policy, made in the same way."""
    found = model.model_json_schema(by_alias=True, ref_template=_REFERENCES, schema_generator=_Generator)
    definitions = {name: _tidy(rule) for name, rule in found.pop("$defs", {}).items()}
    return {"$schema": DIALECT, **_tidy(found), "$defs": dict(sorted(definitions.items()))}


_FORMS = (BOOL, INT, DOUBLE, STRING, CPU, MEMORY, AMOUNT, BANDWIDTH, PERCENT, DURATION, TIMESTAMP, DYN)
_COMMON: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "expression": EXPRESSION,
        **{f"literal-{type_name(type)}": any_of(form_of(type).schemas()) for type in _FORMS},
    }
)
"""Shapes that stand in many places, by the name of their definition."""

_KEYS = ("apiVersion", "kind", "metadata", "spec")


def _tidy(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A model's schema in the order in which people write documents, without pydantic's title."""
    result = {key: rule for key, rule in schema.items() if key != "title"}
    properties = result.get("properties", {})
    if "apiVersion" in properties:
        result["properties"] = {key: properties[key] for key in _KEYS}
        result["required"] = list(_KEYS)
    head = {key: result[key] for key in ("description", "type") if key in result}
    return head | result


def _shared(schema: Any) -> Any:
    """The schema with a reference wherever one of the common shapes stands."""
    if isinstance(schema, dict):
        for name, common in _COMMON.items():
            if schema == common:
                return {"$ref": _REFERENCES.format(model=name)}
        return {key: _shared(part) for key, part in schema.items()}
    return [_shared(part) for part in schema] if isinstance(schema, list) else schema


def _of_kind(root: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A document of one kind with just the definitions that it reaches."""
    needed: dict[str, Any] = {}
    todo = _references(root)
    while todo:
        name = todo.pop(0)
        if name not in needed:
            needed[name] = definitions[name]
            todo += _references(definitions[name])
    return {"$schema": DIALECT, **root, **({"$defs": dict(sorted(needed.items()))} if needed else {})}


def _references(schema: Any) -> list[str]:
    """Names of the definitions that a schema refers to, in order."""
    if isinstance(schema, Mapping):
        own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
        return own + [name for part in schema.values() for name in _references(part)]
    if isinstance(schema, list):
        return [name for part in schema for name in _references(part)]
    return []


def _of_all(roots: Mapping[str, str], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A document of any kind; an editor shows only what its `kind` permits."""
    return {
        "$schema": DIALECT,
        "description": "A policy document of any kind.",
        "type": "object",
        "properties": {
            "apiVersion": {"enum": [API_VERSION], "description": "Version of the policy language."},
            "kind": {
                "enum": list(roots),
                "description": "What the document speaks of: "
                + " ".join(f"{name}: {kind.summary}" for name, kind in KINDS.items()),
            },
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": _REFERENCES.format(model=root)},
            }
            for kind, root in roots.items()
        ],
        "$defs": dict(sorted(definitions.items())),
    }


def schema_files(others: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> dict[str, str]:
    """Name and text of every schema file; `others` are schemas of files that are no policies, by name."""
    return {
        f"{name}.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in {**schemas(), **others}.items()
    }


def write_schemas(
    directory: Path, others: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> list[Path]:
    """Write all schemas into a directory, made if need be; gives the files. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in schema_files(others).items():
        path = directory / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
