"""Pods that are stopped on the node: asked first, ended after their time, and only where their processes are told."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.carrying_out import CarryingOut
from koordpolicy.agent.node_strategies import NodeStrategy
from koordpolicy.agent.stopping import PodStops
from koordpolicy.agent.strategies.memory_eviction import KIND, memory_needs
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, TooManyRequests, Unreachable
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.signals import HostSignals, signalled
from koordpolicy.runtime.metrics import Metrics
from tests.unit.agent.frames import GIB, SECOND, FakeNode, pod
from tests.unit.agent.nodes import NOW
from tests.vectors.policies import document, graph

BATCH = pod("batch", "BE")


class Signals:
    """Notes whom it ends; of `deaf` groups processes go on when they are only asked."""

    def __init__(self, *deaf: str, problem: str = "") -> None:
        self.deaf, self.problem = deaf, problem
        self.sent: list[tuple[str, bool]] = []

    def end(self, group: str, *, at_once: bool) -> int:
        if self.problem:
            raise KernelFileError(group, self.problem)
        if at_once and group not in self.deaf:
            raise NoSuchFile(group, "it has ended")
        self.sent.append((group, at_once))
        return 1


def test_who_does_not_end_when_asked_is_ended_after_its_time() -> None:
    node = FakeNode([BATCH])
    one = replace(node.node_pods()[BATCH.uid], containers={"deaf": "a", "polite": "b"}, grace=5)
    signals = Signals("a")
    stops = PodStops(signals)
    assert stops.begin(one, 0) == ""
    assert stops.begin(one, SECOND) == ""  # it has been asked
    assert list(stops.turn(5 * SECOND - 1)) == []
    (said,) = stops.turn(5 * SECOND)
    assert said.startswith("1 processes of a were ended")
    assert signals.sent == [("a", False), ("b", False), ("a", True)]
    assert list(stops.turn(50 * SECOND)) == []


def test_why_nobody_is_stopped_is_said() -> None:
    one = FakeNode([BATCH]).node_pods()[BATCH.uid]
    assert PodStops(Signals(problem="not here")).begin(one, 0) == "not here"
    assert PodStops(Signals()).begin(replace(one, containers={}), 0) == "none of its containers runs"


class Server(MemoryCluster):
    """A cluster whose answer to evictions is a mistake."""

    problem: KubeError = Unreachable("nobody answers")

    async def evict(self, *_names: object, **_more: object) -> None:
        raise self.problem


@pytest.mark.parametrize(
    ("by", "problem", "stopped"),
    [
        ("Eviction", Unreachable("nobody answers"), False),
        ("EvictionOrStop", Unreachable("nobody answers"), True),
        ("EvictionOrStop", TooManyRequests("a disruption budget says no"), False),
        ("Stop", Unreachable("nobody answers"), True),
    ],
)
def test_pods_are_stopped_where_policy_says_so(by: str, problem: KubeError, stopped: bool) -> None:
    compiled = graph(
        document(
            "MemoryEviction",
            "ours",
            {"enabled": True, "threshold": "70%", "bestEffort": {"enabled": True}, "conduct": {"by": by}},
        )
    )
    node, signals, audit = FakeNode([BATCH]), Signals(), AuditLog(1 << 16, lambda: 0, lambda: "token")

    async def carry_out() -> None:
        cluster = Server(Store(lambda: NOW))
        cluster.problem = problem
        recorder = Recorder(
            cluster, component="agent", instance="n", now_ns=lambda: node.now, backoff=Backoff(lambda: 0.5)
        )
        doing = CarryingOut(cluster, recorder, audit, Metrics("agent"), 0, "n", stops=PodStops(signals))
        frame = node.frame(compiled, {"cpu": 1000, "memory": 60 * GIB})
        next(iter(frame.pod_records))["usage.memory"] = GIB
        await doing.evict(
            NodeStrategy(KIND, lambda _frame: 1), memory_needs(compiled, frame.record, frame.now), frame
        )
        doing.end_stopped(frame.now, frame.monotonic + 31 * SECOND)

    asyncio.run(carry_out())
    assert bool(signals.sent) == stopped
    told, _token = audit.page()
    assert any(("evicted for" if stopped else "not evicted for") in one for one in told), told


DEAF = "import signal, sys\nsignal.signal(15, signal.SIG_IGN)\nsys.stdout.write('x'); sys.stdout.flush()\nsignal.pause()\nsignal.pause()"


@contextmanager
def process(code: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None and running.stdout.read(1) == b"x"
            yield running
        finally:
            running.kill()


def test_only_members_get_a_signal() -> None:
    polite = DEAF.replace("signal.SIG_IGN", "signal.SIG_DFL")
    with process(polite) as one, process(polite) as other, process(DEAF) as deaf:
        listed = iter([[one.pid, other.pid, deaf.pid], [one.pid, deaf.pid]])
        assert signalled(signal.SIGTERM, lambda: next(listed), "g") == 2  # the other one has left meanwhile
        assert one.wait(60) == -signal.SIGTERM
        assert other.poll() is None
        assert deaf.poll() is None
        assert signalled(signal.SIGKILL, lambda: [deaf.pid], "g") == 1
        assert deaf.wait(60) == -signal.SIGKILL


def test_processes_of_another_namespace_are_nobodys_to_end() -> None:
    node = FakeNode([BATCH])
    node.root.tree("cpu").root.pids.add(0)  # type: ignore[attr-defined]  # the model's
    with pytest.raises(KernelFileError, match="another PID namespace"):
        HostSignals(node.root, node.hierarchy).end(node.group(BATCH), at_once=False)
