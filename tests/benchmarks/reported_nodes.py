"""Nodes of a real API server whose agents report, and when what is offered on them has followed: the part of the agents.

Each node has pods of two bands. A report says that its prod pods use much more than at the last one, or much less, so that
policy wants other batch resources each time.
"""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp

from tests.parts.apiserver import Access

PODS_A_NODE = 4
REQUESTS = 64
_METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
_PATCH = {"Content-Type": "application/merge-patch+json"}
_OFFERED = b'"kubernetes.io/batch-cpu":"'
_WRITTEN = tuple(
    f"kubernetes.io/{band}-{amount}" for band in ("batch", "mid") for amount in ("cpu", "memory")
)
_STILL = 2.0
_USED = (2_000, 6_000)
"""Millicores that the prod pods of a node use, by turns."""


@dataclass(slots=True)
class ReportedNodes:
    """`count` nodes on a server, with so many `pods` each. `offered` is the batch CPU of each by name, as a watch of all nodes
    has seen it last.
    """

    session: aiohttp.ClientSession
    count: int
    pods: int = PODS_A_NODE
    offered: dict[str, bytes] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    """Seconds from when a report was due until its node offered something else."""
    changes: int = 0
    """Objects of nodes that the watch has shown."""
    _due: dict[str, float] = field(default_factory=dict)
    _round: int = 0

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request; fails the benchmark when the server refuses it."""
        headers = _PATCH if method == "PATCH" else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, path, data=data, headers=headers) as answer:
            text = await answer.read()
            assert answer.status < 400, text
            return json.loads(text) if method == "GET" else None

    async def each(self, work: Callable[[int], Awaitable[None]], at_once: int = REQUESTS) -> None:
        """Do something for every node, so many at a time."""
        left = iter(range(self.count))

        async def worker() -> None:
            for at in left:  # the workers share the iterator
                await work(at)

        await asyncio.gather(*(worker() for _ in range(at_once)))

    async def make(self) -> None:
        """Nodes, their pods, and first reports."""

        async def one(at: int) -> None:
            await self.call("POST", "/api/v1/nodes", _node(at))
            await self._add_pods(at, 0)
            await self.call("POST", _METRICS, {**_METRIC, "metadata": {"name": name_of(at)}, "spec": {}})
            await self.report(at)

        await self.each(one)

    async def fill(self, pods: int) -> None:
        """More pods on each node, and reports that speak of them."""
        known, self.pods = self.pods, pods

        async def one(at: int) -> None:
            await self._add_pods(at, known)
            await self.report(at)

        await self.each(one)

    async def _add_pods(self, at: int, known: int) -> None:
        for number in range(known, self.pods):
            await self.call("POST", "/api/v1/namespaces/default/pods", _pod(at, number))

    async def take_back(self) -> None:
        """Let no node offer anything any more. Nobody may write meanwhile."""
        nothing = dict.fromkeys(_WRITTEN)
        patch = {"status": {"capacity": nothing, "allocatable": nothing}}
        await self.each(lambda at: self.call("PATCH", f"/api/v1/nodes/{name_of(at)}/status", patch))
        await asyncio.sleep(_STILL)  # until the watch has seen what was offered before
        self.offered.clear()

    async def report(self, at: int) -> None:
        """What the agent of a node says now."""
        report = _report(at, self._round, self.pods)
        await self.call("PATCH", f"{_METRICS}/{name_of(at)}/status", {"status": report})

    async def reports(self, period: float, seconds: float) -> int:
        """Reports of all nodes, each at its time in the period whether earlier ones are answered or not; their number.

        Times are noted for all of them but those of the first period.
        """
        self._round += 1
        tasks, began, number = set(), time.perf_counter(), 0
        while number / self.count * period < period + seconds:
            if number == self.count:
                self.times.clear()
            due = began + number / self.count * period
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            at = number % self.count
            if number and at == 0:
                self._round += 1
            self._due[name_of(at)] = due
            task = asyncio.ensure_future(self.report(at))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.gather(*tasks)
        return number - self.count

    async def settled(self, wanted: Callable[[], bool], patience: float) -> float:
        """Seconds until something holds of what the nodes offer."""
        began = time.perf_counter()
        while not wanted():
            assert time.perf_counter() - began < patience, (
                f"{len(self.offered)} of {self.count} nodes offer anything"
            )
            await asyncio.sleep(0.01)
        return time.perf_counter() - began

    async def patched(self, at_once: int) -> float:
        """Seconds that a loop takes which only writes an amount to all nodes, so many at a time: the server's limit."""
        amounts = {"kubernetes.io/batch-cpu": str(10_000 + at_once), "kubernetes.io/batch-memory": "1Gi"}
        patch = {"status": {"capacity": amounts, "allocatable": amounts}}
        began = time.perf_counter()
        await self.each(lambda at: self.call("PATCH", f"/api/v1/nodes/{name_of(at)}/status", patch), at_once)
        return time.perf_counter() - began

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Follow what the nodes offer within."""
        listed = await self.call("GET", "/api/v1/nodes?limit=1")
        watching = asyncio.create_task(self._watch(listed["metadata"]["resourceVersion"]))
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, version: str) -> None:
        path = f"/api/v1/nodes?watch=1&resourceVersion={version}"
        async with self.session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            async for line in answer.content:
                self.changes += 1
                name = line.split(b'"name":"', 1)[1].partition(b'"')[0].decode()
                _, found, rest = line.partition(_OFFERED)
                offered = rest.partition(b'"')[0]
                if found and self.offered.get(name) != offered:
                    self.offered[name] = offered
                    due = self._due.pop(name, None)
                    if due is not None:
                        self.times.append(time.perf_counter() - due)


@asynccontextmanager
async def reported_nodes(access: Access, count: int, pods: int = PODS_A_NODE) -> AsyncIterator[ReportedNodes]:
    """Nodes to make on a server, watched."""
    tls = ssl.create_default_context(cafile=str(access.authority))
    headers = {"Authorization": f"Bearer {access.token('admin')}"}
    connector = aiohttp.TCPConnector(ssl=tls, limit=REQUESTS + 1)
    async with aiohttp.ClientSession(
        access.url, connector=connector, headers=headers, read_bufsize=1 << 20
    ) as session:
        nodes = ReportedNodes(session, count, pods)
        async with nodes.watched():
            yield nodes


def share(times: Iterable[float], part: float) -> float:
    """The time within which that part of all had come; NaN of none."""
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else float("nan")


def name_of(at: int) -> str:
    """The name of a node."""
    return f"n{at:05d}"


_METRIC = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}


def _node(at: int) -> dict[str, Any]:
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name_of(at), "topology.kubernetes.io/zone": f"z{at % 3}"}
    images = [{"names": [f"registry.example/team/image-{one}:v1"], "sizeBytes": 10**8} for one in range(10)]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name_of(at), "labels": labels},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready], "images": images},
    }


def _is_batch(number: int) -> bool:
    return number % 2 == 1


def _pod(at: int, number: int) -> dict[str, Any]:
    batch = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "1Gi"}
    amounts = batch if _is_batch(number) else {"cpu": "2", "memory": "4Gi"}
    labels = {"koordinator.sh/qosClass": "BE" if _is_batch(number) else "LS"}
    container = {"name": "main", "image": "pause", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name_of(at)}-{number}", "labels": labels},
        "spec": {"nodeName": name_of(at), "automountServiceAccountToken": False, "containers": [container]},
    }


def _report(at: int, turn: int, count: int) -> dict[str, Any]:
    used = _USED[(at + turn) % 2] + at % 97

    def usage(cpu: int, memory: int) -> dict[str, Any]:
        return {"resources": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}

    pods = [
        {
            "namespace": "default",
            "name": f"{name_of(at)}-{number}",
            "podUsage": usage(500, 512) if _is_batch(number) else usage(used // 2, 2048),
        }
        for number in range(count)
    ]
    return {
        "updateTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "nodeMetric": {"nodeUsage": usage(used + 2_000, 8192), "systemUsage": usage(1_000, 3072)},
        "podsMetric": pods,
        "prodReclaimableMetric": {"resource": usage(1_000, 1024)},
    }
