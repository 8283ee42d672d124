"""The rollout as a state machine: pure, so that years of it can be tried in a test.

A step is left when it has lasted long enough, no guard fails and none is undecided. A guard that fails longer than
its patience returns to the old revision, or pauses; one that cannot be told for longer than it may counts as failing. Pauses do
not count as time in the step; guards are looked at in pauses too, since canaries go on deciding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from koordpolicy.model.policy_revision import MOST_HISTORY
from koordpolicy.model.slo_config import duration_text
from koordpolicy.runtime.rollout.plan import RolloutGuard, RolloutPlan
from koordpolicy.runtime.rollout.state import (
    SOMEBODY,
    SYSTEM,
    WAITS,
    Entry,
    Phase,
    RolloutAction,
    RolloutCommand,
    RolloutProgress,
    Subject,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a guard says: True, False, or None where it cannot be told; `message` is for people."""

    holds: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at a moment: the guards by name, and what somebody asks for."""

    guards: Mapping[str, Judged] = field(default_factory=lambda: MappingProxyType({}))
    command: RolloutCommand | None = None


def begin(subject: Subject, plan: RolloutPlan, now: int) -> RolloutProgress:
    """The rollout at its first step. The plan has steps."""
    first = plan.steps[0].name
    state = RolloutProgress(subject, Phase.PROGRESSING, first, 0, now, now)
    return _noted(state, now, "Started", f"begins with the step `{first}`")


def supersede(state: RolloutProgress, now: int, why: str) -> RolloutProgress:
    """The rollout ended by something newer."""
    return _ended(state, Phase.SUPERSEDED, now, "Superseded", why)


def unwatched(state: RolloutProgress, since: int, now: int) -> RolloutProgress:
    """The rollout after a time in which nobody looked at its guards: what the new revision did then says nothing for it.

    That time is none of the step's, and guards that failed before have not failed all the while.
    """
    if state.phase is not Phase.PROGRESSING:
        return state  # a pause does not count as it is
    lost = now - max(since, state.since)
    state = replace(state, paused=state.paused + lost, failing=dict.fromkeys(state.failing, now))
    return _noted(
        state,
        now,
        "Unwatched",
        f"nobody looked at the guards for {duration_text(lost)}: the step lasts so much longer",
    )


def advance(state: RolloutProgress, plan: RolloutPlan, now: int, seen: Seen) -> RolloutProgress:
    """The next state. It equals the present one where nothing happens; what happened stands in the history."""
    if state.phase.is_end:
        return state
    if not plan.steps:
        return _ended(state, Phase.COMPLETE, now, "Completed", "the plan has no steps any more")
    state = _in_plan(state, plan, now)
    command = seen.command
    if command is not None and (not command.id or command.id != state.handled):
        state = _obeyed(state, plan, now, command)
    if state.phase.is_end:
        return state
    state = _guarded(state, plan, now, seen)
    return state if state.phase.is_end else _onward(state, plan, now, seen)


def _in_plan(state: RolloutProgress, plan: RolloutPlan, now: int) -> RolloutProgress:
    """The same step in the plan as it is now; where it is gone, the one that has its place."""
    names = [step.name for step in plan.steps]
    if state.step in names:
        return replace(state, index=names.index(state.step))
    index = min(state.index, len(names) - 1)
    state = replace(state, step=names[index], index=index, since=now, paused=0)
    return _noted(state, now, "StepGone", f"the plan has changed; goes on with the step `{names[index]}`")


def _obeyed(state: RolloutProgress, plan: RolloutPlan, now: int, command: RolloutCommand) -> RolloutProgress:
    state = replace(state, handled=command.id)
    by = command.by or SOMEBODY
    if command.action is RolloutAction.ABORT:
        return _ended(state, Phase.ABORTED, now, "Aborted", f"aborted by {by}", by)
    if command.action is RolloutAction.PAUSE:
        return state if state.phase is Phase.PAUSED else _paused(state, now, f"paused by {by}", by)
    if state.phase is not Phase.PAUSED:
        return state
    waited = now - (state.paused_at if state.paused_at is not None else now)
    state = replace(state, phase=Phase.PROGRESSING, paused=state.paused + waited, paused_at=None, message="")
    state = _noted(state, now, "Resumed", f"resumed by {by}", by)
    step = plan.steps[state.index]
    if step.until_resumed and state.elapsed(now) >= step.hold:
        return _next(state, plan, now)
    return state


def _guarded(state: RolloutProgress, plan: RolloutPlan, now: int, seen: Seen) -> RolloutProgress:
    """Remember since when guards fail, and act on those whose patience is at its end."""
    failing: dict[str, int] = {}
    for guard in plan.guards:
        judged = _told(guard, seen, state, now)
        if judged is None or judged.holds is None:
            if guard.name in state.failing:  # not known to hold again
                failing[guard.name] = state.failing[guard.name]
        elif not judged.holds:
            failing[guard.name] = state.failing.get(guard.name, now)
    state = replace(state, failing=failing)
    for guard in plan.guards:
        since = failing.get(guard.name)
        if since is not None and now - since >= guard.patience:
            state = _acted(state, guard, now, _told(guard, seen, state, now))
            if state.phase.is_end:
                return state
    return state


def _told(guard: RolloutGuard, seen: Seen, state: RolloutProgress, now: int) -> Judged | None:
    """What a guard says; that it fails where it could not be told for too long in this step."""
    judged = seen.guards.get(guard.name)
    if judged is not None and judged.holds is not None:
        return judged
    if guard.known_within is None or state.elapsed(now) < guard.known_within:
        return judged
    why = "it cannot be told" + (f": {judged.message}" if judged is not None and judged.message else "")
    return Judged(False, why)


def _acted(state: RolloutProgress, guard: RolloutGuard, now: int, judged: Judged | None) -> RolloutProgress:
    why = f"the guard `{guard.name}` fails"
    if judged is not None and judged.message:
        why += f": {judged.message}"
    if not guard.pauses:
        return _ended(state, Phase.ABORTED, now, "Aborted", why)
    return state if state.phase is Phase.PAUSED else _paused(state, now, why)


def _onward(state: RolloutProgress, plan: RolloutPlan, now: int, seen: Seen) -> RolloutProgress:
    """Leave the step if it is time."""
    if state.phase is Phase.PAUSED:
        return state
    if state.failing:
        return replace(state, message=f"waits: {_named(state.failing)} fails")
    unknown = [
        guard.name
        for guard in plan.guards
        if (judged := seen.guards.get(guard.name)) is None or judged.holds is None
    ]
    step = plan.steps[state.index]
    if state.elapsed(now) < step.hold:
        return replace(state, message=f"{_named(unknown)} cannot be told yet" if unknown else "")
    if unknown:
        return replace(state, message=f"waits: {_named(unknown)} cannot be told yet")
    if step.until_resumed:
        return _paused(state, now, WAITS)
    return _next(state, plan, now)


def _named(guards: Mapping[str, int] | list[str]) -> str:
    return "the guard " + ", ".join(f"`{name}`" for name in sorted(guards))


def _next(state: RolloutProgress, plan: RolloutPlan, now: int) -> RolloutProgress:
    if state.index + 1 >= len(plan.steps):
        return _ended(state, Phase.COMPLETE, now, "Completed", "decides everywhere")
    step = plan.steps[state.index + 1]
    state = replace(
        state, step=step.name, index=state.index + 1, since=now, paused=0, paused_at=None, message=""
    )
    return _noted(state, now, "Step", f"goes on with the step `{step.name}`")


def _paused(state: RolloutProgress, now: int, why: str, by: str = SYSTEM) -> RolloutProgress:
    state = replace(state, phase=Phase.PAUSED, paused_at=now, message=why)
    return _noted(state, now, "Paused", why, by)


def _ended(
    state: RolloutProgress, phase: Phase, now: int, event: str, why: str, by: str = SYSTEM
) -> RolloutProgress:
    if state.paused_at is not None:
        state = replace(state, paused=state.paused + now - state.paused_at, paused_at=None)
    # What is over fails no longer: the history says which guard ended it.
    return _noted(replace(state, phase=phase, message=why, failing={}), now, event, why, by)


def _noted(state: RolloutProgress, now: int, event: str, message: str, by: str = SYSTEM) -> RolloutProgress:
    history = (*state.history, Entry(now, event, message, by))[-MOST_HISTORY:]
    return replace(state, history=history)
