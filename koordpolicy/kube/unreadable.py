"""Which objects of a cluster cannot be read now, and why: each is told of once for each reason."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.model.unreadable import Unreadable

Key: TypeAlias = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""

Found: TypeAlias = Callable[[Resource, Object, Unreadable], None]
"""Told of an object that cannot be read, once for each reason. Must not raise."""

_MOST: Final = 10_000
"""Objects that are remembered; of more, the oldest is told of again when it comes again."""


class UnreadableObjects:
    """The objects that cannot be read. `on_found` hears of each, `on_change` of the number of those of a resource."""

    def __init__(
        self, on_found: Found, on_change: Callable[[Resource, int], None] = lambda resource, count: None
    ) -> None:
        self._on_found = on_found
        self._on_change = on_change
        self._known: dict[tuple[Resource, Key], tuple[Object, Unreadable]] = {}
        self._counts: dict[Resource, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[tuple[Resource, Key, Unreadable]]:
        """Resource, namespace and name, and the reason, in the order in which they were found."""
        return ((resource, key, why) for (resource, key), (_, why) in self._known.items())

    def found(self, resource: Resource, key: Key, obj: Object, why: Unreadable) -> None:
        """An object cannot be read."""
        before = self._known.pop((resource, key), None)
        self._known[resource, key] = (obj, why)
        if before is None:
            self._count(resource, 1)
            if len(self._known) > _MOST:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._count(oldest[0], -1)
        if before is None or before[1] != why:
            self._on_found(resource, obj, why)

    def gone(self, resource: Resource, key: Key) -> None:
        """An object can be read, or is not there any more."""
        if self._known and self._known.pop((resource, key), None) is not None:
            self._count(resource, -1)

    def again(self) -> None:
        """Tell of all of them once more, to someone who did not listen before."""
        for (resource, _), (obj, why) in tuple(self._known.items()):
            self._on_found(resource, obj, why)

    def _count(self, resource: Resource, by: int) -> None:
        count = self._counts[resource] = self._counts.get(resource, 0) + by
        self._on_change(resource, count)
