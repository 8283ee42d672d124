"""Patches as pure functions of an object: JSON merge patch, JSON patch, and strategic merge patch.

Each takes a private plain dict (from `thaw`) that it may change, and returns the result. Server-side
apply stands in `apply.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from koordpolicy.kube.errors import Invalid, Rejected
from koordpolicy.kube.frozen import freeze, thaw
from koordpolicy.kube.port import JsonPatch, MergePatch, StrategicPatch
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.shapes import shape_of
from koordpolicy.model.strategic_merge import PatchError, strategic_merge

MAX_OPERATIONS: Final = 10_000
"""How many operations one JSON patch may have."""

MAX_COPIED: Final = 200_000
"""How many values the `copy` operations of one JSON patch may copy in all, so that copies of copies end."""


def patched(
    obj: dict[str, Any], patch: MergePatch | StrategicPatch | JsonPatch, resource: Resource
) -> dict[str, Any]:
    """The object after the patch. `obj` may be changed.

    Rejected for a malformed patch, or a strategic one for a custom resource; Invalid for a patch that does not fit the
    object.
    """
    match patch:
        case MergePatch(body):
            return _as_object(merge(obj, thaw(freeze(body))))
        case StrategicPatch(body):
            if resource.custom:
                raise Rejected(
                    f"{resource} takes no strategic merge patch: use a merge patch",
                    code=415,
                    reason="UnsupportedMediaType",
                )
            try:
                return strategic_merge(obj, thaw(freeze(body)), shape_of(resource))
            except PatchError as error:
                raise Rejected(f"the strategic merge patch cannot be applied: {error}") from error
        case JsonPatch(operations):
            return _as_object(json_patch(obj, operations))


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386. `patch` is read, `target` may be changed."""
    if not isinstance(patch, dict):
        return patch
    result = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


def json_patch(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """RFC 6902. `document` may be changed.

    Rejected for malformed operations, Invalid when a path is not there or a test fails.
    """
    if isinstance(operations, (str, Mapping)) or len(operations) > MAX_OPERATIONS:
        raise Rejected(f"a JSON patch is a list of at most {MAX_OPERATIONS} operations")
    # A holder makes the whole document an ordinary member, so that path "" needs no case of its own.
    holder: dict[str, Any] = {"": document}
    copied = 0
    for number, given in enumerate(operations):
        if not isinstance(given, Mapping):
            raise Rejected(f"operation {number} of the JSON patch is not a map")
        operation = thaw(freeze(given))
        name, path = operation.get("op"), _pointer(operation, "path", number)
        match name:
            case "add":
                _add(holder, path, _value(operation, number))
            case "remove":
                _take(holder, path)
            case "replace":
                _replace(holder, path, _value(operation, number))
            case "move":
                source = _pointer(operation, "from", number)
                if path[: len(source)] == source and path != source:
                    raise Invalid(f"operation {number} moves `{_text(source)}` into itself")
                _add(holder, path, _take(holder, source))
            case "copy":
                value = _copy(_at(holder, _pointer(operation, "from", number)))
                copied += _size(value)
                if copied > MAX_COPIED:
                    raise Rejected(f"the JSON patch copies more than {MAX_COPIED} values")
                _add(holder, path, value)
            case "test":
                if not _same(_at(holder, path), _value(operation, number)):
                    raise Invalid(f"operation {number} of the JSON patch: the test of `{_text(path)}` fails")
            case _:
                raise Rejected(
                    f"operation {number} of the JSON patch: `{name}` is none of add, remove, replace, move, copy, test"
                )
    return holder[""]


def _as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid("the patch leaves something that is not an object")
    return value


def _value(operation: dict[str, Any], number: int) -> Any:
    if "value" not in operation:
        raise Rejected(f"operation {number} of the JSON patch has no `value`")
    return operation["value"]


def _pointer(operation: dict[str, Any], key: str, number: int) -> tuple[str, ...]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise Rejected(
            f"operation {number} of the JSON patch: `{key}` is a JSON pointer such as `/metadata/labels`"
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/"))


def _text(path: tuple[str, ...]) -> str:
    return "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)


def _missing(path: tuple[str, ...]) -> Invalid:
    return Invalid(f"the JSON patch speaks of `{_text(path)}`, which is not there")


def _index(items: list[Any], part: str, path: tuple[str, ...], *, end: bool) -> int:
    """A position in a list; with `end`, the one behind the last (also as `-`) too."""
    if end and part == "-":
        return len(items)
    if not (
        part.isascii() and part.isdigit() and (part == "0" or not part.startswith("0")) and len(part) < 10
    ):
        raise Invalid(f"`{part}` in `{_text(path)}` is not a position in a list")
    if int(part) > len(items) - (not end):
        raise _missing(path)
    return int(part)


def _at(holder: Any, path: tuple[str, ...]) -> Any:
    value = holder
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list):
            value = value[_index(value, part, path, end=False)]
        else:
            raise _missing(path)
    return value


def _replace(holder: Any, path: tuple[str, ...], value: Any) -> None:
    """Set what stands at a path. Like the API server, and unlike the RFC, a missing member of a map is added."""
    parent = _at(holder, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1], path, end=False)] = value
    else:
        _add(holder, path, value)


def _add(holder: Any, path: tuple[str, ...], value: Any) -> None:
    parent = _at(holder, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(parent, path[-1], path, end=True), value)
    else:
        raise _missing(path)


def _take(holder: Any, path: tuple[str, ...]) -> Any:
    value, parent = _at(holder, path), _at(holder, path[:-1])
    if path == ("",):
        raise Invalid("a JSON patch cannot remove the whole object")
    del parent[path[-1] if isinstance(parent, dict) else int(path[-1])]
    return value


def _copy(value: Any) -> Any:
    return thaw({"": value})[""]


def _size(value: Any) -> int:
    pending, count = [value], 0
    while pending:
        item = pending.pop()
        count += 1
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return count


def _same(one: Any, other: Any) -> bool:
    """JSON equality: unlike Python's, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
