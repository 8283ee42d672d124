"""The gate before a new revision: it is let through step by step, as the old one says, or turned back.

The gate says which stage a rollout is in (`RolloutStage`) and how it ends (`Admission`); whoever asks it lets graphs decide
accordingly.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.policy_revision import InstanceState, revision_name
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.logs import LoggedOnce
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.metrics.metric import MetricKind
from koordpolicy.runtime.policies.gating import Admission, GoesAhead, RolloutReach, RolloutStage
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision, Reason
from koordpolicy.runtime.rollout.canary import goes_ahead, node_parts, pod_goes_ahead
from koordpolicy.runtime.rollout.changes import Changes, changes
from koordpolicy.runtime.rollout.comparing import compare_aside, show_comparison
from koordpolicy.runtime.rollout.judging import Baseline, Gathered, increase, judge, rollout_facts
from koordpolicy.runtime.rollout.machine import Seen, advance, begin, supersede, unwatched
from koordpolicy.runtime.rollout.plan import KIND, RolloutPlan, RolloutStep, plan_of
from koordpolicy.runtime.rollout.shadow import Comparison
from koordpolicy.runtime.rollout.state import Entry, Phase, RolloutProgress, Subject
from koordpolicy.runtime.rollout.store import RolloutStore, StoreTrouble

LOG: Final = logging.getLogger(__name__)

_SECOND: Final = 1_000_000_000
_NOTED: Final = 60 * _SECOND
"""How often it is kept that somebody looks at the guards: so much may be missing to whoever leads next."""
_GRACE: Final = 60 * _SECOND
"""How long a follower waits for the leader to begin a rollout anew."""

_MISSED: Final = 3
"""Looks at the guards that may be late."""

Notify = Callable[[RolloutProgress, Entry], None]
"""Tells people of something that happened in a rollout that this process leads."""


def _never() -> bool:
    """For a process that leads or follows, and nothing between."""
    return False


def _tell_nobody(_state: RolloutProgress, _entry: Entry) -> None:
    """For a process whose log is enough."""


@dataclass(frozen=True, slots=True)
class GateContext:
    """What the gate knows of its process.

    `leads` says whether this process advances rollouts (one does, all others follow), `stands_in` whether it does so
    because the one that should is not there: that one may come back at any time, so each state is read before it is advanced. `node` and `labels` are those
    of the node that the process belongs to, "" where it decides about many. `now` gives nanoseconds since 1970.
    """

    now: Callable[[], int]
    leads: Callable[[], bool] = lambda: True
    notify: Notify = _tell_nobody
    node: str = ""
    labels: Callable[[], Mapping[str, str]] = dict
    stands_in: Callable[[], bool] = _never

    @property
    def advances(self) -> bool:
        """Whether this process advances rollouts now."""
        return self.leads() or self.stands_in()


@dataclass(slots=True)
class _Going:
    """A rollout that this process takes part in; `steps` are those up to the present one, which `stage` stands for."""

    active: ActiveRevision
    comparison: Comparison
    state: RolloutProgress | None = None
    steps: tuple[RolloutStep, ...] = ()
    stage: RolloutStage | None = None
    baseline: Baseline = field(default_factory=Baseline)
    trouble: LoggedOnce = field(default_factory=lambda: LoggedOnce(LOG))
    since: int = 0
    watched: int | None = None
    """When this process looked at the guards last, by a clock that nobody sets; None for never."""


class RolloutGate:
    """Holds candidates back while their rollout goes on.

    `state` is the rollout that this process takes part in, None when there is none; `comparison` what it compares.
    """

    def __init__(self, store: RolloutStore, metrics: Metrics, context: GateContext) -> None:
        self._store = store
        self._metrics = metrics
        self._context = context
        self._going: _Going | None = None
        self._left: RolloutProgress | None = None
        """Where the rollout stood that this process left last."""

    @property
    def state(self) -> RolloutProgress | None:
        """Where the present rollout stands."""
        return None if self._going is None else self._going.state

    @property
    def comparison(self) -> Comparison | None:
        """What both revisions are compared by."""
        return None if self._going is None else self._going.comparison

    async def admit(
        self, candidate: CandidateRevision, active: ActiveRevision
    ) -> AsyncGenerator[RolloutStage | Admission, None]:
        """See `Gate.admit`."""
        if not active.graph.subjects(KIND):
            yield Admission(True)  # nothing to go by, and no cluster to ask for it
            return
        subject = _subject(candidate, active)
        differing = await asyncio.to_thread(changes, active.graph, candidate.graph)
        comparison = Comparison(active.graph, candidate.graph, differing.decisions)
        going = self._going = _Going(active, comparison, since=self._context.now())
        draining = asyncio.create_task(compare_aside(comparison, self._metrics), name="rollout: compare")
        try:
            while True:
                before = going.stage
                try:
                    plan = await self._once(going, subject, differing)
                except StoreTrouble as trouble:
                    going.trouble.met(f"the rollout cannot be followed: {trouble}")
                    await asyncio.sleep(1.0)
                    continue
                if going.stage is not None and going.stage != before:
                    yield going.stage
                state = going.state
                if plan is None or (state is not None and state.phase is Phase.COMPLETE):
                    yield Admission(True)
                    return
                if state is not None and state.phase.is_end:
                    reason = Reason.ABORTED if state.ended_by_hand else Reason.GUARD_REFUSED
                    yield Admission(False, f"the rollout was {_ended(state)}", reason)
                    return
                await self._store.news(plan.every / _SECOND)
        finally:
            self._left, self._going = going.state, None
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def reverted(self) -> None:
        """See `Gate.reverted`. Who comes next ends what cannot be shown now."""
        left, context = self._left, self._context
        if left is None or left.phase.is_end or not context.advances:
            return
        ended = supersede(left, context.now(), f"the policies went back to {left.subject.previous}")
        try:
            await self._store.save(ended)
        except StoreTrouble as trouble:
            LOG.warning("the end of a rollout cannot be kept: %s", trouble)
        else:
            self._tell(ended, left.history)
        self._left = None

    async def _once(self, going: _Going, subject: Subject, differing: Changes) -> RolloutPlan | None:
        """One look: advance or follow. None where the revision needs no rollout. Raises `StoreTrouble`."""
        now = self._context.now()
        graph = going.active.graph.at(Timestamp(now))
        numbers = self._metrics.numbers()
        gathered = Gathered()
        try:
            if going.state is None:
                # Asked before the store is: it may be out of reach, and nothing may be needed of it.
                bare = rollout_facts(_before(subject, now), gathered, dict(numbers), now)
                if not plan_of(graph, bare, now).concerns(differing.kinds):
                    return None
                going.state = self._standing(going, subject, await self._store.load(subject))
            elif not self._context.leads():
                going.state = self._standing(going, subject, await self._store.load(subject)) or going.state
            if going.state is not None:
                gathered = await self._exchanged(going, subject)
            state = going.state or _before(subject, now)
            facts = rollout_facts(state, gathered, increase(numbers, self._gauges, going.baseline), now)
            plan = plan_of(graph, facts, now)
        except CelError as error:
            going.trouble.met(f"the Rollout in force cannot be told: {error.message}")
            return RolloutPlan(())
        if not plan.concerns(differing.kinds):
            return None
        if self._context.advances:
            command = None if going.state is None else await self._store.command(subject)
            seen = Seen(judge(graph, plan, facts, now), command)
            state = await self._started(subject, plan, now) if going.state is None else going.state
            following = advance(self._watched(going, state, plan, now), plan, now, seen)
            if not following.phase.is_end and now - following.watched >= _NOTED:
                following = replace(following, watched=now)
            if going.state is None or following != state:
                await self._store.save(following)
                self._tell(following, () if going.state is None else state.history)
            if command is not None:
                await self._store.done(subject, command)
            going.state = following
        self._stage(going, plan, numbers)
        return plan

    @staticmethod
    def _watched(going: _Going, state: RolloutProgress, plan: RolloutPlan, now: int) -> RolloutProgress:
        """The state, with what nobody watched left out: the time in which no process led, or had no cluster."""
        # Of our own looks a clock tells that nobody sets; of others' we know by theirs.
        clock, lost = int(monotonic() * _SECOND), now - state.watched if state.watched else 0
        if going.watched is not None:
            lost = clock - going.watched
        going.watched = clock
        return unwatched(state, now - lost, now) if lost > _NOTED + _MISSED * plan.every else state

    def _standing(
        self, going: _Going, subject: Subject, loaded: RolloutProgress | None
    ) -> RolloutProgress | None:
        """The state as kept, as far as it speaks of this rollout; else the leader begins anew, and others wait for it.

        An end may be that of an earlier rollout of the same revision, from another one than now. Who only follows
        cannot know whether the leader will begin again, and gives it some time.
        """
        if loaded is None or loaded.phase is Phase.SUPERSEDED:
            return None
        if not loaded.phase.is_end or loaded.subject.previous == subject.previous:
            return loaded
        if self._context.advances or self._context.now() - going.since < _GRACE:
            return None
        return loaded

    async def _started(self, subject: Subject, plan: RolloutPlan, now: int) -> RolloutProgress:
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

    def _stage(self, going: _Going, plan: RolloutPlan, numbers: Mapping[str, float]) -> None:
        """Bring the stage to the rollout's step; a new step counts from nothing."""
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
        if going.stage is None or before != steps:
            going.comparison.sample = step.sample
            going.stage = self._stage_of(going.comparison, steps)
        going.stage = replace(
            going.stage,
            state=InstanceState.CANARY if self._ahead(steps) else InstanceState.SHADOW,
            message=_standing_at(state),
        )

    def _stage_of(self, comparison: Comparison, steps: tuple[RolloutStep, ...]) -> RolloutStage:
        nodes: GoesAhead | None = None
        pods: GoesAhead | None = None
        parts, last = node_parts(steps), steps[-1]
        if parts:
            nodes = partial(goes_ahead, parts)
        if any(step.of_pods for step in steps):
            pods = partial(pod_goes_ahead, steps)
        context = self._context
        return RolloutStage(
            nodes,
            here=bool(context.node) and goes_ahead(parts, context.node, context.labels()),
            observe=comparison.observe if last.sample > 0.0 else None,
            # Of pods that the new revision places it is told in any case what only that one fails on.
            observer=comparison if last.sample > 0.0 or pods is not None else None,
            pods=pods,
            reach=RolloutReach(last.name, parts, last.sample, last.keep),
        )

    def _ahead(self, steps: tuple[RolloutStep, ...]) -> bool:
        """Whether the new revision decides about something here."""
        context = self._context
        if not context.node:
            return any(step.has_canary for step in steps)
        return goes_ahead(node_parts(steps), context.node, context.labels())

    # --- telling ----------------------------------------------------------------------------------

    def _tell(self, state: RolloutProgress, before: tuple[Entry, ...]) -> None:
        known = set(before)
        for entry in state.history:
            if entry not in known:
                LOG.info("rollout of %s: %s", state.subject.revision, entry.message)
                self._context.notify(state, entry)

    def _show(self, state: RolloutProgress) -> None:
        self._metrics.only(
            "koordpolicy_rollout_info",
            1,
            revision=state.subject.revision,
            step=state.step,
            phase=str(state.phase),
        )
        comparison = self.comparison
        if comparison is not None:
            show_comparison(self._metrics, comparison)

    @property
    def _gauges(self) -> frozenset[str]:
        table = self._metrics.table
        return frozenset(name for name, row in table.items() if row.kind is MetricKind.GAUGE)


def _subject(candidate: CandidateRevision, active: ActiveRevision) -> Subject:
    revision = candidate.revision
    return Subject(
        revision_name(candidate.bundle, revision.commit or revision.digest),
        candidate.bundle,
        revision.name,
        revision.digest,
        active.revision.name,
        revision.commit,
    )


def _before(subject: Subject, now: int) -> RolloutProgress:
    """What is known before the first step: for the plan's own questions."""
    return RolloutProgress(subject, Phase.PROGRESSING, "", 0, now, now)


def _ended(state: RolloutProgress) -> str:
    return f"{state.phase.lower()}: {state.message}" if state.message else state.phase.lower()


def _standing_at(state: RolloutProgress) -> str:
    """Where it stands, for people."""
    paused = "paused" if state.phase is Phase.PAUSED else "in"
    return f"{paused} step `{state.step}`" + (f": {state.message}" if state.message else "")
