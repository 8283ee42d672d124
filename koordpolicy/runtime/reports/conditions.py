"""Conditions as kstatus, Flux, Argo CD and `kubectl wait` understand them.

`Ready` always stands; `Reconciling`, `Stalled` and our own `Throttled` only while they hold. A reader sees: Reconciling, in progress;
Stalled, failed, so that waiting ends at once; else Ready says it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostic, Severity
from koordpolicy.model.policy_revision import MOST_DIAGNOSTICS, ShownDiagnostic, StatusCondition
from koordpolicy.model.time import time_text
from koordpolicy.runtime.policies.manifest import field_at

MOST_MESSAGE: Final = 4096
"""Characters of a message; the API permits more, but nobody reads it there."""

READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"

REPORTED: Final = "Reported"
"""The reason of the first condition of a revision, until somebody speaks for all."""
THROTTLED: Final = "Throttled"
"""Stands beside the others while the API server takes none of a sort of requests (429) from a process that runs the revision."""

NOT_RUN: Final = "NotRun"
"""The reason of a revision that nobody runs and nobody has judged: newer ones came too soon."""


def good(reason: str, message: str) -> tuple[StatusCondition, ...]:
    """It is in force."""
    return (StatusCondition(READY, "True", reason, message),)


def reported(by: str) -> tuple[StatusCondition, ...]:
    """A process has it; nobody who speaks for all has judged it yet."""
    return (StatusCondition(READY, "Unknown", REPORTED, f"seen by {by}; not judged for all processes yet"),)


def under_way(reason: str, message: str, *, ready: str = "Unknown") -> tuple[StatusCondition, ...]:
    """It may come into force without anybody doing anything."""
    return (
        StatusCondition(READY, ready, reason, message),
        StatusCondition(RECONCILING, "True", reason, message),
    )


def failed(reason: str, message: str) -> tuple[StatusCondition, ...]:
    """It will not come into force as it stands."""
    return (
        StatusCondition(READY, "False", reason, message),
        StatusCondition(STALLED, "True", reason, message),
    )


def throttled(put_off: Mapping[str, Sequence[str]]) -> tuple[StatusCondition, ...]:
    """What a revision decides waits; `put_off` are sorts of requests, by process. Nothing where there are none."""
    if not put_off:
        return ()
    who = "; ".join(f"{one} ({', '.join(what)})" for one, what in sorted(put_off.items()))
    message = (
        f"the API server answers requests with 429 (too many requests) only, so that what this revision decides waits: {who};"
        " look at the API server's load and its FlowSchemas; they are tried again"
    )
    return (StatusCondition(THROTTLED, "True", "TooManyRequests", message),)


def superseded(message: str) -> tuple[StatusCondition, ...]:
    """It was in force, or might have been; nobody waits for it any more."""
    return (StatusCondition(READY, "False", "Superseded", message),)


def not_run(message: str) -> tuple[StatusCondition, ...]:
    """Nobody runs it, and whether it is any good was not found out."""
    return (StatusCondition(READY, "False", NOT_RUN, message),)


def settled(
    wanted: Iterable[StatusCondition], standing: Sequence[Mapping[str, Any]], generation: int, now: int
) -> tuple[StatusCondition, ...]:
    """The wanted conditions with the times at which their status became this one; `now` in nanoseconds since 1970."""
    known = {one.get("type"): one for one in standing}
    return tuple(
        replace(
            one,
            message=cut(one.message),
            observed_generation=generation,
            last_transition_time=_since(one, known.get(one.type), now),
        )
        for one in wanted
    )


def stands(wanted: Iterable[StatusCondition], standing: Sequence[Mapping[str, Any]], generation: int) -> bool:
    """Whether the object says all that already, and nothing else of ours."""
    said = {one.get("type"): (one.get("status"), one.get("reason"), one.get("message")) for one in standing}
    told = {one.type: (one.status, one.reason, cut(one.message)) for one in wanted}
    ours = {kind: said[kind] for kind in (READY, RECONCILING, STALLED, THROTTLED) if kind in said}
    return ours == told and all(
        one.get("observedGeneration") == generation for one in standing if one.get("type") in told
    )


def shown(
    found: Iterable[Diagnostic], sources: Mapping[str, str], *, fields: bool = False
) -> tuple[ShownDiagnostic, ...]:
    """The findings as a status has them, errors first; with `fields`, messages begin with the field's path."""
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    ranked = sorted(found, key=lambda one: (order[one.severity], one.order))
    return tuple(_shown(one, sources, fields) for one in ranked[:MOST_DIAGNOSTICS])


def cut(message: str) -> str:
    """The message, no longer than a status should have it."""
    return message if len(message) <= MOST_MESSAGE else message[: MOST_MESSAGE - 1] + "…"


def _since(one: StatusCondition, known: Mapping[str, Any] | None, now: int) -> str:
    if known is not None and known.get("status") == one.status and known.get("lastTransitionTime"):
        return str(known["lastTransitionTime"])
    return time_text(now)


def _shown(one: Diagnostic, sources: Mapping[str, str], fields: bool) -> ShownDiagnostic:
    severity = "info" if one.severity is Severity.NOTE else one.severity.value
    message = f"{one.message}; {one.help}" if one.help else one.message
    line = one.span.start.line
    if fields and one.span.file in sources:
        field = field_at(sources[one.span.file], line)
        message = f"{field}: {message}" if field else message
    return ShownDiagnostic(severity, one.code, cut(message), one.span.file, line, one.span.start.column)
