"""The gate before a new revision: it is let through step by step, as the old one says, or turned back."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.policy_revision import revision_name
from koordpolicy.runtime.live import Active, Candidate, LivePolicies
from koordpolicy.runtime.metric_table import MetricKind
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.revisions import Reason, Verdict
from koordpolicy.runtime.rollout.canary import goes_ahead
from koordpolicy.runtime.rollout.changes import Changes, changes
from koordpolicy.runtime.rollout.judging import Baseline, Gathered, increase, judge, rollout_facts
from koordpolicy.runtime.rollout.machine import Seen, advance, begin, supersede
from koordpolicy.runtime.rollout.plan import KIND, Plan, Step, plan_of
from koordpolicy.runtime.rollout.shadow import Comparison
from koordpolicy.runtime.rollout.state import Entry, Phase, State, Subject
from koordpolicy.runtime.rollout.store import Store, StoreTrouble
from koordpolicy.source.revision import Revision

LOG: Final = logging.getLogger(__name__)

_SECOND: Final = 1_000_000_000
_GRACE: Final = 60 * _SECOND
"""How long a follower waits for the leader to begin a rollout anew."""
_DRAIN: Final = 0.2
"""Seconds between two goes at the inputs that wait to be compared."""

Notify = Callable[[State, Entry], None]
"""Tells people of something that happened in a rollout that this process leads."""


def _tell_nobody(_state: State, _entry: Entry) -> None:
    """For a process whose log is enough."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the gate knows of its process.

    `leads` says whether this process advances rollouts (one does, all others follow). `node` and `labels` are those
    of the node that the process belongs to, "" where it decides about many. `now` gives nanoseconds since 1970.
    `show` is told where the rollout stands, and whether the new revision decides about something here.
    """

    now: Callable[[], int]
    leads: Callable[[], bool] = lambda: True
    notify: Notify = _tell_nobody
    show: Callable[[State, bool], None] = lambda _state, _ahead: None
    node: str = ""
    labels: Callable[[], Mapping[str, str]] = dict


@dataclass(slots=True)
class _Going:
    """A rollout that this process takes part in; `steps` are those up to the present one, as they were staged."""

    candidate: Candidate
    comparison: Comparison
    state: State | None = None
    steps: tuple[Step, ...] = ()
    baseline: Baseline = field(default_factory=Baseline)
    waiting: str = ""
    since: int = 0


class RolloutGate:
    """Holds candidates back while their rollout goes on. `attach` it to the policies before they run.

    `state` is the rollout that this process takes part in, None when there is none; `comparison` what it compares.
    """

    def __init__(self, store: Store, metrics: Metrics, around: Surroundings) -> None:
        self._store = store
        self._metrics = metrics
        self._around = around
        self._live: LivePolicies | None = None
        self._going: _Going | None = None
        self._staging = False
        self._left: tuple[State | None, Revision] = (None, Revision({}, ""))
        self._tidying: asyncio.Task[None] | None = None

    @property
    def state(self) -> State | None:
        """Where the present rollout stands."""
        return None if self._going is None else self._going.state

    @property
    def comparison(self) -> Comparison | None:
        """What both revisions are compared by."""
        return None if self._going is None else self._going.comparison

    def attach(self, live: LivePolicies) -> None:
        """Name the policies whose gate this is."""
        self._live = live
        live.subscribe(self._activated)

    async def admit(self, candidate: Candidate, active: Active) -> Verdict:
        """See `Gate.admit`."""
        if not active.graph.subjects(KIND):
            return Verdict(True)  # nothing to go by, and no cluster to ask for it
        subject = _subject(candidate, active)
        differing = await asyncio.to_thread(changes, active.graph, candidate.graph)
        comparison = Comparison(active.graph, candidate.graph, differing.decisions)
        going = self._going = _Going(candidate, comparison, since=self._around.now())
        draining = asyncio.create_task(self._drain(comparison), name="rollout: compare")
        try:
            return await self._accompany(going, subject, differing)
        finally:
            self._left, self._going = (going.state, active.revision), None
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def _accompany(self, going: _Going, subject: Subject, differing: Changes) -> Verdict:
        while True:
            try:
                plan = await self._once(going, subject, differing)
            except StoreTrouble as trouble:
                self._wait_for(going, f"the rollout cannot be followed: {trouble}")
                await asyncio.sleep(1.0)
                continue
            state = going.state
            if plan is None or (state is not None and state.phase is Phase.COMPLETE):
                return Verdict(True)
            if state is not None and state.phase.is_end:
                return Verdict(False, Reason.GUARD_REFUSED, f"the rollout was {_ended(state)}")
            await self._store.news(plan.every / _SECOND)

    async def _once(self, going: _Going, subject: Subject, differing: Changes) -> Plan | None:
        """One look: advance or follow. None where the revision needs no rollout. Raises `StoreTrouble`."""
        now = self._around.now()
        graph = self._active_graph(going)
        numbers = self._metrics.numbers()
        gathered = Gathered()
        try:
            if going.state is None:
                # Asked before the store is: it may be out of reach, and nothing may be needed of it.
                bare = rollout_facts(_before(subject, now), gathered, dict(numbers), now)
                if not plan_of(graph, bare, now).concerns(differing.kinds):
                    return None
                going.state = self._standing(going, subject, await self._store.load(subject))
            if going.state is not None:
                gathered = await self._exchanged(going, subject)
            state = going.state or _before(subject, now)
            facts = rollout_facts(state, gathered, increase(numbers, self._gauges, going.baseline), now)
            plan = plan_of(graph, facts, now)
        except CelError as error:
            self._wait_for(going, f"the Rollout in force cannot be told: {error.message}")
            return Plan(())
        if not plan.concerns(differing.kinds):
            return None
        if self._around.leads():
            command = None if going.state is None else await self._store.command(subject)
            seen = Seen(judge(graph, plan, facts, now), command)
            state = await self._started(subject, plan, now) if going.state is None else going.state
            following = advance(state, plan, now, seen)
            if going.state is None or following != state:
                await self._store.save(following)
                self._tell(following, () if going.state is None else state.history)
            if command is not None:
                await self._store.done(subject, command)
            going.state = following
        else:
            loaded = self._standing(going, subject, await self._store.load(subject))
            going.state = loaded or going.state
        self._stage(going, plan, numbers)
        return plan

    def _standing(self, going: _Going, subject: Subject, loaded: State | None) -> State | None:
        """The state as kept, as far as it speaks of this rollout; else the leader begins anew, and others wait for it.

        An end may be that of an earlier rollout of the same revision, from another one than now. Who only follows
        cannot know whether the leader will begin again, and gives it some time.
        """
        if loaded is None or loaded.phase is Phase.SUPERSEDED:
            return None
        if not loaded.phase.is_end or loaded.subject.previous == subject.previous:
            return loaded
        if self._around.leads() or self._around.now() - going.since < _GRACE:
            return None
        return loaded

    async def _started(self, subject: Subject, plan: Plan, now: int) -> State:
        for other in await self._store.unfinished():
            if other.subject.name != subject.name:
                ended = supersede(other, now, f"{subject.revision} has come")
                await self._store.save(ended)
                self._tell(ended, other.history)
        return begin(subject, plan, now)

    async def _exchanged(self, going: _Going, subject: Subject) -> Gathered:
        """Tell the others what was counted, and hear what they have."""
        state, steps = going.state, going.steps
        assert state is not None
        if steps and steps[-1].name == state.step:
            counts = going.comparison.counts
            await self._store.publish(subject, state.step, counts, canary=self._ahead(steps))
        return await self._store.gathered(subject, state.step)

    # --- what decides -----------------------------------------------------------------------------

    def _stage(self, going: _Going, plan: Plan, numbers: Mapping[str, float]) -> None:
        """Let the step's graphs decide; a new step counts from nothing."""
        state = going.state
        if state is None:
            return
        self._show(state)
        if state.phase.is_end:
            return
        names = [one.name for one in plan.steps]
        if state.step not in names:
            return
        steps = plan.steps[: names.index(state.step) + 1]
        before, going.steps = going.steps, steps
        step = steps[-1]
        if not before or before[-1].name != step.name:
            going.comparison.begin(step.sample, step.keep)
            going.baseline = Baseline(dict(numbers))
        if before != steps:
            going.comparison.sample = step.sample
            self._let_decide(going, steps)
        self._around.show(state, self._ahead(steps))

    def _let_decide(self, going: _Going, steps: tuple[Step, ...]) -> None:
        live, comparison = self._live, going.comparison
        if live is None:
            return
        old: RuleGraph = comparison.active
        new: RuleGraph = comparison.candidate
        if steps[-1].sample > 0.0:
            old, new = comparison.watched(old), comparison.watched(new)

        def choose(node: str, labels: Mapping[str, str]) -> RuleGraph:
            return new if goes_ahead(steps, node, labels) else old

        around = self._around
        own = choose(around.node, around.labels()) if around.node else old
        self._staging = True
        try:
            live.stage(own, choose if any(step.has_canary for step in steps) else None)
        finally:
            self._staging = False

    def _activated(self, active: Active) -> None:
        """Exceptions began or ended while a rollout goes on: both revisions are as they are now.

        Or the policies went back to the old revision, which no gate is asked about: then the rollout is over.
        """
        going = self._going
        left, was_active = self._left
        if going is None and left is not None and active.revision is not was_active:
            self._left = (None, active.revision)
            if not left.phase.is_end and self._around.leads():
                self._tidying = asyncio.create_task(self._superseded(left), name="rollout: end")
        if self._staging or going is None or not going.steps or self._live is None:
            return
        moment = Timestamp(self._around.now())
        going.comparison.active = active.graph.at(moment)
        going.comparison.candidate = going.candidate.graph.at(moment)
        self._let_decide(going, going.steps)

    async def _superseded(self, state: State) -> None:
        """Show that a rollout was left; who comes next ends what could not be shown."""
        ended = supersede(state, self._around.now(), f"the policies went back to {state.subject.previous}")
        try:
            await self._store.save(ended)
        except StoreTrouble as trouble:
            LOG.warning("the end of a rollout cannot be kept: %s", trouble)
        else:
            self._tell(ended, state.history)

    def _ahead(self, steps: tuple[Step, ...]) -> bool:
        """Whether the new revision decides about something here."""
        around = self._around
        if not around.node:
            return any(step.has_canary for step in steps)
        return goes_ahead(steps, around.node, around.labels())

    def _active_graph(self, going: _Going) -> RuleGraph:
        return going.comparison.active

    # --- telling ----------------------------------------------------------------------------------

    def _tell(self, state: State, before: tuple[Entry, ...]) -> None:
        known = set(before)
        for entry in state.history:
            if entry not in known:
                LOG.info("rollout of %s: %s", state.subject.revision, entry.message)
                self._around.notify(state, entry)

    def _show(self, state: State) -> None:
        self._metrics.only(
            "koordpolicy_rollout_info",
            1,
            revision=state.subject.revision,
            step=state.step,
            phase=str(state.phase),
        )
        comparison = self.comparison
        if comparison is not None:
            total = comparison.counts.total
            self._metrics.set("koordpolicy_rollout_compared", total.compared)
            self._metrics.set("koordpolicy_rollout_disagreements", total.different)
            self._metrics.set("koordpolicy_rollout_dropped", comparison.dropped)

    def _wait_for(self, going: _Going, why: str) -> None:
        if going.waiting != why:
            LOG.warning("%s", why)
            going.waiting = why

    @property
    def _gauges(self) -> frozenset[str]:
        table = self._metrics.table
        return frozenset(name for name, row in table.items() if row.kind is MetricKind.GAUGE)

    @staticmethod
    async def _drain(comparison: Comparison) -> None:
        """Compare aside, off the loop that decides."""
        while True:
            await asyncio.sleep(_DRAIN)
            if comparison.waits:
                await asyncio.to_thread(comparison.drain)


def _subject(candidate: Candidate, active: Active) -> Subject:
    revision = candidate.revision
    return Subject(
        revision_name(candidate.bundle, revision.commit or revision.digest),
        candidate.bundle,
        revision.name,
        revision.digest,
        active.revision.name,
        revision.commit,
    )


def _before(subject: Subject, now: int) -> State:
    """What is known before the first step: for the plan's own questions."""
    return State(subject, Phase.PROGRESSING, "", 0, now, now)


def _ended(state: State) -> str:
    return f"{state.phase.lower()}: {state.message}" if state.message else state.phase.lower()
