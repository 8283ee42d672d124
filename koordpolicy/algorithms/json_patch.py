"""What has changed between two JSON values, as a JSON Patch (RFC 6902)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_GONE: Final = object()
Change = dict[str, Any]
"""One operation: `op`, `path` and, unless something goes, `value`."""


def json_patch(old: Any, new: Any) -> list[Change]:
    """The operations that make `new` of `old`, in order.

    What both share is not looked into, so that the cost is that of what was changed. Elements of lists are compared by
    their places: a list that grows or shrinks does so at its end.
    """
    found: list[Change] = []
    _compare(found, "", old, new)
    return found


def _compare(found: list[Change], path: str, old: Any, new: Any) -> None:
    if old is new:
        return
    if _is_object(old) and _is_object(new):
        _compare_objects(found, path, old, new)
    elif _is_list(old) and _is_list(new):
        _compare_lists(found, path, old, new)
    elif type(old) is not type(new) or old != new:  # `True == 1`, which are two values of JSON
        found.append({"op": "replace", "path": path, "value": new})


def _compare_objects(found: list[Change], path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    gone, get = 0, new.get
    for key, before in old.items():
        after = get(key, _GONE)
        if after is before:
            continue
        if after is _GONE:
            gone += 1
            found.append({"op": "remove", "path": f"{path}/{_step(key)}"})
        elif (
            type(before) is dict is type(after)
        ):  # which most are that are not the same: spares a call and two questions
            _compare_objects(found, f"{path}/{_step(key)}", before, after)
        else:
            _compare(found, f"{path}/{_step(key)}", before, after)
    if len(new) == len(old) - gone:
        return  # nothing is there that was not before
    for key, after in new.items():
        if key not in old:
            found.append({"op": "add", "path": f"{path}/{_step(key)}", "value": after})


def _compare_lists(found: list[Change], path: str, old: Sequence[Any], new: Sequence[Any]) -> None:
    both = min(len(old), len(new))
    for at in range(both):
        if old[at] is not new[at]:
            _compare(found, f"{path}/{at}", old[at], new[at])
    found += [{"op": "remove", "path": f"{path}/{at}"} for at in range(len(old) - 1, both - 1, -1)]
    found += [{"op": "add", "path": f"{path}/-", "value": after} for after in new[both:]]


def _is_object(value: Any) -> bool:
    # Asking for the class first spares nearly all values the dearer question.
    return type(value) is dict or isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return type(value) is list or (isinstance(value, Sequence) and not isinstance(value, str))


def _step(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key
