"""The loop that writes what differs: triggers, dates and failures."""

import asyncio

from koordpolicy.kube.backoff import Backoff
from koordpolicy.runtime.reconciling import ReconcileLoop
from tests.unit.runtime.scenes import running, until

LONG = 3600.0


class Work:
    """Says what it is told to say of each run, the last for ever, and counts its runs."""

    def __init__(self, *says: float | None) -> None:
        self.says = list(says)
        self.runs = 0

    async def reconcile(self) -> float | None:
        self.runs += 1
        return self.says.pop(0) if len(self.says) > 1 else self.says[0]


class Noted(Backoff):
    """A backoff without waits that notes for how many failures it was asked."""

    def delay(self, failures: int) -> float:
        asked.append(failures)
        return 0.0


asked: list[int] = []


def test_it_runs_at_first_when_triggered_and_when_due() -> None:
    async def scene() -> None:
        work = Work(LONG, 0.0, LONG)
        loop = ReconcileLoop(work.reconcile, Backoff(lambda: 0.0))
        async with running(loop.run()):
            await until(lambda: work.runs == 1)
            loop.trigger()
            await until(lambda: work.runs == 3)  # triggered, and at once due again
            await asyncio.sleep(0.02)
            assert work.runs == 3

    asyncio.run(scene())


def test_what_happens_during_a_run_makes_for_one_more() -> None:
    async def scene() -> None:
        runs = 0

        async def reconcile() -> float:
            nonlocal runs
            runs += 1
            if runs == 1:
                loop.trigger()
                loop.trigger()
            return LONG

        loop = ReconcileLoop(reconcile, Backoff(lambda: 0.0))
        async with running(loop.run()):
            await until(lambda: runs == 2)
            await asyncio.sleep(0.02)
            assert runs == 2

    asyncio.run(scene())


def test_failures_in_a_row_are_counted_and_a_trigger_does_not_wait_for_the_backoff() -> None:
    async def scene() -> None:
        asked.clear()
        work = Work(None, None, 0.0, None, LONG)
        loop = ReconcileLoop(work.reconcile, Noted(lambda: 0.0))
        async with running(loop.run()):
            await until(lambda: work.runs == 5)
        assert asked == [1, 2, 1]
        slow = Work(None, LONG)
        loop = ReconcileLoop(slow.reconcile, Backoff(lambda: 0.0, initial=LONG, longest=LONG))
        async with running(loop.run()):
            await until(lambda: slow.runs == 1)
            loop.trigger()
            await until(lambda: slow.runs == 2)

    asyncio.run(scene())
