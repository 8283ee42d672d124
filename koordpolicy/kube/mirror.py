"""A local copy of one resource: fed by lists and watch events, read without asking the cluster.

Pure state: no waiting, no requests. The informer feeds it over a network; a simulation feeds it directly.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from koordpolicy.kube.port import EventType, Object, WatchEvent

Key: TypeAlias = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object: `old` is None when it is new to us, `new` when it is gone.

    An object that was deleted and made anew while we looked away arrives as two changes.
    """

    key: Key
    old: Object | None
    new: Object | None


Handler: TypeAlias = Callable[[Change], None]
"""Told of each change, after the mirror shows it. What it raises goes to whoever fed the mirror."""

Index: TypeAlias = Callable[[Object], Iterable[str]]
"""The texts under which an object can be found."""


class Mirror:
    """The objects as last heard of. `indexes` are functions by name; `handlers` are called in order."""

    def __init__(
        self, *, indexes: Mapping[str, Index] | None = None, handlers: Sequence[Handler] = ()
    ) -> None:
        self.resource_version = ""
        """How far this copy has come; "" before the first list."""
        self._objects: dict[Key, Object] = {}
        self._handlers = tuple(handlers)
        self._index_of = dict(indexes or {})
        self._indexed: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._index_of}

    @property
    def objects(self) -> Mapping[Key, Object]:
        """All objects, read-only."""
        return MappingProxyType(self._objects)

    def get(self, name: str, namespace: str = "") -> Object | None:
        """The object of this name, None when there is none."""
        return self._objects.get((namespace, name))

    def indexed(self, index: str, value: str) -> list[Object]:
        """The objects that an index lists under a text. KeyError for an unknown index."""
        return [self._objects[key] for key in self._indexed[index].get(value, ())]

    def replace(self, items: Iterable[Object], resource_version: str) -> None:
        """Become what a list says. Handlers hear of the differences only."""
        present = {key_of(item): item for item in items}
        for key in [key for key in self._objects if key not in present]:
            self._set(key, None)
        for key, item in present.items():
            self._take(key, item)
        self.resource_version = resource_version

    def apply(self, event: WatchEvent) -> None:
        """Follow one watch event. An event that was seen already changes nothing."""
        if event.type is EventType.DELETED:
            key = key_of(event.object)
            if key in self._objects:
                self._set(key, None)
        elif event.type is not EventType.BOOKMARK:
            self._take(key_of(event.object), event.object)
        self.resource_version = event.resource_version

    def _take(self, key: Key, item: Object) -> None:
        """A present state of an object, perhaps known already."""
        known = self._objects.get(key)
        if known is not None and known["metadata"].get("uid") != item["metadata"].get("uid"):
            self._set(key, None)
            known = None
        if known is None or known["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            self._set(key, item)

    def _set(self, key: Key, new: Object | None) -> None:
        old = self._objects.get(key)
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        for name, texts in self._index_of.items():
            self._reindex(self._indexed[name], key, texts(old) if old else (), texts(new) if new else ())
        change = Change(key, old, new)
        for handler in self._handlers:
            handler(change)

    @staticmethod
    def _reindex(
        index: dict[str, dict[Key, None]], key: Key, before: Iterable[str], after: Iterable[str]
    ) -> None:
        for text in before:
            bucket = index.get(text, {})
            bucket.pop(key, None)
            if not bucket:
                index.pop(text, None)
        for text in after:
            index.setdefault(text, {})[key] = None


def key_of(obj: Object) -> Key:
    """Namespace ("" when it has none) and name of an object."""
    metadata = obj["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])
