"""A local copy of one resource: fed by lists and watch events, read without asking the cluster.

Pure state: no waiting, no requests. The informer feeds it over a network; a simulation feeds it directly.

It is the door through which objects come in. An object without a name is left out; an index or a handler that fails
over an object concerns that object alone. Of both `on_unreadable` is told.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from koordpolicy.kube.port import EventType, Object, WatchEvent
from koordpolicy.model.reading import ObjectError, mapping, text
from koordpolicy.model.unreadable import Unreadable, readable

LOG: Final = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What became of one object: `old` is None when it is new to us, `new` when it is gone.

    An object that was deleted and made anew while we looked away arrives as two changes.
    """

    key: Key
    old: Object | None
    new: Object | None


Handler: TypeAlias = Callable[[ObjectChange], None]
"""Told of each change, after the mirror shows it."""

Index: TypeAlias = Callable[[Object], Iterable[str]]
"""The texts under which an object can be found."""

OnUnreadable: TypeAlias = Callable[[Object, Unreadable], None]
"""Told of an object that has no name, or that an index or a handler fails over. Must not raise."""


def _say(obj: Object, why: Unreadable) -> None:
    LOG.warning("an object is passed over: %s", why.reason, exc_info=why.cause)


class Mirror:
    """The objects as last heard of. `indexes` are functions by name; `handlers` are called in order.

    With `in_steps` a list may be taken part by part, what is gone at its end: for those who need nothing of the first list
    before it is whole, and of a later one may see new objects beside ones that are gone.
    """

    def __init__(
        self,
        *,
        indexes: Mapping[str, Index] | None = None,
        handlers: Sequence[Handler] = (),
        on_unreadable: OnUnreadable = _say,
        in_steps: bool = False,
    ) -> None:
        self.in_steps = in_steps
        self.resource_version = ""
        """How far this copy has come; "" before the first list."""
        self._objects: dict[Key, Object] = {}
        self._handlers = tuple(handlers)
        self._on_unreadable = on_unreadable
        self._index_of = dict(indexes or {})
        self._indexed: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._index_of}

    @property
    def objects(self) -> Mapping[Key, Object]:
        """All objects, read-only."""
        return MappingProxyType(self._objects)

    def get(self, name: str, namespace: str = "") -> Object | None:
        """The object of this name, None when there is none."""
        return self._objects.get((namespace, name))

    def follow(self, handler: Handler) -> None:
        """Tell one more handler of every object that there is, and from now on of each change."""
        self._handlers = (*self._handlers, handler)
        for key, obj in tuple(self._objects.items()):
            self._tell(handler, ObjectChange(key, None, obj))

    def indexed(self, index: str, value: str) -> list[Object]:
        """The objects that an index lists under a text. KeyError for an unknown index."""
        return [self._objects[key] for key in self._indexed[index].get(value, ())]

    def replace(self, items: Iterable[Object], resource_version: str) -> None:
        """Become what a list says. Handlers hear of the differences only."""
        present: dict[Key, Object] = {}
        for item in items:
            key = self._named(item)
            if key is not None:
                present[key] = item
        for key in [key for key in self._objects if key not in present]:
            self._set(key, None)
        for key, item in present.items():
            self._take(key, item)
        self.resource_version = resource_version

    def take(self, items: Iterable[Object]) -> list[Key]:
        """Know a part of a list; gives under what its objects are known. What the part does not have stays."""
        taken = []
        for item in items:
            key = self._named(item)
            if key is not None:
                self._take(key, item)
                taken.append(key)
        return taken

    def keep_only(self, listed: Collection[Key], resource_version: str) -> None:
        """All parts of a list were taken: what is not among its keys is gone."""
        for key in [key for key in self._objects if key not in listed]:
            self._set(key, None)
        self.resource_version = resource_version

    def apply(self, event: WatchEvent) -> None:
        """Follow one watch event. An event that was seen already changes nothing."""
        if event.type is not EventType.BOOKMARK:
            key = self._named(event.object)
            if key is None:
                pass
            elif event.type is not EventType.DELETED:
                self._take(key, event.object)
            elif key in self._objects:
                self._set(key, None)
        self.resource_version = event.resource_version or self.resource_version

    def _named(self, item: Object) -> Key | None:
        """Under what an object is known; None when it does not say."""
        try:
            return key_of(item)
        except (LookupError, TypeError, AttributeError):
            why = readable(_name_of, item)
            if isinstance(why, Unreadable):
                self._on_unreadable(item, why)
                return None
            return why

    def _take(self, key: Key, item: Object) -> None:
        """A present state of an object, perhaps known already."""
        known, said = self._objects.get(key), item["metadata"]
        if known is not None and known["metadata"].get("uid") != said.get("uid"):
            self._set(key, None)
            known = None
        version = said.get("resourceVersion")
        if known is not None:
            # Who tells no versions, as a kubelet, is compared as a whole.
            same = known == item if version is None else known["metadata"].get("resourceVersion") == version
            if same:
                return
        self._set(key, item)

    def _set(self, key: Key, new: Object | None) -> None:
        old = self._objects.get(key)
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        for name, texts in self._index_of.items():
            before, after = _texts(texts, old), _texts(texts, new)
            if isinstance(after, Unreadable):
                assert new is not None
                self._on_unreadable(new, after)
            self._reindex(self._indexed[name], key, _or_none(before), _or_none(after))
        change = ObjectChange(key, old, new)
        for handler in self._handlers:
            self._tell(handler, change)

    def _tell(self, handler: Handler, change: ObjectChange) -> None:
        why = readable(handler, change)
        if isinstance(why, Unreadable):
            found = change.new if change.new is not None else change.old
            assert found is not None
            self._on_unreadable(found, why)

    @staticmethod
    def _reindex(
        index: dict[str, dict[Key, None]], key: Key, before: Iterable[str], after: Iterable[str]
    ) -> None:
        for one in before:
            bucket = index.get(one, {})
            bucket.pop(key, None)
            if not bucket:
                index.pop(one, None)
        for one in after:
            index.setdefault(one, {})[key] = None


def _texts(texts: Index, obj: Object | None) -> tuple[str, ...] | Unreadable:
    return () if obj is None else readable(lambda one: tuple(texts(one)), obj)


def _or_none(found: tuple[str, ...] | Unreadable) -> tuple[str, ...]:
    return () if isinstance(found, Unreadable) else found


def key_of(obj: Object) -> Key:
    """Namespace ("" when it has none) and name of an object. Raises what an object without them does."""
    metadata = obj["metadata"]
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    if type(name) is not str or type(namespace) is not str or not name:
        raise TypeError
    return namespace, name


def _name_of(obj: Any) -> Key:
    """The same of an object of any shape. Raises ObjectError."""
    if not isinstance(obj, Mapping):
        raise ObjectError("an object that is none")
    metadata = mapping(obj, "metadata")
    name = text(metadata, "name", "metadata")
    if not name:
        raise ObjectError("metadata.name: an object without a name")
    return text(metadata, "namespace", "metadata"), name
