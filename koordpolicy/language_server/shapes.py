"""What may stand at a path of a document, from the models of the kinds: keys with their meanings, slots, choices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from koordpolicy.language.cel.types import DYN
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import KINDS, Cel, Slot, type_name
from koordpolicy.language.kinds.document import DOCUMENTS, PolicyDocument
from koordpolicy.language.kinds.exceptions import Override
from koordpolicy.language.kinds.fields import Flag, Text, Whole
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.language.kinds.parameters import Parameter

_PARAMETER = Slot(DYN, "The parameter's value: a literal, or `{cel: ...}`.")
_OVERRIDE = Slot(DYN, "What holds in place of the decision's value: a literal, or `{cel: ...}`.")
_LONG_FORM = {
    "type": "Its type, such as `percent`, `cpu`, `bytes`, `duration`.",
    "value": "Its value.",
    "optional": "Whether it may stay without a value.",
    "description": "What it means.",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that a mapping may have."""

    name: str
    meaning: str
    required: bool
    form: str


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands at a path. `marks` are what the models say of it, `core` its type without them."""

    core: Any
    marks: tuple[object, ...] = ()
    meaning: str = ""
    in_slot: Slot | None = None
    """For what stands within the value of a slot: under `cel`, or an element of a list."""

    @property
    def slot(self) -> Slot | None:
        if self.in_slot is not None:
            return self.in_slot
        found = next((mark for mark in self.marks if isinstance(mark, Slot)), None)
        if found is None and self.core in (Parameter, Override):
            return _PARAMETER if self.core is Parameter else _OVERRIDE
        return found

    @property
    def cel(self) -> Cel | None:
        """Set where bare CEL text stands."""
        return next((mark for mark in self.marks if isinstance(mark, Cel)), None)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the mapping that may stand here; empty where they are free, or where none may stand."""
        if _is_model(self.core):
            return tuple(_keys(self.core))
        if self.core is Parameter:
            return tuple(
                Key(name, meaning, False, "")
                for name, meaning in {"cel": "An expression.", **_LONG_FORM}.items()
            )
        if self.slot is not None and self.in_slot is None:
            return (Key("cel", "An expression that gives the value.", False, type_name(self.slot.type)),)
        return ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that may stand here, where there is a list of them."""
        if self.slot is not None and self.slot.choices:
            return self.slot.choices
        for mark in self.marks:
            if isinstance(mark, Text) and mark.choices:
                return mark.choices
            if isinstance(mark, Flag):
                return ("true", "false")
        return ("true", "false") if self.slot is not None and self.slot.type.name == "bool" else ()

    @property
    def form(self) -> str:
        """How a value is written here, in words."""
        return _form(self)

    def step(self, step: str | int) -> "Shape | None":
        """What stands one step further."""
        if self.core is Parameter:
            return self._in_parameter(step)
        if _is_model(self.core):
            return _field(self.core, step)
        slot = self.slot
        if slot is not None and self.in_slot is None:
            if step == "cel":
                return Shape(str, (Cel(slot.meaning, slot.type, slot.roots),), slot.meaning, slot)
            if isinstance(step, int):
                return (
                    Shape(self.core, self.marks, self.meaning)
                    if slot.many
                    else Shape(str, (), slot.meaning, slot)
                )
        origin, arguments = get_origin(self.core), get_args(self.core)
        if origin is list and isinstance(step, int):
            return shape(arguments[0], (), self.meaning)
        if origin is dict and isinstance(step, str):
            return shape(arguments[1], (), self.meaning)
        return None

    def _in_parameter(self, step: str | int) -> "Shape | None":
        if step == "cel":
            return Shape(str, (Cel(_PARAMETER.meaning, None),), _PARAMETER.meaning, _PARAMETER)
        if step == "value":
            return Shape(Any, (_PARAMETER,), _PARAMETER.meaning)
        if step == "optional":
            return Shape(bool, (Flag(),), _LONG_FORM["optional"])
        return Shape(str, (), _LONG_FORM[step]) if step in _LONG_FORM else None


def shape_at(kind: str, path: Path) -> Shape | None:
    """What may stand at a path of a document of that kind; None where nothing is known of it."""
    model: type[BaseModel] = DOCUMENTS.get(kind, PolicyDocument)
    found: Shape | None = Shape(model, meaning=KINDS[kind].summary if kind in KINDS else "")
    for step in path:
        found = found.step(step) if found is not None else None
    return found


def shape(annotation: Any, marks: Sequence[object], meaning: str) -> Shape:
    """The shape that an annotation says."""
    collected = list(marks)
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            collected += more
        elif origin in (Union, UnionType):
            annotation = next(one for one in get_args(annotation) if one is not type(None))
        else:
            return Shape(annotation, tuple(collected), meaning)


def _is_model(core: Any) -> bool:
    return isinstance(core, type) and issubclass(core, BaseModel)


def _field(model: type[BaseModel], step: str | int) -> Shape | None:
    for name, field in model.model_fields.items():
        if (field.alias or name) == step:
            return shape(field.annotation, field.metadata, _meaning(model, name, field))
    return None


def _keys(model: type[BaseModel]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        meaning = _meaning(model, name, field)
        form = _form(shape(field.annotation, field.metadata, meaning))
        yield Key(field.alias or name, meaning, field.is_required(), form)


def _meaning(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    marked = (mark.meaning for mark in field.metadata if isinstance(mark, Slot | Cel))
    return meanings(model).get(name) or field.description or next(marked, "")


def _form(found: Shape) -> str:
    slot = found.slot
    if slot is not None:
        types = " or ".join(type_name(one) for one in (slot.type, *slot.also))
        words = f"list of {types}" if slot.many else types
        return f"{words} ({' | '.join(slot.choices)})" if slot.choices else words
    if found.cel is not None:
        return (
            "expression" if found.cel.type is None else f"expression that gives {type_name(found.cel.type)}"
        )
    for mark in found.marks:
        if isinstance(mark, Text) and mark.choices:
            return " | ".join(mark.choices)
        if isinstance(mark, Flag):
            return "true | false"
        if isinstance(mark, Whole):
            return f"whole number from {mark.minimum} to {mark.maximum}"
    origin = get_origin(found.core)
    if origin is list:
        return "list"
    return "mapping" if origin is dict or _is_model(found.core) or found.core is dict else "text"
