"""From JSON Schema to the structural schemas that the API server takes.

A structural schema says one type everywhere. Where a policy takes several (a literal or `{cel: ...}`) the
type is left open; what then still is said of texts, numbers and mappings binds only values of that shape.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_EXACT = 2**53
"""Beyond this a bound is no exact number in every reader of a schema."""

_OPEN = "x-kubernetes-preserve-unknown-fields"
_LIST_TYPE = "x-kubernetes-list-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_EITHER = "A value, or `{cel: expression}`."


def structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """The structural form of a JSON Schema; `definitions` are what its references lead to.

    Defaults are left out, and rules between fields: the server keeps what is written, and judges no meaning.
    """
    whole = _resolved(schema, definitions)
    shapes = _alternatives(whole, definitions)
    if len(shapes) > 1:
        return _described(whole, _open(shapes), _EITHER)
    [shape] = shapes
    if shape.get("type") == "object":
        return _described(whole, _object(shape, definitions))
    if shape.get("type") == "array":
        return _described(whole, _array(shape, definitions))
    return _described(whole, {"type": shape["type"], **_rules(shape)})


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """The schema with its reference followed; what stands beside the reference goes before."""
    result = dict(schema)
    while "$ref" in result:
        name = str(result.pop("$ref")).rpartition("/")[2]
        result = {**definitions[name], **result}
    return result


def _alternatives(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Schema]:
    """The shapes that a value may have, nested alternatives spread out."""
    if "anyOf" not in schema:
        return [dict(schema)]
    return [
        shape
        for inner in schema["anyOf"]
        for shape in _alternatives(_resolved(inner, definitions), definitions)
    ]


def _described(whole: Mapping[str, Any], result: Schema, more: str = "") -> Schema:
    text = " ".join(part for part in (whole.get("description", ""), more) if part)
    return {"description": text, **result} if text else result


def _object(shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    properties = shape.get("properties")
    if properties is not None:
        result: Schema = {
            "type": "object",
            "properties": {key: structural(rule, definitions) for key, rule in properties.items()},
        }
        return {**result, "required": list(shape["required"])} if shape.get("required") else result
    entries = shape.get("additionalProperties")
    if isinstance(entries, Mapping):
        return {"type": "object", "additionalProperties": structural(entries, definitions)}
    return {"type": "object", _OPEN: True}


def _array(shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """A list; entries with a name of their own can be owned one by one under server-side apply."""
    items = structural(shape["items"], definitions)
    named = "name" in items.get("required", ()) and items["properties"]["name"].get("type") == "string"
    kind: Schema = {_LIST_TYPE: "map", _LIST_KEYS: ["name"]} if named else {_LIST_TYPE: "atomic"}
    sizes = {key: shape[key] for key in ("minItems", "maxItems") if key in shape}
    return {"type": "array", "items": items, **sizes, **kind}


def _rules(shape: Mapping[str, Any]) -> Schema:
    """What is said of a single value, as far as the API server can check it."""
    result = {key: shape[key] for key in ("enum", "minLength", "maxLength") if key in shape}
    if "pattern" in shape:
        result["pattern"] = _go(shape["pattern"])
    for key in ("minimum", "maximum"):
        if key in shape and abs(shape[key]) <= _EXACT:
            result[key] = shape[key]
    return result


def _go(pattern: str) -> str:
    """The pattern in the dialect of Go, which has no look-ahead and whose `$` is the very end."""
    return pattern.replace(r"$(?!\n)", "$").replace("(?=[0-9])", "")


def _open(shapes: list[Schema]) -> Schema:
    """A value of several shapes.

    What a rule says of texts leaves numbers and mappings alone, and the other way round; an `enum` would bind all.
    """
    mappings = [shape for shape in shapes if shape.get("type") == "object"]
    if len(mappings) == len(shapes):
        return {"type": "object", _OPEN: True}
    result: Schema = {_OPEN: True}
    texts = [shape for shape in shapes if shape.get("type") == "string"]
    numbers = [shape for shape in shapes if shape.get("type") in ("integer", "number")]
    if len(texts) == 1:
        [text] = texts
        if "enum" in text:
            result["pattern"] = "^(?:" + "|".join(text["enum"]) + ")$"
        else:
            result |= _rules(text)
    if len(numbers) == 1:
        result |= _rules(numbers[0])
    if len(mappings) == 1 and mappings[0].get("required") == ["cel"]:
        result |= {"required": ["cel"], "maxProperties": 1}
    return result
