"""What people are told of bindings that came to nothing: of failures, and of nothing else."""

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from koordpolicy.kube import Conflict, Forbidden, Resource
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS, NODES, PODS
from koordpolicy.model.pod import read_pod
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Binding, OvertakenError, Prebind, WriteOutcome, apply
from koordpolicy.scheduler.decision_reporter import Audience, DecisionReporter
from koordpolicy.scheduler.driver import NOT_WANTED, Settled
from koordpolicy.scheduler.plugins.base import Port, Sleep, Write
from tests.unit.scheduler.test_loop import NOW, node, pod
from tests.unit.scheduler.world import policies


def _gone(store: Store) -> None:
    store.delete(PODS, "p", namespace="default")


def _deleting(store: Store) -> None:
    store.delete(PODS, "p", namespace="default")
    store.create(PODS, {**pod("p"), "metadata": {"name": "p", "finalizers": ["x/y"]}}, namespace="default")
    store.delete(PODS, "p", namespace="default")


def _bound(store: Store) -> None:
    store.bind("default", "p", "n1")


def _replaced(store: Store) -> None:
    store.delete(PODS, "p", namespace="default")
    store.create(PODS, pod("p"), namespace="default")


def _nothing(store: Store) -> None:
    pass


async def _volume_taken(port: Port, sleep: Sleep) -> None:
    raise Conflict("the volume `v` belongs to default/other by now")


async def _not_wanted(port: Port, sleep: Sleep) -> None:
    raise OvertakenError(NOT_WANTED)


def _told(
    before: Callable[[Store], None],
    *,
    prebind: Write | None = None,
    uid: bool = True,
    forbidden: bool = False,
) -> list[str]:
    """The Events after a pod was bound, or could not be."""

    async def run() -> list[str]:
        store, ticks = Store(lambda: NOW // 10**9), count(NOW)
        for name in ("n0", "n1"):
            store.create(NODES, node(name))
        decided = read_pod(store.create(PODS, pod("p"), namespace="default"))
        before(store)

        async def request(verb: str, resource: Resource) -> None:
            if forbidden and verb == "bind":
                raise Forbidden("no role")

        cluster = MemoryCluster(store, before_request=request)
        recorder = Recorder(
            cluster,
            component="scheduler",
            instance="s1",
            now_ns=lambda: next(ticks),
            backoff=Backoff(lambda: 0.0),
        )
        metrics = Metrics("scheduler")
        troubles = Troubles(
            metrics,
            LivePolicies(FixedSource("memory"), metrics),
            recorder,
            leads=lambda: True,
            now=lambda: NOW,
        )
        audience = Audience(metrics, DecisionCounts(metrics), troubles, recorder)
        reporter = DecisionReporter(audience, lambda _: policies(), "koord-scheduler")
        binding = Binding(decided.key, decided.uid if uid else "", "n0")
        plan = binding if prebind is None else Prebind(binding, (prebind,))
        decision = PodDecision(decided.key, decided.uid, "n0", 2, 2)
        outcome: WriteOutcome = await apply(cluster, plan)
        reporter.settled(Settled(decision, decided, outcome))
        writing = asyncio.create_task(recorder.run())
        await recorder.flush()
        writing.cancel()
        return [f"{one['reason']}: {one['message']}" for one in store.list(EVENTS).items]

    return asyncio.run(run())


@pytest.mark.parametrize("before", [_gone, _deleting, _bound, _replaced], ids=lambda one: one.__name__)
def test_a_pod_that_went_another_way_is_no_failure(before: Callable[[Store], None]) -> None:
    assert _told(before, uid=before is not _deleting) == []


def test_neither_is_one_that_is_not_on_its_way_any_more() -> None:
    assert _told(_nothing, prebind=_not_wanted) == []


def test_failures_are_told() -> None:
    assert _told(_nothing, forbidden=True) == ["FailedBinding: no role"]
    assert _told(_nothing, prebind=_volume_taken) == [
        "FailedBinding: the volume `v` belongs to default/other by now"
    ]


def test_a_binding_is_told() -> None:
    assert _told(_nothing) == ["Scheduled: Successfully assigned default/p to n0"]
