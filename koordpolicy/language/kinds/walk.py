"""Walk models and documents for their slots and bare expressions: the rule graph is built from this."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

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
    for field in _fields(model):
        key = prefix + field.key
        if field.slot and field.mapping:
            yield SlotPath(f"{key}.*" if field.key == "parameters" else f"{key}[*]", field.slot)
        elif field.slot:
            yield SlotPath(key, field.slot)
        elif field.model:
            yield from _slots(field.model, f"{key}[*]." if field.listed or field.mapping else f"{key}.")


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
    for field in _fields(type(model)):
        value = getattr(model, field.name)
        if value is None:
            continue
        key, here = prefix + field.key, (*path, field.key)
        if field.slot and field.mapping:
            joined = "{}.{}" if field.key == "parameters" else "{}[{}]"
            for step, entry in value.items():
                yield SlotValue(joined.format(key, step), field.slot, entry, (*here, step), conditions)
        elif field.slot:
            yield SlotValue(key, field.slot, value, here, conditions)
        elif field.model:
            for name, step, item in _items(field, value):
                place = (*here, *step)
                narrowed = (*conditions, *_condition(item, place)) if step else conditions
                yield from _values(item, key + name, place, narrowed)


def _condition(item: BaseModel, path: Path) -> tuple[Path, ...]:
    match = getattr(item, "match", None)
    if isinstance(match, Condition) and match.condition is not None:
        return ((*path, "match", "condition"),)
    return ()


def cel_values(spec: Spec) -> Iterator[CelValue]:
    """All CEL texts of a document that are no slots: conditions, variables, library functions."""
    yield from _cel_values(spec, "", SPEC)


def _cel_values(model: BaseModel, prefix: str, path: Path) -> Iterator[CelValue]:
    for field in _fields(type(model)):
        value = getattr(model, field.name)
        if value is None:
            continue
        key, here = prefix + field.key, (*path, field.key)
        if field.cel:
            yield CelValue(key, field.cel, value, here)
        elif field.model:
            for name, step, item in _items(field, value):
                yield from _cel_values(item, key + name, (*here, *step))


@dataclass(frozen=True, slots=True)
class _Field:
    """What the walk needs to know of a field: its key, and what of ours stands in it.

    `mapping` tells slots and models that stand under the keys of a mapping, `listed` models that are
    elements of a list.
    """

    name: str
    key: str
    slot: Slot | None = None
    cel: Cel | None = None
    model: type[BaseModel] | None = None
    mapping: bool = False
    listed: bool = False


@cache
def _fields(model: type[BaseModel]) -> tuple[_Field, ...]:
    """The fields of a model in which slots or expressions may stand, in order of declaration."""
    found = (_field(name, field) for name, field in model.model_fields.items())
    return tuple(field for field in found if field.slot or field.cel or field.model)


def _field(name: str, field: FieldInfo) -> _Field:
    key = field.alias or name
    slot, cel = _mark(field.metadata, Slot), _mark(field.metadata, Cel)
    if slot or cel:
        return _Field(name, key, slot, cel)
    arguments = [argument for argument in get_args(field.annotation) if argument is not type(None)]
    origin = get_origin(field.annotation)
    inner: Any = arguments[-1] if arguments else field.annotation
    mapping = origin is dict
    if mapping and get_origin(inner) is Annotated:
        return _Field(name, key, slot=_mark(inner.__metadata__, Slot), mapping=True)
    model = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    return _Field(name, key, model=model, mapping=mapping, listed=origin is list)


def _items(field: _Field, value: Any) -> Iterator[tuple[str, Path, Any]]:
    """The models within a field's value: how each goes on in names, its path below the field, itself."""
    if field.listed:
        for index, item in enumerate(value):
            yield f"[{getattr(item, 'name', index)}].", (index,), item
    elif field.mapping:
        for step, item in value.items():
            yield f"[{step}].", (step,), item
    else:
        yield ".", (), value


_M = TypeVar("_M")


def _mark(marks: Iterable[object], kind: type[_M]) -> _M | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)
