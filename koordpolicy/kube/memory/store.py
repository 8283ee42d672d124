"""The synchronous face of the in-memory cluster."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from koordpolicy.kube import resources
from koordpolicy.kube.admission import AdmissionChain
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.kinds import check_fields
from koordpolicy.kube.memory.names import GeneratedNames
from koordpolicy.kube.memory.server import Server, WriteOptions
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.memory.watch import ListSelection, WatchQueue
from koordpolicy.kube.mirror import Handler, ObjectChange
from koordpolicy.kube.port import Object, ObjectList, Patch, Preconditions, Propagation
from koordpolicy.kube.resources import RESOURCES, Resource
from koordpolicy.kube.selectors import parse_fields, parse_labels

_T = TypeVar("_T")

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CLASSES: Final = (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))


class Store:
    """A cluster in memory, driven by plain calls.

    `clock` gives seconds since 1970. `extra` are resources beyond the table. `admission` sees every write; through this face its hooks must not
    wait for anything. `history` is how many changes of each resource a watch can go back; `backlog` how
    many events a watcher may leave untaken. `identity` seeds uids and generated names: equal
    stores driven equally are equal. Methods take the arguments and raise the errors of the
    `Cluster` protocol.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        extra: Sequence[Resource] = (),
        admission: AdmissionChain | None = None,
        history: int = 10_000,
        backlog: int = 100_000,
        identity: str = "cluster",
    ) -> None:
        self.state = MemoryState((*RESOURCES, *extra), history=history, backlog=backlog)
        self.server = Server(self.state, lambda: int(clock()), GeneratedNames(identity))
        for name in _NAMESPACES:
            self.create(resources.NAMESPACES, {"metadata": {"name": name}})
        for name, value in _SYSTEM_CLASSES:
            self.create(resources.PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        if admission is not None:
            self.use_admission(admission)

    def use_admission(self, chain: AdmissionChain) -> None:
        """Ask these hooks from now on, and no others."""
        self.server.admission = chain

    def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> FrozenDict:
        """The object of this name."""
        self.server.refresh(resource)
        return self.state.get(resource, key_of(resource, namespace, name))

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> FrozenDict | None:
        """The object of this name, None when there is none."""
        try:
            return self.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    def every(self, resource: Resource) -> Iterable[Object]:
        """All objects of a resource."""
        return self.list(resource).items

    def follow(self, resource: Resource, handler: Handler) -> None:
        """Tell a handler of every object that there is, and from now on of each change."""
        for key, obj in tuple(self.state.collection(resource).objects.items()):
            handler(ObjectChange(key, None, obj))
        self.state.observers = (*self.state.observers, _Follower(resource, handler))

    def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """The selected objects, or a page of them."""
        selection = _selection(resource, namespace, label_selector, field_selector)
        self.server.refresh(resource)
        return self.state.list(resource, selection, limit, continue_token)

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> WatchQueue:
        """Begin to watch. `take()` of the result gives what happened since; `unwatch` ends it."""
        selection = _selection(resource, namespace, label_selector, field_selector)
        self.server.refresh(resource)
        return self.state.watch(resource, selection, resource_version, bookmarks=bookmarks)

    def unwatch(self, watch: WatchQueue) -> None:
        """Stop telling this watcher anything."""
        self.state.collection(watch.resource).unwatch(watch)

    def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str | None = None,
        field_manager: str = "",
        user: str = "",
        dry_run: bool = False,
    ) -> FrozenDict:
        """Store a new object."""
        write = WriteOptions("", field_manager, user, dry_run)
        return finish(self.server.create(resource, obj, namespace, write))

    def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        field_manager: str = "",
        user: str = "",
        dry_run: bool = False,
    ) -> FrozenDict:
        """Replace an object, or its status."""
        return finish(
            self.server.update(resource, obj, WriteOptions(subresource, field_manager, user, dry_run))
        )

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = "",
        user: str = "",
        dry_run: bool = False,
    ) -> FrozenDict:
        """Change an object by a patch."""
        write = WriteOptions(subresource, field_manager, user, dry_run)
        return finish(self.server.patch(resource, key_of(resource, namespace, name), patch, write))

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        preconditions: Preconditions | None = None,
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
        user: str = "",
        dry_run: bool = False,
    ) -> None:
        """Ask for an object to go."""
        write = WriteOptions(user=user, dry_run=dry_run)
        key = key_of(resource, namespace, name)
        finish(self.server.delete(resource, key, preconditions, grace_seconds, propagation, write))

    def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
        user: str = "",
        dry_run: bool = False,
    ) -> None:
        """Place a pod on a node."""
        write = WriteOptions(user=user, dry_run=dry_run)
        finish(self.server.bind((namespace, pod), node, uid, annotations or {}, write))

    def evict(
        self,
        namespace: str,
        pod: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions | None = None,
        user: str = "",
        dry_run: bool = False,
    ) -> None:
        """Ask for a pod to go as far as its disruption budget allows."""
        write = WriteOptions(user=user, dry_run=dry_run)
        finish(self.server.evict((namespace, pod), grace_seconds, preconditions, write))

    def reap(self) -> int:
        """Let pods go whose time to stop is over, as their kubelets would; returns how many went."""
        return self.server.reap()

    def sweep(self) -> int:
        """Collect the objects whose owners never were; returns how many were found."""
        return self.server.sweep()

    def bookmark(self) -> None:
        """Bring all watchers that want bookmarks up to the present version."""
        for collection in self.state.collections.values():
            collection.bookmark(self.state.revision)

    def compact(self) -> None:
        """Forget the history: watches cannot go back before now, nor paged lists be continued."""
        for collection in self.state.collections.values():
            collection.forget(self.state.revision)

    def disconnect(self) -> None:
        """End every watch, as a restart of the server does."""
        for collection in self.state.collections.values():
            for watch in collection.watches:
                watch.end()
                collection.unwatch(watch)


@dataclass(frozen=True, slots=True)
class _Follower:
    """Tells a handler of what becomes of the objects of one resource."""

    resource: Resource
    handler: Handler

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        """See `state.Observer`."""
        if resource is self.resource:
            self.handler(ObjectChange(key, old, new))


def finish(steps: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that waits for nothing to its end. RuntimeError when it does wait.

    It lets code that is written for an event loop run in a simulation that has none.
    """
    try:
        steps.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    steps.close()
    raise RuntimeError("this call waits for something, so it needs an event loop: use MemoryCluster")


def key_of(resource: Resource, namespace: str | None, name: str) -> Key:
    """The key of an object. Namespaced objects live in `default` unless told otherwise."""
    return ((namespace or "default") if resource.namespaced else "", name)


def _selection(resource: Resource, namespace: str | None, labels: str, fields: str) -> ListSelection:
    field_selector = parse_fields(fields)
    check_fields(field_selector, resource)
    return ListSelection(namespace if resource.namespaced else None, parse_labels(labels), field_selector)
