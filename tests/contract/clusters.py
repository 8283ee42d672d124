"""The implementations the suite runs against, in one table, and what a test gets of each."""

import asyncio
import base64
import itertools
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from koordpolicy.kube import Cluster, KubeError, NotFound, Object, Resource
from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NAMESPACES, custom
from tests.parts.apiserver import ServerProxy
from tests.parts.shared import SharedServer

NOW = 1_750_000_000

HOLDS = custom("contract.example.org/v1", "Hold", status=True)
SLABS = custom("contract.example.org/v1", "Slab")
"""Custom resources of any content, cluster-scoped; the second has no status subresource."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class World:
    """A running cluster and a namespace of the test's own.

    `forget` makes the cluster drop its history of changes (None where that cannot be had), for lists; for
    watches too where `forgets_watches` says so. `disconnect` ends all watch streams, as a restart does.
    `patience` is how many seconds controllers may take.
    """

    cluster: Cluster
    namespace: str
    forget: Callable[[], Awaitable[None]] | None
    disconnect: Callable[[], Awaitable[None]] | None
    patience: float
    forgets_watches: bool = True

    def name(self, stem: str) -> str:
        """A name no other test uses, for cluster-scoped objects."""
        return f"{stem}-{self.namespace}"

    async def eventually(self, question: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until the question is answered with yes; fail when patience runs out."""
        waited = 0.0
        while not await question():
            if waited >= self.patience:
                pytest.fail(f"after {waited:.1f} s still not: {what}")
            await asyncio.sleep(0.05)
            waited += 0.05

    async def gone(self, resource: Resource, name: str, namespace: str | None = None) -> bool:
        """Whether there is no such object."""
        try:
            await self.cluster.get(resource, name, namespace=namespace)
        except NotFound:
            return True
        return False


class Case(Protocol):
    """One implementation."""

    def world(self) -> AbstractAsyncContextManager[World]:
        """A running cluster for one test."""
        ...


async def _interleave(verb: str, resource: Resource) -> None:
    """Let others go first, so that concurrent requests interleave as they do over a network."""
    await asyncio.sleep(0)


class InMemory:
    """The cluster inside the process; a new one for each test, on a clock that stands."""

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        store = Store(lambda: NOW, extra=(HOLDS, SLABS))
        cluster = MemoryCluster(store, before_request=_interleave)
        namespace = f"test-{next(_numbers)}"
        store.create(NAMESPACES, {"metadata": {"name": namespace}})

        async def forget() -> None:
            store.compact()

        async def disconnect() -> None:
            store.disconnect()

        yield World(cluster, namespace, forget, disconnect, patience=0.2)


class Real:
    """The API server of the run, through a proxy that this process alone uses."""

    def __init__(self, server: SharedServer, proxy: ServerProxy) -> None:
        self._server = server
        self._proxy = proxy
        self._connection = Connection.load(str(proxy.kubeconfig()))

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        async def disconnect() -> None:
            await asyncio.to_thread(self._proxy.cut)
            await asyncio.sleep(0.1)  # until the client has heard of it, as it has after a restart

        async with connect(
            self._connection, jitter=random.random, component="contract", managed_fields=True
        ) as cluster:
            namespace = f"test-{os.getpid()}-{next(_numbers)}"
            await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
            yield World(cluster, namespace, self._forget, disconnect, patience=60.0, forgets_watches=False)
            await cluster.delete(NAMESPACES, namespace)

    async def _forget(self) -> None:
        """Compact, and say so where API servers tell each other, since their caches remember longer than etcd."""

        def encoded(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        revision = await asyncio.to_thread(self._server.compact)
        told = {"key": encoded("compact_rev_key"), "value": encoded(str(revision))}
        await asyncio.to_thread(self._server._etcd, "/v3/kv/put", told)


@contextmanager
def real_server(request: pytest.FixtureRequest) -> Iterator[Case]:
    """The API server, with the controllers that the protocol speaks of; skips by name where it cannot be had."""
    server: SharedServer = request.getfixturevalue("apiserver")
    request.getfixturevalue("part")("kube-controller-manager")
    server.want("kube-controller-manager")
    server.once("contract", lambda: _define(server))
    with server.proxy() as proxy:
        yield Real(server, proxy)


def _define(server: SharedServer) -> None:
    """Define the custom resources, and return when they are served."""
    for resource in (HOLDS, SLABS):
        names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
        version = {
            "name": resource.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            **({"subresources": {"status": {}}} if resource.has_status else {}),
        }
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": resource.name},
            "spec": {"group": resource.group, "scope": "Cluster", "names": names, "versions": [version]},
        }
        code, answer = server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        assert code == 201, answer
        path = f"/apis/{resource.group}/{resource.version}/{resource.plural}"
        until = time.monotonic() + 30
        while server.request("GET", path)[0] != 200:
            assert time.monotonic() < until, f"{path} is not served"
            time.sleep(0.1)


CLUSTERS = ("memory", "real")
"""Every implementation of the protocol, by the name of its fixture. The fixture `case` hands a test each in turn."""


def run_on(case: Case, test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in a new world of this implementation."""

    async def run() -> None:
        async with case.world() as world:
            await test(world)

    asyncio.run(run())


def contract(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[Case], None]:
    """Run a test on each cluster."""

    def on_each(case: Case) -> None:
        run_on(case, test)

    on_each.__name__ = test.__name__
    return on_each


async def refused(error: type[KubeError], request: Awaitable[object], about: object = "") -> KubeError:
    """The error of a request that must fail with it; fails the test when the request succeeds."""
    try:
        await request
    except error as refusal:
        return refusal
    pytest.fail(f"accepted, although {error.__name__} was due: {str(about)[:200]}")


def pod(name: str, /, **spec: Any) -> dict[str, Any]:
    """The smallest pod, with more in its spec as given."""
    containers = [{"name": "main", "image": "pause"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def config(name: str, /, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap: the plainest object there is."""
    return {"metadata": {"name": name, **metadata}, "data": data or {}}


def names(objects: Any) -> list[str]:
    """The names of objects, in order."""
    return [obj["metadata"]["name"] for obj in objects]


def version(obj: Object) -> str:
    """The resource version of an object."""
    return str(obj["metadata"]["resourceVersion"])
