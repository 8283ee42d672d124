"""Does a document have the shape of its kind? Pydantic's findings, told to the author."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from koordpolicy.diagnostics import Diagnostics, Fix, Note, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import API_VERSION, KINDS, Cel, Slot, Spec
from koordpolicy.language.kinds.document import DOCUMENTS
from koordpolicy.language.kinds.literals import described
from koordpolicy.language.kinds.meanings import meanings

_MAPPINGS = frozenset({"model_type", "model_attributes_type", "dict_type"})
_SIZES = frozenset({"too_long", "too_short"})
_KEY = "[key]"
"""How pydantic marks that a key of a mapping, not its value, is wrong."""


def validate(document: Document, found: Diagnostics) -> Spec | None:
    """The document's spec as a model of its kind; `None` where something is wrong, which is reported.

    Codes KP101-KP108. Every cause is reported once, at the key or value that has to change.
    """
    if not _header(document, found):
        return None
    try:
        return DOCUMENTS[document.kind].model_validate(document.data).spec
    except ValidationError as faults:
        _report(document, faults.errors(include_url=False), found)
        return None


def _header(document: Document, found: Diagnostics) -> bool:
    """Whether `apiVersion` and `kind` say what the rest has to look like."""
    data, positions = document.data, document.positions
    missing = [key for key in ("apiVersion", "kind") if key not in data]
    if missing:
        similar = {key: nearest(key, data) for key in missing}
        if len(missing) == 2 and not any(similar.values()):
            found.add(
                "KP101",
                document.span,
                "the keys `apiVersion` and `kind` are missing",
                help=_missing_help("apiVersion")
                + " and `kind:`, or leave the file out by the bundle's `exclude`",
            )
            return False
        for key, other in similar.items():
            span = positions.key((other,)) if other else document.span
            help = f"did you mean `{key}` instead of `{other}`?" if other else _missing_help(key)
            found.add("KP101", span, f"the key `{key}` is missing", help=help)
        return False
    for key in ("apiVersion", "kind"):
        if not isinstance(data[key], str):
            found.add("KP106", positions.value((key,)), f"expected a text, found {described(data[key])}")
            return False
    if document.api_version != API_VERSION:
        close = nearest(document.api_version, [API_VERSION])
        span = positions.value(("apiVersion",))
        found.add(
            "KP102",
            span,
            f"unknown apiVersion `{document.api_version}`",
            help=f"did you mean `{close}`?" if close else f"policies have `{API_VERSION}`",
            fix=Fix("correct the apiVersion", span, API_VERSION, safe=True) if close else None,
        )
        return False
    if document.kind not in KINDS:
        close = nearest(document.kind, KINDS)
        span = positions.value(("kind",))
        found.add(
            "KP103",
            span,
            f"unknown kind `{document.kind}`",
            help=f"did you mean `{close}`?"
            if close
            else "kinds are " + ", ".join(f"`{name}`" for name in KINDS),
            fix=Fix(f"change to `{close}`", span, close) if close else None,
        )
        return False
    return True


def _missing_help(key: str) -> str:
    return f"add `apiVersion: {API_VERSION}`" if key == "apiVersion" else "add `kind:` and one of the kinds"


def _report(document: Document, faults: list[ErrorDetails], found: Diagnostics) -> None:
    """Add one finding for each cause. A misspelt key is not also reported as a missing one."""
    meant: set[Path] = set()
    faults = [fault for fault in faults if not document.positions.faulty(_path(fault))]
    for fault in faults:
        if fault["type"] == "extra_forbidden":
            path = _path(fault)
            close = _unknown_key(document, path, found)
            if close:
                meant.add((*path[:-1], close))
    for fault in faults:
        path = _path(fault)
        if fault["type"] == "extra_forbidden" or (fault["type"] == "missing" and path in meant):
            continue
        _one(document, fault, path, found)


def _path(fault: ErrorDetails) -> Path:
    return fault["loc"]


def _unknown_key(document: Document, path: Path, found: Diagnostics) -> str | None:
    """Report a key that its mapping does not have; gives the one that was probably meant."""
    key = str(path[-1])
    fields = _fields_at(document, path[:-1])
    close = nearest(key, fields)
    span = document.positions.key(path)
    found.add(
        "KP104",
        span,
        f"unknown key `{key}`",
        help=f"did you mean `{close}`?" if close else _known(fields),
        fix=Fix(f"change to `{close}`", span, close) if close else None,
    )
    return close


def _known(fields: Mapping[str, str]) -> str | None:
    return "keys here are " + ", ".join(f"`{name}`" for name in fields) if fields else None


def _one(document: Document, fault: ErrorDetails, path: Path, found: Diagnostics) -> None:
    context: dict[str, Any] = fault.get("ctx") or {}
    kind = fault["type"]
    if kind == "policy":
        _refusal(document, context, path, found)
    elif kind == "missing":
        meaning = _fields_at(document, path[:-1]).get(str(path[-1]))
        at = document.positions.key(path[:-1]) if len(path) > 1 else document.span
        found.add("KP105", at, f"the key `{path[-1]}` is missing", help=_first_sentence(meaning))
    elif kind in _MAPPINGS or kind == "list_type":
        wanted = "a list" if kind == "list_type" else "a mapping"
        value = fault["input"]
        span = document.positions.key(path) if value is None else document.positions.value(path)
        help = _shape_help(document, path, value, wanted)
        found.add("KP106", span, f"expected {wanted}, found {described(value)}", help=help)
    elif kind in _SIZES:
        least, most = context.get("min_length"), context.get("max_length")
        limit = f"at least {least}" if kind == "too_short" else f"at most {most}"
        word = "needed" if kind == "too_short" else "permitted"
        found.add(
            "KP107",
            document.positions.key(path),
            f"{context.get('actual_length')} elements where {limit} {'are' if (least or most) != 1 else 'is'} {word}",
        )
    else:  # a rule of pydantic's own that no model uses today; still better told than lost
        found.add("KP106", document.positions.value(path), fault["msg"].lower())


def _shape_help(document: Document, path: Path, value: object, wanted: str) -> str | None:
    """What to do where a mapping or a list belongs."""
    if value is None:
        return (
            "write `{}` where there is nothing to say"
            if path == ("spec",)
            else "remove the key, or give it content"
        )
    if wanted == "a list":
        return "begin each element with `- `"
    key, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and key.isidentifier() and rest:
        return f"write `{key}: {rest}` with a space"
    return _known(_fields_at(document, path))


def _refusal(document: Document, context: Mapping[str, Any], path: Path, found: Diagnostics) -> None:
    """A refusal of one of our own checks, which carries its words and code."""
    positions = document.positions
    if path and path[-1] == _KEY:
        span = positions.key(path[:-1])
    else:
        path = (*path, *context["path"])
        span = positions.key(path) if context["code"] == "KP104" else _place(document, path)
    replacement = context["replacement"]
    origin = positions.origin(path)
    found.add(
        context["code"],
        span,
        context["message"],
        help=context["help"],
        notes=(Note("the value comes from here", origin),) if origin else (),
        fix=Fix(f"write `{replacement}`", span, replacement, context["safe"]) if replacement else None,
    )


def _place(document: Document, path: Path) -> Span:
    """Where a value stands; its key where the value is nothing or goes over several lines."""
    span = document.positions.value(path)
    absent = _data_at(document, path) is None
    return document.positions.key(path) if absent or span.start.line != span.end.line else span


def _data_at(document: Document, path: Path) -> object:
    value: Any = document.data
    for step in path:
        value = value.get(step) if isinstance(value, dict) else value[step]
    return value


def _first_sentence(meaning: str | None) -> str | None:
    return f"add it: {meaning[0].lower()}{meaning[1:].rstrip('.')}" if meaning else None


def _fields_at(document: Document, path: Path) -> dict[str, str]:
    """Keys and meanings of the model that stands at a path of the document."""
    model: type[BaseModel] = DOCUMENTS[document.kind]
    for step in path:
        if isinstance(step, int):
            continue
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == step), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return {}
        model = inner
    texts = meanings(model)
    return {
        field.alias or name: texts.get(name) or _meaning(field) for name, field in model.model_fields.items()
    }


def _meaning(field: FieldInfo) -> str:
    marked = (mark.meaning for mark in field.metadata if isinstance(mark, Slot | Cel))
    return field.description or next(marked, "")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model within an annotation such as `list[X]` or `X | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        if (model := _model_in(argument)) is not None:
            return model
    return None
