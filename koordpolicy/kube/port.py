"""The protocol between a component and its cluster, and the plain values that travel over it.

Every implementation passes `tests/contract/`. Objects are JSON dicts as the API sends them. What a
cluster hands out is shared: it is never changed in place (`thaw` gives a private copy), and what a
caller hands in is copied before anything is kept.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from koordpolicy.kube.resources import Resource

Object: TypeAlias = Mapping[str, Any]
"""A JSON object with `metadata`, read-only."""


class EventType(StrEnum):
    """What a watch reports. A bookmark carries only a resource version to resume from."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. For DELETED, `object` is the last state, with the resource version of the deletion."""

    type: EventType
    object: Object

    @property
    def resource_version(self) -> str:
        """Where to resume after this event; "" where it does not say."""
        try:
            return str(self.object["metadata"]["resourceVersion"])
        except (LookupError, TypeError):
            return ""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list, ordered by namespace and name.

    `resource_version` is the moment all pages show, and where a watch continues. `continue_token` is ""
    on the last page; `remaining` counts the objects after this page where the server says so.
    """

    items: Sequence[Object]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still hold when a deletion happens; "" leaves it open."""

    uid: str = ""
    resource_version: str = ""


class Propagation(StrEnum):
    """What becomes of the objects an owner leaves behind.

    BACKGROUND deletes them after it, FOREGROUND before it, ORPHAN only takes the owner's name from them.
    """

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class MergePatch:
    """A JSON merge patch (RFC 7386): maps merge, null deletes, lists are replaced."""

    body: Object


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """A Kubernetes strategic merge patch: lists such as `containers` merge by key. Built-in kinds only."""

    body: Object


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A JSON patch (RFC 6902): operations in order, all or none."""

    operations: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ApplyPatch:
    """Server-side apply: `manager` owns what `object` says, and what it said before and no more goes.

    Creates the object when there is none. A value that another manager owns and that differs raises
    Conflict, unless `force` takes it over. `object` has `apiVersion`, `kind` and `metadata.name`.
    """

    object: Object
    manager: str
    force: bool = False


Patch: TypeAlias = MergePatch | StrategicPatch | JsonPatch | ApplyPatch


class Cluster(Protocol):
    """A Kubernetes API.

    `namespace` names the namespace of a namespaced object, None meaning `default` (when creating, first the
    one the object states); for `list` and `watch`, None means all of them; for cluster-scoped resources it
    is None. `dry_run` does everything but keep the result.
    Selectors are in wire form, "" selects everything. Methods raise the errors of `kube/errors.py`:
    NotFound and Unreachable wherever they fit, the others as said.
    """

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """The object of this name. With the subresource "scale", the Scale of one whose kind has that; NotFound without it."""
        ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """The selected objects, all of one moment.

        With a `limit` above 0, at most so many; the rest by asking again with the page's
        `continue_token` and otherwise equal arguments. Rejected for bad selectors and tokens, Gone for a token that
        is too old: begin anew.
        """
        ...

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """The changes after `resource_version`, in order, none left out.

        Without a version, the present objects come first, as ADDED. An object that begins to match the
        selectors is ADDED, one that ceases to is DELETED. The server may end the stream at any time, which ends
        the iteration; resume from the last version seen. Gone, at the beginning or later, when the
        version is outside of what the server can continue from.
        """
        ...

    async def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        namespace: str | None = None,
        field_manager: str = "",
        dry_run: bool = False,
        echo: bool = True,
    ) -> Object:
        """Store a new object and return it as stored, or perhaps nothing of it where no `echo` is wanted.

        `metadata.generateName` asks the server for a name. `status` is not taken where it has its own
        subresource (nodes excepted). AlreadyExists, Invalid, Forbidden; NotFound when the namespace is missing.
        """
        ...

    async def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object, named by its metadata, and return it as stored.

        Conflict when `metadata.resourceVersion` is given and not the present one, or `metadata.uid` is
        another object's. With subresource "status" only the status is taken, without it all else. An
        update that changes nothing writes nothing. Invalid, Forbidden.
        """
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a patch and return it as stored.

        A `metadata.resourceVersion` in the patch is a precondition (Conflict). Rejected for a malformed
        patch or one the resource does not take, Invalid for one that does not fit the object.
        """
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        preconditions: Preconditions | None = None,
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for an object to go.

        It goes at once, or, with a grace period (running pods) or finalizers, gets a
        `metadata.deletionTimestamp` first. Conflict when a precondition does not hold.
        """
        ...

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> None:
        """Place a pod on a node, adding annotations to it in the same write.

        Conflict when the pod is bound already, is being deleted, is gated, or is not of this uid.
        """
        ...

    async def evict(
        self,
        namespace: str,
        pod: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for a pod to go as far as its disruption budget allows.

        TooManyRequests when the budget is used up. Otherwise as `delete`.
        """
        ...
