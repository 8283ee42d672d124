"""A YARN operator that shares batch resources of 1,000 nodes, on a real API server: what it costs, and what it asks.

A ResourceManager of so many NodeManagers cannot be had on one machine, so this process answers by the contract of its REST API
(`ResourceManager REST API's`, Cluster Nodes API and Cluster Node Update Resource API): each NodeManager is what it was told last.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from tests.benchmarks.drain import SERVER_ARGUMENTS
from tests.benchmarks.manager import PERIOD, MeasuredProcess, managed, measured_process, rest, tell
from tests.benchmarks.measure import Row
from tests.benchmarks.reported_nodes import ReportedNodes, name_of, reported_nodes
from tests.parts import Missing
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer

NODES: Final = 1_000
SECONDS: Final = 20.0
PATIENCE: Final = 120.0


@dataclass(slots=True)
class NodeManagers:
    """All NodeManagers of a ResourceManager, by id: what it may give out there and what containers have, as (MiB, vcores)."""

    total: dict[str, tuple[int, int]]
    used: dict[str, tuple[int, int]]
    lists: int = 0
    updates: int = 0
    url: str = ""

    async def list(self, _: web.Request) -> web.Response:
        """`GET /ws/v1/cluster/nodes`."""
        self.lists += 1
        nodes = [self._node(id) for id in self.total]
        return web.Response(body=json.dumps({"nodes": {"node": nodes}}), content_type="application/json")

    async def update(self, request: web.Request) -> web.Response:
        """`POST /ws/v1/cluster/nodes/{id}/resource`."""
        self.updates += 1
        resource = (await request.json())["resource"]
        self.total[request.match_info["id"]] = (resource["memory"], resource["vCores"])
        return web.json_response({"resource": resource})

    def _node(self, id: str) -> dict[str, Any]:
        (memory, vcores), (used_memory, used_vcores) = self.total[id], self.used[id]
        return {
            "rack": "/default-rack",
            "state": "RUNNING",
            "id": id,
            "nodeHostName": id.partition(":")[0],
            "nodeHTTPAddress": f"{id.partition(':')[0]}:8042",
            "lastHealthUpdate": 1_700_000_000_000,
            "version": "3.4.1",
            "healthReport": "",
            "numContainers": used_vcores,
            "usedMemoryMB": used_memory,
            "availMemoryMB": memory - used_memory,
            "usedVirtualCores": used_vcores,
            "availableVirtualCores": vcores - used_vcores,
            "numRunningOpportContainers": 0,
            "usedMemoryOpportGB": 0,
            "usedVirtualCoresOpport": 0,
            "resourceUtilization": {"nodePhysicalMemoryMB": 8192, "nodeVirtualMemoryMB": 8192, "nodeCPUUsage": 3.0},
            "totalResource": {"memory": memory, "vCores": vcores},
        }  # fmt: skip


@asynccontextmanager
async def resource_manager(count: int) -> AsyncIterator[NodeManagers]:
    """Its web services on loopback; each NodeManager registers with 1 GiB and one vcore."""
    ids = [_id(at) for at in range(count)]
    found = NodeManagers(dict.fromkeys(ids, (1024, 1)), dict.fromkeys(ids, (0, 0)))
    application = web.Application()
    application.router.add_get("/ws/v1/cluster/nodes", found.list)
    application.router.add_post("/ws/v1/cluster/nodes/{id}/resource", found.update)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield found
    finally:
        await runner.cleanup()


def run(divide: int) -> Iterable[Row]:
    """Rows of seconds, shares and requests."""
    count = NODES // divide
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with DeployedServer(Path(folder) / "server", arguments=SERVER_ARGUMENTS) as server:
                return asyncio.run(_measured(server, Path(folder), count))
        except Missing as missing:
            return [{"what": f"skipped: {missing}"}]


async def _measured(server: ApiServer, folder: Path, count: int) -> list[Row]:
    rows: list[Row] = []
    async with reported_nodes(server.access, count) as nodes, resource_manager(count) as yarn:
        tell(f"making {count:,} nodes")
        await nodes.make()
        await nodes.each(lambda at: nodes.call("PATCH", f"/api/v1/nodes/{name_of(at)}", _says(at)))
        async with managed(server, folder / "manager", nodes) as manager:
            await nodes.settled(lambda: len(nodes.offered) == count, PATIENCE)
            await rest(manager)
            flags = ("--yarn-url", yarn.url)
            async with measured_process(server, folder / "operator", "yarn-operator", *flags) as operator:
                rows.append(await _first(operator, yarn, nodes))
                await rest(operator)
                await rest(manager)
                rows.append(await _window(operator, yarn, "nothing happens", SECONDS))
                rows.append(await _reported(operator, yarn, nodes))
                for id, (memory, vcores) in yarn.total.items():
                    yarn.used[id] = (memory, vcores)
                rows.append(await _window(operator, yarn, "containers fill what all nodes offered", SECONDS))
    return rows


async def _first(operator: MeasuredProcess, yarn: NodeManagers, nodes: ReportedNodes) -> Row:
    """Until every NodeManager has more than it registered with; at first each is told to give out nothing, until that is claimed."""
    tell("claims and offers of all nodes")
    asked, began = (yarn.lists, yarn.updates), operator.begin()
    await nodes.settled(lambda: all(vcores > 1 for _, vcores in yarn.total.values()), PATIENCE)
    return _row(operator, yarn, "claims and offers of all nodes", asked, began)


async def _reported(operator: MeasuredProcess, yarn: NodeManagers, nodes: ReportedNodes) -> Row:
    what = f"all nodes report every {PERIOD:.0f} s"
    tell(what)
    asked, began = (yarn.lists, yarn.updates), operator.begin()
    await nodes.reports(PERIOD, PERIOD)
    return _row(operator, yarn, what, asked, began)


async def _window(operator: MeasuredProcess, yarn: NodeManagers, what: str, seconds: float) -> Row:
    tell(f"{what}: {seconds:.0f} s")
    asked, began = (yarn.lists, yarn.updates), operator.begin()
    await asyncio.sleep(seconds)
    return _row(operator, yarn, what, asked, began)


def _row(
    operator: MeasuredProcess,
    yarn: NodeManagers,
    what: str,
    asked: tuple[int, int],
    began: tuple[float, float, float],
) -> Row:
    return operator.row(what, began, lists=yarn.lists - asked[0], updates=yarn.updates - asked[1])


def _says(at: int) -> dict[str, Any]:
    return {"metadata": {"annotations": {"node.yarn.koordinator.sh": _id(at)}}}


def _id(at: int) -> str:
    return f"{name_of(at)}:8041"
