"""What is asked of a rollout, by the command and by the console alike: of which one, whether it makes sense, in whose name."""

import uuid
from dataclasses import dataclass

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.rollouts.found import FoundRollout, chosen
from koordpolicy.cli.rollouts.text import short
from koordpolicy.runtime.rollout.state import Phase, RolloutAction, RolloutCommand


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """The rollout that is meant, what to leave for whoever runs it, and what to say once that is done.

    `command` is None where the rollout is already as it is wanted.
    """

    rollout: FoundRollout
    command: RolloutCommand | None
    said: str


def request_of(
    found: tuple[FoundRollout, ...], revision: str | None, action: RolloutAction, by: str
) -> RolloutRequest:
    """What to ask of the rollout that `revision` means. Raises `CannotRunError` where there is none, or it cannot do that now."""
    one = chosen(found, revision, action)
    state = one.state
    if state.phase.is_end:
        raise CannotRunError(f"the rollout of {short(state)} is over ({state.phase.lower()})")
    if action is RolloutAction.PAUSE and state.phase is Phase.PAUSED:
        return RolloutRequest(one, None, f"{short(state)} is paused already: {state.message}")
    if action is RolloutAction.RESUME and state.phase is not Phase.PAUSED:
        raise CannotRunError(f"the rollout of {short(state)} is not paused")
    return RolloutRequest(
        one, RolloutCommand(action, by, uuid.uuid4().hex[:12]), f"{short(state)}: asked to {action}"
    )


def sensible(phase: Phase) -> tuple[RolloutAction, ...]:
    """What may be asked of a rollout in this phase."""
    if phase.is_end:
        return ()
    return (RolloutAction.RESUME if phase is Phase.PAUSED else RolloutAction.PAUSE, RolloutAction.ABORT)
