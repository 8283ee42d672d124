"""A gate that holds revisions back, stage by stage, and what live policies let decide meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.gating import Admission, RolloutStage
from koordpolicy.runtime.policies.lastgood import LastGood
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision, Reason
from koordpolicy.source.revision import Revision, digest_of
from tests.unit.runtime.scenes import SUPPRESS, broken, live_of, running, target, tree, until


class Door:
    """A gate that says what it is told. `asked` are the candidates it was asked about, `dropped` those it lost."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[RolloutStage | Admission | Exception | None] = asyncio.Queue()
        self.asked: list[CandidateRevision] = []
        self.dropped: list[CandidateRevision] = []
        self.reverts = 0

    async def admit(
        self, candidate: CandidateRevision, active: ActiveRevision
    ) -> AsyncGenerator[RolloutStage | Admission, None]:
        self.asked.append(candidate)
        try:
            while (said := await self.says.get()) is not None:
                if isinstance(said, Exception):
                    raise said
                yield said
        except asyncio.CancelledError:
            self.dropped.append(candidate)
            raise

    async def reverted(self) -> None:
        self.reverts += 1


def answers(candidates: Sequence[CandidateRevision]) -> list[object]:
    return [one.graph.value("CPUSuppress.target", node={}) for one in candidates]


def test_a_gate_holds_back_all_but_the_first_revision(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "koordpolicy.runtime.policies.live")

    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2))
            await until(lambda: door.asked)
            assert live.candidate is door.asked[0]
            assert target(live) == 1
            await asyncio.sleep(0.1)  # what is less than an eye sees is not told
            door.says.put_nowait(Admission(accepted=True))
            await until(lambda: target(live) == 2)
            await until(lambda: live.candidate is None)
            said = [message for message in caplog.messages if "is active" in message]
            assert [("checked and compiled in" in one, "held back" in one) for one in said] == [
                (True, False),
                (True, True),
            ], said
            source.give(tree(3))
            await until(lambda: len(door.asked) == 2)
            door.says.put_nowait(Admission(accepted=False, message="too many nodes change"))
            await until(lambda: live.rejected)
            assert live.rejected is not None
            assert (live.rejected.reason, live.rejected.message) == (
                Reason.GUARD_REFUSED,
                "too many nodes change",
            )
            assert target(live) == 2

    asyncio.run(scene())


def test_a_newer_good_revision_takes_the_place_of_a_held_one_and_a_bad_one_does_not() -> None:
    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2))
            await until(lambda: len(door.asked) == 1)
            source.give(broken())
            await until(lambda: live.rejected)
            assert door.dropped == []
            source.give(tree(3))
            await until(lambda: len(door.asked) == 2)
            assert answers(door.asked) == [2, 3]
            assert answers(door.dropped) == [2]
            assert live.rejected is None, "the newest one is good, though it waits"
            source.give(broken())
            await until(lambda: live.rejected)
            source.give(tree(1))  # back to what decides: nothing to hold back any more
            await until(lambda: len(door.dropped) == 2)
            await until(lambda: live.candidate is None)
            assert target(live) == 1
            await until(lambda: door.reverts == 1)
            assert live.rejected is None

    asyncio.run(scene())


def test_a_bad_revision_stays_rejected_when_the_one_before_it_has_come_through() -> None:
    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2))
            await until(lambda: len(door.asked) == 1)
            source.give(broken())
            await until(lambda: live.rejected)
            door.says.put_nowait(Admission(accepted=True))
            await until(lambda: target(live) == 2)
            assert live.rejected is not None

    asyncio.run(scene())


def test_what_lies_above_holds_at_once_and_holds_nothing_back() -> None:
    def with_above(files: dict[str, str], millicores: int) -> Revision:
        over = SUPPRESS.replace("target:", "precedence: 9\n  target:").replace("name: all", "name: over")
        above = {"over.yaml": over % f"millicores({millicores})"} if millicores else {}
        return Revision(files, digest_of(files), above=above)

    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.say(with_above(tree(1), 7))
            await until(lambda: target(live) == 7)
            source.say(with_above(tree(2), 7))
            await until(lambda: len(door.asked) == 1)
            source.say(with_above(tree(2), 8))  # the candidate waits anew, and what is above it holds
            await until(lambda: target(live) == 8)
            await until(lambda: len(door.asked) == 2)
            assert live.active is not None
            assert live.active.revision == with_above(tree(1), 8)
            source.say(with_above(broken(), 9))
            await until(lambda: target(live) == 9)
            await until(lambda: live.rejected)
            source.say(with_above(tree(1), 0))
            await until(lambda: target(live) == 1)
            assert len(door.asked) == 2

    asyncio.run(scene())


def answer_for(live: LivePolicies, node: str) -> int:
    value: int = live.graph_for(node, {}).value("CPUSuppress.target", node={})
    return value


def test_each_stage_decides_where_it_says_until_the_gate_has_spoken() -> None:
    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        told: list[int] = []
        stages: list[RolloutStage | None] = []
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2))
            await until(lambda: door.asked)
            live.subscribe(lambda active: told.append(active.graph.value("CPUSuppress.target", node={})))
            live.subscribe_stage(stages.append)
            few = RolloutStage(nodes=lambda node, _: node == "a")
            door.says.put_nowait(few)
            await until(lambda: len(stages) == 1)
            assert [answer_for(live, node) for node in "ab"] == [2, 1]
            assert (live.stage, target(live), told) == (few, 1, [1])
            door.says.put_nowait(replace(few, message="in step `few`"))
            await until(lambda: len(stages) == 2)
            assert told == [1], "what changes for people only is told to them only"
            door.says.put_nowait(replace(few, here=True))
            await until(lambda: len(stages) == 3)
            assert (target(live), told) == (2, [1, 2])
            door.says.put_nowait(Admission(accepted=False))
            await until(lambda: live.rejected)
            assert (live.stage, live.candidate, target(live), told) == (None, None, 1, [1, 2, 1])
            assert answer_for(live, "a") == 1
            source.give(tree(3))
            await until(lambda: len(door.asked) == 2)
            door.says.put_nowait(RolloutStage(here=True))
            door.says.put_nowait(Admission(accepted=True))
            await until(lambda: live.active is not None and live.active.revision.files == tree(3))
            assert told == [1, 2, 1, 3, 3], "the old revision is not back for a moment"

    asyncio.run(scene())


ENDS = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: short}
spec:
  owner: ada
  reason: once
  expires: 2027-01-15T08:20:00Z
  match: {condition: "!has(node.name)"}
  overrides: {CPUSuppress.target: 7m}
"""


@pytest.mark.parametrize("observed", [True, False])
def test_exceptions_that_end_during_a_stage_end_in_both_graphs_and_are_told_of_once(
    observed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("koordpolicy.runtime.policies.live.LONGEST_WAIT", 0.02)
    clock = [1_800_000_000 * 10**9]
    seen: list[tuple[object, object]] = []

    def observe(active: RuleGraph, candidate: RuleGraph) -> tuple[RuleGraph, RuleGraph]:
        both = [graph.value("CPUSuppress.target", node={}) for graph in (active, candidate)]
        seen.append((both[0], both[1]))
        return active, candidate

    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1, **{"e.yaml": ENDS}))
        live = live_of(source, gate=door, now=lambda: clock[0])
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2, **{"e.yaml": ENDS}))
            await until(lambda: door.asked)
            door.says.put_nowait(
                RolloutStage(lambda node, _: node == "a", here=True, observe=observe if observed else None)
            )
            await until(lambda: live.stage)
            told: list[object] = []
            live.subscribe(lambda active: told.append(active.graph.value("CPUSuppress.target", node={})))
            told.clear()
            assert target(live) == 7
            clock[0] += 21 * 60 * 10**9
            await until(lambda: target(live) == 2)
            assert [answer_for(live, node) for node in "ab"] == [2, 1]
            assert told == [2]
            assert seen == ([(7, 7), (1, 2)] if observed else [])

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("said", "message"), [(RuntimeError("no metrics"), "no metrics"), (None, "it came to no end")]
)
def test_a_gate_that_fails_turns_the_revision_back(
    said: Exception | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        door, source = Door(), FixedSource("memory", tree(1))
        live = live_of(source, gate=door)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(2))
            door.says.put_nowait(said)
            await until(lambda: live.rejected)
            assert live.rejected is not None
            assert live.rejected.reason is Reason.GUARD_REFUSED
            assert message in live.rejected.message
            assert target(live) == 1

    asyncio.run(scene())
    assert "the gate failed" in caplog.text


def test_a_restart_carries_no_candidate_past_its_gate(tmp_path: Path) -> None:
    async def scene() -> None:
        store = LastGood(tmp_path)
        store.save(Revision(tree(1), digest_of(tree(1))))
        door = Door()
        live = live_of(FixedSource("memory", tree(2)), store=store, gate=door)
        async with running(live.run()):
            await until(lambda: door.asked)
            assert target(live) == 1
        assert answers(door.dropped) == [2]

    asyncio.run(scene())
