"""What becomes of revisions: candidates, the active one, rejected ones, and the history of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Severity
from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.source.revision import Revision


class Reason(StrEnum):
    """Why a revision is active or is not; the words of conditions, metrics and the log."""

    SUCCEEDED = "Succeeded"
    STARTED_FROM_CACHE = "StartedFromCache"
    READ_FAILED = "ReadFailed"
    """The tree could not be read as a whole."""
    NO_POLICIES = "NoPolicies"
    """The tree is empty, which is never taken as a wish to have no policies."""
    COMPILE_FAILED = "CompileFailed"
    TESTS_FAILED = "TestsFailed"
    """A policy test that the bundle requires fails."""
    UNFIT = "Unfit"
    """The component cannot work with it."""
    GUARD_REFUSED = "GuardRefused"
    """The gate, such as a rollout, turned it back."""
    ABORTED = "Aborted"
    """Somebody ended its rollout."""
    LIMIT_EXCEEDED = "LimitExceeded"
    """Its trial took more time or memory than a trial may."""
    INTERNAL_ERROR = "InternalError"
    """The compiler itself failed: a mistake of ours."""


REMEDIES: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.READ_FAILED: "see that all files can be read, and commit again",
        Reason.NO_POLICIES: "commit policies to the place that is followed, or follow another one",
        Reason.COMPILE_FAILED: "`koordpolicy check` shows each finding with its place; commit what mends it, or revert",
        Reason.TESTS_FAILED: "`koordpolicy test` shows what was expected; mend the policy or its test",
        Reason.UNFIT: "commit what mends it, or revert",
        Reason.GUARD_REFUSED: "it does not begin again: commit what mends it, which begins a rollout of its own, or revert",
        Reason.ABORTED: "it does not begin again: commit what is wanted instead, which begins a rollout of its own, or revert",
        Reason.LIMIT_EXCEEDED: "make its policies or tests cheaper, or give trials more by `--policy-trial-cpu` and `--policy-trial-memory`",
        Reason.INTERNAL_ERROR: "please report this with the log; another commit is tried as usual",
    }
)
"""What to do about a revision that does not decide, by why it does not."""


class Unfit(Exception):
    """Raised by what prepares a graph for a component: it compiles, but the component cannot work with it."""


@dataclass(frozen=True, slots=True)
class CandidateRevision:
    """A revision that compiles: ready to decide, not deciding yet. `sources` are all texts by path, packs included."""

    graph: RuleGraph
    revision: Revision
    sources: Mapping[str, str]
    found: Diagnostics
    """Warnings and notes: what compiles has no errors."""
    bundle: str
    """The name of its PolicyBundle, "policies" where there is none."""


@dataclass(frozen=True, slots=True)
class ActiveRevision:
    """The revision that decides. `sources` are all texts by path, packs included; `since` in nanoseconds since 1970."""

    graph: RuleGraph
    revision: Revision
    sources: Mapping[str, str]
    since: int
    found: Diagnostics
    """Warnings and notes: an active revision has no errors."""
    bundle: str
    reason: Reason = Reason.SUCCEEDED


@dataclass(frozen=True, slots=True)
class RejectedRevision:
    """A revision that does not decide, and why. `message` is one phrase; `at` in nanoseconds since 1970."""

    revision: Revision
    reason: Reason
    message: str
    found: Diagnostics
    sources: Mapping[str, str]
    at: int
    bundle: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.reason]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that keep it from deciding."""
        return errors_of(self.found)


@dataclass(frozen=True, slots=True)
class Past:
    """One entry of the history. `at` in nanoseconds since 1970, `seconds` from arrival to outcome."""

    at: int
    revision: str
    digest: str
    activated: bool
    reason: str
    message: str
    seconds: float

    def shown(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "at": self.at / 1e9,
            "revision": self.revision,
            "digest": self.digest,
            "result": "activated" if self.activated else "rejected",
            "reason": self.reason,
            "message": self.message,
            "seconds": round(self.seconds, 3),
        }


def bundle_of(compilation: Compilation) -> str:
    """The name of the bundle's PolicyBundle, "policies" where there is none."""
    units = compilation.units
    own = max((unit.layer for unit in units), default=0)
    named = (unit.document.name for unit in units if unit.layer == own and unit.kind.name == "PolicyBundle")
    return next(named, "") or "policies"


def errors_of(found: Diagnostics) -> tuple[Diagnostic, ...]:
    """The findings that keep a revision from deciding, by file and position."""
    return tuple(one for one in found if one.severity is Severity.ERROR)


def summary_of(errors: tuple[Diagnostic, ...]) -> str:
    """One line on what is wrong: the first error with its place, and how many more there are."""
    if not errors:
        return "no findings"
    first = errors[0]
    place = f"{first.span.file}:{first.span.start.line}:{first.span.start.column}"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {first.code} {first.message}{more}"
