"""The work queue: each name once, failures later, nothing lost."""

import asyncio
from collections.abc import Awaitable, Callable

from koordpolicy.kube import KubeError, TooManyRequests
from koordpolicy.kube.backoff import Backoff
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.workqueue import WorkQueue
from tests.unit.runtime.scenes import running, until


def queue_of(metrics: Metrics | None = None) -> WorkQueue:
    return WorkQueue("nodes", metrics or Metrics("test"), Backoff(lambda: 0.0, initial=0.01, longest=0.05))


def played(scene: Callable[[WorkQueue, list[str]], Awaitable[None]]) -> list[str]:
    """What was reconciled, in order, while a scene was played."""
    done: list[str] = []

    async def play() -> None:
        queue = queue_of()

        async def reconcile(name: str) -> bool:
            done.append(name)
            return True

        async with running(queue.run(reconcile)):
            await scene(queue, done)

    asyncio.run(play())
    return done


def test_a_name_waits_once_and_in_order() -> None:
    async def scene(queue: WorkQueue, done: list[str]) -> None:
        for name in "abacab":
            queue.add(name)
        assert len(queue) == 3
        await until(lambda: len(done) == 3)
        queue.add("a")
        await until(lambda: len(done) == 4)

    assert played(scene) == ["a", "b", "c", "a"]


def test_what_is_added_while_worked_on_comes_again_and_never_at_the_same_time() -> None:
    async def scene() -> None:
        queue, busy, most, done = queue_of(), 0, 0, 0
        go = asyncio.Event()

        async def reconcile(name: str) -> bool:
            nonlocal busy, most, done
            busy += 1
            most = max(most, busy)
            await go.wait()
            busy -= 1
            done += 1
            return False

        async with running(queue.run(reconcile, workers=4)):
            queue.add("a")
            await until(lambda: busy == 1)
            queue.add("a")
            queue.add("a")
            await asyncio.sleep(0.02)
            go.set()
            await until(lambda: done == 2)
            await asyncio.sleep(0.02)
        assert (most, done) == (1, 2)

    asyncio.run(scene())


def test_failures_come_again_later_and_stop_nobody_else() -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        queue = queue_of(metrics)
        troubles: list[Exception] = [
            KubeError("no"),
            ValueError("a mistake of ours"),
            TooManyRequests("slow", retry_after=0.1),
        ]
        done: list[str] = []

        async def reconcile(name: str) -> bool:
            done.append(name)
            if name == "bad" and troubles:
                raise troubles.pop(0)
            return True

        async with running(queue.run(reconcile)):
            queue.add("bad")
            queue.add("good")
            await until(lambda: done.count("bad") == 4)
        assert done[:2] == ["bad", "good"]
        assert metrics.value("koordpolicy_reconcile_total", queue="nodes", result="failed") == 3
        assert metrics.value("koordpolicy_reconcile_total", queue="nodes", result="written") == 2

    asyncio.run(scene())


def test_after_a_failure_so_much_time_passes_at_least() -> None:
    async def scene() -> None:
        backoff = Backoff(lambda: 0.0, initial=0.01, longest=0.05)
        queue = WorkQueue("nodes", Metrics("test"), backoff, least=lambda: 3600.0)
        done: list[str] = []

        async def reconcile(name: str) -> bool:
            done.append(name)
            raise KubeError("no")

        async with running(queue.run(reconcile)):
            queue.add("bad")
            await until(lambda: bool(done))
            await asyncio.sleep(0.1)
        assert done == ["bad"]

    asyncio.run(scene())


def test_appointments_come_when_due_the_sooner_of_two_and_not_for_the_forgotten() -> None:
    async def scene(queue: WorkQueue, done: list[str]) -> None:
        queue.add_after("late", 0.2)
        queue.add_after("late", 0.05)
        queue.add_after("late", 10)
        queue.add_after("gone", 0.01)
        queue.forget("gone")
        queue.add_after("now", 0)
        await until(lambda: done == ["now", "late"])
        await asyncio.sleep(0.25)

    assert played(scene) == ["now", "late"]


def test_what_waited_when_the_work_stopped_is_done_when_it_goes_on() -> None:
    async def scene() -> None:
        queue = queue_of()
        done: list[str] = []

        async def stuck(name: str) -> bool:
            await asyncio.Event().wait()
            return True

        async def reconcile(name: str) -> bool:
            done.append(name)
            return True

        async with running(queue.run(stuck)):
            queue.add("a")
            await asyncio.sleep(0.01)
            queue.add("b")
            queue.add_after("c", 0.01)
        queue.add("a")
        async with running(queue.run(reconcile)):
            await until(lambda: len(done) == 3)
        assert sorted(done) == ["a", "b", "c"]

    asyncio.run(scene())
