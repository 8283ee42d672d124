"""Walk models and documents for their slots and bare expressions: the rule graph is built from this."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from koordpolicy.language.cel.types import DYN
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds.base import Condition, PolicySpec, Spec
from koordpolicy.language.kinds.parameters import Parameter
from koordpolicy.language.kinds.slots import Cel, Expression, Slot, Written

SPEC: Path = ("spec",)


@dataclass(frozen=True, slots=True)
class SlotPath:
    """A slot of a kind. `field` names it with `[*]` for every name: `filters[*].require`."""

    field: str
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A slot that a document fills.

    `field` is the decision's field, list items by name: `filters[LoadAware].require`,
    `labels[app]`, `parameters.cpuReclaim`, `zone.cpu`. `raw` is a literal as written, an
    `Expression`, or a tuple of these where the slot has `many`. `path` leads to the value in the
    document, `conditions` to the conditions of the items around it, which narrow the rule.
    """

    field: str
    slot: Slot
    raw: Written | tuple[Written, ...]
    path: Path
    conditions: tuple[Path, ...] = ()

    @property
    def expressions(self) -> Iterator[tuple[Path, str]]:
        """Path and text of each expression in the value."""
        if isinstance(self.raw, Expression):
            yield (*self.path, "cel"), self.raw.text
        elif isinstance(self.raw, tuple):
            for index, part in enumerate(self.raw):
                if isinstance(part, Expression):
                    yield (*self.path, index, "cel"), part.text


@dataclass(frozen=True, slots=True)
class CelPath:
    """A field of a kind that is CEL text as it stands."""

    field: str
    cel: Cel


@dataclass(frozen=True, slots=True)
class CelValue:
    """CEL text that stands bare in a document, such as `match.condition`."""

    field: str
    cel: Cel
    text: str
    path: Path


PARAMETER = Slot(DYN, "The parameter's value.")
"""The slot of a parameter whose type the document does not say."""


def slots(spec: type[Spec]) -> Iterator[SlotPath]:
    """All slots of a kind's model, in order of declaration; parameters as `parameters.*`."""
    if issubclass(spec, PolicySpec):
        yield SlotPath("parameters.*", PARAMETER)
    yield from _slots(spec, "")


def _slots(model: type[BaseModel], prefix: str) -> Iterator[SlotPath]:
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        slot = _marker(field, Slot)
        if slot:
            yield SlotPath(key, slot)
            continue
        inner, container = _inside(field)
        if container is dict and (slot := _annotated(inner, Slot)):
            yield SlotPath(f"{key}.*" if key.endswith("parameters") else f"{key}[*]", slot)
        elif isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _slots(inner, f"{key}[*]." if container is list else f"{key}.")


def slot_values(spec: Spec) -> Iterator[SlotValue]:
    """All slots that a document's spec fills, parameters first."""
    if isinstance(spec, PolicySpec):
        for name, parameter in spec.parameters.items():
            if parameter.value is not None:
                yield _parameter(name, parameter)
    yield from _values(spec, "", SPEC, ())


def _parameter(name: str, parameter: Parameter) -> SlotValue:
    slot = replace(PARAMETER, type=parameter.type) if parameter.type else PARAMETER
    path: Path = (*SPEC, "parameters", name, *(("value",) if parameter.typed else ()))
    assert parameter.value is not None
    return SlotValue(f"parameters.{name}", slot, parameter.value, path)


def _values(model: BaseModel, prefix: str, path: Path, conditions: tuple[Path, ...]) -> Iterator[SlotValue]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        key = field.alias or name
        slot = _marker(field, Slot)
        if slot:
            if value is not None:
                yield SlotValue(prefix + key, slot, value, (*path, key), conditions)
            continue
        inner, container = _inside(field)
        if container is dict and (slot := _annotated(inner, Slot)):
            joined = "{}{}.{}" if key == "parameters" else "{}{}[{}]"
            for step, entry in value.items():
                yield SlotValue(joined.format(prefix, key, step), slot, entry, (*path, key, step), conditions)
        elif isinstance(value, BaseModel):
            yield from _values(value, f"{prefix}{key}.", (*path, key), conditions)
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            for index, item in enumerate(value):
                here = (*path, key, index)
                own = _condition(item, here)
                named = f"{prefix}{key}[{getattr(item, 'name', index)}]."
                yield from _values(item, named, here, (*conditions, *own))


def _condition(item: BaseModel, path: Path) -> tuple[Path, ...]:
    match = getattr(item, "match", None)
    if isinstance(match, Condition) and match.condition is not None:
        return ((*path, "match", "condition"),)
    return ()


def cel_values(spec: Spec) -> Iterator[CelValue]:
    """All CEL texts of a document that are no slots: conditions, variables, library functions."""
    yield from _cel_values(spec, "", SPEC)


def _cel_values(model: BaseModel, prefix: str, path: Path) -> Iterator[CelValue]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        key = field.alias or name
        cel = _marker(field, Cel)
        if cel and value is not None:
            yield CelValue(prefix + key, cel, value, (*path, key))
        elif isinstance(value, BaseModel):
            yield from _cel_values(value, f"{prefix}{key}.", (*path, key))
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            for index, item in enumerate(value):
                named = f"{prefix}{key}[{getattr(item, 'name', index)}]."
                yield from _cel_values(item, named, (*path, key, index))


def _marker(field: FieldInfo, kind: type[Any]) -> Any:
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def _annotated(type_: Any, kind: type[Any]) -> Any:
    if get_origin(type_) is not Annotated:
        return None
    return next((mark for mark in type_.__metadata__ if isinstance(mark, kind)), None)


def _inside(field: FieldInfo) -> tuple[Any, type | None]:
    """The type within list, dict or optional, and which of list and dict it is in."""
    type_ = field.annotation
    arguments = [argument for argument in get_args(type_) if argument is not type(None)]
    origin = get_origin(type_)
    if origin is list:
        return arguments[0], list
    if origin is dict:
        return arguments[1], dict
    return (arguments[0] if len(arguments) == 1 else type_), None
