"""The state machine of rollouts, over virtual hours."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.runtime.rollout.machine import Judged, Seen, advance, begin, supersede, unwatched
from koordpolicy.runtime.rollout.plan import RolloutGuard, RolloutPlan, RolloutStep
from koordpolicy.runtime.rollout.state import (
    Phase,
    RolloutAction,
    RolloutCommand,
    RolloutProgress,
    Subject,
    from_json,
    subject_from_json,
    subject_to_json,
    to_json,
)

SECOND = 10**9
MINUTE = 60 * SECOND
START = 1_800_000_000 * SECOND
SUBJECT = Subject("fleet-bbbbbbbbbbbb", "fleet", "b" * 40, "d" * 64, "a" * 40, "b" * 40)
SHADOW = RolloutStep("shadow", 10 * MINUTE, sample=100.0, keep=5)
FEW = RolloutStep("few", 30 * MINUTE, share=5.0)
HALF = RolloutStep("half", 30 * MINUTE, share=50.0)
PLAN = RolloutPlan((SHADOW, FEW, HALF))
GUARDED = replace(
    PLAN,
    guards=(
        RolloutGuard("errors"),
        RolloutGuard("slow", patience=2 * MINUTE),
        RolloutGuard("odd", pauses=True),
    ),
)
WELL = {"errors": Judged(True), "slow": Judged(True), "odd": Judged(True)}


def played(
    state: RolloutProgress, plan: RolloutPlan, minutes: Sequence[float], **guards: Judged
) -> RolloutProgress:
    """The state after looks at these minutes since the start."""
    for minute in minutes:
        state = advance(state, plan, START + int(minute * MINUTE), Seen({**WELL, **guards}))
    return state


def told(
    state: RolloutProgress,
    plan: RolloutPlan,
    minute: float,
    action: RolloutAction,
    by: str = "ada",
    id: str = "",
) -> RolloutProgress:
    command = RolloutCommand(action, by, id or f"{action}@{minute}")
    return advance(state, plan, START + int(minute * MINUTE), Seen(WELL, command))


def events(state: RolloutProgress) -> list[str]:
    return [entry.event for entry in state.history]


def fresh(plan: RolloutPlan = PLAN) -> RolloutProgress:
    return begin(SUBJECT, plan, START)


class TestSteps:
    @pytest.mark.parametrize(
        ("minute", "step"), [(0, "shadow"), (9.9, "shadow"), (10, "few"), (10.1, "few"), (39.9, "few")]
    )
    def test_a_step_lasts_as_long_as_it_holds(self, minute: float, step: str) -> None:
        assert (
            played(fresh(), PLAN, [minute]).step == step or played(fresh(), PLAN, [10, minute]).step == step
        )

    def test_the_next_step_counts_from_when_it_began(self) -> None:
        late = played(fresh(), PLAN, [25])
        assert (late.step, late.since) == ("few", START + 25 * MINUTE)
        assert played(late, PLAN, [54.9]).step == "few"
        assert played(late, PLAN, [55]).step == "half"

    def test_after_the_last_step_the_revision_decides_everywhere(self) -> None:
        done = played(fresh(), PLAN, [10, 40, 70])
        assert (done.phase, done.message) == (Phase.COMPLETE, "decides everywhere")
        assert events(done) == ["Started", "Step", "Step", "Completed"]

    def test_a_look_at_which_nothing_happens_changes_nothing(self) -> None:
        state = fresh()
        assert advance(state, PLAN, START + MINUTE, Seen()) == state

    def test_an_end_is_an_end(self) -> None:
        done = played(fresh(), PLAN, [10, 40, 70])
        assert told(done, PLAN, 80, RolloutAction.ABORT) == done
        assert played(done, PLAN, [1000]) == done

    def test_a_step_that_is_gone_is_replaced_by_the_one_in_its_place(self) -> None:
        state = played(fresh(), PLAN, [10])
        other = RolloutPlan((SHADOW, RolloutStep("some", 5 * MINUTE, share=7.0)))
        state = played(state, other, [11])
        assert (state.step, state.since) == ("some", START + 11 * MINUTE)
        assert played(state, other, [16]).phase is Phase.COMPLETE

    def test_a_plan_without_steps_lets_it_through(self) -> None:
        assert advance(fresh(), RolloutPlan(()), START + 1, Seen()).phase is Phase.COMPLETE


class TestUnwatched:
    def test_what_nobody_watched_is_no_time_of_the_step(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [4])
        state = unwatched(state, START + 4 * MINUTE, START + 64 * MINUTE)
        assert state.elapsed(START + 64 * MINUTE) == 4 * MINUTE
        assert (
            state.history[-1].message
            == "nobody looked at the guards for 1h0m0s: the step lasts so much longer"
        )
        assert played(state, GUARDED, [69.9]).step == "shadow"
        assert played(state, GUARDED, [70]).step == "few"

    def test_time_before_the_step_is_not_lost_to_it(self) -> None:
        state = played(fresh(), PLAN, [10])
        state = unwatched(state, START, START + 20 * MINUTE)
        assert state.elapsed(START + 20 * MINUTE) == 0

    def test_a_pause_needs_nobody(self) -> None:
        state = told(fresh(), PLAN, 4, RolloutAction.PAUSE)
        assert unwatched(state, START + 5 * MINUTE, START + 60 * MINUTE) == state

    def test_a_guard_that_failed_before_has_not_failed_all_the_while(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [4], slow=Judged(False))
        state = unwatched(state, START + 4 * MINUTE, START + 64 * MINUTE)
        state = played(state, GUARDED, [64, 65.9], slow=Judged(False))
        assert state.phase is Phase.PROGRESSING
        assert played(state, GUARDED, [66], slow=Judged(False)).phase is Phase.ABORTED

    def test_a_guard_that_cannot_be_told_is_named_while_the_step_lasts(self) -> None:
        state = advance(fresh(GUARDED), GUARDED, START + MINUTE, Seen({"errors": Judged(True)}))
        assert state.message == "the guard `odd`, `slow` cannot be told yet"

    def test_when_it_was_watched_is_kept(self) -> None:
        state = replace(fresh(), watched=START + MINUTE)
        assert from_json(SUBJECT, to_json(state)) == state


class TestPauses:
    def test_a_pause_does_not_count(self) -> None:
        state = told(fresh(), PLAN, 4, RolloutAction.PAUSE)
        assert (state.phase, state.message) == (Phase.PAUSED, "paused by ada")
        state = played(state, PLAN, [20, 60])
        assert (state.step, state.phase) == ("shadow", Phase.PAUSED)
        state = told(state, PLAN, 64, RolloutAction.RESUME, "bob")
        assert played(state, PLAN, [69.9]).step == "shadow"
        assert played(state, PLAN, [70]).step == "few"
        assert [(entry.event, entry.by) for entry in state.history[1:]] == [
            ("Paused", "ada"),
            ("Resumed", "bob"),
        ]

    def test_a_step_may_wait_for_a_person(self) -> None:
        plan = RolloutPlan((replace(SHADOW, until_resumed=True), FEW))
        state = played(fresh(plan), plan, [10, 500])
        assert (state.phase, state.step, state.message) == (Phase.PAUSED, "shadow", "waits to be resumed")
        state = told(state, plan, 600, RolloutAction.RESUME)
        assert (state.phase, state.step) == (Phase.PROGRESSING, "few")

    def test_resuming_early_does_not_shorten_such_a_step(self) -> None:
        plan = RolloutPlan((replace(SHADOW, until_resumed=True), FEW))
        state = told(told(fresh(plan), plan, 1, RolloutAction.PAUSE), plan, 2, RolloutAction.RESUME)
        assert (state.phase, state.step) == (Phase.PROGRESSING, "shadow")
        assert played(state, plan, [11]).phase is Phase.PAUSED

    def test_one_command_is_obeyed_once(self) -> None:
        plan = RolloutPlan((replace(SHADOW, until_resumed=True), replace(FEW, until_resumed=True), HALF))
        state = told(played(fresh(plan), plan, [10]), plan, 11, RolloutAction.RESUME, id="7")
        state = played(state, plan, [50])
        assert (state.step, state.phase) == ("few", Phase.PAUSED)
        assert told(state, plan, 51, RolloutAction.RESUME, id="7").step == "few"
        assert told(state, plan, 51, RolloutAction.RESUME, id="8").step == "half"

    def test_resuming_what_goes_on_changes_nothing(self) -> None:
        assert events(told(fresh(), PLAN, 1, RolloutAction.RESUME)) == ["Started"]


class TestGuards:
    def test_a_failing_guard_returns_to_the_old_revision(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [1, 2], errors=Judged(False, "3 failures"))
        assert state.phase is Phase.ABORTED
        assert state.message == "the guard `errors` fails: 3 failures"
        assert events(state) == ["Started", "Aborted"]

    def test_what_has_ended_fails_no_longer(self) -> None:
        failing = played(fresh(GUARDED), GUARDED, [5], slow=Judged(False))
        assert set(failing.failing) == {"slow"}
        assert not played(failing, GUARDED, [7], slow=Judged(False)).failing
        assert not told(failing, PLAN, 6, RolloutAction.ABORT).failing
        assert not supersede(failing, 6, "another has come").failing

    def test_patience_lets_it_fail_for_a_while(self) -> None:
        slow = Judged(False)
        state = played(fresh(GUARDED), GUARDED, [5, 6.9], slow=slow)
        assert state.phase is Phase.PROGRESSING
        assert played(state, GUARDED, [7], slow=slow).phase is Phase.ABORTED

    def test_and_begins_anew_once_it_has_held_again(self) -> None:
        slow = Judged(False)
        state = played(played(fresh(GUARDED), GUARDED, [5], slow=slow), GUARDED, [6])
        assert played(state, GUARDED, [7, 8.9], slow=slow).phase is Phase.PROGRESSING

    def test_not_knowing_is_not_holding_again(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [5], slow=Judged(False))
        state = played(state, GUARDED, [6], slow=Judged(None))
        assert played(state, GUARDED, [7], slow=Judged(False)).phase is Phase.ABORTED

    def test_a_failing_guard_keeps_the_step(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [9], slow=Judged(False))
        state = played(state, GUARDED, [10], slow=Judged(False))
        assert (state.step, state.message) == ("shadow", "waits: the guard `slow` fails")

    def test_so_does_one_that_cannot_be_told(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [10, 300], errors=Judged(None))
        assert (state.step, state.phase) == ("shadow", Phase.PROGRESSING)
        assert state.message == "waits: the guard `errors` cannot be told yet"
        assert played(state, GUARDED, [301]).step == "few"

    def test_that_it_cannot_be_told_may_last_so_long_in_a_step(self) -> None:
        bounded = replace(PLAN, guards=(RolloutGuard("taken", 2 * MINUTE, known_within=20 * MINUTE),))
        unknown = {"taken": Judged(None, "no such fact")}
        state = played(fresh(bounded), bounded, [10, 19.9], **unknown)
        assert (state.step, state.phase) == ("shadow", Phase.PROGRESSING)
        state = played(state, bounded, [20], **unknown)
        assert state.message == "waits: the guard `taken` fails"
        assert played(state, bounded, [21], taken=Judged(True)).step == "few", "it is told in time"
        state = played(state, bounded, [22], **unknown)
        assert state.message == "the guard `taken` fails: it cannot be told: no such fact"
        assert state.phase is Phase.ABORTED
        gone = advance(fresh(bounded), bounded, START + 20 * MINUTE, Seen())
        assert set(gone.failing) == {"taken"}, "nor where nothing is said of it at all"

    def test_a_guard_may_pause_instead(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [1, 2, 3], odd=Judged(False, "odd answers"))
        assert (state.phase, state.message) == (Phase.PAUSED, "the guard `odd` fails: odd answers")
        assert events(state) == ["Started", "Paused"]

    def test_it_pauses_again_when_resumed_while_it_fails(self) -> None:
        state = played(fresh(GUARDED), GUARDED, [1], odd=Judged(False))
        seen = Seen({**WELL, "odd": Judged(False)}, RolloutCommand(RolloutAction.RESUME, "ada", "1"))
        state = advance(state, GUARDED, START + 2 * MINUTE, seen)
        assert (state.phase, events(state)) == (Phase.PAUSED, ["Started", "Paused", "Resumed", "Paused"])

    def test_guards_count_in_pauses_too(self) -> None:
        state = told(fresh(GUARDED), GUARDED, 1, RolloutAction.PAUSE)
        assert played(state, GUARDED, [2], errors=Judged(False)).phase is Phase.ABORTED


class TestEnds:
    def test_somebody_aborts(self) -> None:
        state = told(played(fresh(), PLAN, [10]), PLAN, 12, RolloutAction.ABORT, "bob")
        assert (state.phase, state.message, state.history[-1].by) == (Phase.ABORTED, "aborted by bob", "bob")

    def test_a_newer_revision_comes(self) -> None:
        state = supersede(fresh(), START + MINUTE, "c has come")
        assert (state.phase, state.message) == (Phase.SUPERSEDED, "c has come")

    def test_the_history_is_bounded(self) -> None:
        state = fresh()
        for minute in range(200):
            state = told(
                state, PLAN, minute / 1000, RolloutAction.PAUSE if minute % 2 else RolloutAction.RESUME
            )
        assert len(state.history) == 50


LOOKS = st.lists(
    st.tuples(
        st.floats(0, 40),
        st.sampled_from([None, RolloutAction.PAUSE, RolloutAction.RESUME, RolloutAction.ABORT, None, None]),
        st.sampled_from([True, True, True, False, None]),
    ),
    max_size=40,
)


@given(LOOKS, st.booleans(), st.sampled_from([None, 0, 15 * MINUTE]))
def test_whatever_happens_it_goes_forward_and_can_be_kept(
    looks: list[tuple[float, RolloutAction | None, bool | None]], waits: bool, known: int | None
) -> None:
    plan = RolloutPlan(
        (replace(SHADOW, until_resumed=waits), FEW, HALF),
        (RolloutGuard("g", patience=5 * MINUTE, known_within=known),),
    )
    state, minute = fresh(plan), 0.0
    for at, (pause, action, holds) in enumerate(looks):
        minute += pause
        now = START + int(minute) * MINUTE
        command = RolloutCommand(action, "x", str(at)) if action else None
        following = advance(state, plan, now, Seen({"g": Judged(holds)}, command))
        assert following.index in (state.index, state.index + 1)
        assert following.index == state.index or state.elapsed(now) >= plan.steps[state.index].hold
        assert not (state.phase.is_end and following != state)
        if following.phase is Phase.COMPLETE and state.phase is not Phase.COMPLETE:
            assert state.index == len(plan.steps) - 1
            assert holds
        kept = from_json(subject_from_json(subject_to_json(following.subject)), to_json(following))
        assert kept == following
        assert advance(kept, plan, now, Seen({"g": Judged(holds)})) == advance(
            following, plan, now, Seen({"g": Judged(holds)})
        ), "a restart changes nothing"
        state = following
