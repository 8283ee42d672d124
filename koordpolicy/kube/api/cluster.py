"""The API server as a `Cluster`."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import koordpolicy
from koordpolicy.kube.api.codec import Codec, encode, encode_object, encode_operations
from koordpolicy.kube.api.connection import Connection
from koordpolicy.kube.api.credentials import Credentials
from koordpolicy.kube.api.paths import path_of, query_of
from koordpolicy.kube.api.session import session_of
from koordpolicy.kube.api.transport import ApiRequest, ClientLimits, Observer, Transport
from koordpolicy.kube.api.watch import WatchEvents
from koordpolicy.kube.api.wires import wires_of
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Rejected
from koordpolicy.kube.port import (
    ApplyPatch,
    JsonPatch,
    MergePatch,
    Object,
    ObjectList,
    Patch,
    Preconditions,
    Propagation,
    StrategicPatch,
    WatchEvent,
)
from koordpolicy.kube.resources import PODS, Resource

_GRACE: Final = 30.0
"""Seconds after the time a watch was asked to last, for the server to end it, before we do."""


@asynccontextmanager
async def connect(
    connection: Connection,
    *,
    jitter: Callable[[], float],
    component: str = "",
    limits: ClientLimits | None = None,
    observer: Observer | None = None,
    managed_fields: bool = False,
    shapes: Mapping[Resource, type] | None = None,
) -> AsyncIterator["ApiCluster"]:
    """A client of an API server. Nothing is sent until something is asked for.

    `jitter` gives numbers in [0, 1) that spread waits and the lengths of watches. `component` names us in the
    server's logs and as field manager. `managed_fields` and `shapes` say what is kept of objects (see `Codec`).
    """
    bounds = limits or ClientLimits()
    credentials = Credentials(connection)
    backoff = Backoff(jitter, initial=0.2, longest=2.0)
    agent = f"koordpolicy/{koordpolicy.__version__} {component}".rstrip()
    try:
        async with (
            session_of(bounds.requests + bounds.watches, agent) as session,
            wires_of(agent, bounds.connect) as wires,
        ):
            transport = Transport(session, wires, credentials, bounds, backoff, observer)
            manager = f"koordpolicy-{component}" if component else "koordpolicy"
            codec = Codec(managed_fields=managed_fields, shapes=shapes)
            yield ApiCluster(transport, codec, manager, lambda: bounds.watch * (1.0 + jitter()))
    finally:
        await credentials.close()


class ApiCluster:
    """A client of one API server. `manager` writes where no other field manager is named.

    `watch_seconds` says anew for each watch how long it is to last.
    """

    def __init__(
        self, transport: Transport, codec: Codec, manager: str, watch_seconds: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._codec = codec
        self._manager = manager
        self._usual = _options(manager, dry_run=False)
        self._watch_seconds = watch_seconds

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """See `Cluster.get`."""
        path = _object_path(resource, namespace, name, subresource)
        body = await self._transport.request(ApiRequest("get", resource.name, "GET", path, repeatable=True))
        return self._codec.object(resource, body)

    async def raw(self, path: str) -> bytes:
        """What the server says below a path that is no resource: `/version`. Raises the errors of the port."""
        return await self._transport.request(ApiRequest("get", path, "GET", path, repeatable=True))

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
        """See `Cluster.list`."""
        query = query_of(
            {
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "limit": limit,
                "continue": continue_token,
            }
        )
        target = path_of(resource, namespace if resource.namespaced else None) + query
        body = await self._transport.request(
            ApiRequest("list", resource.name, "GET", target, repeatable=True)
        )
        return self._codec.list(resource, body)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """See `Cluster.watch`."""
        seconds = self._watch_seconds()
        query = query_of(
            {
                "watch": "1",
                "resourceVersion": resource_version,
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "allowWatchBookmarks": "true" if bookmarks else "",
                "timeoutSeconds": int(seconds),
            }
        )
        target = path_of(resource, namespace if resource.namespaced else None) + query
        async with self._transport.stream(
            ApiRequest("watch", resource.name, "GET", target), seconds + _GRACE
        ) as content:
            yield WatchEvents(content, resource, self._codec)

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
        """See `Cluster.create`."""
        place = namespace or _metadata(obj).get("namespace")
        target = path_of(resource, _namespace(resource, place)) + self._options(field_manager, dry_run)
        body = await self._transport.request(
            ApiRequest("create", resource.name, "POST", target, encode_object(_typed(resource, obj)))
        )
        return self._codec.object(resource, body) if echo else {}

    async def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """See `Cluster.update`."""
        metadata = _metadata(obj)
        path = _object_path(resource, metadata.get("namespace"), metadata.get("name") or "", subresource)
        body = await self._transport.request(
            ApiRequest(
                "update",
                resource.name,
                "PUT",
                path + self._options(field_manager, dry_run),
                encode_object(_typed(resource, obj)),
                repeatable=True,
            )
        )
        return self._codec.object(resource, body)

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
        """See `Cluster.patch`."""
        content_type, content = _wire(patch)
        verb, options = "patch", self._options(field_manager, dry_run)
        if isinstance(patch, ApplyPatch):
            verb, options = "apply", _options(patch.manager, dry_run=dry_run, force=patch.force)
        target = _object_path(resource, namespace, name, subresource) + options
        body = await self._transport.request(
            ApiRequest(
                verb,
                resource.name,
                "PATCH",
                target,
                content,
                content_type,
                # Operations of a JSON patch may count on what the ones before found.
                repeatable=not isinstance(patch, JsonPatch),
            )
        )
        return self._codec.object(resource, body)

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
        """See `Cluster.delete`."""
        options = _deletion(preconditions, grace_seconds, propagation, dry_run=dry_run)
        body = encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
        path = _object_path(resource, namespace, name)
        # When an answer was lost, the next one may be "not found": the object is gone, as was wanted.
        await self._transport.request(
            ApiRequest("delete", resource.name, "DELETE", path, body, repeatable=True)
        )

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
        """See `Cluster.bind`."""
        metadata: dict[str, Any] = {"name": pod, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        if annotations:
            metadata["annotations"] = dict(annotations)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        target = _object_path(PODS, namespace, pod, "binding") + self._options("", dry_run)
        await self._transport.request(ApiRequest("bind", PODS.name, "POST", target, encode(binding)))

    async def evict(
        self,
        namespace: str,
        pod: str,
        *,
        grace_seconds: int | None = None,
        preconditions: Preconditions | None = None,
        dry_run: bool = False,
    ) -> None:
        """See `Cluster.evict`."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": _deletion(preconditions, grace_seconds, None, dry_run=dry_run),
        }
        path = _object_path(PODS, namespace, pod, "eviction")
        # Whether to wait for a budget or to take another pod is not ours to say.
        await self._transport.request(
            ApiRequest("evict", PODS.name, "POST", path, encode(eviction), patient=False)
        )

    def _options(self, manager: str, dry_run: bool) -> str:
        if not manager and not dry_run:
            return self._usual
        return _options(manager or self._manager, dry_run=dry_run)


def _options(manager: str, *, dry_run: bool, force: bool = False) -> str:
    return query_of(
        {"fieldManager": manager, "dryRun": "All" if dry_run else "", "force": "true" if force else ""}
    )


def _namespace(resource: Resource, namespace: str | None) -> str | None:
    return (namespace or "default") if resource.namespaced else None


def _object_path(resource: Resource, namespace: str | None, name: str, subresource: str = "") -> str:
    if not name:
        raise Rejected(f"a request for one of {resource} names none")
    return path_of(resource, _namespace(resource, namespace), name, subresource)


def _metadata(obj: Object) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Rejected("the object has no `metadata`")
    return metadata


def _typed(resource: Resource, obj: Object) -> dict[str, Any]:
    """The object with its type, which callers may leave out."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _wire(patch: Patch) -> tuple[str, bytes]:
    """Content type and content of a patch."""
    match patch:
        case MergePatch():
            return "application/merge-patch+json", encode_object(patch.body)
        case StrategicPatch():
            return "application/strategic-merge-patch+json", encode_object(patch.body)
        case JsonPatch():
            return "application/json-patch+json", encode_operations(patch.operations)
        case ApplyPatch():
            return "application/apply-patch+yaml", encode_object(patch.object)


def _deletion(
    preconditions: Preconditions | None,
    grace_seconds: int | None,
    propagation: Propagation | None,
    *,
    dry_run: bool,
) -> dict[str, Any]:
    """DeleteOptions without its type."""
    options: dict[str, Any] = {}
    if preconditions is not None:
        named = {"uid": preconditions.uid, "resourceVersion": preconditions.resource_version}
        options["preconditions"] = {name: value for name, value in named.items() if value}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if dry_run:
        options["dryRun"] = ["All"]
    return options
