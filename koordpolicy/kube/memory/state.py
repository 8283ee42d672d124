"""What the cluster remembers: objects of all resources under one growing revision. The part etcd plays.

Every write goes through `put`. Those who keep books of their own (owners, namespaces, budgets) are told of
every change, in a fixed order, before the writer goes on.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from koordpolicy.kube.errors import Gone, NotFound, Rejected
from koordpolicy.kube.frozen import FrozenDict, freeze
from koordpolicy.kube.memory.collection import Key, ResourceObjects
from koordpolicy.kube.memory.watch import ListSelection, WatchQueue
from koordpolicy.kube.port import ObjectList
from koordpolicy.kube.resources import Resource

_OPEN_PAGES: Final = 1000
"""How many unfinished paged lists are kept; the oldest are dropped first."""


class Observer(Protocol):
    """Someone who keeps books over the objects."""

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        """A write happened: from `old` (None: new object) to `new` (None: object gone)."""
        ...


@dataclass(frozen=True, slots=True)
class _Page:
    resource: Resource
    selection: ListSelection
    items: Sequence[FrozenDict]
    start: int
    revision: int


class MemoryState:
    """All objects. `history` and `backlog` count events a resource and a watcher."""

    def __init__(self, served: Sequence[Resource], *, history: int, backlog: int) -> None:
        self.revision = 0
        self.observers: tuple[Observer, ...] = ()
        self._collections = {
            resource: ResourceObjects(resource, history=history, backlog=backlog) for resource in served
        }
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._opened = 0

    @property
    def collections(self) -> Mapping[Resource, ResourceObjects]:
        """The objects by resource, in the order of the table."""
        return self._collections

    def collection(self, resource: Resource) -> ResourceObjects:
        """The objects of a resource; NotFound when this cluster does not serve it."""
        found = self._collections.get(resource)
        if found is None:
            raise NotFound(f"the cluster does not serve {resource}")
        return found

    def find(self, resource: Resource, key: Key) -> FrozenDict | None:
        """The object, None when there is none."""
        return self.collection(resource).objects.get(key)

    def get(self, resource: Resource, key: Key) -> FrozenDict:
        """The object; NotFound when there is none."""
        found = self.find(resource, key)
        if found is None:
            raise NotFound(f"{resource} `{key[1]}` not found")
        return found

    def put(self, resource: Resource, key: Key, draft: dict[str, Any]) -> FrozenDict:
        """Store a draft under the next revision. The draft is the caller's no more."""
        self.revision += 1
        draft["metadata"]["resourceVersion"] = str(self.revision)
        new = freeze(draft)
        collection = self.collection(resource)
        old = collection.objects.get(key)
        collection.put(key, new, self.revision)
        for observer in self.observers:
            observer.changed(resource, key, old, new)
        return new

    def drop(self, resource: Resource, key: Key) -> FrozenDict:
        """Take an object out, and return its last state."""
        old = self.get(resource, key)
        self.revision += 1
        self.collection(resource).put(key, None, self.revision)
        for observer in self.observers:
            observer.changed(resource, key, old, None)
        return old

    def list(self, resource: Resource, selection: ListSelection, limit: int, token: str) -> ObjectList:
        """A page of the selected objects, all pages of one moment."""
        collection = self.collection(resource)
        if token:
            page = self._page(token, resource, selection)
        else:
            page = _Page(resource, selection, collection.select(selection), 0, self.revision)
        end = page.start + limit if limit > 0 else len(page.items)
        left = max(0, len(page.items) - end)
        return ObjectList(
            page.items[page.start : end],
            str(page.revision),
            self._remember(_Page(resource, selection, page.items, end, page.revision)) if left else "",
            left if selection.everything else None,
        )

    def watch(
        self, resource: Resource, selection: ListSelection, since: str, *, bookmarks: bool
    ) -> WatchQueue:
        """Begin to watch after resource version `since`, or with the present objects when it is "" or "0"."""
        if since and not (since.isascii() and since.isdigit()):
            raise Rejected(f"`{since}` is not a resource version of this cluster")
        start = int(since) if since and since != "0" else None
        return self.collection(resource).watch(selection, start, self.revision, bookmarks=bookmarks)

    def _page(self, token: str, resource: Resource, selection: ListSelection) -> _Page:
        page = self._pages.get(token)
        if page is None or not self.collection(resource).serves(page.revision):
            raise Gone("the continue token is unknown or too old; begin the list anew")
        if (page.resource, page.selection) != (resource, selection):
            raise Rejected("the continue token belongs to a list with other arguments")
        return page

    def _remember(self, page: _Page) -> str:
        self._opened += 1
        token = f"{page.revision}.{self._opened}"
        self._pages[token] = page
        if len(self._pages) > _OPEN_PAGES:
            self._pages.popitem(last=False)
        return token
