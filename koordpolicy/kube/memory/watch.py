"""One watcher's view of the changes: selected, queued, taken when the watcher is ready."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.kube.errors import Gone
from koordpolicy.kube.frozen import FrozenDict, freeze, replaced
from koordpolicy.kube.port import EventType, WatchEvent
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.selectors import FieldSelector
from koordpolicy.model.labels import LabelSelector, Operator

NO_LABELS: Final[dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class StoredChange:
    """One write: the object before (None when new) and after (None when gone) and its revision."""

    revision: int
    old: FrozenDict | None
    new: FrozenDict | None


@dataclass(frozen=True, slots=True)
class ListSelection:
    """What a list or watch asks for: a namespace (None: all), labels and fields."""

    namespace: str | None
    labels: LabelSelector
    fields: FieldSelector
    _equal: tuple[tuple[str, str], ...] = field(init=False, compare=False, repr=False)
    _other: LabelSelector = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Nearly all requirements are plain equalities, and lists ask them of thousands of objects.
        wanted = self.labels.requirements
        equal = [entry for entry in wanted if entry.operator is Operator.IN and len(entry.values) == 1]
        object.__setattr__(self, "_equal", tuple((entry.key, *entry.values) for entry in equal))
        object.__setattr__(self, "_other", LabelSelector(tuple(e for e in wanted if e not in equal)))

    @property
    def everything(self) -> bool:
        """Whether only the namespace matters."""
        return not self.labels.requirements and not self.fields.requirements

    def matches(self, obj: FrozenDict) -> bool:
        """Whether the object is asked for."""
        metadata = obj["metadata"]
        if self.namespace is not None and metadata.get("namespace") != self.namespace:
            return False
        if self.labels.requirements:
            labels = metadata.get("labels") or NO_LABELS
            for key, value in self._equal:
                if labels.get(key) != value:
                    return False
            if self._other.requirements and not self._other.matches(labels):
                return False
        return not self.fields.requirements or self.fields.matches(obj)


class WatchQueue:
    """Changes of one resource that one watcher has not taken yet.

    `take` gives them in order. `wake`, when set, is called whenever there is something new: events, or the end.
    The queue is bounded: a watcher that falls behind by more than `backlog` events gets Gone,
    as it would from a server whose history it outlived.
    """

    def __init__(
        self, resource: Resource, selection: ListSelection, revision: int, *, bookmarks: bool, backlog: int
    ) -> None:
        self.wake: Callable[[], None] | None = None
        self.revision = revision
        """The revision up to which this watcher has been told everything."""
        self.bookmarks = bookmarks
        self.resource = resource
        self.selection = selection
        self.ended = False
        self._backlog = backlog
        self._queue: deque[WatchEvent] = deque()
        self._failure: Gone | None = None

    def take(self) -> list[WatchEvent]:
        """What happened since the last call, in order. Gone when the watcher was too slow."""
        if self._failure is not None:
            raise self._failure
        taken = list(self._queue)
        self._queue.clear()
        return taken

    def end(self) -> None:
        """End the stream; what is queued can still be taken."""
        self.ended = True
        self._awaken()

    def offer(self, change: StoredChange) -> None:
        """Queue the change if it concerns this watcher."""
        event = self._event(change)
        if event is not None:
            self.push(event, change.revision)

    def preload(self, events: Iterable[WatchEvent]) -> None:
        """Queue what the watcher begins with; it does not count as falling behind."""
        self._queue.extend(events)
        self._backlog += len(self._queue)

    def push(self, event: WatchEvent, revision: int) -> None:
        """Queue an event as it is."""
        if self.ended:
            return
        self.revision = revision
        if len(self._queue) >= self._backlog:
            self._failure = Gone(
                f"the watcher of {self.resource} fell behind by {self._backlog} events; list again"
            )
            self._queue.clear()
            self.ended = True
        else:
            self._queue.append(event)
        self._awaken()

    def bookmark(self, revision: int) -> None:
        """Tell the watcher that it has seen everything up to this revision."""
        if self.bookmarks and not self.ended and self.revision < revision:
            mark = {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"resourceVersion": str(revision)},
            }
            self.push(WatchEvent(EventType.BOOKMARK, freeze(mark)), revision)

    def _awaken(self) -> None:
        if self.wake is not None:
            self.wake()

    def _event(self, change: StoredChange) -> WatchEvent | None:
        matches = self.selection.matches
        before = change.old if change.old is not None and matches(change.old) else None
        after = change.new if change.new is not None and matches(change.new) else None
        if after is not None:
            return WatchEvent(EventType.ADDED if before is None else EventType.MODIFIED, after)
        if before is None:
            return None
        last = replaced(before, ("metadata", "resourceVersion"), str(change.revision))
        return WatchEvent(EventType.DELETED, last)
