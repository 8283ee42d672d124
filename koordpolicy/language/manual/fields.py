"""The fields of a kind's model, flat: what may be written, and what it means."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from koordpolicy.language.kinds import Cel, Slot, type_name
from koordpolicy.language.kinds.exceptions import Override
from koordpolicy.language.kinds.fields import Flag, FreeObject, Text, Whole
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.language.kinds.parameters import Parameter
from koordpolicy.language.manual.markdown import code


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """`path` has `[]` for an element of a list and `<key>` for the key of a mapping."""

    path: str
    form: str
    meaning: str
    required: bool
    default: str


def fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[FieldEntry]:
    """All fields in order of declaration, those within structures after the structure."""
    texts = meanings(model)
    for name, field in model.model_fields.items():
        path = prefix + (field.alias or name)
        marks, annotation = field.metadata, field.annotation
        suffix, inner, inner_marks = _inside(annotation, marks)
        described = _described(inner, inner_marks)
        meaning = texts.get(name) or field.description or described.meaning
        if not suffix and described.meaning:
            meaning = described.meaning
        default = _default(field, described)
        form = f"{_container(annotation)}{described.form}"
        yield FieldEntry(path, form, meaning, field.is_required(), default)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields_of(inner, f"{path}{suffix}.")


@dataclass(frozen=True, slots=True)
class _Described:
    form: str
    meaning: str = ""
    default: Any = None


def _inside(annotation: Any, marks: list[Any]) -> tuple[str, Any, list[Any]]:
    """What stands within list, mapping or optional: how its path goes on, its type, its marks."""
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if any(isinstance(mark, (Slot, Cel, Text, Whole, Flag, FreeObject)) for mark in marks):
        return "", annotation, marks
    if origin is list:
        _, inner, inner_marks = _bare(arguments[0])
        return "[]", inner, inner_marks
    if origin is dict:
        _, inner, inner_marks = _bare(arguments[1])
        return ".<key>", inner, inner_marks
    if len(arguments) == 1:
        return _bare(arguments[0])
    return "", annotation, marks


def _bare(annotation: Any) -> tuple[str, Any, list[Any]]:
    if get_origin(annotation) is Annotated:
        return "", get_args(annotation)[0], list(annotation.__metadata__)
    return "", annotation, []


def _container(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is list:
        return "list of "
    return "mapping to " if origin is dict and get_args(annotation)[1] is not Any else ""


def _described(annotation: Any, marks: list[Any]) -> _Described:
    """How a value is written, from its marks."""
    for mark in marks:
        match mark:
            case Slot():
                return _slot(mark)
            case Cel():
                kind = f" giving {type_name(mark.type)}" if mark.type else ""
                return _Described(f"CEL{kind}", mark.meaning)
            case Text():
                return _Described(_choices(mark.choices) or mark.what.removeprefix("a ").removeprefix("an "))
            case Whole():
                return _Described(f"whole number from {mark.minimum:,} to {mark.maximum:,}")
            case Flag():
                return _Described("`true`, `false`")
            case FreeObject():
                return _Described("mapping of anything")
    if annotation is Parameter:
        return _Described("value, `{cel: ...}` or `{type, value, optional, description}`")
    if annotation is Override:
        return _Described("value or `{cel: ...}`")
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _Described("structure")
    return _Described(str(annotation))


def _slot(slot: Slot) -> _Described:
    form = _choices(slot.choices) or type_name(slot.type)
    if slot.type.name == "list" and slot.choices:
        form = f"list of {form}"
    if slot.many:
        form = f"list of {form}"
    if slot.minimum is not None and slot.maximum is not None:
        form += f" from {slot.minimum:,} to {slot.maximum:,}"
    return _Described(f"{form} ○", slot.meaning, slot.default)


def _choices(choices: tuple[str, ...]) -> str:
    return ", ".join(code(choice) for choice in choices)


def _default(field: FieldInfo, described: _Described) -> str:
    value = described.default
    if value is None and not field.is_required() and field.default_factory is None:
        value = field.default
    if value in (None, "", [], {}):
        return ""
    return code(str(value).lower() if isinstance(value, bool) else str(value))
