"""Webhooks: reviews of pods at a manager of its own process, over TLS, in an open loop.

Reviews are sent when they are due, whether earlier ones are answered or not, and their time counts from then: with the
same policies, and one profile or a thousand of which one matches; by a manager alone, and as shipped behind a front, whose
CPU counts as well; and by Koordinator's own koord-manager with the same profiles as its objects.

All six are up at the same time, warmed up alike and asked in turns, in another order each time: what a review costs at this rate
depends as much on how cold the machine's caches are, and on what else it does, as on what is done, and that changes within minutes.
The CPU of the median turn is told beside that of all turns, and what part it is of koord-manager's in the same turn. Before the first
turn what becomes of the pod is compared: it is the same with all of them.
"""

import asyncio
import base64
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from koordpolicy.kube.patch import json_patch
from tests.benchmarks.measure import Row, as_installed
from tests.benchmarks.processes import cpu_of, quiet_client
from tests.benchmarks.webhook_peer import koord_manager
from tests.conftest import REPOSITORY
from tests.integration.runtime.managers import BUNDLE
from tests.integration.webhooks.site import documents, policy
from tests.parts import Missing
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer, apply
from tests.parts.processes import Running, free_port

PROFILES = (1, 1_000)
RATE = 300
"""Reviews a second of which times and CPU are told."""
SECONDS = 2.5
"""Of a turn."""
TURNS = 6
CONNECTIONS = 32
LIMIT = 0.010
"""Seconds that 99 of 100 reviews may take at the highest rate."""
_STEP = 1.3
_PROBE = 6.0
_MOST = 5_000
_ALONE: Final = "ours"
_FRONTED: Final = "ours, behind a front"
_PEER: Final = "koord-manager"


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of reviews: their times in seconds, sorted, and the CPU of all processes for each."""

    times: list[float]
    cpu: float

    def share(self, part: float) -> float:
        """The time within which that part of all was answered."""
        return self.times[min(int(len(self.times) * part), len(self.times) - 1)]


def run() -> Iterable[Row]:
    """Rows of milliseconds, with the highest rate that keeps to the limit."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, quiet_client():
        try:
            with DeployedServer(Path(folder) / "server") as server, ExitStack() as stack:
                for file in ("secret", "webhooks"):
                    apply(server.access, documents(f"deploy/manager/{file}.yaml"))
                ways = [
                    _Way(count, name, *stack.enter_context(_manager(server, Path(folder), count, fronted=name == _FRONTED)))
                    for count in PROFILES
                    for name in (_ALONE, _FRONTED)
                ]  # fmt: skip
                absent: list[Row] = []
                try:
                    ways += [
                        _Way(count, _PEER, *stack.enter_context(_peer(Path(folder), count)))
                        for count in PROFILES
                    ]
                except Missing as missing:
                    absent.append({"profiles": "", "who": f"{_PEER}: {missing}"})
                ways.sort(key=lambda way: way.profiles)  # beside whom they are compared with
                return [*_measured(ways), *absent]
        except Missing as missing:
            return [{"profiles": f"skipped: {missing}"}]


def _measured(ways: Sequence["_Way"]) -> list[Row]:
    effects = [asyncio.run(_effect(way.port)) for way in ways]
    for way, effect in zip(ways, effects, strict=True):
        assert effect == effects[0], f"{way.who} makes of the pod {effect}, {ways[0].who} {effects[0]}"
        asyncio.run(way.sent(RATE, 3.0))  # what is made once is made
    for turn in range(TURNS):
        begin = turn % len(ways)
        for way in (*ways[begin:], *ways[:begin]):
            way.turns.append(asyncio.run(way.sent(RATE, SECONDS)))
    peers = {way.profiles: way for way in ways if way.who == _PEER}
    return [way.row(peers.get(way.profiles)) for way in ways]


@dataclass(slots=True)
class _Way:
    """Who answers with so many profiles, and what came of its turns."""

    profiles: int
    who: str
    processes: Sequence[Running]
    port: int
    turns: list[Measured] = field(default_factory=list)

    async def sent(self, rate: float, seconds: float) -> Measured:
        """What comes of so many reviews a second."""
        return await _sent(self.port, rate, seconds, self.processes)

    def row(self, peer: "_Way | None") -> Row:
        """What came of its turns, also beside those of the peer, and the highest rate."""
        spent = [turn.cpu for turn in self.turns]
        all_of_them = Measured(
            sorted(time for turn in self.turns for time in turn.times), statistics.mean(spent)
        )
        beside: dict[str, str] = {}
        if peer is not None:
            pairs = zip(spent, (turn.cpu for turn in peer.turns), strict=True)
            beside["of koord-manager's"] = f"{statistics.median(one / other for one, other in pairs):.0%}"
        highest, rate = 0.0, float(RATE)
        while rate < _MOST and asyncio.run(self.sent(rate, _PROBE)).share(0.99) < LIMIT:
            highest, rate = rate, rate * _STEP
        return {
            "profiles": self.profiles,
            "who": self.who,
            "reviews/s": RATE,
            "CPU ms a review": all_of_them.cpu * 1e3,
            "of the median turn": statistics.median(spent) * 1e3,
            **beside,
            "p50 ms": all_of_them.share(0.5) * 1e3,
            "p99 ms": all_of_them.share(0.99) * 1e3,
            "most/s with p99 < 10 ms": round(highest),
        }


_CHANGES: Final = {"qosClass": "BE", "labels": {"drawn": "in"}, "schedulerName": "koord-scheduler"}
"""What each profile does to pods, besides what follows from their QoS class."""
_DESCRIBED: Final = "node.koordinator.sh/extended-resource-spec"


@contextmanager
def _manager(
    server: ApiServer, place: Path, count: int, *, fronted: bool
) -> Iterator[tuple[list[Running], int]]:
    """A manager that serves webhooks, and its front, once both are ready."""
    folder = place / f"{count}-{fronted}"
    policies = folder / "policies"
    policies.mkdir(parents=True)
    (policies / "koordpolicy.yaml").write_text(BUNDLE, "utf-8")
    for number in range(count):
        spec = {"match": {"pods": _selector(number)}, **_CHANGES}
        (policies / f"{number}.yaml").write_text(policy("ColocationProfile", f"p{number}", spec), "utf-8")
    port = free_port()
    path = folder / "webhook.sock"
    served = f"unix:{path}" if fronted else f"127.0.0.1:{port}"
    front = [
        sys.executable, "-m", "koordpolicy.cli", "front", "--listen", f"127.0.0.1:{port}", "--server", str(path),
    ]  # fmt: skip
    command = [
        sys.executable, "-m", "koordpolicy.cli", "manager", "--policies", str(policies),
        "--kubeconfig", str(server.kubeconfig("koordpolicy-manager")), "--http", "off", "--instance", f"m{count}{'f' if fronted else ''}",
        "--webhook", served, "--webhook-url", f"https://localhost:{port}",
    ]  # fmt: skip
    environment = {**as_installed(), "PYTHONPATH": str(REPOSITORY)}
    with ExitStack() as stack:
        processes = [stack.enter_context(Running(command, folder / "log", environment=environment))]
        if fronted:
            processes.append(
                stack.enter_context(Running(front, folder / "front-log", environment=environment))
            )
        processes[0].ready(lambda: asyncio.run(_answers(port)), 180)
        yield processes, port


@contextmanager
def _peer(place: Path, count: int) -> Iterator[tuple[list[Running], int]]:
    """The peer, once it answers. Raises Missing."""
    profiles = {f"p{number}": {"selector": _selector(number), **_CHANGES} for number in range(count)}
    folder = place / f"{count}-peer"
    with koord_manager(folder, profiles, lambda port: asyncio.run(_answers(port))) as (running, port):
        yield [running], port


def _selector(number: int) -> dict[str, Any]:
    return {"matchLabels": {"app": f"job-{number}"}}


async def _effect(port: int) -> object:
    """What becomes of the pod of a review."""
    body = _review()
    async with _session(port) as session, session.post("/mutate-pod?timeout=10s", data=body) as answer:
        response = (await answer.json(content_type=None))["response"]
    assert response["allowed"], response
    pod = json_patch(json.loads(body)["request"]["object"], json.loads(base64.b64decode(response["patch"])))
    said = pod["metadata"]["annotations"]
    said[_DESCRIBED] = json.loads(said[_DESCRIBED])  # its text may be spaced and ordered as one likes
    return pod


async def _answers(port: int) -> bool:
    try:
        async with _session(port) as session, session.post("/mutate-pod", data=_review()) as answer:
            return answer.status == 200
    except (OSError, aiohttp.ClientError):
        return False


async def _sent(port: int, rate: float, seconds: float, processes: Sequence[Running]) -> Measured:
    """Send reviews at a rate for so long."""
    body, times = _review(), []
    async with _session(port) as session:

        async def one(due: float) -> None:
            async with session.post("/mutate-pod?timeout=10s", data=body) as answer:
                told = await answer.json(content_type=None)  # which koord-manager says of it is text
            times.append(time.perf_counter() - due)
            assert "drawn" in base64.b64decode(told["response"]["patch"]).decode()

        cpu, began = _cpu(processes), time.perf_counter()
        tasks = []
        for number in range(int(rate * seconds)):
            due = began + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            tasks.append(asyncio.ensure_future(one(due)))
        await asyncio.gather(*tasks)
        spent = _cpu(processes) - cpu
    return Measured(sorted(times), spent / len(times))


def _cpu(processes: Sequence[Running]) -> float:
    return sum(cpu_of(one.pid) for one in processes)


def _session(port: int) -> aiohttp.ClientSession:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # a certificate that it made itself
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=trust)
    headers = {"Content-Type": "application/json"}
    return aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector, headers=headers)


def _review() -> bytes:
    """A pod as a Deployment's controller creates it, with what an API server fills in."""
    mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True}
    container: dict[str, Any] = {
        "name": "main",
        "image": "job:1",
        "command": ["/bin/job", "--once"],
        "env": [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(10)],
        "resources": {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"cpu": "1", "memory": "2Gi"},
        },
        "volumeMounts": [mount],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "job-7d4b9c9b5f-",
            "namespace": "default",
            "labels": {"app": "job-0", "pod-template-hash": "7d4b9c9b5f"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "job", "uid": "u"}],
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            "priority": 0,
        },
    }  # fmt: skip
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()
