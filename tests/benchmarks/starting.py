"""How soon something is there: help, a check of a small bundle, the first binding of a scheduler on a real API server, the
first node that a manager has written.

Of commands the best of several runs counts, since whatever else the machine does only adds to it. Schedulers start on a
cluster that has its nodes and a few pods already; kube-scheduler does the same on the same server. Managers start where all
nodes have reported and none offers batch resources; CPU is what they have taken by their first write, of schedulers it is that of the
whole run.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.drain import SERVER_ARGUMENTS, backlog_on, contenders, drained
from tests.benchmarks.measure import Row, as_installed
from tests.benchmarks.processes import cpu_of
from tests.benchmarks.reported_nodes import PODS_A_NODE, ReportedNodes, reported_nodes
from tests.parts import Missing, find
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.processes import Running

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS: tuple[tuple[str, Sequence[str]], ...] = (
    ("--help", ("--help",)),
    ("check --help", ("check", "--help")),
    ("check, a small bundle", ("check", str(EXAMPLES / "02-tune-one-pool"))),
    ("test, a small bundle", ("test", str(EXAMPLES / "02-tune-one-pool"))),
    ("explain a decision", ("explain", "CPUSuppress.target")),
)
RUNS = 10
NODES, PODS = 5_000, 100
PATIENCE = 300.0
"""Seconds after which a start is given up."""


def run() -> Iterator[Row]:
    """Commands, with the compiled pack kept and without; then schedulers."""
    with tempfile.TemporaryDirectory() as cache:
        kept = {**as_installed(), "XDG_CACHE_HOME": cache, "KOORDPOLICY_CACHE": "on"}
        for name, words in COMMANDS:
            _once(words, kept)
            yield _best(name, words, kept)
        name, words = COMMANDS[2]
        yield _best(f"{name}, nothing kept", words, {**as_installed(), "KOORDPOLICY_CACHE": "off"})
    try:
        find("kube-apiserver")
    except Missing as why:
        yield {"what": f"schedulers left out: {why}"}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        ApiServer(Path(folder), arguments=SERVER_ARGUMENTS) as server,
    ):
        yield from asyncio.run(_schedulers(server, Path(folder)))
    with (
        tempfile.TemporaryDirectory() as folder,
        DeployedServer(Path(folder), arguments=SERVER_ARGUMENTS) as server,
    ):
        yield from asyncio.run(_managers(server, Path(folder)))


async def _schedulers(server: ApiServer, folder: Path) -> list[Row]:
    rows: list[Row] = []
    async with backlog_on(server.access, NODES, PODS, varied=True) as backlog:
        for contender in contenders(server.access, folder):
            await drained(backlog, contender, folder / "scheduler.log")  # with cold caches
            row = await drained(backlog, contender, folder / "scheduler.log")
            rows.append(
                {
                    "what": f"{contender.name}: start to first binding, {NODES:,} nodes",
                    "s": row["start to first s"],
                    "CPU s": row["CPU s"],
                }
            )
    return rows


async def _managers(server: ApiServer, folder: Path) -> list[Row]:
    rows: list[Row] = []
    async with reported_nodes(server.access, NODES, pods=0) as nodes:
        await nodes.make()
        await _written(server, nodes, folder)  # with cold caches
        for pods in (0, PODS_A_NODE):
            await nodes.fill(pods)
            await nodes.take_back()
            seconds, cpu = await _written(server, nodes, folder)
            what = f"koordpolicy manager: start to first node written, {NODES:,} nodes, {NODES * pods:,} pods"
            rows.append({"what": what, "s": round(seconds, 2), "CPU s": round(cpu, 2)})
    return rows


async def _written(server: ApiServer, nodes: ReportedNodes, folder: Path) -> tuple[float, float]:
    """Seconds from the start of a manager until the first node offers something, and what CPU it has taken by then."""
    command = [
        sys.executable, "-m", "koordpolicy.cli", "manager", "--no-leader-elect", "--http", "127.0.0.1:0",
        "--kubeconfig", str(server.kubeconfig("koordpolicy-manager")),
    ]  # fmt: skip
    began = time.perf_counter()
    running = Running(command, folder / "manager.log", environment=as_installed())
    try:
        await nodes.settled(lambda: bool(nodes.offered), PATIENCE)
        return time.perf_counter() - began, cpu_of(running.pid)
    finally:
        await asyncio.to_thread(running.stop)


def _best(name: str, words: Sequence[str], environment: dict[str, str]) -> Row:
    runs = [_once(words, environment) for _ in range(RUNS)]
    return {
        "what": f"koordpolicy {name}",
        "s": round(min(wall for wall, _ in runs), 3),
        "CPU s": round(min(cpu for _, cpu in runs), 3),
    }


def _once(words: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "koordpolicy.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime
