"""Server-side apply as a pure function: merge what a manager wants, and let go what it wants no more.

Ownership is kept for every manager that names itself, for applying and for other writes. Writes without
a manager's name take the fields they change from whoever owned them, and own nothing.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.kube.errors import Conflict
from koordpolicy.kube.frozen import thaw
from koordpolicy.kube.ownership import (
    FieldManager,
    Path,
    field_values,
    item_element,
    read_managers,
    set_element,
    show,
    write_managers,
)
from koordpolicy.model.shapes import Shape

_SHOWN_CONFLICTS: Final = 10
_ABSENT: Final = object()


def applied(
    live: Mapping[str, Any],
    wanted: dict[str, Any],
    shape: Shape,
    *,
    manager: str,
    force: bool,
    subresource: str = "",
    now: str,
) -> dict[str, Any]:
    """The object after `manager` applied `wanted` to `live` ({} for a new object).

    `now` is the RFC 3339 time for the manager's entry; an apply that changes nothing keeps the old one.
    Raises Conflict, naming fields and managers, for values that others own and that differ, unless
    `force`.
    """
    desired, present = field_values(wanted, shape), field_values(live, shape)
    mine = FieldManager(manager, "Apply", subresource, frozenset(desired), now)
    entries = read_managers(live)
    before = next((entry for entry in entries if entry.identity == mine.identity), None)
    others = [entry for entry in entries if entry.identity != mine.identity]
    stands = _standing(present)
    taken = {
        path
        for path, value in desired.items()
        if present.get(path, _ABSENT) != value
        and not (value == {} and path in stands and path not in present)
    }
    conflicts = [(entry.name, path) for entry in others for path in sorted(entry.fields & taken)]
    if conflicts and not force:
        raise Conflict(_conflict_message(conflicts))

    result: dict[str, Any] = _merge(thaw(live), wanted, shape)
    let_go = (before.fields if before else frozenset()) - _standing(desired)
    owned_by_others = frozenset[Path]().union(*(entry.fields for entry in others))
    stated = set(_containers(wanted, shape, ()))
    for path in sorted(let_go, key=len):  # an item before its fields, so that its key is not missed
        # An item of a list stays for those who own it being there, not for those who own only a field of it.
        owned = (
            {path}
            if path[-1].startswith("k:")
            else {other for other in owned_by_others if other[: len(path)] == path}
        )
        if not owned & owned_by_others:
            _remove(result, path, shape, keep=stated)

    result.setdefault("metadata", {})
    left = _standing(field_values(result, shape))
    kept = [
        FieldManager(
            entry.name, entry.operation, entry.subresource, (entry.fields - taken) & left, entry.time
        )
        for entry in others
    ]
    if before and before.fields == mine.fields and not taken and not let_go:
        mine = before
    place = entries.index(before) if before else len(kept)
    kept.insert(place, mine)  # where it stood, so that applying again changes nothing
    result["metadata"]["managedFields"] = write_managers(kept, str(wanted["apiVersion"]))
    return result


def tracked(
    old: Mapping[str, Any],
    new: dict[str, Any],
    shape: Shape,
    *,
    manager: str,
    subresource: str = "",
    now: str,
) -> None:
    """Note in `new` who owns what after a write that was no apply. `old` is {} for a new object."""
    entries = read_managers(old)
    if not entries and not manager:
        new.get("metadata", {}).pop("managedFields", None)
        return
    before, after = field_values(old, shape), field_values(new, shape)
    standing = _standing(after)
    changed = {path for path, value in after.items() if before.get(path, _ABSENT) != value}
    mine = FieldManager(manager, "Update", subresource, frozenset(changed), now)
    result = [
        _kept(entry, mine, standing)
        if entry.identity == mine.identity
        else FieldManager(*entry.identity, (entry.fields - changed) & standing, entry.time)
        for entry in entries
    ]
    if manager and all(entry.identity != mine.identity for entry in entries):
        result.append(mine)
    new["metadata"]["managedFields"] = write_managers(result, str(new["apiVersion"]))


def _standing(values: Mapping[Path, Any]) -> set[Path]:
    """All paths at which something stands: fields, and the maps and lists around them."""
    return {path[:end] for path in values for end in range(1, len(path) + 1)}


def _kept(entry: FieldManager, change: FieldManager, standing: set[Path]) -> FieldManager:
    """A manager's entry after another write of its own."""
    fields = change.fields | (entry.fields & standing)
    return FieldManager(*entry.identity, fields, change.time if change.fields else entry.time)


def _conflict_message(conflicts: list[tuple[str, Path]]) -> str:
    shown = ", ".join(f"`{show(path)}` of `{name}`" for name, path in conflicts[:_SHOWN_CONFLICTS])
    more = f" and {len(conflicts) - _SHOWN_CONFLICTS} more" if len(conflicts) > _SHOWN_CONFLICTS else ""
    return f"apply conflicts with other managers: {shown}{more}"


def _merge(live: Any, wanted: Any, shape: Shape) -> Any:
    """`wanted` laid over `live`, which may be changed."""
    if isinstance(live, dict) and isinstance(wanted, dict) and not shape.atomic:
        for key, value in wanted.items():
            live[key] = _merge(live[key], value, shape.below(key)) if key in live else value
        return live
    if isinstance(live, list) and isinstance(wanted, list):
        if shape.identity:
            inner = Shape(shape.fields)
            by_name = {item_element(item, shape): item for item in live}
            for item in wanted:
                name = item_element(item, shape)
                by_name[name] = _merge(by_name[name], item, inner) if name in by_name else item
            return [by_name[name] for name in _interleaved(live, wanted, shape)]
        if shape.unique:
            by_name = {set_element(item): item for item in [*live, *wanted]}
            return [by_name[name] for name in _interleaved(live, wanted, shape)]
    return wanted


def _containers(value: Any, shape: Shape, path: Path) -> Iterator[Path]:
    """The paths of all maps and lists, empty ones too."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from _containers(item, shape.below(key), (*path, f"f:{key}"))
    elif isinstance(value, list):
        yield path
        for item in value if shape.identity else ():
            yield from _containers(item, Shape(shape.fields), (*path, item_element(item, shape)))


def _interleaved(live: list[Any], wanted: list[Any], shape: Shape) -> list[str]:
    """The names of both lists' items: the wanted ones in their order, the others early, in theirs."""

    def name(item: Any) -> str:
        return item_element(item, shape) if shape.identity else set_element(item)

    coming = deque(name(item) for item in wanted)
    present = [name(item) for item in live]
    shared = deque(entry for entry in coming if entry in set(present))
    ours = set(coming)
    result: list[str] = []
    for entry in present:
        if entry not in ours:
            result.append(entry)
        elif shared and entry == shared[0]:
            while coming and (not result or result[-1] != entry):
                result.append(coming.popleft())
            shared.popleft()
    return [*result, *coming]


def _remove(obj: dict[str, Any], path: Path, shape: Shape, *, keep: set[Path]) -> None:
    """Take out what stands at a path, and the map or list around it when that becomes empty and is not to be kept."""
    trail: list[tuple[Any, Any]] = []
    value: Any = obj
    for element in path:
        key = _key_in(value, element, shape)
        if key is None:
            return
        trail.append((value, key))
        shape = shape.below(element[2:]) if element.startswith("f:") else Shape(shape.fields)
        value = value[key]
    container, key = trail.pop()
    del container[key]
    if trail and not container and path[:-1] not in keep:
        container, key = trail.pop()
        del container[key]


def _key_in(value: Any, element: str, shape: Shape) -> Any:
    """The key or position that a path element names in a map or list, None when it is not there."""
    if element.startswith("f:"):
        return element[2:] if isinstance(value, dict) and element[2:] in value else None
    if not isinstance(value, list):
        return None
    for place, item in enumerate(value):
        if element.startswith("k:") and item_element(item, shape) == element:
            return place
        if element == set_element(item):
            return place
    return None
