"""What is told of troubles beside decisions, on the revision that decides."""

import asyncio

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.reports.troubles import PUT_OFF, Troubles
from tests.unit.runtime.scenes import live_of, running, tree, until

NOW = 1_800_000_000 * 10**9


def test_requests_that_are_put_off_are_an_event_of_the_revision_that_waits() -> None:
    async def scene() -> None:
        store = Store(lambda: NOW)
        recorder = Recorder(
            MemoryCluster(store),
            component="scheduler",
            instance="s1",
            now_ns=lambda: NOW,
            backoff=Backoff(lambda: 0.0),
        )
        live, metrics = live_of(FixedSource("memory", tree(1))), Metrics("scheduler")
        troubles = Troubles(metrics, live, recorder, leads=lambda: False, now=lambda: NOW)
        troubles.put_off("bind pods")  # nothing decides yet
        async with running(live.run()), running(recorder.run()):
            await until(live.ready.is_set)
            troubles.put_off("bind pods")
            await recorder.flush()
        (event,) = store.list(EVENTS).items
        assert (event["reason"], event["type"]) == (PUT_OFF, "Warning")
        assert event["involvedObject"]["kind"] == "PolicyRevision"
        assert "every request to bind pods with 429" in event["message"]

    asyncio.run(scene())
