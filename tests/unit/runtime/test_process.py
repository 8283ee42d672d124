"""The frame of a process: it stops when told, in order, and says how it ended."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest

from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import CANNOT_START, CRASHED, OK, CannotStart, Process, Tasks, run_process
from koordpolicy.runtime.watchdog import Watchdog


def run(main: Callable[[Process], Awaitable[None]], grace: float = 20.0) -> int:
    return run_process(main, "test", "t1", grace=grace)


def test_it_stops_in_order_when_told() -> None:
    told: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            told.append(name)

    async def main(process: Process) -> None:
        process.readiness.reached("policies")
        async with Tasks() as tasks:
            for name in ("first", "second", "third"):
                tasks.start(name, work(name))
            asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
            await process.stopped()
            assert process.readiness.missing == {"running": "the process is stopping"}
        told.append("main")

    assert run(main) == OK
    assert told == ["third", "second", "first", "main"]


def test_a_task_that_fails_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("out of order")

    async def main(process: Process) -> None:
        async with Tasks() as tasks:
            tasks.start("fail", fail())
            await process.stopped()

    assert run(main) == CRASHED
    assert "out of order" in caplog.text


def test_one_that_cannot_start_says_why_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def main(_: Process) -> None:
        raise CannotStart("no cluster: there is no kubeconfig")

    assert run(main) == CANNOT_START
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == "test cannot start: no cluster: there is no kubeconfig"
    assert record.exc_info is None


def test_a_stop_that_takes_too_long_is_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    async def main(process: Process) -> None:
        process.stop("the test")
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    assert run(main) == CRASHED

    async def slow(_: Process) -> None:
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    assert run(slow, grace=0.05) == CRASHED
    assert "cut short" in caplog.text


def test_the_loop_is_measured() -> None:
    seen: list[float | None] = []

    async def main(process: Process) -> None:
        await asyncio.sleep(1.2)
        seen.append(process.metrics.value("koordpolicy_event_loop_delay_seconds"))

    assert run(main) == OK
    assert seen[0] is not None
    assert seen[0] >= 1


HELD = """
import asyncio, logging, sys
from koordpolicy.runtime.process import Process, run_process

logging.basicConfig(level=logging.INFO, format="%(message)s")

def spin():
    print("spinning", flush=True)
    while True:
        pass

async def main(process: Process) -> None:
    asyncio.get_running_loop().call_later(0.2, spin)
    await process.stopped()

sys.exit(run_process(main, "held", "t1", grace=0.5))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_whose_loop_is_held_says_by_what_and_ends_when_told(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HELD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as held:
        assert held.stdout is not None
        assert held.stderr is not None
        assert held.stdout.readline() == "spinning\n"
        said = held.stderr.readline()
        assert said.startswith("the event loop is held for ")
        assert "__main__.spin:" in said
        held.send_signal(number)
        _, rest = held.communicate(timeout=30)
    assert held.returncode == CRASHED
    assert "the process does not stop and is ended, held by " in rest


def test_a_loop_that_was_held_for_a_while_goes_on_and_that_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics("test")
    with Watchdog(metrics, limit=0.3) as watchdog:
        time.sleep(1.0)
        watchdog.beat()
        watchdog.beat()
    assert metrics.value("koordpolicy_event_loop_held_total") == 1
    held, on = (record.getMessage() for record in caplog.records)
    assert "test_a_loop_that_was_held_for_a_while_goes_on_and_that_is_counted" in held
    assert on.startswith("the event loop goes on after 1.")


_BEATING = """
import logging, sys, time
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.watchdog import Watchdog

logging.basicConfig(stream=sys.stdout)
metrics = Metrics("test")
with Watchdog(metrics) as watchdog:
    while not metrics.value("koordpolicy_event_loop_held_total"):
        print("beat", flush=True)
        watchdog.beat()
        time.sleep(0.05)
"""


def test_a_process_that_was_stopped_for_a_while_does_not_blame_what_it_was_doing() -> None:
    with subprocess.Popen([sys.executable, "-c", _BEATING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "beat\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(3.0)
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=60)
    assert "the process had no turn for" in said
    assert "is held" not in said


def test_what_takes_long_ends_with_the_word_to_stop() -> None:
    ended: list[object] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("the wait")

    async def main(process: Process) -> None:
        assert await process.before_stop(asyncio.sleep(0))
        with pytest.raises(CannotStart):
            await process.before_stop(fail())
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        ended.append(await process.before_stop(wait()))

    async def fail() -> None:
        raise CannotStart("nothing to work on")

    assert run(main) == OK
    assert ended == [False, "the wait"]
