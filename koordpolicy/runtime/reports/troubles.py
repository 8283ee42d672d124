"""Decisions that cannot be made, told as what they are: one trouble for each rule of a revision, not one for each pod.

A rule that fails for one pod concerns that pod; one that fails for thousands concerns its author. Both are one entry
here, with a count and an example: one line of the log when it begins and at each tenth power, one Event on the
PolicyRevision, one entry of `/statusz`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from koordpolicy.kube.event_correlator import EventRecorder
from koordpolicy.language.cel.unheld import SEEN
from koordpolicy.model.policy_revision import revision_name
from koordpolicy.runtime.counting import Counters
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision
from koordpolicy.runtime.reports.revision_objects import regarding

LOG: Final = logging.getLogger(__name__)

REASON: Final = "DecisionsFail"
SLOW: Final = "DecisionsSlow"
PUT_OFF: Final = "RequestsPutOff"
"""The reasons of the Events."""

_WORDS: Final = {REASON: "cannot be decided", SLOW: "is decided slowly"}

_MOST: Final = 100
"""Troubles that are remembered; of more, the oldest are forgotten."""

_SHOWN: Final = 20

_PERIOD: Final = 10.0
"""Seconds between two looks at conditions that failed."""

_LONGEST: Final = 1000
"""Characters of facts that are written into the log."""

FEW: Final = 10
"""Pods of one trouble that have Events of their own; the others have their conditions."""


@dataclass(slots=True)
class Trouble:
    """What fails: `decision` (`SchedulingProfile/NAME`), `rule` and `place` in the policies as far as known.

    `count` is how often, `first` and `last` are when, in nanoseconds since 1970, `example` is what it was asked about
    first.
    """

    decision: str
    digest: str
    rule: str
    place: str
    text: str
    example: str
    first: int
    last: int
    count: int = 0
    unforeseen: bool = False
    reason: str = REASON


class RevisionsInUse(Protocol):
    """The revision that decides, and one that is being tried beside it, as far as there are any."""

    @property
    def active(self) -> ActiveRevision | None:
        """The one that decides."""

    @property
    def candidate(self) -> CandidateRevision | None:
        """The one that is tried."""


class Troubles:
    """The troubles of a process. `now` gives nanoseconds since 1970. Only the replica that leads writes Events."""

    def __init__(
        self,
        metrics: Counters,
        revisions: RevisionsInUse,
        recorder: EventRecorder,
        *,
        leads: Callable[[], bool],
        now: Callable[[], int],
    ) -> None:
        self._metrics = metrics
        self._revisions = revisions
        self._recorder = recorder
        self._leads = leads
        self._now = now
        self._known: OrderedDict[tuple[str, str, str, str], Trouble] = OrderedDict()
        self._unheld = SEEN.seen()

    def add(
        self,
        decision: str,
        digest: str,
        text: str,
        *,
        rule: str = "",
        place: str = "",
        example: str = "",
        facts: Callable[[], object] = dict,
        cause: Exception | None = None,
    ) -> Trouble:
        """A decision of a revision (by its graph's digest) failed; how that stands by now.

        `facts` gives what it was asked about, for the log of an error that nobody foresaw.
        """
        now = self._now()
        found = self._entry(
            Trouble(decision, digest, rule, place, text, example, now, now, unforeseen=cause is not None)
        )
        if cause is not None:
            self._metrics.add("koordpolicy_internal_errors_total", place="decision")
        self._met(found, 1, facts, cause)
        return found

    def slow(
        self, decision: str, digest: str, text: str, *, rule: str, place: str = "", example: str = ""
    ) -> None:
        """A rule of a revision makes decisions slow; `text` says how slow it is."""
        now = self._now()
        self._met(
            self._entry(Trouble(decision, digest, rule, place, text, example, now, now, reason=SLOW)), 1
        )

    def _entry(self, fresh: Trouble) -> Trouble:
        """The trouble as it is known already, or from now on."""
        key = (fresh.digest, fresh.decision, fresh.reason, fresh.rule or fresh.text)
        found = self._known.setdefault(key, fresh)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        found.last = fresh.last
        return found

    def _met(
        self, found: Trouble, times: int, facts: Callable[[], object] = dict, cause: Exception | None = None
    ) -> None:
        """Count, and tell at the first and at each tenth power."""
        before = found.count
        found.count += times
        if before == 0 or len(str(found.count)) > len(str(before)):
            self._tell(found, facts, cause, first=before == 0)

    def put_off(self, what: str) -> None:
        """The API server has taken none of our requests to do this for long; told by each replica that it concerns."""
        active = self._revisions.active
        if active is None:
            return
        about = regarding(revision_name(active.bundle, active.revision.commit or active.revision.digest))
        message = (
            f"the API server answers every request to {what} with 429 (too many requests), so that what this revision decides waits;"
            " look at its load and its FlowSchemas"
        )
        self._recorder.record(about, PUT_OFF, message, type="Warning", action="Request")

    async def follow(self) -> None:
        """Tell of conditions that fail, a little later: rules go on without them (see `language.cel.unheld`)."""
        while True:
            self.note_conditions()
            await asyncio.sleep(_PERIOD)

    def note_conditions(self) -> None:
        """Take over what was counted of conditions that failed since the last time."""
        active = self._revisions.active
        found, self._unheld = SEEN.since(self._unheld), SEEN.seen()
        for clause, one in found.items():
            self._metrics.add("koordpolicy_condition_errors_total", one.count)
            decision, digest = f"the condition at {clause}", "" if active is None else active.graph.digest
            text, now = one.error or "it fails for some of the nodes", self._now()
            example = "whatever it was asked about"
            self._met(
                self._entry(Trouble(decision, digest, clause, clause, text, example, now, now)), one.count
            )

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows: the troubles of the revision that decides; nothing while there are none."""
        self.note_conditions()
        active = self._revisions.active
        shown = [
            {
                "decision": one.decision,
                "rule": one.rule,
                "place": one.place,
                "message": one.text,
                "count": one.count,
                "example": one.example,
                "since": one.first / 1e9,
                "last": one.last / 1e9,
                "internal": one.unforeseen,
            }
            for one in self._known.values()
            if active is not None and one.digest == active.graph.digest
        ]
        return {"troubles": shown[-_SHOWN:]} if shown else {}

    def _tell(
        self, found: Trouble, facts: Callable[[], object], cause: Exception | None, *, first: bool
    ) -> None:
        times = f" ({found.count:,} times)" if found.count > 1 else ""
        LOG.warning(
            "%s %s%s, first for %s: %s",
            found.decision,
            _WORDS[found.reason],
            times,
            found.example,
            found.text,
        )
        if cause is not None and first:
            LOG.error(
                "internal error, please report; revision %s, rule %s at %s, facts %s",
                found.digest,
                found.rule or "unknown",
                found.place or "an unknown place",
                _bounded(facts),
                exc_info=cause,
            )
        if first and self._leads():
            self._tell_revision(found)

    def _tell_revision(self, found: Trouble) -> None:
        for known in (self._revisions.active, self._revisions.candidate):
            if known is not None and known.graph.digest == found.digest:
                about = regarding(revision_name(known.bundle, known.revision.commit or known.revision.digest))
                words = _WORDS[found.reason]
                message = f"{found.decision} {words}, first for {found.example}: {found.text}"
                self._recorder.record(about, found.reason, message, type="Warning", action="Decide")
                return


def _bounded(facts: Callable[[], object]) -> str:
    try:
        text = repr(facts())
    except Exception as problem:  # noqa: BLE001  # it is about errors that nobody foresaw
        return f"(cannot be shown: {type(problem).__name__})"
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return cut.encode("utf-8", "backslashreplace").decode()
