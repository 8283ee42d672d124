"""A document as a model: what pydantic finds, told by its line and with what to write instead."""

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.language.kinds.literals import described
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.simulator.workload import WorkloadError

_Model = TypeVar("_Model", bound=BaseModel)
_UNKNOWN: Final = "extra_forbidden"


def shaped(document: Document, model: type[_Model]) -> _Model:
    """The document as that model. Raises WorkloadError for the first thing that is wrong, a misspelt key before what it leaves missing."""
    try:
        return model.model_validate(document.data)
    except ValidationError as found:
        faults = sorted(found.errors(include_url=False), key=lambda one: one["type"] != _UNKNOWN)
    raise _told(document, faults[0], model)


def place_of(document: Document, path: Sequence[str | int]) -> str:
    """`file:line` of what stands at a path."""
    span = document.positions.value(tuple(path))
    return f"{span.file}:{span.start.line}"


def _told(document: Document, fault: ErrorDetails, model: type[BaseModel]) -> WorkloadError:
    path: tuple[str | int, ...] = tuple(fault["loc"])
    context: Mapping[str, Any] = fault.get("ctx") or {}
    name = f"`{path[-1]}`" if path and isinstance(path[-1], str) else "the element" if path else "the file"
    match fault["type"]:
        case "extra_forbidden":
            return _unknown(document, path, _fields_at(model, path[:-1]))
        case "missing":
            meaning = _fields_at(model, path[:-1]).get(str(path[-1]), "")
            said = f"{name} is needed" + (
                f": {meaning[0].lower()}{meaning[1:].rstrip('.')}" if meaning else ""
            )
            path = path[:-1]
        case "policy":
            path = (*path, *(step for step in context["path"] if step != "[key]"))
            said = f"{name}: {context['message']}" + (f"; {context['help']}" if context["help"] else "")
        case "literal_error":
            said = f"{name} is {context['expected']}, not {described(fault['input'])}"
        case "too_short" | "too_long":
            least = context.get("min_length")
            said = f"{name} has {context['actual_length']} elements; " + (
                f"{least} is the least" if least else f"{context['max_length']:,} are the most"
            )
        case "list_type":
            said = f"{name} is a list, not {described(fault['input'])}"
        case _:
            fields = ", ".join(f"`{one}`" for one in _fields_at(model, path))
            said = f"{name} is a mapping, not {described(fault['input'])}" + (
                f"; its fields are {fields}" if fields else ""
            )
    return WorkloadError(f"{place_of(document, path)}: {said}")


def _unknown(document: Document, path: tuple[str | int, ...], known: Mapping[str, str]) -> WorkloadError:
    close = nearest(str(path[-1]), known)
    meant = f"did you mean `{close}`?" if close else f"there are {', '.join(f'`{one}`' for one in known)}"
    span = document.positions.key(path)
    return WorkloadError(f"{span.file}:{span.start.line}: unknown field `{path[-1]}`; {meant}")


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> dict[str, str]:
    """Fields and meanings of the model at a path; none where there is no model."""
    found: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str) and found is not None:
            field = next(
                (one for name, one in found.model_fields.items() if (one.alias or name) == step), None
            )
            found = None if field is None else _model_in(field.annotation)
    if found is None:
        return {}
    texts = meanings(found)
    return {field.alias or name: texts.get(name, "") for name, field in found.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation has, alone, in a list, or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType):
        return next((model for one in get_args(annotation) if (model := _model_in(one)) is not None), None)
    return None
