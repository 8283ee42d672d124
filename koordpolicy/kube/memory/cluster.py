"""The in-memory cluster behind the `Cluster` protocol, for code that runs on an event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.memory.server import WriteOptions
from koordpolicy.kube.memory.store import Store, key_of
from koordpolicy.kube.memory.watch import WatchQueue
from koordpolicy.kube.port import Object, ObjectList, Patch, Preconditions, Propagation, WatchEvent
from koordpolicy.kube.resources import PODS, Resource


async def _at_once(verb: str, resource: Resource) -> None:
    """Let every request through without delay."""


class MemoryCluster:
    """A client of a `Store`, speaking as `user`.

    `before_request` is awaited, with the method's name and the resource, before each request reaches the
    store: it may wait, as a network does, or raise any KubeError, as a network or server may. Watch
    streams end when the store disconnects.
    """

    def __init__(
        self,
        store: Store,
        *,
        user: str = "",
        before_request: Callable[[str, Resource], Awaitable[None]] = _at_once,
    ) -> None:
        self.store = store
        self._user = user
        self._before_request = before_request

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """See `Cluster.get`."""
        await self._before_request("get", resource)
        found = self.store.get(resource, name, namespace=namespace)
        if not subresource:
            return found
        if subresource != "scale" or subresource not in resource.subresources:
            raise NotFound(f"{resource} has no `{subresource}` to be read")
        return _scale(found)

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
        await self._before_request("list", resource)
        return self.store.list(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )

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
        await self._before_request("watch", resource)
        watch = self.store.watch(
            resource,
            namespace=namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            bookmarks=bookmarks,
        )
        try:
            yield _events(watch)
        finally:
            self.store.unwatch(watch)

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
        await self._before_request("create", resource)
        return await self.store.server.create(
            resource, obj, namespace, self._write("", field_manager, dry_run)
        )

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
        await self._before_request("update", resource)
        return await self.store.server.update(resource, obj, self._write(subresource, field_manager, dry_run))

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
        await self._before_request("patch", resource)
        write = self._write(subresource, field_manager, dry_run)
        return await self.store.server.patch(resource, key_of(resource, namespace, name), patch, write)

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
        await self._before_request("delete", resource)
        key, write = key_of(resource, namespace, name), self._write("", "", dry_run)
        await self.store.server.delete(resource, key, preconditions, grace_seconds, propagation, write)

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
        await self._before_request("bind", PODS)
        write = self._write("", "", dry_run)
        await self.store.server.bind((namespace, pod), node, uid, annotations or {}, write)

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
        await self._before_request("evict", PODS)
        write = self._write("", "", dry_run)
        await self.store.server.evict((namespace, pod), grace_seconds, preconditions, write)

    def _write(self, subresource: str, manager: str, dry_run: bool) -> WriteOptions:
        return WriteOptions(subresource, manager, self._user, dry_run)


async def _events(watch: WatchQueue) -> AsyncIterator[WatchEvent]:
    """The events of a watch as they come, until it ends."""
    news = asyncio.Event()
    watch.wake = news.set
    while True:
        news.clear()
        for event in watch.take():
            yield event
        if not news.is_set():
            if watch.ended:
                return
            await news.wait()


def _scale(found: Object) -> Object:
    """The Scale of a workload."""
    metadata: Mapping[str, Any] = found["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = found.get("spec", {}).get("replicas")
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": found.get("status", {}).get("replicas", 0)},
    }
