"""Strategic merge patch, as Kubernetes defines it, as a pure function.

Maps merge and null deletes, as in a JSON merge patch. Lists whose shape has a key merge item by item;
lists that are sets unite; other lists are replaced. Directives in the patch:

| directive | meaning |
|---|---|
| `$patch: replace` | in a map: the rest of the map replaces it; as an item of a keyed list: the other items replace the list |
| `$patch: delete` | in a map: empties it; in an item of a keyed list: takes out the item of that key |
| `$retainKeys: [..]` | only these keys of the merged map stay |
| `$deleteFromPrimitiveList/F: [..]` | takes these out of the set F |
| `$setElementOrder/F: [..]` | the order of list F afterwards |
"""

from typing import Any, Final

from koordpolicy.kube.errors import Rejected
from koordpolicy.kube.shapes import Shape

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def strategic_merge(target: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The target after the patch. Both may be changed. Rejected for directives that make no sense."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise Rejected(f"`$patch: {directive}` is none of replace, delete, merge")
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN) or key.startswith((_DELETE, _ORDER)):
            continue
        merged = _merged(target.get(key), value, shape.below(key))
        if merged is None:
            target.pop(key, None)
        else:
            target[key] = merged
    _follow_list_directives(target, patch, shape)
    if _RETAIN in patch:
        retained = _listed(patch, _RETAIN)
        return {key: value for key, value in target.items() if key in retained}
    return target


def _merged(present: Any, value: Any, shape: Shape) -> Any:
    """The new value of one member, None when it goes."""
    if isinstance(value, dict):
        if shape.replace:
            return _plain(value)
        return strategic_merge(present if isinstance(present, dict) else {}, value, shape)
    if isinstance(value, list) and shape.key:
        return _merge_by_key(present if isinstance(present, list) else [], value, shape)
    if isinstance(value, list) and shape.unique:
        return list(dict.fromkeys([*(present if isinstance(present, list) else []), *value]))
    return value


def _merge_by_key(items: list[Any], patches: list[Any], shape: Shape) -> list[Any]:
    if any(isinstance(patch, dict) and patch.get(_PATCH) == "replace" for patch in patches):
        return [_plain(patch) for patch in patches if isinstance(patch, dict) and _PATCH not in patch]
    for patch in patches:
        if not isinstance(patch, dict) or patch.get(shape.key) is None:
            raise Rejected(f"each item of this list needs its merge key `{shape.key}`")
        places = [place for place, item in enumerate(items) if item.get(shape.key) == patch[shape.key]]
        if patch.get(_PATCH) == "delete":
            items = [item for place, item in enumerate(items) if place not in places]
        elif places:
            items[places[0]] = strategic_merge(items[places[0]], patch, Shape(shape.fields))
        else:
            items.append(strategic_merge({}, patch, Shape(shape.fields)))
    return items


def _follow_list_directives(target: dict[str, Any], patch: dict[str, Any], shape: Shape) -> None:
    for key in patch:
        if key.startswith(_DELETE):
            field, unwanted = key.removeprefix(_DELETE), _listed(patch, key)
            target[field] = [item for item in target.get(field) or [] if item not in unwanted]
    for key in patch:
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if isinstance(target.get(field), list):
                target[field] = _ordered(target[field], _listed(patch, key), shape.below(field).key)


def _ordered(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items in the order asked for. One that the order leaves out stays behind what it stood behind."""

    def name(entry: Any) -> str:
        return repr(entry.get(key) if key and isinstance(entry, dict) else entry)

    wanted = {name(entry): rank for rank, entry in enumerate(order)}
    ranks: list[tuple[int, int]] = []
    last = -1
    for place, item in enumerate(items):
        last = wanted.get(name(item), last)
        ranks.append((last, place))
    return [items[place] for _, place in sorted(ranks)]


def _plain(value: Any) -> Any:
    """A patch's map taken as a value: without its directives and nulls."""
    return strategic_merge({}, {key: item for key, item in value.items() if key != _PATCH}, Shape())


def _listed(patch: dict[str, Any], key: str) -> list[Any]:
    value = patch[key]
    if not isinstance(value, list):
        raise Rejected(f"`{key}` is a list")
    return value
