"""Who owns which field of an object: the sets that server-side apply compares, and their wire form.

A path is a tuple of elements as `metadata.managedFields[].fieldsV1` writes them: `f:spec` a member,
`k:{"name":"a"}` an item of a keyed list, `v:"x"` an entry of a set. An item's own path stands for the
item being there at all.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from koordpolicy.kube.errors import Rejected
from koordpolicy.model.shapes import DEFAULTS_OF_KEYS, Shape

Path: TypeAlias = tuple[str, ...]

THERE: Final = object()
"""The value at the path of a list's item: that it is there is all there is to know."""

_UNOWNED: Final = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    }
)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """One entry of `metadata.managedFields`: what a manager set by one way of writing.

    `operation` is `Apply` or `Update`; `time` is RFC 3339.
    """

    name: str
    operation: str
    subresource: str
    fields: frozenset[Path]
    time: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Entries of one identity are one entry."""
        return (self.name, self.operation, self.subresource)


def field_values(obj: Mapping[str, Any], shape: Shape) -> dict[Path, Any]:
    """Each field that can be owned, with its value. Identity and bookkeeping of the object are left out.

    Rejected when an item of a keyed list lacks its key, or has one that another has.
    """
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        if key == "metadata" and isinstance(value, dict):
            for name, item in value.items():
                if name not in _UNOWNED_METADATA:
                    _collect(item, shape.below(key).below(name), (f"f:{key}", f"f:{name}"), found)
        elif key not in _UNOWNED:
            _collect(value, shape.below(key), (f"f:{key}",), found)
    return found


def _collect(value: Any, shape: Shape, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not shape.atomic:
        for key, item in value.items():
            _collect(item, shape.below(key), (*path, f"f:{key}"), found)
    elif isinstance(value, list) and shape.identity:
        for item in value:
            element = (*path, item_element(item, shape))
            if element in found:
                raise Rejected(f"`{show(element)}` stands twice in its list")
            found[element] = THERE
            for key, below in item.items():
                _collect(below, shape.below(key), (*element, f"f:{key}"), found)
    elif isinstance(value, list) and shape.unique:
        for item in value:
            found[(*path, set_element(item))] = item
    else:
        found[path] = value


def item_element(item: Any, shape: Shape) -> str:
    """The path element of an item of a keyed list. Rejected when it lacks the key."""
    keys = {}
    for key in shape.identity:
        value = item.get(key, DEFAULTS_OF_KEYS.get(key)) if isinstance(item, dict) else None
        if value is None:
            raise Rejected(f"each item of this list needs `{key}`, found {json.dumps(item)[:200]}")
        keys[key] = value
    return "k:" + json.dumps(keys, separators=(",", ":"), sort_keys=True)


def set_element(item: Any) -> str:
    """The path element of an entry of a set."""
    return f"v:{json.dumps(item)}"


def show(path: Path) -> str:
    """A path as messages write it: `.spec.containers[name="a"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            text += (
                "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items()) + "]"
            )
        else:
            text += f"[={rest}]"
    return text


def read_managers(obj: Mapping[str, Any]) -> tuple[FieldManager, ...]:
    """The managers of a stored object, in order."""
    return tuple(
        FieldManager(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("subresource", ""),
            frozenset(_decode(entry.get("fieldsV1") or {}, ())),
            entry.get("time", ""),
        )
        for entry in obj.get("metadata", {}).get("managedFields") or ()
    )


def write_managers(managers: Iterable[FieldManager], api_version: str) -> list[dict[str, Any]]:
    """The wire form of `metadata.managedFields`; managers that own nothing are left out."""
    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": api_version,
            "time": manager.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _encode(manager.fields),
            **({"subresource": manager.subresource} if manager.subresource else {}),
        }
        for manager in managers
        if manager.fields
    ]


def _encode(paths: Iterable[Path]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(paths):  # an item before its fields, so that its mark is set first
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        if path[-1].startswith("k:"):
            node["."] = {}
    return tree


def _decode(tree: Mapping[str, Any], path: Path) -> Iterable[Path]:
    for element, below in tree.items():
        if element == ".":
            yield path
        elif below:
            yield from _decode(below, (*path, element))
        else:
            yield (*path, element)
