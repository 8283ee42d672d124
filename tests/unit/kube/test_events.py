"""Events as they are counted, combined, limited and written, on virtual time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from koordpolicy.kube import Forbidden, Invalid, KubeError, Resource, TooManyRequests, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.event_correlator import EventLimits, reference_to
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS, PODS
from tests.unit.kube.builders import pod
from tests.virtual_time import run

BEGAN = 1_750_000_000


def clock() -> float:
    return BEGAN + asyncio.get_running_loop().time() - 1000.0


class Desk:
    """A recorder at work over a store. `fails` are errors that its next writes meet."""

    def __init__(self, **limits: Any) -> None:
        self.store = Store(clock)
        self.fails: list[KubeError] = []
        self.asked: list[str] = []
        self.recorder = Recorder(
            MemoryCluster(self.store, before_request=self._before),
            component="scheduler",
            instance="host-1",
            now_ns=lambda: int(clock() * 1e9),
            backoff=Backoff(jitter=lambda: 0.0),
            limits=EventLimits(**limits),
        )
        self.pod = self.store.create(PODS, pod("web-0"))

    async def _before(self, verb: str, resource: Resource) -> None:
        self.asked.append(verb)
        await asyncio.sleep(0.001)
        if self.fails:
            raise self.fails.pop(0)

    def note(self, message: str = "no room", reason: str = "FailedScheduling", **more: Any) -> None:
        self.recorder.record(self.pod, reason, message, type="Warning", **more)

    def stored(self) -> list[Any]:
        return list(self.store.list(EVENTS).items)

    def said(self) -> list[tuple[str, int]]:
        return sorted((event["message"], event["count"]) for event in self.stored())


@asynccontextmanager
async def desk(**limits: Any) -> AsyncIterator[Desk]:
    made = Desk(**limits)
    task = asyncio.create_task(made.recorder.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def story(scene: Coroutine[Any, Any, None]) -> None:
    run(scene)


def test_an_event_says_what_happened_to_whom() -> None:
    async def scene() -> None:
        async with desk() as at:
            at.note("0/3 nodes: no room", action="Scheduling")
            await at.recorder.flush()
            [event] = at.stored()
            assert event["metadata"]["namespace"] == "default"
            assert event["metadata"]["name"].startswith("web-0.")
            assert event["involvedObject"] == {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "default",
                "name": "web-0",
                "uid": at.pod["metadata"]["uid"],
                "resourceVersion": at.pod["metadata"]["resourceVersion"],
            }
            assert (event["type"], event["reason"], event["action"]) == (
                "Warning",
                "FailedScheduling",
                "Scheduling",
            )
            assert event["source"] == {"component": "scheduler", "host": "host-1"}
            assert event["firstTimestamp"] == event["lastTimestamp"] == "2025-06-15T15:06:40Z"
            assert (event["message"], event["count"]) == ("0/3 nodes: no room", 1)

    story(scene())


def test_what_repeats_is_counted() -> None:
    async def scene() -> None:
        async with desk() as at:
            for _ in range(5):
                at.note()
                await asyncio.sleep(10)
            [event] = at.stored()
            assert (event["count"], event["lastTimestamp"]) == (5, "2025-06-15T15:07:20Z")
            assert event["firstTimestamp"] == "2025-06-15T15:06:40Z"

    story(scene())


def test_what_repeats_before_it_is_written_is_written_once() -> None:
    async def scene() -> None:
        async with desk() as at:
            for _ in range(20):
                at.note()
            await at.recorder.flush()
            assert at.said() == [("no room", 20)]
            assert at.asked == ["create"]

    story(scene())


def test_an_event_that_ran_out_begins_again() -> None:
    async def scene() -> None:
        async with desk() as at:
            at.note()
            await at.recorder.flush()
            [event] = at.stored()
            at.store.delete(EVENTS, event["metadata"]["name"])
            at.note()
            await at.recorder.flush()
            assert at.said() == [("no room", 2)]

    story(scene())


def test_many_messages_of_one_reason_become_one() -> None:
    async def scene() -> None:
        async with desk(alike=3, burst=100) as at:
            for number in range(8):
                at.note(f"no room on node {number}")
                await asyncio.sleep(1)
            at.note("no room on node 1")
            await at.recorder.flush()
            assert at.said() == [
                ("(combined from similar events): no room on node 7", 5),
                ("no room on node 0", 1),
                ("no room on node 1", 2),
                ("no room on node 2", 1),
            ]
            await asyncio.sleep(601)
            at.note("no room on node 9")
            await at.recorder.flush()
            assert ("no room on node 9", 1) in at.said(), "a new window begins"

    story(scene())


def test_an_object_that_causes_too_many_is_not_heard_for_a_while() -> None:
    async def scene() -> None:
        async with desk(burst=3, refill=300.0) as at:
            for number in range(5):
                at.note(f"{number}")
            other = {**at.pod, "metadata": {**at.pod["metadata"], "name": "web-1", "uid": "other"}}
            at.recorder.record(other, "Scheduled", "fine")
            await at.recorder.flush()
            assert at.said() == [("0", 1), ("1", 1), ("2", 1), ("fine", 1)]
            assert at.recorder.dropped["rate"] == 2
            await asyncio.sleep(300)
            at.note("5")
            at.note("6")
            await at.recorder.flush()
            assert ("5", 1) in at.said()
            assert ("6", 1) not in at.said()

    story(scene())


def test_what_must_be_told_is_told_of_an_object_that_caused_too_many() -> None:
    async def scene() -> None:
        async with desk(burst=3, unlimited=frozenset({"Scheduled"})) as at:
            for number in range(5):
                at.note(f"{number}")
            at.note("to host-1", "Scheduled")
            at.note("to host-1", "Other")
            await at.recorder.flush()
            assert at.said() == [("0", 1), ("1", 1), ("2", 1), ("to host-1", 1)]
            assert {event["reason"] for event in at.stored()} == {"FailedScheduling", "Scheduled"}
            assert at.recorder.dropped["rate"] == 3

    story(scene())


def test_what_must_be_told_takes_nothing_from_the_rate() -> None:
    async def scene() -> None:
        async with desk(burst=1, unlimited=frozenset({"Scheduled"})) as at:
            for number in range(5):
                at.note(f"to host-{number}", "Scheduled")
            at.note()
            await at.recorder.flush()
            assert len(at.said()) == 6
            assert at.recorder.dropped["rate"] == 0

    story(scene())


def test_recording_never_waits_and_what_does_not_fit_is_counted() -> None:
    async def scene() -> None:
        at = Desk(queue=10, burst=1000, alike=1000)  # nobody writes
        for number in range(50):
            at.note(f"{number}")
        assert at.recorder.dropped["queue"] == 40
        assert at.asked == []

    story(scene())


def test_trouble_is_waited_out_and_refusals_are_not_repeated() -> None:
    async def scene() -> None:
        async with desk() as at:
            at.fails = [Unreachable("down"), TooManyRequests("slow", retry_after=20.0)]
            at.note()
            await at.recorder.flush()
            assert at.said() == [("no room", 1)]
            assert clock() - BEGAN > 20
            at.fails = [Invalid("no")]
            at.note("another")
            await at.recorder.flush()
            assert at.said() == [("no room", 1)]
            assert at.recorder.dropped == {"rate": 0, "queue": 0, "refused": 1, "unreachable": 0}

    story(scene())


def test_a_server_that_has_just_started_forbids_for_a_moment_and_no_event_is_lost() -> None:
    async def scene() -> None:
        async with desk(workers=1, forbidden=3) as at:
            at.fails = [Unreachable("down")] * 3 + [Forbidden("roles are not loaded")] * 2
            at.note()
            at.note("another")
            await at.recorder.flush()
            assert at.said() == [("another", 1), ("no room", 1)]
            assert set(at.recorder.dropped.values()) == {0}

    story(scene())


def test_what_stays_forbidden_in_a_namespace_is_not_waited_for_again_until_it_is_allowed() -> None:
    async def scene() -> None:
        async with desk(workers=1, forbidden=3) as at:
            elsewhere = {**at.pod, "metadata": {**at.pod["metadata"], "namespace": "kube-system"}}
            at.fails = [Forbidden("no")] * 4
            at.note("first")
            at.note("second")
            at.recorder.record(elsewhere, "Scheduled", "to host-1")
            await at.recorder.flush()
            assert at.asked == ["create"] * 5, "three times for the first, once for each after it"
            assert at.said() == [("to host-1", 1)]
            assert at.recorder.dropped["refused"] == 2
            at.fails = [Forbidden("no")]
            at.recorder.record(elsewhere, "Preempted", "elsewhere it is waited for")
            at.note("third")
            await at.recorder.flush()
            at.fails = [Forbidden("no")]
            at.note("fourth")
            await at.recorder.flush()
            assert [message for message, _ in at.said()] == [
                "elsewhere it is waited for",
                "fourth",
                "third",
                "to host-1",
            ]
            assert at.recorder.dropped["refused"] == 2

    story(scene())


def test_an_event_that_meets_one_trouble_after_the_other_is_given_up_and_counted() -> None:
    async def scene() -> None:
        async with desk(workers=1, attempts=3, forbidden=3) as at:
            at.fails = [Unreachable("down"), Unreachable("down"), Forbidden("no")]
            at.note()
            await at.recorder.flush()
            assert at.stored() == []
            assert at.recorder.dropped["refused"] == 1

    story(scene())


def test_errors_of_a_kind_are_told_once_and_then_summed_up_each_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        async with desk(burst=10_000, alike=10_000) as at:
            at.fails = [Forbidden("Unauthorized", code=401)] * 500 + [Invalid("no name")]
            for number in range(501):
                at.note(f"pod {number}")
            await at.recorder.flush()
            assert told() == ["an event was not written: Unauthorized", "an event was not written: no name"]
            await asyncio.sleep(61)
            assert told()[2:] == ["499 more events were not written within 60 s: Unauthorized"]
            await asyncio.sleep(600)
            assert len(told()) == 3
            at.fails = [Forbidden("Unauthorized", code=401)]
            at.note("once more")
            await at.recorder.flush()
            assert told()[3:] == ["an event was not written: Unauthorized"]
            assert (("refused",), 502) in at.recorder.samples()

    def told() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "koordpolicy.kube.events"]

    caplog.set_level(logging.INFO)
    story(scene())


def test_what_cannot_be_written_is_given_up_at_last() -> None:
    async def scene() -> None:
        async with desk(attempts=3) as at:
            at.fails = [Unreachable("down")] * 3
            at.note()
            await at.recorder.flush()
            assert at.recorder.dropped["unreachable"] == 1
            assert at.stored() == []

    story(scene())


def test_an_answer_that_was_lost_is_no_second_event() -> None:
    async def scene() -> None:
        at = Desk()
        create = at.store.server.create
        lost = iter([True])

        async def losing(*args: Any) -> Any:
            made = await create(*args)
            if next(lost, False):
                raise Unreachable("the connection broke")
            return made

        at.store.server.create = losing  # type: ignore[method-assign, assignment]
        task = asyncio.create_task(at.recorder.run())
        at.note()
        await at.recorder.flush()
        at.note()
        await at.recorder.flush()
        assert at.said() == [("no room", 2)]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    story(scene())


def test_long_texts_are_cut_and_odd_objects_are_named() -> None:
    async def scene() -> None:
        async with desk() as at:
            at.recorder.record({"kind": "Node", "metadata": {"name": "n" * 253}}, "Odd", "x" * 5000)
            at.recorder.record({}, "Odd", "about nobody")
            await at.recorder.flush()
            long, _ = sorted(at.stored(), key=lambda event: -len(event["message"]))
            assert len(long["message"]) == 1024
            assert len(long["metadata"]["name"]) == 253
            assert long["metadata"]["namespace"] == "default"

    story(scene())


def test_memory_stays_bounded() -> None:
    async def scene() -> None:
        at = Desk(remembered=50, queue=20)
        for number in range(500):
            at.recorder.record({"kind": "Pod", "metadata": {"name": f"p{number}"}}, "R", "m")
        recorder, known = at.recorder, at.recorder._correlator
        sizes = [len(kept) for kept in (known._events, known._buckets, known._alike)]
        assert [*sizes, recorder._waiting.qsize()] == [50, 50, 50, 20]

    story(scene())


def test_a_reference_names_what_is_known() -> None:
    assert reference_to({"kind": "Node", "metadata": {"name": "n"}}) == {"kind": "Node", "name": "n"}
