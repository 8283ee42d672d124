"""Strategic merge patches on pods, as the API server applies them.

Mappings merge key by key and null deletes. A list is replaced as a whole unless its elements have a
merge key (containers by name, ports by number): then elements merge one by one. The directives `$patch`,
`$retainKeys`, `$deleteFromPrimitiveList/...` and `$setElementOrder/...` are understood. Nothing that is
passed in is changed.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

Json = Mapping[str, object]

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_DEEPEST: Final = 64


class PatchError(ValueError):
    """A patch that cannot be applied. The message names the place and what is wrong."""


@dataclass(frozen=True, slots=True)
class _Field:
    """How a field merges: the structure below it, and for lists the key of their elements.

    `primitive` marks a list of plain values that merges as a set.
    """

    below: str = ""
    key: str = ""
    primitive: bool = False


_CONTAINERS: Final = _Field("Container", key="name")

# Kubernetes' own merge keys (patchStrategy and patchMergeKey of the API types).
_SCHEMA: Final[Mapping[str, Mapping[str, _Field]]] = MappingProxyType(
    {
        "Pod": {"metadata": _Field("Metadata"), "spec": _Field("Spec"), "status": _Field("Status")},
        "Metadata": {"ownerReferences": _Field(key="uid"), "finalizers": _Field(primitive=True)},
        "Spec": {
            "containers": _CONTAINERS,
            "initContainers": _CONTAINERS,
            "ephemeralContainers": _CONTAINERS,
            "volumes": _Field(key="name"),
            "imagePullSecrets": _Field(key="name"),
            "hostAliases": _Field(key="ip"),
            "topologySpreadConstraints": _Field(key="topologyKey"),
            "resourceClaims": _Field(key="name"),
            "schedulingGates": _Field(key="name"),
        },
        "Container": {
            "ports": _Field(key="containerPort"),
            "env": _Field(key="name"),
            "volumeMounts": _Field(key="mountPath"),
            "volumeDevices": _Field(key="devicePath"),
        },
        "Status": {
            "conditions": _Field(key="type"),
            "hostIPs": _Field(key="ip"),
            "podIPs": _Field(key="ip"),
            "resourceClaimStatuses": _Field(key="name"),
        },
    }
)
_PLAIN: Final = _Field()


def merge_pod(pod: Json, patch: Json) -> dict[str, object]:
    """The pod with the patch applied. Raises PatchError."""
    return _merge(pod, patch, "Pod", "")


def _merge(original: Json, patch: Json, structure: str, at: str) -> dict[str, object]:
    _check_depth(at)
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return _cleaned_mapping(patch, at)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(f"{at or 'patch'}: `$patch` is `replace`, `merge` or `delete`, not `{directive}`")
    merged = _retained(original, patch, at)
    fields = _SCHEMA.get(structure, {})
    for name, value in patch.items():
        place = f"{at}.{name}" if at else name
        if name in (_DIRECTIVE, _RETAIN) or name.startswith(_ORDER):
            continue
        if name.startswith(_DELETE_FROM):
            target = name.removeprefix(_DELETE_FROM)
            gone = _plain_values(value, place)
            merged[target] = [
                item for item in _plain_values(merged.get(target, []), place) if item not in gone
            ]
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged_value(merged.get(name), value, fields.get(name, _PLAIN), place)
    for name, value in patch.items():
        if name.startswith(_ORDER):
            target = name.removeprefix(_ORDER)
            if target in merged:
                field = fields.get(target, _PLAIN)
                order = _identities(value, field, f"{at}.{name}")
                merged[target] = _ordered(merged[target], order, original.get(target, []), field, at)
    return merged


def _merged_value(current: object, value: object, field: _Field, at: str) -> object:
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        return _merge(current, value, field.below, at)
    if isinstance(current, list) and isinstance(value, list):
        if field.key:
            return _merge_list(current, value, field, at)
        if field.primitive:
            known = [*current, *(item for item in value if item not in current)]
            return _ordered(known, _identities(value, field, at), current, field, at)
    return _cleaned(value, at)


def _merge_list(current: list[object], patch: list[object], field: _Field, at: str) -> list[object]:
    """Elements with the same key merge, new ones join, `$patch: delete` takes one out."""
    if any(_directive(item) == "replace" for item in patch):
        return [_cleaned(item, at) for item in patch if _directive(item) is None]
    elements = [_element(item, field, at) for item in patch]
    merged = [_element(item, field, at) for item in current]
    joined: list[Json] = []
    for element in elements:
        identity = element[field.key]
        directive = _directive(element)
        if directive not in (None, "delete"):
            raise PatchError(f"{at}: `$patch` of an element is `delete` or `replace`, not `{directive}`")
        if directive == "delete":
            merged = [item for item in merged if item[field.key] != identity]
            continue
        joined.append(element)
        position = next((i for i, item in enumerate(merged) if item[field.key] == identity), None)
        if position is None:
            merged.append(_cleaned_mapping(element, at))
        else:
            merged[position] = _merge(merged[position], element, field.below, f"{at}[{identity}]")
    return _ordered(merged, [element[field.key] for element in joined], current, field, at)


def _ordered(
    items: object, order: Sequence[object], original: object, field: _Field, at: str
) -> list[object]:
    """Items in the order the API server gives them.

    The patch's own items follow the patch, the others keep their order, and each of the others comes
    before the first patched item that it came before in the original list.
    """
    if not isinstance(items, list):
        raise PatchError(f"{at or 'patch'}: expected a list to put in order")
    identity = _identity_of(field)
    before = [identity(item) for item in original] if isinstance(original, list) else []
    listed = {_hashable(one): position for position, one in reversed(list(enumerate(order)))}
    patched = sorted(
        (item for item in items if _hashable(identity(item)) in listed),
        key=lambda item: listed[_hashable(identity(item))],
    )
    others = [item for item in items if _hashable(identity(item)) not in listed]
    result: list[object] = []
    for item in patched:
        while others and _comes_before(identity(others[0]), identity(item), before):
            result.append(others.pop(0))
        result.append(item)
    return [*result, *others]


def _comes_before(one: object, other: object, order: Sequence[object]) -> bool:
    return one in order and other in order and order.index(one) < order.index(other)


def _identity_of(field: _Field) -> Callable[[object], object]:
    if not field.key:
        return lambda item: item
    return lambda item: item.get(field.key) if isinstance(item, Mapping) else None


def _identities(value: object, field: _Field, at: str) -> list[object]:
    if not isinstance(value, list):
        raise PatchError(f"{at}: expected a list")
    return [_element(item, field, at)[field.key] for item in value] if field.key else value


def _element(item: object, field: _Field, at: str) -> Json:
    if not isinstance(item, Mapping) or item.get(field.key) is None:
        raise PatchError(f"{at}: every element needs its `{field.key}`, by which elements are merged")
    return item


def _directive(item: object) -> object:
    return item.get(_DIRECTIVE) if isinstance(item, Mapping) else None


def _retained(original: Json, patch: Json, at: str) -> dict[str, object]:
    keep = patch.get(_RETAIN)
    if keep is None:
        return dict(original)
    names = _plain_values(keep, f"{at}.{_RETAIN}")
    extra = [name for name in patch if not name.startswith("$") and name not in names]
    if extra:
        raise PatchError(f"{at or 'patch'}: `{extra[0]}` is set but not among `{_RETAIN}`")
    return {name: value for name, value in original.items() if name in names}


def _plain_values(value: object, at: str) -> list[object]:
    if not isinstance(value, list) or any(isinstance(item, Mapping | list) for item in value):
        raise PatchError(f"{at}: expected a list of plain values")
    return value


def _cleaned(value: object, at: str) -> object:
    """A value that joins as it is: without directives, without nulls."""
    _check_depth(at)
    if isinstance(value, Mapping):
        return _cleaned_mapping(value, at)
    if isinstance(value, list):
        return [_cleaned(item, f"{at}[]") for item in value if _directive(item) is None]
    return value


def _cleaned_mapping(value: Json, at: str) -> dict[str, object]:
    return {
        name: _cleaned(item, f"{at}.{name}")
        for name, item in value.items()
        if item is not None and not name.startswith("$")
    }


def _hashable(value: object) -> Hashable:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _check_depth(at: str) -> None:
    if at.count(".") + at.count("[") > _DEEPEST:
        raise PatchError(f"the patch nests deeper than {_DEEPEST} levels")
