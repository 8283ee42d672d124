"""All objects of one resource: by name, in order, by indexed field, with their recent history and watchers."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from koordpolicy.kube import resources
from koordpolicy.kube.errors import Gone
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory.watch import ListSelection, StoredChange, WatchQueue
from koordpolicy.kube.port import EventType, WatchEvent
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.selectors import field_text

Key: TypeAlias = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""

_NAME: Final = "metadata.name"
_INDEXED: Final = {resources.PODS: "spec.nodeName"}
"""Fields by which lists and watches of a resource find their objects without looking at the others."""


class ResourceObjects:
    """The objects of one resource. It stores what it is given; rules are its callers' business.

    INVARIANT: every stored object is frozen, and its `metadata` has namespace, name and resourceVersion.
    """

    def __init__(self, resource: Resource, *, history: int, backlog: int) -> None:
        self.resource = resource
        self.objects: dict[Key, FrozenDict] = {}
        self._order: list[Key] = []
        self._field = _INDEXED.get(resource, "")
        self._index: dict[str, dict[Key, None]] = {}
        self._history: deque[StoredChange] = deque()
        self._history_limit = history
        self._backlog = backlog
        self._forgotten = 0
        self._watches: dict[tuple[str, str], dict[WatchQueue, None]] = {}
        self._since_bookmark = 0

    def put(self, key: Key, new: FrozenDict | None, revision: int) -> None:
        """Store a new state of an object, or its absence, and tell the watchers."""
        old = self.objects.get(key)
        if new is None:
            del self.objects[key]
            del self._order[bisect_left(self._order, key)]
        else:
            self.objects[key] = new
            if old is None:
                insort(self._order, key)
        change = StoredChange(revision, old, new)
        if self._field:
            self._reindex(key, change)
        self._remember(change)
        for watch in self._concerned(change):
            watch.offer(change)
        self._since_bookmark += 1
        if self._since_bookmark >= max(1, self._history_limit // 4):
            self.bookmark(revision)

    def select(self, selection: ListSelection) -> list[FrozenDict]:
        """The selected objects, ordered by namespace and name."""
        keys = self._candidates(selection)
        if selection.everything:
            return [self.objects[key] for key in keys]
        return [found for found in map(self.objects.__getitem__, keys) if selection.matches(found)]

    def names(self, namespace: str) -> list[Key]:
        """The keys of one namespace, in order."""
        return self._order[self._start(namespace) : bisect_left(self._order, (namespace + "\0", ""))]

    def watch(
        self, selection: ListSelection, since: int | None, revision: int, *, bookmarks: bool
    ) -> WatchQueue:
        """Begin to watch: after revision `since`, or with the present objects first when it is None.

        `revision` is the present one. Gone when `since` is older than the history, or still to come.
        """
        if since is not None and since < self._forgotten:
            raise Gone(f"the history of {self.resource} begins after resource version {since}; list again")
        if since is not None and since > revision:
            raise Gone(
                f"resource version {since} is not reached yet, the present one is {revision}; list again"
            )
        watch = WatchQueue(self.resource, selection, revision, bookmarks=bookmarks, backlog=self._backlog)
        if since is None:
            watch.preload(WatchEvent(EventType.ADDED, found) for found in self.select(selection))
        else:
            for change in self._changes_after(since):
                watch.offer(change)
        self._watches.setdefault(self._trigger(selection), {})[watch] = None
        return watch

    def unwatch(self, watch: WatchQueue) -> None:
        """Forget a watcher."""
        trigger = self._trigger(watch.selection)
        watches = self._watches.get(trigger, {})
        watches.pop(watch, None)
        if not watches:
            self._watches.pop(trigger, None)

    @property
    def watches(self) -> list[WatchQueue]:
        """Those who watch."""
        return [watch for watches in self._watches.values() for watch in watches]

    def bookmark(self, revision: int) -> None:
        """Bring watchers that see few events up to date, so that they can resume within the history."""
        self._since_bookmark = 0
        for watch in self.watches:
            watch.bookmark(revision)

    def forget(self, revision: int) -> None:
        """Drop the history up to and with this revision, as a compaction does."""
        while self._history and self._history[0].revision <= revision:
            self._history.popleft()
        self._forgotten = max(self._forgotten, revision)

    def serves(self, revision: int) -> bool:
        """Whether the history still reaches back to this revision."""
        return revision >= self._forgotten

    def _remember(self, change: StoredChange) -> None:
        if len(self._history) >= self._history_limit:
            self._forgotten = self._history.popleft().revision
        self._history.append(change)

    def _changes_after(self, revision: int) -> Iterable[StoredChange]:
        newer: list[StoredChange] = []
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            newer.append(change)
        return reversed(newer)

    def _start(self, namespace: str) -> int:
        return bisect_left(self._order, (namespace, ""))

    def _candidates(self, selection: ListSelection) -> Iterable[Key]:
        """Keys in order, narrowed as far as an index helps."""
        name = selection.fields.exact(_NAME)
        if name is not None and (selection.namespace is not None or not self.resource.namespaced):
            key = (selection.namespace or "", name)
            return (key,) if key in self.objects else ()
        value = selection.fields.exact(self._field) if self._field else None
        if value:
            return sorted(self._index.get(value, ()))
        return self._order if selection.namespace is None else self.names(selection.namespace)

    def _trigger(self, selection: ListSelection) -> tuple[str, str]:
        """Where a watcher waits: at one value of one field, or ("", "") for all changes."""
        for field in (self._field, _NAME):
            value = selection.fields.exact(field) if field else None
            if value:
                return (field, value)
        return ("", "")

    def _concerned(self, change: StoredChange) -> Iterator[WatchQueue]:
        """The watchers that may have to hear of a change. A copy: listening may end a watch."""
        if not self._watches:
            return
        states = [state for state in (change.old, change.new) if state is not None]
        triggers = [("", ""), (_NAME, states[-1]["metadata"]["name"])]
        if self._field:
            triggers += [(self._field, field_text(state, self._field)) for state in states]
        for trigger in dict.fromkeys(triggers):
            yield from list(self._watches.get(trigger, ()))

    def _reindex(self, key: Key, change: StoredChange) -> None:
        before = field_text(change.old, self._field) if change.old is not None else ""
        after = field_text(change.new, self._field) if change.new is not None else ""
        if before == after:
            return
        if before:
            bucket = self._index[before]
            del bucket[key]
            if not bucket:
                del self._index[before]
        if after:
            self._index.setdefault(after, {})[key] = None
