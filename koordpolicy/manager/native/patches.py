"""JSON patches on pods as CEL: lists of `JSONPatch`, which an API server carries out one after the other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.graph.native import NotNative
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.model.shapes import POD, Shape

NOTHING: Final = "[]"
"""The patch that changes nothing."""
Path = tuple[str, ...]
_NUMBERS: Final = 2**53
"""Whole numbers below it pass through JSON as they are."""


def put(path: Path, value: str) -> str:
    """A patch that sets a member, whose parent is there, to the value of an expression."""
    return f"[JSONPatch{{op: 'add', path: {quote_string(pointer(path))}, value: {value}}}]"


def removed(path: Path) -> str:
    """A patch that takes a member away if it is there."""
    return (
        f"({found(path)}.hasValue() ? [JSONPatch{{op: 'remove', path: {quote_string(pointer(path))}}}]"
        f" : {NOTHING})"
    )


def made(path: Path) -> str:
    """A patch that makes a map if it is not there."""
    return f"({found(path)}.hasValue() ? {NOTHING} : {put(path, '{}')})"


def joined(patches: Iterable[str]) -> str:
    """Patches one after the other."""
    said = [one for one in patches if one != NOTHING]
    return " + ".join(said) if said else NOTHING


def chosen(
    node: ir.Node, written: Callable[[ir.Node], str], patch: Callable[[str], str], *, empty: bool = True
) -> str:
    """The patch that a decision's value makes; none where the decision has no value, or without `empty` an empty text."""
    match node:
        case ir.Const(value=None):
            return NOTHING
        case ir.Const(value=""):
            return patch("''") if empty else NOTHING
        case ir.Const():
            return patch(written(node))
        case ir.Cond(condition=condition, then=then, otherwise=otherwise) if _may_be_nothing(node):
            parts = [chosen(one, written, patch, empty=empty) for one in (then, otherwise)]
            return f"({written(condition)} ? {parts[0]} : {parts[1]})"
    text = written(node)
    if empty:
        return patch(text)
    return f"[{text}].filter(t, t != '').map(t, {patch('t')[1:-1]})"


def _may_be_nothing(node: ir.Node) -> bool:
    match node:
        case ir.Const(value=value):
            return value is None
        case ir.Cond(then=then, otherwise=otherwise):
            return _may_be_nothing(then) or _may_be_nothing(otherwise)
    return False


def merged(patch: Mapping[str, Any]) -> Sequence[str]:
    """A strategic merge patch on a pod. Raises NotNative where lists merge by keys, and for directives."""
    return tuple(_merged(patch, POD, ()))


def _merged(patch: Mapping[str, Any], shape: Shape, at: Path) -> Iterable[str]:
    if len(at) > 1:  # a pod always has the outermost ones
        yield made(at)
    for key, value in patch.items():
        path, below = (*at, key), shape.below(key)
        place = ".".join(path)
        if key.startswith("$"):
            raise NotNative(f"its patch has the directive `{place}`, which JSON patches do not know")
        if value is None:
            yield removed(path)
        elif isinstance(value, Mapping):
            if below.replace:
                raise NotNative(f"its patch replaces `{place}` as a whole")
            yield from _merged(value, below, path)
        elif isinstance(value, list) and (below.key or below.unique):
            raise NotNative(f"its patch has the list `{place}`, which is merged item by item")
        else:
            yield put(path, literal(value))


def literal(value: object) -> str:
    """A value of JSON as CEL. Raises NotNative for a number that would not stay what it is."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quote_string(value)
        case int() if abs(value) < _NUMBERS:
            return str(value)
        case list():
            return f"[{', '.join(f'dyn({literal(one)})' for one in value)}]"
        case Mapping():
            return (
                "{"
                + ", ".join(f"{quote_string(key)}: dyn({literal(one)})" for key, one in value.items())
                + "}"
            )
    raise NotNative(f"its patch has a value that an API server would read otherwise (`{value}`)")


def pointer(path: Path) -> str:
    """A JSON pointer."""
    return "".join("/" + one.replace("~", "~0").replace("/", "~1") for one in path)


def found(path: Path) -> str:
    """A member of the object, as an optional."""
    first, *rest = path
    return f"object[?{quote_string(first)}]" + "".join(f"[?{quote_string(one)}]" for one in rest)
