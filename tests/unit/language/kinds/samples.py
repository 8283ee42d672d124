"""A valid document of every kind that fills every field, made from the models."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

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
    UINT,
    Type,
)
from koordpolicy.language.kinds import API_VERSION, KINDS, Cel, Slot
from koordpolicy.language.kinds.exceptions import Override
from koordpolicy.language.kinds.fields import Flag, FreeObject, Text, Whole
from koordpolicy.language.kinds.parameters import Parameter

LITERALS: Mapping[Type, Any] = MappingProxyType(
    {
        BOOL: True,
        INT: 7,
        UINT: 7,
        DOUBLE: 1.5,
        STRING: "word",
        CPU: "500m",
        MEMORY: "4Gi",
        AMOUNT: "4",
        BANDWIDTH: "50M",
        PERCENT: "65%",
        DURATION: "1h30m",
        TIMESTAMP: "2026-03-01T12:00:00Z",
        DYN: [1, "x"],
    }
)
TEXTS = (
    "word",
    "int",
    "**/*.yaml",
    "2026-03-01",
    "Overcommit/batch.cpu",
    "Overcommit",
    "node.usage.total.cpu",
)


def sample(kind: str) -> dict[str, Any]:
    """The document."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": "sample", "labels": {"a": "b"}, "annotations": {"a/b": "c d"}},
        "spec": of_model(KINDS[kind].spec),
    }


def of_model(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: of_field(field) for name, field in model.model_fields.items()}


def of_field(field: FieldInfo) -> Any:
    return of_marks(field.metadata, field.annotation)


def of_marks(marks: Any, annotation: Any) -> Any:
    """A value for a field, by what it is marked with, else by its type."""
    for mark in marks:
        match mark:
            case Slot():
                one = literal(mark)
                return [one, {"cel": "x"}] if mark.many else one
            case Cel():
                return "true"
            case Text():
                return next(text for text in (*mark.choices, *TEXTS) if fits(mark, text))
            case Whole():
                return mark.minimum
            case Flag():
                return True
            case FreeObject():
                return {"anything": [1, {"b": None}]}
    return of_type(annotation)


def literal(slot: Slot) -> Any:
    if slot.choices:
        return [slot.choices[0]] if slot.type.name == "list" else slot.choices[0]
    if slot.minimum is not None or slot.maximum is not None:
        return slot.minimum if slot.minimum is not None else slot.maximum
    if slot.pattern:
        text = next(text for text in (*TEXTS, "50%") if re.search(slot.pattern, text))
        return {"cpu": text} if slot.type.name == "map" else text
    return of_literal_type(slot.type)


def of_literal_type(type_: Type) -> Any:
    if type_.name == "list":
        return [of_literal_type(type_.params[0])]
    if type_.name == "map":
        return {"cpu": of_literal_type(type_.params[1])}
    return LITERALS[type_]


def of_type(annotation: Any) -> Any:
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if origin is Annotated:
        return of_marks(annotation.__metadata__, arguments[0])
    if origin is list:
        return [of_type(arguments[0])]
    if origin is dict:
        return {of_type(arguments[0]): of_type(arguments[1])}
    if annotation is Override:
        return "word"
    if annotation is Parameter:
        return {"type": "percent", "value": "60%", "description": "d"}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return of_model(annotation)
    assert len(arguments) == 1, f"no sample for {annotation}"
    return of_type(arguments[0])


def fits(mark: Text, text: str) -> bool:
    try:
        mark.read(text)
    except Exception:  # noqa: BLE001 - whatever refuses it, another text is tried
        return False
    return True
