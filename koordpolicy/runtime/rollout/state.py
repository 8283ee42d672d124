"""Where a rollout stands, as plain data: what is kept over restarts and shown to everybody."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.model.reading import Json, ObjectError, integer, mapping, objects, text
from koordpolicy.model.time import parse_time, time_text

SYSTEM: Final = "koordpolicy"
"""Who did what nobody asked for."""

SOMEBODY: Final = "somebody"
"""Who asked without a name, as by an annotation."""


WAITS: Final = "waits to be resumed"
"""Why a rollout is paused whose step says so."""


class Phase(StrEnum):
    """PROGRESSING goes from step to step, PAUSED waits for somebody; the others are ends.

    SUPERSEDED: a newer revision came, or the policies went back to the old one.
    """

    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    COMPLETE = "Complete"
    ABORTED = "Aborted"
    SUPERSEDED = "Superseded"

    @property
    def is_end(self) -> bool:
        """Whether nothing follows any more."""
        return self in (Phase.COMPLETE, Phase.ABORTED, Phase.SUPERSEDED)


class RolloutAction(StrEnum):
    """What somebody may ask of a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class RolloutCommand:
    """A wish, by whom; `id` tells it from an equal one before."""

    action: RolloutAction
    by: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. `at` in nanoseconds since 1970."""

    at: int
    event: str
    message: str
    by: str = SYSTEM


@dataclass(frozen=True, slots=True)
class Subject:
    """The revision that is rolled out, and the one that it takes over from.

    `name` is that of its PolicyRevision object. `revision` and `previous` are what people call the two.
    """

    name: str
    bundle: str
    revision: str
    digest: str
    previous: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """One rollout. Times in nanoseconds, points in time since 1970.

    `step` is the present step's name, `index` its place among the plan's steps, `since` when it began, `paused` how
    long it has been paused in all before the present pause, which began at `paused_at`. `failing` says since when
    guards fail. `handled` is the id of the last command. `watched` is when guards were looked at last, as far as that is kept:
    now and then, so that whoever leads next knows how long nobody did; 0 where it is not known.
    """

    subject: Subject
    phase: Phase
    step: str
    index: int
    began: int
    since: int
    paused: int = 0
    paused_at: int | None = None
    failing: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    message: str = ""
    handled: str = ""
    history: tuple[Entry, ...] = ()
    watched: int = 0

    @property
    def ended_by_hand(self) -> bool:
        """Whether a person aborted it, rather than a guard."""
        return self.phase is Phase.ABORTED and bool(self.history) and self.history[-1].by != SYSTEM

    def elapsed(self, now: int) -> int:
        """Time in the present step without pauses."""
        until = now if self.paused_at is None else self.paused_at
        return max(0, until - self.since - self.paused)


def to_json(state: RolloutProgress) -> dict[str, Any]:
    """The state as a JSON object: `status.rollout` of the PolicyRevision, without whose name it is complete."""
    return {
        "phase": str(state.phase),
        "step": state.index,
        "stepName": state.step,
        "message": state.message,
        "previous": state.subject.previous,
        "startTime": time_text(state.began),
        "stepTime": time_text(state.since),
        "pausedSeconds": state.paused // 10**9,
        **({} if state.paused_at is None else {"pauseTime": time_text(state.paused_at)}),
        "failing": [
            {"guard": guard, "since": time_text(since)} for guard, since in sorted(state.failing.items())
        ],
        "handled": state.handled,
        **({"watchTime": time_text(state.watched)} if state.watched else {}),
        "history": [
            {"time": time_text(one.at), "event": one.event, "message": one.message, "by": one.by}
            for one in state.history
        ],
    }


def from_json(subject: Subject, said: Json) -> RolloutProgress:
    """The state of a rollout as kept. `subject.previous` is taken from what is kept. Raises `ObjectError`."""
    at = "rollout"
    phase = text(said, "phase", at)
    if phase not in tuple(Phase):
        raise ObjectError(f"{at}.phase: `{phase}` is none of {', '.join(Phase)}")
    previous = text(said, "previous", at)
    return RolloutProgress(
        Subject(subject.name, subject.bundle, subject.revision, subject.digest, previous, subject.commit),
        Phase(phase),
        text(said, "stepName", at),
        integer(said, "step", at) or 0,
        _time(said, "startTime"),
        _time(said, "stepTime"),
        (integer(said, "pausedSeconds", at) or 0) * 10**9,
        _time(said, "pauseTime") if said.get("pauseTime") else None,
        {text(one, "guard", at): _time(one, "since") for one in objects(said, "failing", at)},
        text(said, "message", at),
        text(said, "handled", at),
        tuple(
            Entry(_time(one, "time"), text(one, "event", at), text(one, "message", at), text(one, "by", at))
            for one in objects(said, "history", at)
        ),
        _time(said, "watchTime") if said.get("watchTime") else 0,
    )


def subject_to_json(subject: Subject) -> dict[str, Any]:
    """All that `from_json` wants besides the state."""
    return {
        "name": subject.name,
        "bundle": subject.bundle,
        "revision": subject.revision,
        "digest": subject.digest,
        "commit": subject.commit,
    }


def subject_from_json(said: Json) -> Subject:
    """The inverse. Raises `ObjectError`."""
    whole = mapping({"subject": said}, "subject")
    return Subject(
        text(whole, "name", "subject"),
        text(whole, "bundle", "subject"),
        text(whole, "revision", "subject"),
        text(whole, "digest", "subject"),
        "",
        text(whole, "commit", "subject"),
    )


def _time(said: Json, key: str) -> int:
    try:
        return parse_time(text(said, key, "rollout"))
    except ValueError as error:
        raise ObjectError(f"rollout.{key}: {error}") from None
