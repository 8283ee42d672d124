"""What people are told of bindings that came to nothing: of failures, and of nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from koordpolicy.kube import Conflict, Forbidden, Resource
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS, NODES, PODS
from koordpolicy.model.node import read_node
from koordpolicy.model.placement import MOST_LABEL_KEYS
from koordpolicy.model.pod import read_pod
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.scheduler import PodDecision, Scheduler
from koordpolicy.scheduler.binder import Binding, OvertakenError, Prebind, apply
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


async def _events(
    store: Store, cluster: MemoryCluster, settle: Callable[[DecisionReporter], Awaitable[None]]
) -> list[str]:
    """The Events that are written when decisions are told of."""
    ticks = count(NOW)
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
    await settle(DecisionReporter(audience, lambda _: policies(), "koord-scheduler"))
    writing = asyncio.create_task(recorder.run())
    await recorder.flush()
    writing.cancel()
    return [f"{one['reason']}: {one['message']}" for one in store.list(EVENTS).items]


def _told(
    before: Callable[[Store], None],
    *,
    prebind: Write | None = None,
    uid: bool = True,
    forbidden: bool = False,
) -> list[str]:
    """The Events after a pod was bound, or could not be."""
    store = Store(lambda: NOW // 10**9)
    for name in ("n0", "n1"):
        store.create(NODES, node(name))
    decided = read_pod(store.create(PODS, pod("p"), namespace="default"))
    before(store)

    async def request(verb: str, resource: Resource) -> None:
        if forbidden and verb == "bind":
            raise Forbidden("no role")

    cluster = MemoryCluster(store, before_request=request)
    binding = Binding(decided.key, decided.uid if uid else "", "n0")
    plan = binding if prebind is None else Prebind(binding, (prebind,))
    decision = PodDecision(decided.key, decided.uid, "n0", 2, 2)

    async def settle(reporter: DecisionReporter) -> None:
        reporter.settled(Settled(decision, decided, await apply(cluster, plan)))

    return asyncio.run(_events(store, cluster, settle))


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


def test_a_pod_that_cannot_be_read_is_told_so_and_no_policy_is_blamed() -> None:
    store = Store(lambda: NOW // 10**9)
    labels = {f"label-{at}": "x" for at in range(MOST_LABEL_KEYS + 1)}
    raw = pod("p")
    created = store.create(
        PODS, {**raw, "spec": {**raw["spec"], "nodeSelector": labels}}, namespace="default"
    )
    scheduler = Scheduler(policies(), lambda: NOW)
    scheduler.set_node(read_node(node("n0")))
    scheduler.set_pod(read_pod(created))
    decision = scheduler.schedule_one()
    assert decision is not None
    assert decision.failure is not None

    async def settle(reporter: DecisionReporter) -> None:
        reporter.settled(Settled(decision, read_pod(created), None))

    (only,) = asyncio.run(_events(store, MemoryCluster(store), settle))
    assert only.startswith(
        "FailedScheduling: 0/1 nodes are available: spec: its node selectors name more than 64"
    )
