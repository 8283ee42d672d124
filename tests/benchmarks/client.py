"""The client of the API server: CPU of the client's own process for lists, watches and bindings.

Against a real API server with 5,000 nodes and 10,000 pods, beside a loop that only posts (aiohttp and the
standard library's JSON) and the official client with its typed models and with its dynamic ones.
"""

import asyncio
import json
import random
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes
import kubernetes.dynamic

from koordpolicy.kube import Resource
from koordpolicy.kube.api import ApiCluster, Connection, connect
from koordpolicy.kube.resources import NODES, PODS
from tests.benchmarks.measure import Row
from tests.parts import Missing
from tests.parts.apiserver import ApiServer

_OFFICIAL: Any = kubernetes  # it types its models, not the rest

SIZES = {NODES: 5_000, PODS: 10_000}
OFFICIAL_BINDINGS = 500
"""Of those the official client posts, one after the other: it has no asynchronous form of these calls."""
AT_ONCE = 64
SPACE = "default"


def run() -> Iterable[Row]:
    """Rows of milliseconds per object."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with ApiServer(Path(folder)) as server:
                return asyncio.run(_measure(server))
        except Missing as missing:
            return [{"operation": f"skipped: {missing}"}]


@dataclass(slots=True)
class Table:
    """Rows as they are measured."""

    rows: list[Row] = field(default_factory=list)

    @contextmanager
    def measured(self, operation: str, who: str, count: int) -> Iterator[None]:
        """Measure what happens within."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        self.rows.append(
            {
                "operation": operation,
                "client": who,
                "objects": count,
                "CPU ms each": cpu / count * 1e3,
                "wall s": wall,
                "a second": round(count / wall),
            }
        )


async def _measure(server: ApiServer) -> list[Row]:
    table = Table()
    path = str(server.kubeconfig())
    async with connect(Connection.load(path), jitter=random.random, component="bench") as cluster:
        for resource, make in ((NODES, _node), (PODS, _pod)):
            name = f"create {resource.plural}"
            with table.measured(name, "koordpolicy", SIZES[resource]):
                await _all(cluster.create(resource, make(number)) for number in range(SIZES[resource]))
        before = (await cluster.list(PODS, limit=1)).resource_version
        pods = iter(range(SIZES[PODS]))
        await _bind(table, server, cluster, pods)
        await _list(table, cluster, path)
        await _watch(table, cluster, path, before)
    return table.rows


async def _bind(table: Table, server: ApiServer, cluster: ApiCluster, pods: Iterator[int]) -> None:
    half = (SIZES[PODS] - OFFICIAL_BINDINGS) // 2
    chosen = [next(pods) for _ in range(half)]
    trust = ssl.create_default_context(cafile=str(server.access.authority))
    headers = {"Authorization": f"Bearer {server.access.token('admin')}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=trust)
    async with aiohttp.ClientSession(server.url, connector=connector, headers=headers) as session:

        async def post(number: int) -> None:
            path = f"/api/v1/namespaces/{SPACE}/pods/{_pod_name(number)}/binding"
            async with session.post(path, data=json.dumps(_binding(number))) as answer:
                assert answer.status == 201, await answer.text()
                json.loads(await answer.read())

        with table.measured("bind", "bare loop", half):
            await _all(post(number) for number in chosen)
    chosen = [next(pods) for _ in range(half)]
    with table.measured("bind", "koordpolicy", half):
        await _all(cluster.bind(SPACE, _pod_name(number), _node_name(number)) for number in chosen)
    core = _core(str(server.kubeconfig()))
    rest = list(pods)
    with table.measured("bind", "official", len(rest)):
        for number in rest:
            # Without reading the answer: the official models cannot hold what the server says.
            core.create_namespaced_pod_binding(
                _pod_name(number), SPACE, _binding(number), _preload_content=False
            ).read()


async def _list(table: Table, cluster: ApiCluster, path: str) -> None:
    core = _core(path)
    plain = _OFFICIAL.dynamic.DynamicClient(_OFFICIAL.config.new_client_from_config(path))
    for resource, typed in ((NODES, core.list_node), (PODS, core.list_pod_for_all_namespaces)):
        count = SIZES[resource]
        name = f"list {resource.plural}"
        with table.measured(name, "koordpolicy", count):
            assert len(await _paged(cluster, resource)) == count
        with table.measured(name, "official, typed", count):
            assert len(_paged_officially(typed)) == count
        api = plain.resources.get(api_version="v1", kind=resource.kind)
        with table.measured(name, "official, dynamic", count):
            assert len(_paged_officially(api.get)) == count


async def _paged(cluster: ApiCluster, resource: Resource) -> list[Any]:
    items: list[Any] = []
    token = ""
    while True:
        page = await cluster.list(resource, limit=500, continue_token=token)
        items.extend(page.items)
        token = page.continue_token
        if not token:
            return items


def _core(path: str) -> Any:
    return _OFFICIAL.client.CoreV1Api(_OFFICIAL.config.new_client_from_config(path))


def _paged_officially(ask: Callable[..., Any]) -> list[Any]:
    items: list[Any] = []
    token = None
    while True:
        page = ask(limit=500, **({"_continue": token} if token else {}))
        items.extend(page.items)
        token = getattr(page.metadata, "_continue", None) or getattr(page.metadata, "continue", None)
        if not token:
            return items


async def _watch(table: Table, cluster: ApiCluster, path: str, since: str) -> None:
    count = SIZES[PODS]
    with table.measured("watch pods", "koordpolicy", count):
        async with cluster.watch(PODS, resource_version=since) as events:
            assert await _first(events, count) == count
    core = _core(path)
    with table.measured("watch pods", "official, typed", count):
        stream = _OFFICIAL.watch.Watch()
        seen = 0
        for _ in stream.stream(core.list_pod_for_all_namespaces, resource_version=since, timeout_seconds=60):
            seen += 1
            if seen == count:
                stream.stop()
        assert seen == count


async def _first(events: AsyncIterator[Any], count: int) -> int:
    seen = 0
    async for _ in events:
        seen += 1
        if seen == count:
            break
    return seen


async def _all(work: Iterable[Awaitable[Any]]) -> None:
    """Do all of it, so many at once."""
    rest = iter(work)

    async def worker() -> None:
        for one in rest:
            await one

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def _node_name(number: int) -> str:
    return f"node-{number % SIZES[NODES]:05}"


def _pod_name(number: int) -> str:
    return f"pod-{number:06}"


def _node(number: int) -> dict[str, Any]:
    capacity = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": _node_name(number), "topology.kubernetes.io/zone": f"z{number % 3}"}
    images = [{"names": [f"registry.example/team/image-{at}:v1"], "sizeBytes": 10**8} for at in range(20)]
    return {
        "metadata": {"name": _node_name(number), "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": images,
        },
    }


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": f"{50 + number % 977}m", "memory": f"{64 + number % 1499}Mi"}
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    return {
        "metadata": {"name": _pod_name(number), "labels": {"app": f"app-{number % 7}"}},
        "spec": {"schedulerName": "none", "automountServiceAccountToken": False, "containers": [container]},
    }


def _binding(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": _pod_name(number)},
        "target": {"kind": "Node", "name": _node_name(number)},
    }
