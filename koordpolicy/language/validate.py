"""Does a document have the shape of its kind? Pydantic's findings, told to the author."""

from collections.abc import Collection, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from koordpolicy.diagnostics import Diagnostics, Fix, Note, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path
from koordpolicy.language.documents.tree import Data
from koordpolicy.language.documents.unseen import in_plain_spaces, unseen_in
from koordpolicy.language.kinds import API_VERSION, KINDS, Cel, Slot, Spec
from koordpolicy.language.kinds.document import DOCUMENTS
from koordpolicy.language.kinds.literals import KEY, described, listed
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.language.kinds.upstream import argument_help, plugin_help

_MAPPINGS = frozenset({"model_type", "model_attributes_type", "dict_type"})
_SIZES = frozenset({"too_long", "too_short"})
_ROUNDS = 3
"""How often a document is looked at without what is wrong in it: models tell of some mistakes only without others."""


def validate(document: Document, found: Diagnostics, parameters: Collection[str] = ()) -> Spec | None:
    """The document's spec as a model of its kind; `None` where something is wrong, which is reported.

    Codes KP101-KP108. Every cause is reported once, at the key or value that has to change. `parameters` are those that
    other documents of its kind have, for a key that belongs among them.
    """
    if not _header(document, found):
        return None
    try:
        return DOCUMENTS[document.kind].model_validate(document.data).spec
    except ValidationError as faults:
        _report(document, faults.errors(include_url=False), found, parameters)
        return None


def readable(document: Document) -> Spec | None:
    """The spec of a document without the keys that `validate` reports; `None` where that leaves no whole one."""
    if document.kind not in KINDS or document.api_version != API_VERSION:
        return None
    model, data = DOCUMENTS[document.kind], document.data
    for _ in range(_ROUNDS):
        try:
            return model.model_validate(data).spec
        except ValidationError as faults:
            paths = [
                _prunable(_path(fault), data)
                for fault in faults.errors(include_url=False, include_context=False)
            ]
            if any(path is None or not document.positions.has(path) for path in paths):
                return None
            data = _pruned(data, {path for path in paths if path is not None})
    return None


def _prunable(path: Path, data: Data) -> Path | None:
    """The key to leave out for a fault: one that is there, but for an element of a list the whole list, whose others would be
    counted anew.
    """
    whole = path[:-1] if path[-1:] == (KEY,) else path
    if not (whole and isinstance(whole[-1], str) and _has(data, whole)):
        whole = whole[: next((at for at, step in enumerate(whole) if isinstance(step, int)), len(whole))]
    return whole if whole[:1] == ("spec",) and len(whole) > 1 else None


def _has(data: Any, path: Path) -> bool:
    """Whether something stands at a path."""
    for step in path:
        if isinstance(data, dict):
            found = step in data
        else:
            found = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if not found:
            return False
        data = data[step]
    return True


def _pruned(data: Any, paths: Collection[Path]) -> Any:
    """The data without the keys at some paths."""
    if not paths:
        return data
    steps = list(enumerate(data)) if isinstance(data, list) else list(data.items())
    kept = {
        step: _pruned(value, {path[1:] for path in paths if path[0] == step})
        for step, value in steps
        if (step,) not in paths
    }
    return list(kept.values()) if isinstance(data, list) else kept


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
                help=_missing_help("apiVersion") + " and `kind:`" + _LEFT_OUT,
            )
            return False
        for key, other in similar.items():
            span = positions.key((other,)) if other else document.span
            help = f"did you mean `{key}` instead of `{other}`?" if other else _missing_help(key)
            if not other and key == "apiVersion" and document.kind not in KINDS:
                help += _LEFT_OUT
            found.add("KP101", span, f"the key `{key}` is missing", help=help)
        return False
    for key in ("apiVersion", "kind"):
        if not isinstance(data[key], str):
            found.add("KP106", positions.value((key,)), f"expected a text, found {described(data[key])}")
            return False
    if document.kind == "List" and isinstance(data.get("items"), list):
        found.add(
            "KP103",
            positions.value(("kind",)),
            "a `List` is no policy",
            help="write its items as documents of their own, each after a line `---`",
        )
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
            else "kinds are "
            + ", ".join(f"`{name}`" for name in KINDS)
            + "; what is no policy is left out by the bundle's `exclude`",
            fix=Fix(f"change to `{close}`", span, close) if close else None,
        )
        return False
    return True


_LEFT_OUT: Final = ", or leave the file out by the bundle's `exclude`"


def _missing_help(key: str) -> str:
    return f"add `apiVersion: {API_VERSION}`" if key == "apiVersion" else "add `kind:` and one of the kinds"


def _report(
    document: Document, faults: list[ErrorDetails], found: Diagnostics, parameters: Collection[str]
) -> None:
    """Add one finding for each cause. A misspelt key is not also reported as a missing one."""
    meant: set[Path] = set()
    faults = [fault for fault in faults if not document.positions.faulty(_path(fault))]
    if document.mended:  # what is missing may stand in a line that could not be read
        faults = [fault for fault in faults if fault["type"] != "missing" and fault["input"] is not None]
    faults = _without_unindented(document, faults, found)
    faults = _without_short_entries(document, faults, found)
    for fault in faults:
        if fault["type"] == "extra_forbidden":
            path = _path(fault)
            close = _unknown_key(document, path, found, parameters)
            if close:
                meant.add((*path[:-1], close))
    for fault in faults:
        path = _path(fault)
        if fault["type"] == "extra_forbidden" or (fault["type"] == "missing" and path in meant):
            continue
        _one(document, fault, path, found)


def _without_unindented(
    document: Document, faults: list[ErrorDetails], found: Diagnostics
) -> list[ErrorDetails]:
    """The other faults, where a key without content is followed by keys that belong below it: one finding for all."""
    positions = document.positions
    unknown = {_path(fault) for fault in faults if fault["type"] == "extra_forbidden"}
    told: set[Path] = set()
    for fault in faults:
        path = _path(fault)
        if fault["type"] not in _MAPPINGS or fault["input"] is not None or not path:
            continue
        above = positions.key(path)
        fields = _fields_at(document, path)
        children = []
        for other in _keys_after(document, path):
            place = positions.key(other)
            if other not in unknown or other[-1] not in fields or place.start.column != above.start.column:
                break
            children.append(other)
        if not children:
            continue
        told.update((path, *children))
        names = " and ".join(f"`{one[-1]}`" for one in children)
        found.add(
            "KP106",
            above,
            f"`{path[-1]}` has nothing below it",
            help=f"indent {names} to put {'it' if len(children) == 1 else 'them'} there",
            notes=tuple(Note("this stands beside it", positions.key(one)) for one in children),
            fix=_indented(document, children),
        )
    return [fault for fault in faults if _path(fault) not in told]


def _keys_after(document: Document, path: Path) -> list[Path]:
    """The keys that follow the last one of a path in its mapping, in the order of the file."""
    mapping = _data_at(document, path[:-1])
    names = list(mapping) if isinstance(mapping, dict) else []
    return [(*path[:-1], name) for name in names[names.index(path[-1]) + 1 :]] if path[-1] in names else []


def _indented(document: Document, children: list[Path]) -> Fix | None:
    """Two more spaces before all lines of some keys of a block that follow each other."""
    positions = document.positions
    lines = positions.lines
    first, last = positions.key(children[0]).start, positions.value(children[-1]).end
    start, end = lines.line_start(lines.offset(first)), lines.offset(last)
    if lines.text[start : lines.offset(first)].strip():
        return None
    block = lines.text[start:end]
    moved = "".join(f"  {line}" if line.strip() else line for line in block.splitlines(keepends=True))
    return Fix("indent it", lines.exactly(start, end), moved, safe=True)


def _without_short_entries(
    document: Document, faults: list[ErrorDetails], found: Diagnostics
) -> list[ErrorDetails]:
    """The other faults, where an element of a list has just a key that it cannot have: one finding for it.

    `- cores: node.capacity.cpu` among variables is most likely a name with its expression.
    """
    told: set[tuple[Path, str]] = set()
    for fault in faults:
        path = _path(fault)
        element = path[:-1]
        if fault["type"] != "extra_forbidden" or not element or not isinstance(element[-1], int):
            continue
        value = _data_at(document, element)
        fields = _fields_at(document, element)
        if not isinstance(value, dict) or len(value) != 1 or nearest(str(path[-1]), fields):
            continue
        told |= {(path, "extra_forbidden")} | {((*element, key), "missing") for key in fields}
        key = str(path[-1])
        span = document.positions.key(path)
        fix = None
        help = _known(fields)
        if isinstance(value[path[-1]], str) and {"name", "expression"} <= set(fields):
            flow = document.positions.value(element).start.line == span.start.line and _in_braces(
                document, element
            )
            apart = ", " if flow else "\n" + " " * (span.start.column - 1)
            help = f"write `name: {key}` and `expression: ...`"
            fix = Fix(help, span, f"name: {key}{apart}expression", safe=True)
        found.add("KP104", span, f"unknown key `{key}`", help=help, fix=fix)
    return [fault for fault in faults if (_path(fault), fault["type"]) not in told]


def _in_braces(document: Document, path: Path) -> bool:
    lines = document.positions.lines
    return lines.text.startswith("{", lines.offset(document.positions.value(path).start))


def _path(fault: ErrorDetails) -> Path:
    return fault["loc"]


def _unknown_key(
    document: Document, path: Path, found: Diagnostics, parameters: Collection[str]
) -> str | None:
    """Report a key that its mapping does not have; gives the one that was probably meant."""
    key = str(path[-1])
    fields = _fields_at(document, path[:-1])
    span = document.positions.key(path)
    strange = unseen_in(key)
    if strange is not None:
        _report_unseen(key, strange, span, found)
        return None
    close = None if argument_help(document.kind, key) else nearest(key, fields)
    found.add(
        "KP104",
        span,
        f"unknown key `{key}`",
        help=f"did you mean `{close}`?"
        if close
        else argument_help(document.kind, key)
        or _condition_apart(path)
        or _parameter(path, fields, parameters)
        or _known(fields),
        fix=Fix(f"change to `{close}`", span, close) if close else None,
    )
    return close


def _condition_apart(path: Path) -> str | None:
    """Where an expression belongs that stands in a selector of a `match`."""
    if path[-3:-2] == ("match",) and path[-1] in ("cel", "condition", "expression"):
        return f"labels alone select `{path[-2]}`: write the expression as `match.condition`"
    return None


def _parameter(path: Path, fields: Collection[str], parameters: Collection[str]) -> str | None:
    """Where a parameter belongs that stands beside `parameters`."""
    if path[:-1] != ("spec",) or "parameters" not in fields:
        return None
    key = str(path[-1])
    if key in parameters:
        return f"`{key}` is a parameter: write it below `parameters`"
    close = nearest(key, parameters)
    return f"did you mean `{close}` below `parameters`?" if close else None


def _report_unseen(key: str, strange: str, span: Span, found: Diagnostics) -> None:
    """A key with a character in it that looks like a space or like nothing, and which YAML takes for a letter."""
    plain = in_plain_spaces(key)
    found.add(
        "KP104",
        span,
        f"the key `{plain.strip()}` has {strange} {'before' if plain.startswith(' ') else 'in'} it",
        help=f"YAML takes it for a letter: {'write plain spaces' if ' ' in plain else 'remove it'}",
        fix=Fix(f"write `{plain}`", span, plain, safe=True),
    )


def _known(fields: Mapping[str, str]) -> str | None:
    return "keys here are " + ", ".join(f"`{name}`" for name in fields) if fields else None


def _one(document: Document, fault: ErrorDetails, path: Path, found: Diagnostics) -> None:
    context: dict[str, Any] = fault.get("ctx") or {}
    kind = fault["type"]
    if kind == "policy":
        for one in (context, *context["others"]):
            _refusal(document, one, path, found)
    elif kind == "missing":
        meaning = _fields_at(document, path[:-1]).get(str(path[-1]))
        at = document.positions.key(path[:-1]) if len(path) > 1 else document.span
        found.add("KP105", at, f"the key `{path[-1]}` is missing", help=_first_sentence(meaning))
    elif kind in _MAPPINGS or kind == "list_type":
        wanted = "a list" if kind == "list_type" else "a mapping"
        value = fault["input"]
        span = document.positions.key(path) if value is None else document.positions.value(path)
        help = _shape_help(document, path, value, wanted)
        list_ = listed(value) if wanted == "a list" and isinstance(value, str) else None
        fix = Fix(f"write `{list_}`", span, list_, safe=True) if list_ else None
        if list_:
            help = f"write a list: `{list_}`"
        found.add("KP106", span, f"expected {wanted}, found {described(value)}", help=help, fix=fix)
    elif kind in _SIZES:
        least, most = context.get("min_length"), context.get("max_length")
        limit = f"at least {least}" if kind == "too_short" else f"at most {most}"
        word = "needed" if kind == "too_short" else "permitted"
        found.add(
            "KP107",
            document.positions.key(path),
            f"{context.get('actual_length')} elements where {limit} {'are' if (least or most) != 1 else 'is'} {word}",
            help=_size_help(document, path, few=kind == "too_short"),
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


def _size_help(document: Document, path: Path, *, few: bool) -> str:
    """What to do where there are too few elements, or too many."""
    if not few:
        return "divide them among several documents"
    keys = ", ".join(f"`{name}`" for name in _fields_at(document, path))
    return f"add one; its keys are {keys}" if keys else "add one, or leave the document out"


def _refusal(document: Document, context: Mapping[str, Any], path: Path, found: Diagnostics) -> None:
    """A refusal of one of our own checks, which carries its words and code."""
    positions = document.positions
    path = (*path, *context["path"])
    if path and path[-1] == KEY:
        span = positions.key(path[:-1])
    else:
        span = positions.key(path) if context["code"] == "KP104" else _place(document, path)
    replacement, help, message = context["replacement"], context["help"], context["message"]
    safe = context["safe"]
    origin = positions.origin(path)
    value = None if path and path[-1] == KEY else _data_at(document, path)
    written = positions.written(path)
    if isinstance(value, int | float) and written is not None:
        # `1.10` is the number 1.1, but who wrote it as a label reads the former.
        message = message.replace(described(value), f"`{written}`")
        if context["quote"]:
            help = f'quote it: `"{written}"`'
            replacement, safe = f'"{written}"', True
    other = plugin_help(document.kind, str(path[-1]) if path else "", value)
    if other is not None:
        replacement, help = None, other
    found.add(
        context["code"],
        span,
        message,
        help=help,
        notes=(Note("the value comes from here", origin),) if origin else (),
        fix=Fix(f"write `{replacement}`", span, replacement, safe) if replacement else None,
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
