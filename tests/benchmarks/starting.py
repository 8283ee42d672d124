"""How soon something is there: help, a check of a small bundle, the first binding of a scheduler on a real API server.

Of commands the best of several runs counts, since whatever else the machine does only adds to it. Schedulers start on a
cluster that has its nodes and a few pods already; kube-scheduler does the same on the same server.
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
from tests.parts import Missing, find
from tests.parts.apiserver import ApiServer

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
