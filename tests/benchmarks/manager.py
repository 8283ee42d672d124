"""The manager's controllers at a large cluster on a real API server: CPU, memory, writes, and how soon nodes follow.

The manager is a process of its own, with its shipped role. What it is asked comes from this one, in an open loop: reports
are sent when they are due. Beside it stands a loop that does nothing but write the same nodes.
"""

import asyncio
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.drain import SERVER_ARGUMENTS
from tests.benchmarks.measure import Row, as_installed
from tests.benchmarks.processes import cpu_of, memory_of
from tests.benchmarks.reported_nodes import PODS_A_NODE, ReportedNodes, reported_nodes, share
from tests.conftest import REPOSITORY
from tests.integration.runtime.managers import BUNDLE
from tests.integration.runtime.managers import share as filled
from tests.parts import Missing
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.processes import Running, free_port

NODES = 5_000
PERIOD = 60.0
"""Seconds between two reports of a node."""
IDLE = 60.0
PATIENCE = 300.0
"""Seconds after which a run is given up."""
_WRITTEN = re.compile(
    rb'koordpolicy_kube_requests_total\{[^}]*resource="(?!leases)[^}]*verb="(?:patch|create|update|delete)"[^}]*\} (\S+)'
)
_ONCE = ("first writes of all nodes", "commit of another formula to all nodes written")


@dataclass(slots=True)
class MeasuredProcess:
    """A component at work; `port` is where its metrics are."""

    running: Running
    port: int
    policies: Path

    def writes(self) -> float:
        """Requests that changed anything, those for its lease aside."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return sum(float(number) for number in _WRITTEN.findall(answer.read()))

    def answers(self) -> bool:
        """Whether its metrics can be read."""
        try:
            self.writes()
        except OSError:
            return False
        return True

    def row(self, what: str, began: tuple[float, float, float], **more: object) -> Row:
        """What it took since `begin`."""
        wall, cpu, writes = began
        pid = self.running.pid
        spent, since = cpu_of(pid) - cpu, time.perf_counter() - wall
        return {
            "what": what,
            "seconds": round(since, 1),
            "CPU s": round(spent, 2),
            "CPU %": round(100 * spent / since, 1),
            "MiB": round(memory_of(pid)),
            "writes": round(self.writes() - writes),
            **more,
        }

    def begin(self) -> tuple[float, float, float]:
        """The clock, the CPU used and the writes made by now."""
        return time.perf_counter(), cpu_of(self.running.pid), self.writes()


def run() -> Iterable[Row]:
    """Rows of seconds and shares."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with DeployedServer(Path(folder) / "server", arguments=SERVER_ARGUMENTS) as server:
                return asyncio.run(measured(server, Path(folder), NODES))
        except Missing as missing:
            return [{"what": f"skipped: {missing}"}]


async def measured(server: ApiServer, folder: Path, count: int) -> list[Row]:
    """All rows about so many nodes, which are made on a server first."""
    rows: list[Row] = []
    async with reported_nodes(server.access, count) as nodes:
        tell(f"making {count:,} nodes with {PODS_A_NODE} pods each")
        await nodes.make()
        async with managed(server, folder, nodes) as manager:
            rows += [
                await _first(manager, nodes),
                await _idle(manager),
                await _reported(manager, nodes),
                await _changed(manager, nodes),
            ]
        for at_once in (4, 64):
            spent = await nodes.patched(at_once)
            rows.append(
                {
                    "what": f"peer: a loop that writes all nodes, {at_once} at a time",
                    "seconds": round(spent, 1),
                }
            )
    return rows


@asynccontextmanager
async def managed(
    server: ApiServer, folder: Path, nodes: ReportedNodes, *more: str
) -> AsyncIterator[MeasuredProcess]:
    """A manager by the built-in pack, with these flags besides, from when a node offers something."""
    async with measured_process(server, folder, "manager", *more) as manager:
        await nodes.settled(lambda: len(nodes.offered) > 0, PATIENCE)
        yield manager


@asynccontextmanager
async def measured_process(
    server: ApiServer, folder: Path, component: str, *more: str
) -> AsyncIterator[MeasuredProcess]:
    """A component with its shipped role by the built-in pack, with these flags besides, from when it shows metrics."""
    policies = folder / "policies"
    policies.mkdir(parents=True)
    (policies / "koordpolicy.yaml").write_text(BUNDLE, "utf-8")
    port = free_port()
    command = [
        sys.executable, "-m", "koordpolicy.cli", component, "--policies", str(policies), "--instance", "m",
        "--kubeconfig", str(server.kubeconfig(f"koordpolicy-{component}")), "--http", f"127.0.0.1:{port}", *more,
    ]  # fmt: skip
    environment = {**as_installed(), "PYTHONPATH": str(REPOSITORY)}
    running = Running(command, folder / f"{component}.log", environment=environment)
    try:
        process = MeasuredProcess(running, port, policies)
        await asyncio.to_thread(running.ready, process.answers, PATIENCE)
        yield process
    finally:
        await asyncio.to_thread(running.stop)


async def _first(manager: MeasuredProcess, nodes: ReportedNodes) -> Row:
    """Until every node offers something, from the first that does; then what hangs on that has to come to rest."""
    tell("first writes")
    began = manager.begin()
    await nodes.settled(lambda: len(nodes.offered) == nodes.count, PATIENCE)
    row = manager.row(_ONCE[0], began)
    await rest(manager)
    return row


async def rest(process: MeasuredProcess) -> None:
    """Wait until nothing has been written for a while."""
    until = time.perf_counter() + PATIENCE
    before = -1.0
    while (now := await asyncio.to_thread(process.writes)) != before:
        assert time.perf_counter() < until, "it writes on and on"
        before = now
        await asyncio.sleep(5)


async def _idle(manager: MeasuredProcess) -> Row:
    tell(f"{IDLE:.0f} s in which nothing happens")
    began = manager.begin()
    await asyncio.sleep(IDLE)
    return manager.row("nothing happens", began)


async def _reported(manager: MeasuredProcess, nodes: ReportedNodes) -> Row:
    tell(f"reports of all nodes every {PERIOD:.0f} s")
    began = manager.begin()
    reports = await nodes.reports(PERIOD, PERIOD)
    await asyncio.sleep(2)
    return manager.row(
        f"reports every {PERIOD:.0f} s, batch resources follow",
        began,
        **{
            "followed": f"{len(nodes.times):,} of {reports:,}",
            "p50 s": share(nodes.times, 0.5),
            "p99 s": share(nodes.times, 0.99),
        },
    )


async def _changed(manager: MeasuredProcess, nodes: ReportedNodes) -> Row:
    tell("another formula")
    await rest(manager)
    before = dict(nodes.offered)
    draft = manager.policies.parent / "draft"
    draft.write_text(filled(40), "utf-8")
    began = manager.begin()
    draft.replace(manager.policies / "share.yaml")
    await nodes.settled(lambda: all(before[name] != now for name, now in nodes.offered.items()), PATIENCE)
    return manager.row(_ONCE[1], began)


def tell(what: str) -> None:
    """To whoever waits for the rows."""
    print(what, file=sys.stderr, flush=True)
