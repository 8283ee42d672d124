"""Strategic merge patch, as the API server and its client libraries carry it out, as a pure function.

Maps merge and null deletes, as in a JSON merge patch. Lists whose shape has a key merge item by item, lists
that are sets unite, other lists are replaced. In a merged list, the patch's items stand in the patch's
order, the others in theirs, and new items come as early as that permits. Directives in the patch:

| directive | meaning |
|---|---|
| `$patch: replace` | in a map: the rest of it replaces the map; as an item of a keyed list: the other items replace the list |
| `$patch: delete` | in a map: empties it; in an item of a keyed list: takes out the item of that key |
| `$retainKeys: [..]` | only these keys of the map stay, before merging; the patch may name no others |
| `$deleteFromPrimitiveList/F: [..]` | takes these out of the set F |
| `$setElementOrder/F: [..]` | the order in which the items of list F stand afterwards |

A map with `$patch` for which the target has no counterpart is left out.
"""

from collections.abc import Sequence
from typing import Any, Final

from koordpolicy.kube.errors import Rejected
from koordpolicy.kube.shapes import Shape

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_ABSENT: Final = object()


def strategic_merge(target: dict[str, Any], patch: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The target after the patch. Both may be changed. Rejected for directives that make no sense."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None:
        raise Rejected(f"`$patch: {directive}` is neither replace nor delete")
    if _RETAIN in patch:
        target = _retained(target, patch)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            _take_out(target, key.removeprefix(_DELETE), _listed(patch, key))
        elif key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            _merge_member(target, field, patch.get(field, _ABSENT), shape.below(field), _listed(patch, key))
        elif key != _RETAIN and _ORDER + key not in patch:
            _merge_member(target, key, value, shape.below(key), None)
    return target


def _merge_member(
    target: dict[str, Any], key: str, value: Any, shape: Shape, order: list[Any] | None
) -> None:
    """Merge one member of a map, and put its items in the `order` that a directive asks for."""
    present = target.get(key, _ABSENT)
    if value is None:
        target.pop(key, None)
        return
    if order is not None:
        _check_order(value, order, shape.key)
    if value is _ABSENT:
        merged = present
    elif isinstance(value, dict) and isinstance(present, dict) and not shape.replace:
        merged = strategic_merge(present, value, shape)
    elif isinstance(value, list) and isinstance(present, list) and shape.key:
        merged = _merge_by_key(present, value, shape)
    elif isinstance(value, list) and isinstance(present, list) and shape.unique:
        merged = _ordered(
            list({_name(item, ""): item for item in [*present, *value]}.values()), value, present, ""
        )
    else:
        merged = _fresh(value)
    if order is not None and isinstance(merged, list):
        merged = _ordered(merged, order, present if isinstance(present, list) else [], shape.key)
    if merged is _ABSENT:
        target.pop(key, None)
    else:
        target[key] = merged


def _merge_by_key(present: list[Any], patches: list[Any], shape: Shape) -> list[Any]:
    for patch in patches:
        if not isinstance(patch, dict) or (patch.get(shape.key) is None and patch.get(_PATCH) != "replace"):
            raise Rejected(f"each item of this list needs its merge key `{shape.key}`")
        if patch.get(_PATCH, "delete") not in ("replace", "delete"):
            raise Rejected(f"`$patch: {patch[_PATCH]}` is neither replace nor delete")
    wanted = [patch for patch in patches if _PATCH not in patch]
    if any(patch.get(_PATCH) == "replace" for patch in patches):
        return [_fresh(patch) for patch in wanted]
    unwanted = [patch[shape.key] for patch in patches if patch.get(_PATCH) == "delete"]
    kept = [item for item in present if item.get(shape.key) not in unwanted]
    merged = list(kept)
    inner = Shape(shape.fields)
    for patch in wanted:
        place = next((i for i, item in enumerate(merged) if item.get(shape.key) == patch[shape.key]), None)
        if place is None:
            merged.append(_fresh(patch))
        else:
            merged[place] = strategic_merge(merged[place], patch, inner)
    return _ordered(merged, wanted, kept, shape.key)


def _ordered(items: Sequence[Any], first: list[Any], before: list[Any], key: str) -> list[Any]:
    """Items that `first` names in its order, the others as they stood `before`.

    Where the two may be interleaved in several ways, items that both stood before keep their order, and an
    item of `first` comes early.
    """
    wanted, stood = _ranks(first, key), _ranks(before, key)
    named = sorted(
        (item for item in items if _name(item, key) in wanted), key=lambda i: wanted[_name(i, key)]
    )
    others = [item for item in items if _name(item, key) not in wanted]
    result: list[Any] = []
    for item in named:
        rank = stood.get(_name(item, key), -1)
        while others and stood.get(_name(others[0], key), rank) < rank:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _check_order(value: Any, order: list[Any], key: str) -> None:
    """Rejected when the patch's items are not all in the order it asks for, in that order."""
    ranks = _ranks(order, key)
    items = value if isinstance(value, list) else []
    names = [_name(item, key) for item in items if not (isinstance(item, dict) and _PATCH in item)]
    places = [ranks.get(name, -1) for name in names]
    if -1 in places or places != sorted(places):
        raise Rejected("the items of a patch stand in the order that its `$setElementOrder` gives")


def _ranks(items: list[Any], key: str) -> dict[str, int]:
    return {_name(item, key): rank for rank, item in enumerate(items)}


def _name(item: Any, key: str) -> str:
    return repr(item.get(key) if key and isinstance(item, dict) else item)


def _take_out(target: dict[str, Any], field: str, unwanted: list[Any]) -> None:
    if isinstance(target.get(field), list):
        target[field] = [item for item in target[field] if item not in unwanted]


def _retained(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    kept = _listed(patch, _RETAIN)
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise Rejected(f"the patch sets `{key}`, which its `$retainKeys` leaves out")
    return {key: value for key, value in target.items() if key in kept}


def _fresh(value: Any) -> Any:
    """A patch's value where there is nothing to merge with: without nulls and directives."""
    if isinstance(value, list):
        return [item for item in map(_fresh, value) if item is not _ABSENT]
    if not isinstance(value, dict):
        return value
    if _PATCH in value:
        return _ABSENT
    members = {
        key: _fresh(item) for key, item in value.items() if item is not None and not key.startswith("$")
    }
    return {key: item for key, item in members.items() if item is not _ABSENT}


def _listed(patch: dict[str, Any], key: str) -> list[Any]:
    value = patch[key]
    if not isinstance(value, list):
        raise Rejected(f"`{key}` is a list")
    return value
