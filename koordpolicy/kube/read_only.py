"""A cluster that is only read: what a dry run is given, so that nothing of it can write."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, NoReturn

from koordpolicy.kube.errors import Forbidden
from koordpolicy.kube.port import Cluster, Object, ObjectList, WatchEvent
from koordpolicy.kube.resources import Resource


class ReadOnlyCluster:
    """Another cluster, read as that one is. Whatever writes raises Forbidden, before any request."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """See `Cluster.get`."""
        return await self._cluster.get(resource, name, namespace=namespace, subresource=subresource)

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
        return await self._cluster.list(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )

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
        """See `Cluster.watch`."""
        return self._cluster.watch(
            resource,
            namespace=namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            bookmarks=bookmarks,
        )

    async def _refused(self, *_asked: Any, **_more: Any) -> NoReturn:
        raise Forbidden("nothing is written: this is a dry run")

    create = update = patch = delete = bind = evict = _refused
