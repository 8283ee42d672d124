"""PolicyExceptions begin and end while a process runs, without a new revision."""

import asyncio
import logging

import pytest

from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.live import LivePolicies
from tests.unit.runtime.scenes import live_of, running, target, tree, until

START = 1_800_000_000 * 10**9  # 2027-01-15T08:00:00Z
EXCEPTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: short}
spec:
  owner: ada
  reason: once
  from: "2027-01-15T08:10:00Z"
  expires: "2027-01-15T08:20:00Z"
  match: {condition: "!has(node.name)"}
  overrides: {CPUSuppress.target: 7m}
"""


class Clock:
    now = START

    def __call__(self) -> int:
        return self.now

    def turn(self, minutes: float) -> None:
        self.now += int(minutes * 60 * 10**9)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is turned by hand, so it is looked at often."""
    monkeypatch.setattr("koordpolicy.runtime.policies.live.LONGEST_WAIT", 0.01)


def started(clock: Clock) -> LivePolicies:
    return live_of(FixedSource("memory", tree(1000, **{"e.yaml": EXCEPTION})), now=clock)


def test_it_begins_and_ends_by_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        clock = Clock()
        live = started(clock)
        heard: list[object] = []
        async with running(live.run()):
            await live.ready.wait()
            live.subscribe(lambda active: heard.append(active.graph.value("CPUSuppress.target", node={})))
            assert target(live) == 1000
            clock.turn(10)
            await until(lambda: target(live) == 7)
            assert live.graph_for("n", {}).value("CPUSuppress.target", node={"name": "n"}) == 1000
            clock.turn(10)
            await until(lambda: target(live) == 1000)
            assert live.active is not None
            assert live.active.graph is live.graph
        assert heard == [1000, 7, 1000], "listeners hear of it"

    with caplog.at_level(logging.INFO):
        asyncio.run(scene())
    assert "PolicyException/short of ada begins" in caplog.text
    assert "PolicyException/short of ada is over" in caplog.text


def test_a_start_in_the_middle_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        clock = Clock()
        clock.turn(15)
        live = started(clock)
        async with running(live.run()):
            await live.ready.wait()
            assert target(live) == 7

    asyncio.run(scene())


def test_a_clock_that_is_set_back_lets_it_begin_again() -> None:
    async def scene() -> None:
        clock = Clock()
        clock.turn(15)
        live = started(clock)
        async with running(live.run()):
            await live.ready.wait()
            clock.turn(-10)
            await until(lambda: target(live) == 1000)
            clock.turn(10)
            await until(lambda: target(live) == 7)

    asyncio.run(scene())
