"""What goes when something goes: the dependents of owners, and the contents of namespaces.

The part of the garbage collector and the namespace controller. Work is queued by what happens in the
store and done by `settle`, one object at a time, so that chains of owners of any length end.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.frozen import FrozenDict
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.deletion import FOREGROUND, ORPHAN
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.resources import Resource
from koordpolicy.model.time import NANOSECONDS, parse_time

_NO_OWNERS: Final[tuple[Any, ...]] = ()


class Garbage:
    """The books over owners and namespaces. `delete` asks for an object to go, as a user would."""

    def __init__(self, state: MemoryState, delete: Callable[[Resource, Key], None]) -> None:
        self._state = state
        self._delete = delete
        self._places: dict[str, tuple[Resource, Key]] = {}
        self._dependents: dict[str, dict[tuple[Resource, Key], None]] = {}
        self._population: dict[str, int] = {}
        self._work: deque[Callable[[], None]] = deque()
        self._working = False

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        self._note_owners(resource, key, old, new)
        namespace = key[0]
        if new is None:
            assert old is not None  # a write has at least one state
            uid = old["metadata"]["uid"]
            self._places.pop(uid, None)
            self._work.append(lambda: self._release(uid, old))
            if namespace:
                self._population[namespace] -= 1
                if not self._population[namespace]:
                    self._work.append(lambda: self._finish_namespace(namespace))
        elif old is None:
            self._places[new["metadata"]["uid"]] = (resource, key)
            if namespace:
                self._population[namespace] = self._population.get(namespace, 0) + 1
        if new is not None and new["metadata"].get("deletionTimestamp"):
            self._note_deletion(resource, key, new)

    def settle(self) -> None:
        """Do what is queued, and what follows from it."""
        if self._working:
            return
        self._working = True
        try:
            while self._work:
                self._work.popleft()()
        finally:
            self._working = False

    def sweep(self) -> int:
        """Ask for every object to go whose owners are all gone, and return how many there were.

        The collector does this for owners that it sees go; this is for owners that never were.
        """
        found = [
            (resource, key)
            for resource, collection in self._state.collections.items()
            for key, obj in collection.objects.items()
            if self._is_abandoned(obj)
        ]
        for resource, key in found:
            if self._state.find(resource, key) is not None:
                self._delete(resource, key)
        self.settle()
        return len(found)

    def _note_owners(
        self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None
    ) -> None:
        before = _owners(old)
        after = _owners(new)
        if before is after:
            return
        for owner in before:
            dependents = self._dependents.get(owner["uid"], {})
            dependents.pop((resource, key), None)
            if not dependents:
                self._dependents.pop(owner["uid"], None)
        for owner in after:
            self._dependents.setdefault(owner["uid"], {})[(resource, key)] = None

    def _note_deletion(self, resource: Resource, key: Key, obj: FrozenDict) -> None:
        finalizers = obj["metadata"].get("finalizers") or ()
        if resource == resources.NAMESPACES:
            if (obj.get("status") or {}).get("phase") != "Terminating":
                return
            self._work.append(lambda: self._empty_namespace(key[1]))
        if FOREGROUND in finalizers:
            self._work.append(lambda: self._begin_foreground(resource, key))
        if ORPHAN in finalizers:
            self._work.append(lambda: self._orphan(resource, key))

    def _release(self, uid: str, gone: FrozenDict) -> None:
        """After an object is gone: its dependents follow, and owners that waited for it go on."""
        for resource, key in list(self._dependents.get(uid, ())):
            dependent = self._state.find(resource, key)
            if dependent is None:
                continue
            if self._is_abandoned(dependent):
                self._delete(resource, key)
            else:
                self._disown(resource, key, uid)
        for owner in _owners(gone):
            place = self._places.get(owner["uid"])
            if place is not None:
                self._end_foreground(*place)

    def _is_abandoned(self, obj: FrozenDict) -> bool:
        owners = _owners(obj)
        return bool(owners) and not any(owner["uid"] in self._places for owner in owners)

    def _begin_foreground(self, resource: Resource, key: Key) -> None:
        owner = self._state.find(resource, key)
        if owner is None:
            return
        for place in list(self._dependents.get(owner["metadata"]["uid"], ())):
            dependent = self._state.find(*place)
            if dependent is not None and not dependent["metadata"].get("deletionTimestamp"):
                self._delete(*place)
        self._end_foreground(resource, key)

    def _end_foreground(self, resource: Resource, key: Key) -> None:
        """Let an owner go that waited for its dependents, when none of them blocks it any more."""
        owner = self._state.find(resource, key)
        if owner is None or FOREGROUND not in (owner["metadata"].get("finalizers") or ()):
            return
        uid = owner["metadata"]["uid"]
        blocked = any(
            reference["uid"] == uid and reference.get("blockOwnerDeletion")
            for place in self._dependents.get(uid, ())
            if (dependent := self._state.find(*place)) is not None
            for reference in _owners(dependent)
        )
        if not blocked:
            self._unfinalize(resource, key, FOREGROUND)

    def _orphan(self, resource: Resource, key: Key) -> None:
        owner = self._state.find(resource, key)
        if owner is None:
            return
        uid = owner["metadata"]["uid"]
        for place in list(self._dependents.get(uid, ())):
            self._disown(*place, uid)
        self._unfinalize(resource, key, ORPHAN)

    def _disown(self, resource: Resource, key: Key, uid: str) -> None:
        """Take an owner's name from a dependent."""
        dependent = self._state.find(resource, key)
        if dependent is None:
            return
        metadata = dict(dependent["metadata"])
        left = [owner for owner in _owners(dependent) if owner["uid"] != uid]
        if left:
            metadata["ownerReferences"] = left
        else:
            metadata.pop("ownerReferences", None)
        self._state.put(resource, key, {**dependent, "metadata": metadata})

    def _unfinalize(self, resource: Resource, key: Key, finalizer: str) -> None:
        obj = self._state.find(resource, key)
        if obj is None:
            return
        metadata = dict(obj["metadata"])
        metadata["finalizers"] = [entry for entry in metadata.get("finalizers") or () if entry != finalizer]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
            if not metadata.get("deletionGracePeriodSeconds"):
                self._state.drop(resource, key)
                return
        self._state.put(resource, key, {**obj, "metadata": metadata})

    def _empty_namespace(self, name: str) -> None:
        for resource, collection in self._state.collections.items():
            for key in collection.names(name) if resource.namespaced else ():
                found = collection.objects.get(key)
                if found is not None and not found["metadata"].get("deletionTimestamp"):
                    self._delete(resource, key)
        self._finish_namespace(name)

    def _finish_namespace(self, name: str) -> None:
        """Take a namespace out that was asked to go, once nothing is left in it."""
        found = self._state.find(resources.NAMESPACES, ("", name))
        if (
            found is None
            or self._population.get(name)
            or (found.get("status") or {}).get("phase") != "Terminating"
        ):
            return
        if not found["metadata"].get("finalizers"):
            self._state.drop(resources.NAMESPACES, ("", name))


class Terminating:
    """The pods that were asked to stop, and when their time is over."""

    def __init__(self) -> None:
        self._due: dict[Key, int] = {}

    def changed(self, resource: Resource, key: Key, old: FrozenDict | None, new: FrozenDict | None) -> None:
        if resource != resources.PODS:
            return
        since = new["metadata"].get("deletionTimestamp") if new is not None else None
        if since:
            self._due[key] = parse_time(since) // NANOSECONDS
        else:
            self._due.pop(key, None)

    def due(self, now: int) -> list[Key]:
        """Those whose time is over at `now`, in the order in which they were asked."""
        return [key for key, end in self._due.items() if end <= now]


def _owners(obj: FrozenDict | None) -> tuple[Any, ...]:
    if obj is None:
        return _NO_OWNERS
    return obj["metadata"].get("ownerReferences") or _NO_OWNERS
