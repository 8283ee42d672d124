"""What proxy and NRI add to calls of CRI: milliseconds of a call in an open loop of 300 calls a second, and memory.

The runtime is a server of its own that answers at once, so that what is seen is what stands before it: nothing, the proxy, and the
proxy with hooks of the built-in pack, which change the container. NRI is what a runtime waits for a plugin's answer. The three ways
take turns within one run, each warmed up, so that whatever else the machine does falls on all of them. CPU is what proxy and agent take.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from koordpolicy.agent.hooks.containers import make_programs
from koordpolicy.agent.hooks.nri import NriPlugin
from koordpolicy.agent.hooks.places import HookPlaces
from koordpolicy.agent.hooks.server import HookServing
from koordpolicy.cri.calls import Channel, GrpcCall, GrpcServer
from koordpolicy.cri.nri_shapes import OF_CONTAINER
from koordpolicy.cri.trunk import Trunk
from koordpolicy.cri.wire import Message
from koordpolicy.runtime.collector import keep_what_is_there, quiet_collector
from koordpolicy.runtime_proxy.interceptor import RUNTIME_SERVICE
from tests.benchmarks.measure import Row
from tests.benchmarks.processes import cpu_of, memory_of, quiet_client
from tests.parts.processes import Running
from tests.unit.agent.test_hooks import OneScene, scene
from tests.unit.runtime_proxy.runtimes import identity
from tests.unit.runtime_proxy.test_proxy import container_request, pod_request

RATE: Final = 300
"""Calls a second, as the kubelet of a busy node makes them in a storm of starts."""
SECONDS: Final = 6.0
TURNS: Final = 2
_LABEL: Final = {"koordinator.sh/qosClass": "BE"}
_READY: Final = 60.0


def run() -> Iterable[Row]:
    """Rows of milliseconds per call."""
    memory = Path("/dev/shm")  # where a node has its /run: sockets and records lie there  # noqa: S108
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder, quiet_client():
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Row]:
    words = [sys.executable, "-m", "tests.benchmarks.runtime"]
    with ExitStack() as stack:

        def start(name: str, *arguments: str | Path) -> Running:
            return stack.enter_context(Running([*words, name, *arguments], folder / f"{name}.log"))

        start("runtime", folder / "runtime.sock")
        agent = start("agent", folder)
        proxies = {}
        for name in ("none", "hooks"):
            proxies[name] = stack.enter_context(
                Running(
                    [
                        sys.executable,
                        "-m",
                        "koordpolicy.cli",
                        "runtime-proxy",
                        "--runtime",
                        folder / "runtime.sock",
                        "--listen",
                        folder / f"{name}.sock",
                        "--hooks",
                        folder / name,
                    ],
                    folder / f"proxy-{name}.log",
                )
            )
        ways = {
            "bare": Channel(folder / "runtime.sock"),
            "proxy, no hooks": Channel(folder / "none.sock"),
            "proxy with hooks": Channel(folder / "hooks.sock"),
        }
        for way in ways.values():
            await _until_it_answers(way)
        while not (folder / "hooks" / "koordlet.json").exists():  # noqa: ASYNC110  # a file wakes nobody
            await asyncio.sleep(0.05)
        sandbox = GrpcCall(pod_request(**_LABEL), seconds=10)
        for way in ways.values():
            await way.call(f"{RUNTIME_SERVICE}RunPodSandbox", sandbox)
        calls = {
            "Version, which passes": ("Version", b""),
            "CreateContainer": ("CreateContainer", container_request()),
        }
        between = {
            "bare": (),
            "proxy, no hooks": (proxies["none"],),
            "proxy with hooks": (proxies["hooks"], agent),
        }
        spent: dict[tuple[str, str], _Spent] = {}
        for turn in range(-1, TURNS):  # the first one is what is made once
            for called, (method, request) in calls.items():
                for name, way in ways.items():
                    asked = GrpcCall(request, seconds=10)
                    before = _cpu(between[name])
                    found = await _paced(partial(way.call, RUNTIME_SERVICE + method, asked))
                    if turn >= 0:
                        of = spent.setdefault((called, name), _Spent())
                        of.times.extend(found)
                        of.cpu += _cpu(between[name]) - before
        rows = [
            _row(called, name, found, spent[called, "bare"].times) for (called, name), found in spent.items()
        ]
        nri, before = folder / "nri.sock", _cpu((agent,))
        plugin = _Spent(await _nri(nri))
        plugin.cpu = _cpu((agent,)) - before
        rows.append(_row("CreateContainer", "NRI, the plugin's answer", plugin, [0.0]))
        nothing = dict.fromkeys(("p99", "added p50", "added p99", "CPU"), "")
        for who, running in (("proxy", proxies["hooks"]), ("agent's hooks and policies", agent)):
            rows.append(
                {"call": "memory, MB", "way": who, "p50": memory_of(running.pid) * 1.048576, **nothing}
            )
        for way in ways.values():
            await way.close()
        return rows


@dataclass(slots=True)
class _Spent:
    """Seconds of each call, and of CPU for all of them."""

    times: list[float] = field(default_factory=list)
    cpu: float = 0.0


def _cpu(processes: Sequence[Running]) -> float:
    return sum(cpu_of(one.pid) for one in processes)


async def _paced(call: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each call, begun when its time has come, whatever became of those before."""
    spent: list[float] = []

    async def one() -> None:
        began = time.perf_counter()
        await call()
        spent.append(time.perf_counter() - began)

    begin, tasks = time.perf_counter(), []
    for number in range(int(RATE * SECONDS / TURNS)):
        await asyncio.sleep(max(begin + number / RATE - time.perf_counter(), 0))
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    return spent


async def _nri(path: Path) -> list[float]:
    """What a runtime waits: the plugin registers here and is asked."""
    accepted: asyncio.Future[Trunk] = asyncio.get_running_loop().create_future()

    async def registered(_: str, __: bytes) -> bytes:
        return b""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result(Trunk(reader, writer, served=2, asked=1))

    server = await asyncio.start_unix_server(take, path)
    async with asyncio.timeout(_READY):
        trunk = await accepted
    running = asyncio.create_task(trunk.run(registered))
    request = Message(OF_CONTAINER)
    pod, container = request.message("pod"), request.message("container")
    pod.put_text("uid", "u")
    container.put_text("name", "main")
    request.put_message("pod", pod)
    request.put_message("container", container)
    spent = await _paced(lambda: trunk.call("nri.pkg.api.v1alpha1.Plugin", "CreateContainer", request.encoded(), 10))  # fmt: skip
    server.close()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return spent


async def _until_it_answers(way: Channel) -> None:
    async with asyncio.timeout(_READY):
        while True:
            try:
                await way.call(f"{RUNTIME_SERVICE}Version", GrpcCall(b"", seconds=1))
                return
            except Exception:  # noqa: BLE001  # it is not there yet, however that shows
                await asyncio.sleep(0.1)


def _row(called: str, way: str, spent: _Spent, bare: Sequence[float]) -> Row:
    mine, other = _percentiles(spent.times), _percentiles(bare)
    return {
        "call": called,
        "way": way,
        "p50": mine[0],
        "p99": mine[1],
        "added p50": mine[0] - other[0],
        "added p99": mine[1] - other[1],
        "CPU": spent.cpu / len(spent.times) * 1000,
    }


def _percentiles(spent: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(spent)
    return ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.99)] * 1000


# --- the processes that are measured, but for the proxy, which is the product's own ----------------------


async def _runtime(path: Path) -> None:
    answers = {
        "Version": b"", "RunPodSandbox": identity("sandbox"), "CreateContainer": identity("container"),
        "ListPodSandbox": b"", "ListContainers": b"",
    }  # fmt: skip

    def answering(answer: bytes) -> Callable[[GrpcCall], Awaitable[bytes]]:
        async def handle(_: GrpcCall) -> bytes:
            return answer

        return handle

    server = GrpcServer(path, {RUNTIME_SERVICE + name: answering(one) for name, one in answers.items()})
    await server.start()
    await asyncio.Event().wait()


async def _agent(folder: Path) -> None:
    keep_what_is_there()  # as the agent does with what it imports and compiles
    with quiet_collector():
        scenes = OneScene(given := scene())
        make_programs(given.graph)

    def uncounted(_stage: str, _result: str) -> None:
        pass

    serving = HookServing(scenes, HookPlaces(folder / "agent.sock", folder / "hooks"), uncounted)
    await asyncio.gather(serving.run(), NriPlugin(scenes, folder / "nri.sock", uncounted).run())


if __name__ == "__main__":
    what, place = sys.argv[1], Path(sys.argv[2])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the agent has it
        runner.run(_runtime(place) if what == "runtime" else _agent(place))
