"""What is found out about pods that wait: the pure part of it; `diagnosing` is when.

Two things. Whether what refuses a pod is still what its condition says: hints bring back only pods that an event
can help, so that a pod which lacks two things goes on telling of both after one of them is mended. Such a pod is
tried again, as if something had helped it, and one that is kept before a gate is asked about there again. And what would help (`advice`), which takes hundreds of evaluations of all
nodes: equal pods share it.

All of it is done in pieces, none of them longer than an evaluation of all nodes, for as long as the caller likes.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from koordpolicy.algorithms.work import Work
from koordpolicy.cluster.pods import PodView
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import CONDITION_SCHEDULED
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.advice import Adviser, Evaluations
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import PodDecision, Refusals
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.keys import likeness
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.plugins.base import PAUSE
from koordpolicy.scheduler.profile import KIND
from koordpolicy.scheduler.waitlist import Waitlist

LOG: Final = logging.getLogger(__name__)

_KINDS: Final = 1024
"""Advice that is kept for pods that are equal to one that it was given to."""

_BEGINNINGS: Final = 4
"""How often advice is begun in vain, since nodes came or went meanwhile, before a pod goes without."""

_SAVED: Final = 10
"""Seconds in which allowances are saved up."""

_SOONEST: Final = NANOSECONDS // 100
"""A pod is not looked at again sooner than that."""

_COMPLAINTS: Final = 100
"""Different errors that are logged at most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a profile permits; see `Diagnosis` of the language. Times are nanoseconds, `share` is from 0 to 1."""

    advice: bool
    evaluations: int
    share: float
    slice: int
    renew_after: int
    pods_per_second: int
    slow_decision: int

    @classmethod
    def of(cls, graph: RuleGraph, profile: str) -> "Limits":
        """Those of a profile of a graph."""
        about = graph.about(KIND, profile)

        def said(field: str) -> Any:
            value = about.value(f"diagnosis.{field}")
            return value.ns if isinstance(value, Duration) else value

        return cls(
            bool(said("advice")),
            int(said("evaluations")),
            min(max(float(said("share")) / 100, 0.0), 1.0),
            max(int(said("slice")), 0),
            max(int(said("renewAfter")), _SOONEST),
            int(said("podsPerSecond")),
            int(said("slowDecision")),
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """Advice for pods of a kind: when it was given, and what had refused them."""

    at: int
    reasons: frozenset[tuple[str, str]]
    advice: tuple[str, ...]


class Found(NamedTuple):
    """What came of some work. Of the pods that are `told` there is something else to say now; `again` says that others
    are to be tried again, `more` that work is left. `failures` are errors that nobody foresaw.
    """

    told: list[tuple[PodDecision, Pod]]
    again: bool
    more: bool
    failures: Sequence[Exception]


class Allowance:
    """How often something may follow: so often a second, and what is left over within ten may come at once."""

    def __init__(self, per_second: int, clock: Callable[[], int]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._saved = float(_SAVED * per_second)
        self._at = clock()

    @property
    def left(self) -> bool:
        """Whether one is left."""
        now = self._clock()
        self._saved += max(now - self._at, 0) / NANOSECONDS * self._per_second
        self._saved, self._at = min(self._saved, float(_SAVED * self._per_second)), now
        return self._saved >= 1

    def spend(self) -> None:
        """Take one, whether or not it is left."""
        self._saved -= 1


class WaitlistDiagnosis:
    """Finds out about the pods of a waitlist.

    `cycle` and `decided` are the scheduler's own: a pod with its facts, and what follows for it now; None as
    answers where the cycle itself fails. `adviser` gives who advises on it. `together` says whether a pod goes with others or not at
    all: that a node is there for it alone says nothing then, and does not have it tried again.
    """

    def __init__(
        self, limits: Limits, adviser: Callable[[Cycle], Adviser], waitlist: Waitlist, table: NodeTable, clock: Callable[[], int],
        cycle: Callable[[PodView], Cycle],
        decided: Callable[[Cycle], tuple[Evaluation | None, PodDecision]],
        together: Callable[[PodView], bool],
    ) -> None:  # fmt: skip
        self.limits = limits
        self._adviser = adviser
        self._waitlist = waitlist
        self._table = table
        self._clock = clock
        self._cycle = cycle
        self._decided = decided
        self._together = together
        self._wanting: OrderedDict[PodKey, int] = OrderedDict()
        """The pods to be advised, and how often that was begun."""
        self._seen: OrderedDict[PodKey, int] = OrderedDict()
        """When each pod was last looked at, the longest ago first."""
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._allowance = Allowance(limits.pods_per_second, clock)
        self._counting = Evaluations(0)
        self._spent = 0
        self._told: list[tuple[PodDecision, Pod]] = []
        self._again = False
        self._complaints: set[str] = set()
        self._work = self._pieces()

    def refused(self, decision: PodDecision) -> PodDecision:
        """A pod found no node just now. What was found out before is said as long as the same refuses it."""
        if not self.limits.share:
            return decision
        key, before = decision.pod, self._waitlist.last.get(decision.pod)
        self._see(key)
        if not self.limits.advice or not _can_be_advised(decision):
            return decision
        self._wanting.setdefault(key, 0)
        if before is not None and _reasons(before.refusals) == _reasons(decision.refusals):
            return replace(decision, advice=before.advice)
        return decision

    def gated(self, key: PodKey) -> None:
        """A pod is kept before a gate just now, and is told why."""
        if self.limits.share:
            self._see(key)

    def _see(self, key: PodKey) -> None:
        if len(self._seen) > 2 * len(self._waitlist.pods) + _KINDS:
            self._forget_the_gone()
        self._seen[key] = self._clock()
        self._seen.move_to_end(key)

    @property
    def waiting(self) -> int:
        """How many pods are to be advised."""
        return len(self._wanting)

    @property
    def evaluations(self) -> int:
        """How often nodes were evaluated for advice."""
        return self._spent + self._counting.spent

    def some(self, enough: Callable[[], bool]) -> Found:
        """Go on until it is `enough`. What is told of pods is the scheduler's last decision from then on."""
        more = True
        failures: list[Exception] = []
        while more:
            try:
                more = next(self._work)
            except Exception as error:  # noqa: BLE001  # one pod goes without, and is told of; the others do not
                failures.append(error)
                self._complain(error)
                self._work = self._pieces()
            if enough():
                break
        found = Found(self._told, self._again, more, failures)
        self._told, self._again = [], False
        return found

    # --- the work ---------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[bool]:
        """For ever: true after a piece of work, false where there is none. Looks and advice take turns."""
        advising: Work[None] | None = None
        while True:
            looked = self._look_at_one()
            if looked:
                yield True
            if advising is None and self._wanting and self._allowance.left:
                key = next(iter(self._wanting))
                # What ends in an error is not begun again.
                advising = self._advise(key, self._wanting.pop(key))
            if advising is not None:
                try:
                    next(advising)
                except StopIteration:
                    advising = None
                yield True
            elif not looked:
                yield False

    def _look_at_one(self) -> bool:
        """Look at a pod that was last looked at long ago; false when there is none, or nothing may follow."""
        before = self._clock() - self.limits.renew_after
        while self._seen and self._allowance.left:
            key, at = next(iter(self._seen.items()))
            if at > before:
                return False
            del self._seen[key]
            if key in self._waitlist.pods:
                self._look_at(key)
                return True
        return False

    def _look_at(self, key: PodKey) -> None:
        """Try a pod again that something else refuses by now; tell what its condition does not show."""
        last = self._waitlist.last.get(key)
        if last is None or last.passed_on:
            return
        if self._waitlist.rests(key) and not self._together(self._waitlist.pods[key]):
            _, decision = self._decided(self._cycle(self._waitlist.pods[key]))
            if decision.placed or decision.problem or decision.refusals != last.refusals:
                self._reconsider(key)
                return
        elif self._waitlist.is_gated(key):
            self._waitlist.enter(self._waitlist.pods[key])
            if self._waitlist.last.get(key) is not last or not self._waitlist.is_gated(key):
                self._allowance.spend()
                self._again = True  # the gate is open, or has another reason, which is told
                return
        self._seen[key] = self._clock()
        shown = self._waitlist.pods[key].pod.condition(CONDITION_SCHEDULED)
        if shown is None or shown.message != last.message:
            self._tell(last)

    def _advise(self, key: PodKey, begun: int) -> Work[None]:
        """Advise a pod. It is begun anew when nodes come or go meanwhile: the numbers of rows are others then."""
        last = self._waitlist.last.get(key)
        if last is None or key not in self._waitlist.pods or not _can_be_advised(last):
            return
        shape, work = self._table.stamp(()), self._advice_for(key, last)
        found: tuple[str, ...] | None = None
        done = False
        while not done:
            try:
                next(work)
            except StopIteration as end:
                found, done = end.value, True
            else:
                yield PAUSE
                if self._table.stamp(()) != shape:
                    work.close()
                    if begun < _BEGINNINGS:
                        self._wanting.setdefault(key, begun + 1)
                    return
        if found is not None and found != last.advice and self._waitlist.last.get(key) is last:
            self._waitlist.last[key] = last = replace(last, advice=found)
            self._tell(last)

    def _advice_for(self, key: PodKey, last: PodDecision) -> Work[tuple[str, ...] | None]:
        """The advice for a pod; None where it cannot be given."""
        cycle, now = self._cycle(self._waitlist.pods[key]), self._clock()
        try:
            kind = likeness(cycle) + (b"+" if last.ahead else b"")
        except (CelError, ParameterError, ObjectError):
            return None
        known = self._known.get(kind)
        if (
            known is not None
            and now - known.at < self.limits.renew_after
            and known.reasons == _reasons(last.refusals)
        ):
            return known.advice
        evaluation, decision = self._decided(cycle)
        if evaluation is None:
            return None
        if decision.placed or _reasons(decision.refusals) != _reasons(last.refusals):
            if not self._together(cycle.view):
                self._reconsider(key)
            return None
        self._spent, self._counting = self.evaluations, Evaluations(self.limits.evaluations)
        found = yield from self._adviser(cycle).pieces(cycle, evaluation, self._table, self._counting)
        advice = tuple(one.text for one in found)
        self._known[kind] = _Known(now, _reasons(decision.refusals), advice)
        self._known.move_to_end(kind)
        if len(self._known) > _KINDS:
            self._known.popitem(last=False)
        return advice

    def _reconsider(self, key: PodKey) -> None:
        """Have a pod tried again: it comes back as refused, if it is."""
        self._allowance.spend()
        self._waitlist.reconsider(key)
        self._again = True

    def _tell(self, decision: PodDecision) -> None:
        self._allowance.spend()
        self._told.append((decision, self._waitlist.pods[decision.pod].pod))

    def _forget_the_gone(self) -> None:
        for known in (self._seen, self._wanting):
            for key in [key for key in known if key not in self._waitlist.pods]:
                del known[key]

    def _complain(self, error: Exception) -> None:
        """Log an error that nobody foresaw, each once."""
        text = f"{type(error).__name__}: {error}"[:500]
        if text not in self._complaints and len(self._complaints) < _COMPLAINTS:
            self._complaints.add(text)
            LOG.error(
                "what refuses a pod, and what would help, could not be found out (%s): internal error, please report",
                text,
                exc_info=error,
            )


def _can_be_advised(decision: PodDecision) -> bool:
    return decision.preemption is None and not decision.problem and not decision.passed_on


def _reasons(refusals: tuple[Refusals, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((one.filter, one.reason) for one in refusals)
