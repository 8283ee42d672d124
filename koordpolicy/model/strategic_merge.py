"""Strategic merge patch, as the API server carries it out.

Maps merge and null deletes, as in a JSON merge patch. Lists whose shape has a key merge item by item, lists
that are sets unite, other lists are replaced. In a merged list, the patch's items stand in the patch's
order, the others in theirs, and new items come as early as that permits. Directives in the patch:

| directive | meaning |
|---|---|
| `$patch: replace` | in a map: the rest of it replaces the map; as an item of a keyed list: the other items replace the list |
| `$patch: delete` | in a map: empties it; in an item of a keyed list: takes out the items of that key |
| `$retainKeys: [..]` | only these keys of the map stay, before merging; the patch may set no others |
| `$deleteFromPrimitiveList/F: [..]` | takes these out of the list F of plain values |
| `$setElementOrder/F: [..]` | the order in which the items of list F stand afterwards |

Where the target has no counterpart, a map with `$patch` is left out. What replaces something is taken as it is written,
and then read as the server reads an object of that kind: null is an unset field, and an empty text or amount in a map
of them.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from koordpolicy.model.shapes import Shape

Json: TypeAlias = Mapping[str, Any]
Path: TypeAlias = tuple[str, ...]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_DEEPEST: Final = 64


class PatchError(ValueError):
    """A patch that cannot be applied. The message names the place and what is wrong."""


def strategic_merge(target: Json, patch: Json, shape: Shape) -> dict[str, Any]:
    """The target after the patch. Neither is changed; the result may share parts of the target. Raises PatchError."""
    return _merge(target, patch, shape, ())


def _merge(target: Json, patch: Json, shape: Shape, at: Path) -> dict[str, Any]:
    _check_depth(at)
    if _PATCH in patch:
        if patch[_PATCH] == "replace":
            return _map_as_written(patch, shape, at)
        if patch[_PATCH] == "delete":
            return {}
        raise _error(at, f"`$patch` of a map is `replace` or `delete`, not `{patch[_PATCH]}`")
    merged = _retained(target, patch, at)
    ordered = [key.removeprefix(_ORDER) for key in patch if key.startswith(_ORDER)]
    for field in ordered:
        _merge_in_order(merged, field, patch, shape.below(field), (*at, field))
    for key, value in patch.items():
        field, below = key.removeprefix(_DELETE), shape.below(key.removeprefix(_DELETE))
        if key == _RETAIN or key.startswith(_ORDER) or key in ordered:
            continue
        if value is None:
            merged.pop(field, None)
        elif key != field:
            if isinstance(merged.get(field), list):
                merged[field] = _taken_out(merged[field], value, below, (*at, key))
        elif (joined := _merged(merged.get(field), value, below, (*at, field))) is not None:
            merged[field] = joined
        else:
            merged.pop(field, None)
    return merged


def _merged(current: object, value: object, shape: Shape, at: Path) -> object:
    """One member of a map after the patch; None when nothing of it is left."""
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        return _map_as_written(value, shape, at) if shape.replace else _merge(current, value, shape, at)
    if isinstance(current, list) and isinstance(value, list):
        return _merged_list(current, value, shape, at)
    return _new(value, at)


def _merged_list(current: list[Any], value: list[Any], shape: Shape, at: Path) -> list[Any]:
    if shape.key:
        return _merged_by_key(current, value, shape, at)
    if shape.unique:
        both = _plain([*current, *value], at)
        return _ordered(list({_identity(item, ""): item for item in both}.values()), value, current, "")
    return [_as_written(item, Shape(shape.fields), (*at, "[]")) for item in value]


def _merged_by_key(current: list[Any], value: list[Any], shape: Shape, at: Path) -> list[Any]:
    """Items of one key merge, new ones join, `$patch` takes one out or replaces them all."""
    key, inner = shape.key, Shape(shape.fields)
    directives = [item[_PATCH] for item in value if isinstance(item, Mapping) and _PATCH in item]
    for directive in directives:
        if directive not in ("replace", "delete"):
            raise _error(at, f"`$patch` of an item is `delete` or `replace`, not `{directive}`")
    wanted = _keyed([item for item in value if not _is_directed(item)], key, at)
    if "replace" in directives:
        return [_map_as_written(item, inner, at) for item in wanted]
    unwanted = {
        _identity(item, key) for item in _keyed([item for item in value if _is_directed(item)], key, at)
    }
    kept = [item for item in _keyed(current, key, at) if _identity(item, key) not in unwanted]
    merged: list[Any] = list(kept)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(merged):
        places.setdefault(_identity(item, key), place)
    for item in wanted:
        found = places.setdefault(_identity(item, key), len(merged))
        if found == len(merged):
            merged.append(_map_as_written(item, inner, at))
        else:
            merged[found] = _merge(merged[found], item, inner, (*at, f"[{item[key]}]"))
    return _ordered(merged, wanted, kept, key)


def _merge_in_order(merged: dict[str, Any], field: str, patch: Json, shape: Shape, at: Path) -> None:
    """Merge one list, and put its items in the order that its directive asks for."""
    order, present = patch[_ORDER + field], merged.get(field)
    if not isinstance(order, list) or not isinstance(patch.get(field, []), list):
        raise _error(at, f"expected a list, in `{_ORDER}{field}` and in what it puts in order")
    if shape.key:
        _keyed(order, shape.key, at)
    else:
        _plain(order, at)
    _check_order(patch.get(field, []), order, shape.key, at)
    if field in patch:
        merged[field] = _merged(present, patch[field], shape, at)
    if isinstance(merged.get(field), list):
        items = _keyed(merged[field], shape.key, at) if shape.key else _plain(merged[field], at)
        merged[field] = _ordered(items, order, present if isinstance(present, list) else [], shape.key)


def _check_order(items: list[Any], order: list[Any], key: str, at: Path) -> None:
    """PatchError when the patch's items are not all in the order it asks for, in that order."""
    ranks = _ranks(order, key)
    places = [ranks.get(_identity(item, key), -1) for item in items if not _is_directed(item)]
    if order and (-1 in places or places != sorted(places)):
        raise _error(at, "the items of a patch stand in the order that its `$setElementOrder` gives")


def _ordered(items: Sequence[Any], first: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """Items that `first` names in its order, the others as they stand.

    Where the two may be interleaved in several ways, items that both stood `before` keep their order, and an
    item of `first` comes early.
    """
    wanted, stood = _ranks(first, key), _ranks(before, key)
    named = [item for item in items if _identity(item, key) in wanted]
    others = [item for item in items if _identity(item, key) not in wanted]
    result: list[Any] = []
    taken = 0
    for item in sorted(named, key=lambda item: wanted[_identity(item, key)]):
        rank = stood.get(_identity(item, key), -1)
        while taken < len(others) and stood.get(_identity(others[taken], key), rank) < rank:
            result.append(others[taken])
            taken += 1
        result.append(item)
    return result + others[taken:]


def _ranks(items: Sequence[Any], key: str) -> dict[Hashable, int]:
    """Where each item stands; of equal ones, the first."""
    ranks: dict[Hashable, int] = {}
    for rank, item in enumerate(items):
        ranks.setdefault(_identity(item, key), rank)
    return ranks


def _identity(item: Any, key: str) -> Hashable:
    """By what an item is told from the others. As in JSON, 1 is neither true nor the text 1."""
    value = item.get(key) if key and isinstance(item, Mapping) else item
    return (type(value), value) if isinstance(value, Hashable) else repr(value)


def _taken_out(current: list[Any], value: object, shape: Shape, at: Path) -> list[Any]:
    if not isinstance(value, list):
        return current
    if shape.key:
        raise _error(at, "the items of this list are no plain values; delete them by `$patch: delete`")
    _plain([*current, *value], at)
    unwanted = {_identity(item, "") for item in value}
    return [item for item in current if _identity(item, "") not in unwanted]


def _keyed(items: list[Any], key: str, at: Path) -> list[Json]:
    for item in items:
        if not isinstance(item, Mapping) or item.get(key) is None or isinstance(item[key], Mapping | list):
            raise _error(at, f"every item needs its merge key `{key}`")
    return items


def _plain(items: object, at: Path) -> list[Any]:
    if not isinstance(items, list) or any(isinstance(item, Mapping | list) for item in items):
        raise _error(at, "expected a list of plain values")
    if len({type(item) for item in items}) > 1:
        raise _error(at, "the values of one list are of one type")
    return items


def _retained(target: Json, patch: Json, at: Path) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(target)
    kept = _plain(patch[_RETAIN], (*at, _RETAIN))
    for key, value in patch.items():
        if value is not None and not _is_directive(key) and key not in kept:
            raise _error(at, f"`{key}` is set but not among `{_RETAIN}`")
    return {key: value for key, value in target.items() if key in kept}


def _new(value: object, at: Path) -> Any:
    """A patch's value where there is nothing to merge with: without nulls and what bears a `$patch`; None for such."""
    _check_depth(at)
    if isinstance(value, list):
        return [_new(item, (*at, "[]")) for item in value if not _is_directed(item)]
    if not isinstance(value, Mapping):
        return value
    if _is_directed(value):
        return None
    members = {key: _new(item, (*at, key)) for key, item in value.items() if not _is_directive(key)}
    return {key: item for key, item in members.items() if item is not None}


def _as_written(value: object, shape: Shape, at: Path) -> Any:
    if isinstance(value, list):
        return [_as_written(item, Shape(shape.fields), (*at, "[]")) for item in value]
    return _map_as_written(value, shape, at) if isinstance(value, Mapping) else value


def _map_as_written(value: Json, shape: Shape, at: Path) -> dict[str, Any]:
    _check_depth(at)
    members = {
        key: shape.null if item is None else _as_written(item, shape.below(key), (*at, key))
        for key, item in value.items()
        if not _is_directive(key)
    }
    return {key: item for key, item in members.items() if item is not None}


def _is_directed(item: object) -> bool:
    return isinstance(item, Mapping) and _PATCH in item


def _is_directive(key: str) -> bool:
    return key in (_PATCH, _RETAIN) or key.startswith((_DELETE, _ORDER))


def _check_depth(at: Path) -> None:
    if len(at) > _DEEPEST:
        raise PatchError(f"the patch nests deeper than {_DEEPEST} levels")


def _error(at: Path, fault: str) -> PatchError:
    return PatchError(f"{'.'.join(at).replace('.[', '[') or 'patch'}: {fault}")
