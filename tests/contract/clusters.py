"""The implementations the suite runs against, in one table, and what a test gets of each."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from koordpolicy.kube import Cluster, KubeError, NotFound, Object, Resource
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NAMESPACES

NOW = 1_750_000_000
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class World:
    """A running cluster and a namespace of the test's own.

    `forget` makes the cluster drop its history of changes (None where that cannot be had). `disconnect`
    ends all watch streams, as a restart does. `patience` is how many seconds controllers may take.
    """

    cluster: Cluster
    namespace: str
    forget: Callable[[], Awaitable[None]] | None
    disconnect: Callable[[], Awaitable[None]] | None
    patience: float

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

    name: str

    def missing(self) -> str:
        """Why this implementation cannot be run here; "" when it can."""
        ...

    def world(self) -> AbstractAsyncContextManager[World]:
        """A running cluster for one test."""
        ...


async def _interleave(verb: str, resource: Resource) -> None:
    """Let others go first, so that concurrent requests interleave as they do over a network."""
    await asyncio.sleep(0)


class InMemory:
    """The cluster inside the process; a new one for each test, on a clock that stands."""

    name = "memory"

    def missing(self) -> str:
        return ""

    @asynccontextmanager
    async def world(self) -> AsyncIterator[World]:
        store = Store(lambda: NOW)
        cluster = MemoryCluster(store, before_request=_interleave)
        namespace = f"test-{next(_numbers)}"
        store.create(NAMESPACES, {"metadata": {"name": namespace}})

        async def forget() -> None:
            store.compact()

        async def disconnect() -> None:
            store.disconnect()

        yield World(cluster, namespace, forget, disconnect, patience=0.2)


CLUSTERS: tuple[Case, ...] = (InMemory(),)
"""Every implementation of the protocol."""


on_clusters = pytest.mark.parametrize("case", CLUSTERS, ids=lambda case: case.name)
"""Hands a test each implementation as `case`."""


def run_on(case: Case, test: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in a new world of this implementation; skips by name when that cannot be had here."""
    if reason := case.missing():
        pytest.skip(f"{case.name}: {reason}")

    async def run() -> None:
        async with case.world() as world:
            await test(world)

    asyncio.run(run())


def contract(test: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[Case], None]:
    """Run a test on each cluster, skipping by name those that cannot be had here."""

    @on_clusters
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
