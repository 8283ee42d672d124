"""What has changed between two JSON values, as a JSON Patch (RFC 6902)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Change = dict[str, Any]
"""One operation: `op`, `path` and, unless something goes, `value`."""


def json_patch(old: Any, new: Any) -> list[Change]:
    """The operations that make `new` of `old`, in order.

    What both share is not looked into, so that the cost is that of what was changed. Elements of lists are compared by
    their places: a list that grows or shrinks does so at its end.
    """
    return list(_changes("", old, new))


def _changes(path: str, old: Any, new: Any) -> Iterator[Change]:
    if old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _of_objects(path, old, new)
    elif _is_list(old) and _is_list(new):
        yield from _of_lists(path, old, new)
    elif type(old) is not type(new) or old != new:  # `True == 1`, which are two values of JSON
        yield {"op": "replace", "path": path, "value": new}


def _of_objects(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key, before in old.items():
        if key not in new:
            yield {"op": "remove", "path": f"{path}/{_step(key)}"}
        elif new[key] is not before:
            yield from _changes(f"{path}/{_step(key)}", before, new[key])
    for key, after in new.items():
        if key not in old:
            yield {"op": "add", "path": f"{path}/{_step(key)}", "value": after}


def _of_lists(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Change]:
    both = min(len(old), len(new))
    for at in range(both):
        yield from _changes(f"{path}/{at}", old[at], new[at])
    for at in range(len(old) - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{at}"}
    for after in new[both:]:
        yield {"op": "add", "path": f"{path}/-", "value": after}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
