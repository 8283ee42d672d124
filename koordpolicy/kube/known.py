"""Objects that somebody knows without asking the cluster: an informer's copy, a store, a snapshot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from koordpolicy.kube.mirror import Handler, ObjectChange, key_of
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource


class KnownObjects(Protocol):
    """Objects as last heard of. Nothing here waits."""

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """The object of this name, None when there is none."""
        ...

    def every(self, resource: Resource) -> Iterable[Object]:
        """All objects of a resource, in no particular order."""
        ...

    def follow(self, resource: Resource, handler: Handler) -> None:
        """Tell a handler of every object that there is, and from now on of each change, once it is known here."""
        ...


@dataclass(frozen=True, slots=True)
class FixedObjects:
    """Objects that do not change, by resource."""

    objects: Mapping[Resource, Iterable[Object]] = field(default_factory=dict)

    def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """See `KnownObjects.find`."""
        for one in self.objects.get(resource, ()):
            metadata = one["metadata"]
            if metadata.get("name") == name and namespace in (None, metadata.get("namespace")):
                return one
        return None

    def every(self, resource: Resource) -> Iterable[Object]:
        """See `KnownObjects.every`."""
        return self.objects.get(resource, ())

    def follow(self, resource: Resource, handler: Handler) -> None:
        """See `KnownObjects.follow`."""
        for one in self.every(resource):
            handler(ObjectChange(key_of(one), None, one))
