"""A backlog of gangs drained end to end on a real API server, beside as many plain pods: both by our scheduler, in one run.

Everything is there before the scheduler starts; speed is from the first binding to the last, as in `drain`.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.drain import SERVER_ARGUMENTS, backlog_on, drained, ours
from tests.benchmarks.measure import Row
from tests.parts import Missing, find
from tests.parts.apiserver import Access, ApiServer

NODES, GANGS, MEMBERS = 5_000, 1_000, 8


def run(divide: int = 1) -> Iterator[Row]:
    """Plain pods, then gangs. With `divide`, there is that part of the nodes and gangs. Nothing where there is no API server."""
    try:
        find("kube-apiserver")
    except Missing as why:
        yield {"who": f"left out: {why}"}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        ApiServer(Path(folder), arguments=SERVER_ARGUMENTS) as server,
    ):
        for gang in (0, MEMBERS):
            yield asyncio.run(
                _drained(server.access, Path(folder), NODES // divide, GANGS // divide * MEMBERS, gang)
            )


async def _drained(access: Access, folder: Path, nodes: int, pods: int, gang: int) -> Row:
    who = f"gangs of {gang}" if gang else "plain pods"
    print(f"{who}: {pods:,} pods on {nodes:,} nodes", file=sys.stderr, flush=True)
    async with backlog_on(access, nodes, pods, False, gang) as backlog:
        row = dict(await drained(backlog, ours(access.kubeconfig("admin"), folder), folder / "scheduler.log"))
    pods_a_second = row["pods/s"]
    assert isinstance(pods_a_second, int)
    return {**row, "who": who, "gangs/s": round(pods_a_second / gang) if gang else ""}
