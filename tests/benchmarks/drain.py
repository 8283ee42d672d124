"""A backlog of pods drained end to end: ours and kube-scheduler on the same real API server, in one run.

The pods are there before the scheduler starts. Speed is from the first binding to the last; CPU and memory are the
scheduler's own, over its whole life, with the Events that it writes about the pods. The loop that only posts bindings
shows what the API server can do.
"""

import asyncio
import contextlib
import json
import os
import resource
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from koordpolicy.model.protocol import GANG_MINIMUM, GANG_NAME
from tests.benchmarks.measure import Row, as_installed
from tests.parts import Missing, find
from tests.parts.apiserver import Access, ApiServer

WORKLOADS = ((1_000, 3_000, False), (5_000, 10_000, True))
"""Nodes, pods, and whether the pods differ in size."""

PATIENCE = 300.0
"""Seconds after which a run is given up."""

_SILENCE = 3.0
"""Seconds without a new Event after which no more are waited for."""

_REQUESTS = 64
SERVER_ARGUMENTS = ("--max-requests-inflight=3000", "--max-mutating-requests-inflight=1500")
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler: its name in the table, the schedulerName of its pods, how it is started."""

    name: str
    scheduler_name: str
    command: Sequence[str]


@dataclass(slots=True)
class Backlog:
    """Nodes and unscheduled pods on a server; with `gang`, so many pods at a time are one, by their annotations."""

    access: Access
    session: aiohttp.ClientSession
    nodes: int
    pods: int
    varied: bool
    gang: int = 0

    async def prepare(self, scheduler_name: str) -> str:
        """Make what is missing and delete what is left over; gives the version from which to watch."""
        await self.call("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
        await self.call("DELETE", "/api/v1/namespaces/default/events")
        known = len((await self.call("GET", "/api/v1/nodes"))["items"])
        await self._all("POST", "/api/v1/nodes", map(_node, range(known, self.nodes)))
        # Without a node controller nobody takes away the taint of nodes that are not ready yet.
        tainted = [
            f"/api/v1/nodes/{node['metadata']['name']}"
            for node in (await self.call("GET", "/api/v1/nodes"))["items"]
            if node["spec"].get("taints")
        ]
        patch = {"Content-Type": "application/merge-patch+json"}
        await asyncio.gather(*(self.call("PATCH", one, {"spec": {"taints": None}}, patch) for one in tainted))
        pods = (_pod(at, scheduler_name, self.varied, self.gang) for at in range(self.pods))
        await self._all("POST", "/api/v1/namespaces/default/pods", pods)
        await asyncio.sleep(2)
        listed = await self.call("GET", "/api/v1/namespaces/default/pods?limit=1")
        return str(listed["metadata"]["resourceVersion"])

    async def call(self, method: str, path: str, body: Any = None, headers: Any = None) -> Any:
        """One request; fails the benchmark when the server refuses it."""
        data = None if body is None else json.dumps(body)
        async with self.session.request(
            method, path, data=data, headers={**_JSON, **(headers or {})}
        ) as answer:
            found = await answer.json()
            assert answer.status < 400, found
            return found

    async def events(self) -> int:
        """How many Events there are, once they are one for each pod, or become no more."""
        known, since = -1, time.perf_counter()
        while known < self.pods and time.perf_counter() - since < _SILENCE:
            listed = await self.call("GET", "/api/v1/namespaces/default/events?limit=1")
            count = len(listed["items"]) + int(listed["metadata"].get("remainingItemCount") or 0)
            if count > known:
                known, since = count, time.perf_counter()
            await asyncio.sleep(0.25)
        return known

    async def _all(self, method: str, path: str, bodies: Iterator[Any]) -> None:
        async def work() -> None:
            for body in bodies:  # the workers share the iterator
                await self.call(method, path, body)

        await asyncio.gather(*(work() for _ in range(_REQUESTS)))

    async def bindings(self, version: str, times: list[float]) -> None:
        """Note the time of each first binding, until cancelled."""
        bound: set[bytes] = set()
        path = f"/api/v1/namespaces/default/pods?watch=1&resourceVersion={version}"
        async with self.session.get(path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            async for line in answer.content:
                if b'"nodeName":"' in line:
                    name = line.split(b'"name":"', 1)[1][:7]
                    if name not in bound:
                        bound.add(name)
                        times.append(time.perf_counter())


def _node(at: int) -> Any:
    name = f"n{at:05d}"
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{at % 3}"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def _pod(at: int, scheduler_name: str, varied: bool, gang: int) -> Any:
    cpu, memory = (f"{50 + at % 977}m", f"{64 + at % 1499}Mi") if varied else ("100m", "256Mi")
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    said = {GANG_NAME: f"g{at // gang}", GANG_MINIMUM: str(gang)} if gang else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{at:06d}",
            "labels": {"app": f"bench{at % 7 if varied else 0}"},
            "annotations": said,
        },
        "spec": {
            "schedulerName": scheduler_name,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


async def _bare(backlog: Backlog) -> Row:
    """Nothing but bindings, posted as fast as the server takes them."""
    await backlog.prepare("nobody")
    begin, used = time.perf_counter(), time.process_time()

    def bindings() -> Iterator[tuple[str, Any]]:
        for at in range(backlog.pods):
            target = {"kind": "Node", "name": f"n{at % backlog.nodes:05d}"}
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": f"p{at:06d}"},
                "target": target,
            }
            yield f"/api/v1/namespaces/default/pods/p{at:06d}/binding", binding

    left = bindings()

    async def work() -> None:
        for path, body in left:
            await backlog.call("POST", path, body)

    await asyncio.gather(*(work() for _ in range(_REQUESTS)))
    spent = time.perf_counter() - begin
    return _row("bindings only", backlog, backlog.pods / spent, None, time.process_time() - used, None)


async def drained(backlog: Backlog, contender: Contender, log: Path) -> Row:
    """A row about one contender that places all pods of a backlog."""
    version = await backlog.prepare(contender.scheduler_name)
    times: list[float] = []
    watching = asyncio.create_task(backlog.bindings(version, times))
    await asyncio.sleep(0.5)
    begin = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: ASYNC220  # our own words
            contender.command, stdout=out, stderr=subprocess.STDOUT, env=as_installed()
        )
    try:
        while len(times) < backlog.pods:
            ended = process.poll()
            assert ended is None, f"{contender.name} ended with {ended}:\n{_tail(log)}"
            assert time.perf_counter() - begin < PATIENCE, (
                f"{contender.name}: {backlog.pods - len(times)} pods are not bound\n{_tail(log)}"
            )
            await asyncio.sleep(0.05)
        events = await backlog.events()
        peak = _peak(process.pid)
    finally:
        watching.cancel()
        usage = await asyncio.to_thread(_ended, process)
    rate = (len(times) - 1) / (times[-1] - times[0])
    used = usage.ru_utime + usage.ru_stime
    return {**_row(contender.name, backlog, rate, times[0] - begin, used, peak), "Events": events}


def _ended(process: "subprocess.Popen[bytes]") -> resource.struct_rusage:
    """Tell a process to stop; what it used in its life (of all processes that ended, when it had ended itself)."""
    if process.returncode is not None:
        return resource.getrusage(resource.RUSAGE_CHILDREN)
    process.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def _peak(pid: int) -> float:
    """The most memory that a process ever held, MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _row(
    who: str, backlog: Backlog, rate: float, first: float | None, cpu: float, peak: float | None
) -> dict[str, object]:
    row: dict[str, object] = {
        "nodes": backlog.nodes,
        "pods": f"{backlog.pods:,} {'of differing size' if backlog.varied else 'equal'}",
        "who": who,
        "pods/s": round(rate),
        "CPU s": round(cpu, 1),
    }
    if first is not None:
        row["start to first s"] = round(first, 2)
    if peak is not None:
        row["peak MiB"] = round(peak)
    return row


def ours(kubeconfig: Path, folder: Path, *module: str) -> Contender:
    """Our scheduler, by the command itself or by a module that runs it."""
    command = [sys.executable, "-m", *(module or ("koordpolicy.cli",)), "scheduler"]
    options = ["--kubeconfig", str(kubeconfig), "--state-dir", str(folder / "state")]
    alone = ["--no-leader-elect", "--http", "127.0.0.1:0"]
    return Contender("koordpolicy scheduler", "koord-scheduler", [*command, *options, *alone])


def contenders(access: Access, folder: Path) -> Iterator[Contender]:
    """Ours, and kube-scheduler where it is to be had."""
    kubeconfig = access.kubeconfig("admin")
    yield ours(kubeconfig, folder)
    with contextlib.suppress(Missing):
        theirs = find("kube-scheduler").path
        configuration = folder / "kube-scheduler.yaml"
        configuration.write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    # The usual 50 requests a second would measure the limit, not the scheduler.
                    "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
                }
            )
        )
        yield Contender(
            "kube-scheduler",
            "default-scheduler",
            [str(theirs), f"--config={configuration}", "--secure-port=0"],
        )


def run() -> Iterator[Row]:
    """Each workload: the bare loop, ours, kube-scheduler. Nothing where there is no API server to be had."""
    try:
        find("kube-apiserver")
    except Missing as why:
        yield {"who": f"left out: {why}"}
        return
    for nodes, pods, varied in WORKLOADS:
        with (
            tempfile.TemporaryDirectory() as folder,
            ApiServer(Path(folder), arguments=SERVER_ARGUMENTS) as server,
        ):
            yield from asyncio.run(_workload(server.access, Path(folder), nodes, pods, varied))


def profile() -> Iterator[Row]:
    """Where our scheduler's CPU goes in the largest workload, by part. Looking costs it a little."""
    try:
        find("kube-apiserver")
    except Missing as why:
        yield {"part": f"left out: {why}"}
        return
    nodes, pods, varied = WORKLOADS[-1]
    with tempfile.TemporaryDirectory() as name, ApiServer(Path(name), arguments=SERVER_ARGUMENTS) as server:
        folder, access = Path(name), server.access
        found = folder / "parts.json"
        sampled = ours(access.kubeconfig("admin"), folder, "tests.benchmarks.sampled", str(found))

        async def whole() -> None:
            async with backlog_on(access, nodes, pods, varied) as backlog:
                await drained(backlog, sampled, folder / "scheduler.log")

        asyncio.run(whole())
        parts: dict[str, float] = json.loads(found.read_text(encoding="utf-8"))
    for part, seconds in parts.items():
        yield {"part": part, "CPU s": round(seconds, 2), "µs a pod": round(seconds / pods * 1e6)}


@contextlib.asynccontextmanager
async def backlog_on(
    access: Access, nodes: int, pods: int, varied: bool, gang: int = 0
) -> AsyncIterator[Backlog]:
    """A backlog to prepare on a server."""
    tls = ssl.create_default_context(cafile=str(access.authority))
    headers = {"Authorization": f"Bearer {access.token('admin')}"}
    connector = aiohttp.TCPConnector(ssl=tls, limit=_REQUESTS + 1)
    async with aiohttp.ClientSession(access.url, connector=connector, headers=headers) as session:
        yield Backlog(access, session, nodes, pods, varied, gang)


async def _workload(access: Access, folder: Path, nodes: int, pods: int, varied: bool) -> list[Row]:
    async with backlog_on(access, nodes, pods, varied) as backlog:
        rows = [await _bare(backlog)]
        for contender in contenders(access, folder):
            print(f"{contender.name}: {pods:,} pods on {nodes:,} nodes", file=sys.stderr, flush=True)
            rows.append(await drained(backlog, contender, folder / "scheduler.log"))
    return rows
