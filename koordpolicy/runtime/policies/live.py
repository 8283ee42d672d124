"""The running rule graph: newer revisions are compiled aside and take its place, bad ones never do."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.layers import PackFinder
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.compiling import BackgroundCompiler, Prepare, Scrutiny
from koordpolicy.runtime.policies.gating import Admission, Gate, RolloutStage
from koordpolicy.runtime.policies.lastgood import LastGood, StoreError
from koordpolicy.runtime.policies.packs import find_pack
from koordpolicy.runtime.policies.revisions import (
    ActiveRevision,
    CandidateRevision,
    Past,
    Reason,
    RejectedRevision,
    Unfit,
)
from koordpolicy.source.revision import Revision, Source, SourceTrouble

if TYPE_CHECKING:
    from koordpolicy.runtime.trial.client import Trials

__all__ = [
    "ActiveRevision",
    "CandidateRevision",
    "LivePolicies",
    "NoPolicies",
    "Reason",
    "RejectedRevision",
    "Unfit",
]

LOG: Final = logging.getLogger(__name__)

HISTORY: Final = 32
"""Activations and rejections that are remembered."""
_WAIT_TOLD: Final = 0.05
"""Seconds that a rollout held a revision back, from which on that is told: what is less reads as nothing."""
LONGEST_WAIT: Final = 60.0
"""Seconds between two looks at the clock while an exception is to begin or end."""


@dataclass(frozen=True, slots=True)
class Options:
    """How revisions are taken.

    `prepare` makes a graph ready for the component before it decides, `scrutiny` says what a revision has to stand, `quiet` keeps the garbage collector's long walks away (for processes of their own), `trials`
    tries each revision before this process takes it, `max_cost` is what a
    decision may cost at most, `patience` is how many seconds a start waits for the source before it takes the kept tree. With
    `kept`, what compiling the built-in pack made is kept on disk from one start to the next.
    """

    packs: PackFinder = find_pack
    prepare: Prepare | None = None
    scrutiny: Scrutiny = Scrutiny.TESTS
    quiet: bool = False
    trials: "Trials | None" = None
    max_cost: int = DEFAULT_BUDGET
    patience: float = 5.0
    now: Callable[[], int] = now_ns
    kept: bool = False


USUAL: Final = Options()


def _is_gated(active: ActiveRevision, candidate: CandidateRevision) -> bool:
    """Whether a candidate decides otherwise by its own tree: what a followed ConfigMap says above it holds at once."""
    same_tree = _are_one_tree(active.revision, candidate.revision)
    return active.graph.digest != candidate.graph.digest and not same_tree


def _are_one_tree(one: Revision, other: Revision) -> bool:
    """Whether two revisions differ in nothing but what lies above them."""
    return (one.digest, one.commit) == (other.digest, other.commit)


class NoPolicies(RuntimeError):
    """Asked before any revision was active. Components wait for `ready` first."""


class LivePolicies:
    """The revision that decides now, kept up to date from a source while `run` runs.

    `graph` is a plain attribute: whoever decides reads it once, and finishes on what was read. It has the
    PolicyExceptions of the present moment in force and is replaced when one begins or ends. During a rollout some
    nodes may be ahead: who decides about nodes asks `graph_for`. `active` is the running revision with all that is
    known of it, `rejected` the newest revision where that one is no good, `candidate` the one that a gate holds back
    for now, `stage` how far it is let go, `trouble` why the source has nothing to give.

    Everything is told and swapped on the loop that runs `run`; reading is safe from any thread.
    """

    graph: RuleGraph

    def __init__(
        self,
        source: Source,
        metrics: Metrics,
        *,
        store: LastGood | None = None,
        gate: Gate | None = None,
        options: Options = USUAL,
    ) -> None:
        self.active: ActiveRevision | None = None
        self.rejected: RejectedRevision | None = None
        self.candidate: CandidateRevision | None = None
        self.stage: RolloutStage | None = None
        self.trouble: SourceTrouble | None = None
        self.history: deque[Past] = deque(maxlen=HISTORY)
        self.skipped = 0
        self._given = False
        self.origin = source.origin
        self.ready = asyncio.Event()
        """Set once a revision is active, for good."""
        self._source = source
        self._metrics = metrics
        self._compiler = BackgroundCompiler(
            options.packs,
            options.now,
            prepare=options.prepare,
            scrutiny=options.scrutiny,
            quiet=options.quiet,
            trials=options.trials,
            max_cost=options.max_cost,
            kept=options.kept,
        )
        self._store = store
        self._gate = gate
        self._patience = options.patience
        self._now = options.now
        self._newest: tuple[Revision, float] | None = None
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._held: asyncio.Task[None] | None = None
        self._compiled = self._held_since = 0.0
        """Of the candidate that is held: the seconds that making its graph took, and when its rollout began."""
        self._store_tried = store is None
        self._to_keep: Revision | None = None
        self._keeping = asyncio.Event()
        self._dates = asyncio.Event()
        self._graph_for: Callable[[str, Mapping[str, str]], RuleGraph] | None = None
        self._on_active: list[Callable[[ActiveRevision], None]] = []
        self._on_rejected: list[Callable[[RejectedRevision], None]] = []
        self._on_stage: list[Callable[[RolloutStage | None], None]] = []

    def __getattr__(self, name: str) -> RuleGraph:
        # Reached only while `graph` is not set, so that reading it costs nothing more afterwards.
        if name == "graph":
            raise NoPolicies("no revision of the policies is active yet")
        raise AttributeError(name)

    def graph_for(self, node: str, labels: Mapping[str, str]) -> RuleGraph:
        """The graph that decides about a node: the candidate's for nodes that a rollout lets go ahead."""
        graph_for = self._graph_for
        return self.graph if graph_for is None else graph_for(node, labels)

    def subscribe(self, callback: Callable[[ActiveRevision], None]) -> Callable[[], None]:
        """Tell of each activation, on the loop, after the swap; of the active one at once. Gives the way to end it.

        Also told is when exceptions begin or end, and when a stage of a rollout lets another graph decide here: the
        same revision with another graph.
        """
        self._on_active.append(callback)
        if self.active is not None:
            callback(self.active)
        return lambda: self._on_active.remove(callback)

    def subscribe_rejected(self, callback: Callable[[RejectedRevision], None]) -> Callable[[], None]:
        """Tell of each revision that is rejected, on the loop. Gives the way to end it."""
        self._on_rejected.append(callback)
        return lambda: self._on_rejected.remove(callback)

    def subscribe_stage(self, callback: Callable[[RolloutStage | None], None]) -> Callable[[], None]:
        """Tell of each stage of a candidate, on the loop, and by None that it is held back no more. Gives the way to end it."""
        self._on_stage.append(callback)
        return lambda: self._on_stage.remove(callback)

    async def run(self) -> None:
        """Follow the source until cancelled."""
        try:
            if self._gate is not None:
                await self._start_from_store()  # a restart must not carry a candidate past its gate
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(), name="policies: source")
                group.create_task(self._work(), name="policies: compile")
                group.create_task(self._keep_time(), name="policies: exceptions")
                if self._store is not None:
                    group.create_task(self._write(self._store), name="policies: keep")
        finally:
            await self._drop_held()
            self._compiler.close()
            if self._store is not None and self._to_keep is not None:
                self._save(self._store, self._to_keep)  # the loop may end before a thread has begun

    # --- the source -------------------------------------------------------------------------------

    async def _receive(self) -> None:
        async for item in self._source.revisions():
            if isinstance(item, SourceTrouble):
                self._note_trouble(item)
                continue
            self._metrics.add("koordpolicy_reload_detected_total", source=self.origin)
            if self.trouble is not None:
                LOG.info("%s gives policies%s", self.origin, " again" if self._given else "")
                self.trouble = None
                self._metrics.clear("koordpolicy_source_trouble")
            if self._newest is not None:
                self.skipped += 1
                self._metrics.add("koordpolicy_reload_skipped_total")
            self._given = True
            if item.held:  # what it waits beside comes first
                await self._idle.wait()
            self._idle.clear()
            self._newest = (item, monotonic())
            self._arrived.set()

    def _note_trouble(self, trouble: SourceTrouble) -> None:
        self.trouble = trouble
        kept = "; the last good revision stays" if self.active else ""
        LOG.warning("%s gives no policies: %s%s", self.origin, trouble.message, kept)
        self._metrics.only("koordpolicy_source_trouble", 1, reason=trouble.reason)
        self._arrived.set()

    async def _work(self) -> None:
        while True:
            if self._newest is None:
                try:
                    async with asyncio.timeout(None if self._store_tried else self._patience):
                        await self._arrived.wait()
                except TimeoutError:
                    pass
            self._arrived.clear()
            if self._newest is not None:
                (revision, arrived), self._newest = self._newest, None
                await self._take(revision, arrived)
            if self._newest is None:
                self._idle.set()
            await self._start_from_store()

    async def _take(self, revision: Revision, arrived: float) -> None:
        candidate = self.candidate
        if revision.held and self.active is None:
            LOG.info("revision %s is held back by a rollout, and there is none before it", revision.name)
            return
        if revision.held and candidate is not None and candidate.revision == revision:
            return
        if candidate is not None and candidate.revision == replace(revision, held=True):
            await self._end_held()  # its graph is there, and decides about some nodes already
            self._forget_rejected()
            self._activate(
                replace(candidate, revision=revision), Reason.SUCCEEDED, monotonic() - arrived, True
            )
            self._keep(revision)
            self._tell_stage(None)
            return
        await self._put_above(revision, arrived)
        outcome = await self._compiler.compile(revision, self._asked())
        seconds = monotonic() - arrived
        self._metrics.observe("koordpolicy_reload_duration_seconds", seconds)
        if isinstance(outcome, RejectedRevision):
            if revision.held:
                await self._drop_held()  # whoever holds this one back holds no other
            self._reject(outcome, seconds)
            return
        await self._drop_held()
        self._forget_rejected()
        outcome = replace(outcome, graph=outcome.graph.at(Timestamp(self._now())))
        gate, active = self._gate, self.active
        if gate is not None and active is not None and (revision.held or _is_gated(active, outcome)):
            self.candidate = outcome
            self._compiled, self._held_since = seconds, monotonic()
            self._held = asyncio.create_task(
                self._hold(gate, outcome, active, arrived), name="policies: gate"
            )
            return
        self._activate(outcome, Reason.SUCCEEDED, seconds)
        self._keep(revision)
        if gate is not None and active is not None:
            self._held = asyncio.create_task(self._revert(gate), name="policies: gate")

    async def _put_above(self, revision: Revision, arrived: float) -> None:
        """Let what lies above another tree hold over the active one at once: the other may be no good, or have to wait."""
        active = self.active
        if (
            active is None
            or active.revision.above == revision.above
            or _are_one_tree(active.revision, revision)
        ):
            return
        outcome = await self._compiler.compile(replace(active.revision, above=revision.above), self._asked())
        if isinstance(outcome, CandidateRevision):  # else what is said of the other tree will tell
            await self._drop_held()
            self._activate(outcome, Reason.SUCCEEDED, monotonic() - arrived)
            self._keep(outcome.revision)

    def _asked(self) -> tuple[str, ...]:
        return () if self.active is None else self.active.graph.asked

    # --- the gate ---------------------------------------------------------------------------------

    async def _hold(
        self, gate: Gate, candidate: CandidateRevision, active: ActiveRevision, arrived: float
    ) -> None:
        try:
            admission = await self._stages(gate, candidate, active)
        except Exception as error:
            LOG.exception("the gate failed on revision %s", candidate.revision.name)
            admission = Admission(False, f"the rollout failed ({type(error).__name__}: {error})")
        if admission.accepted:
            self._activate(candidate, Reason.SUCCEEDED, monotonic() - arrived, True)
            self._keep(candidate.revision)
        else:
            self._release()
            self._turn_back(candidate, admission, monotonic() - arrived)

    async def _stages(self, gate: Gate, candidate: CandidateRevision, active: ActiveRevision) -> Admission:
        """Let each stage of a candidate decide where it says; the gate's last word."""
        async with aclosing(gate.admit(candidate, active)) as answers:
            async for answer in answers:
                if isinstance(answer, Admission):
                    return answer
                self._enter(answer)
        raise RuntimeError("it came to no end")

    async def _revert(self, gate: Gate) -> None:
        try:
            await gate.reverted()
        except Exception:
            LOG.exception("the gate failed when the policies went back")

    def _turn_back(self, candidate: CandidateRevision, admission: Admission, seconds: float) -> None:
        rejected = RejectedRevision(
            candidate.revision,
            admission.reason,
            admission.message,
            candidate.found,
            candidate.sources,
            self._now(),
            candidate.bundle,
        )
        self._reject(rejected, seconds)

    async def _drop_held(self) -> None:
        await self._end_held()
        self._release()

    async def _end_held(self) -> None:
        held, self._held = self._held, None
        if held is not None and not held.done():
            held.cancel()
            await asyncio.wait([held])  # unlike `await held`, it lets through that we are cancelled ourselves

    # --- what decides -----------------------------------------------------------------------------

    def _enter(self, stage: RolloutStage) -> None:
        """Let a stage's graphs decide."""
        before, self.stage = self.stage, stage
        if before is None or not stage.decides_like(before):
            self._swap()
        self._tell_stage(stage)

    def _release(self) -> None:
        """Hold nothing back any more: the active revision decides everywhere."""
        held, self.candidate, self.stage = self.stage, None, None
        if self.active is not None:
            self._swap()
        if held is not None:
            self._tell_stage(None)

    def _tell_stage(self, stage: RolloutStage | None) -> None:
        for tell in tuple(self._on_stage):
            try:
                tell(stage)
            except Exception:
                LOG.exception("a listener failed on a stage")

    def _swap(self) -> None:
        """Let decide what decides at this moment, by the active revision, the candidate and its stage."""
        active, candidate, stage = self.active, self.candidate, self.stage
        assert active is not None
        old, self._graph_for = active.graph, None
        graph = old
        if candidate is not None and stage is not None:
            new = candidate.graph.at(Timestamp(self._now()))
            if stage.observe is not None:
                old, new = stage.observe(old, new)
            graph = new if stage.here else old
            if (ahead := stage.nodes) is not None:
                self._graph_for = lambda node, labels: new if ahead(node, labels) else old
        if self.graph is not graph:
            self.graph = graph
            self._tell(replace(active, graph=graph))

    # --- outcomes ---------------------------------------------------------------------------------

    def _activate(
        self, candidate: CandidateRevision, reason: Reason, seconds: float, held: bool = False
    ) -> None:
        """Let a revision decide everywhere, after so many seconds since it arrived; `held` says that a rollout held it back."""
        revision = candidate.revision
        active = ActiveRevision(
            candidate.graph.at(Timestamp(self._now())),
            revision,
            candidate.sources,
            self._now(),
            candidate.found,
            candidate.bundle,
            reason,
        )
        before = self.active
        self.active, self.graph, self._graph_for = active, active.graph, None
        self.candidate = self.stage = None
        self._note(True, revision, reason, "", seconds)
        metrics = self._metrics
        metrics.only("koordpolicy_active_revision_info", 1, revision=revision.name, digest=revision.digest)
        metrics.set("koordpolicy_reload_last_success_timestamp_seconds", active.since / 1e9)
        metrics.set("koordpolicy_policy_documents", len(active.graph.units))
        rules = sum(len(decision.rules) for decision in active.graph.decisions.values())
        metrics.set("koordpolicy_policy_rules", rules)
        same = before is not None and before.graph.digest == active.graph.digest
        spent = f"checked and compiled in {self._compiled if held else seconds:.1f} s"
        waited = monotonic() - self._held_since if held else 0.0
        if waited >= _WAIT_TOLD:
            spent += f", then held back by its rollout for {waited:.1f} s"
        LOG.info(
            "revision %s is active%s (%s)",
            revision.name,
            ", which decides as the one before" if same else "",
            spent,
            extra={"revision": revision.name, "digest": revision.digest, "reason": reason.value},
        )
        self._dates.set()
        self.ready.set()
        self._tell(active)

    def _tell(self, active: ActiveRevision) -> None:
        for tell in tuple(self._on_active):
            try:
                tell(active)
            except Exception:
                LOG.exception("a listener failed on revision %s", active.revision.name)

    async def _keep_time(self) -> None:
        """Let exceptions begin and end when they do."""
        while True:
            active = self.active
            change = None if active is None else active.graph.changes_after(Timestamp(self._now()))
            self._dates.clear()
            # A clock on the wall may be set at any time, so a long wait is cut.
            wait = None if change is None else min(max(0.0, (change.ns - self._now()) / 1e9), LONGEST_WAIT)
            try:
                async with asyncio.timeout(wait):
                    await self._dates.wait()
            except TimeoutError:
                self._renew()

    def _renew(self) -> None:
        """The exceptions of this moment."""
        active = self.active
        if active is None:
            return
        graph = active.graph.at(Timestamp(self._now()))
        if graph.in_force == active.graph.in_force:
            return
        for word, terms in (
            ("begins", graph.in_force - active.graph.in_force),
            ("is over", active.graph.in_force - graph.in_force),
        ):
            for one in terms:
                LOG.info("%s of %s %s (until %s)", one.document, one.owner, word, one.until)
        self.active = replace(active, graph=graph)
        self._swap()

    def _reject(self, rejected: RejectedRevision, seconds: float) -> None:
        revision = rejected.revision
        self.rejected = rejected
        self._note(False, revision, rejected.reason, rejected.message, seconds)
        self._metrics.only(
            "koordpolicy_rejected_revision_info",
            1,
            revision=revision.name,
            digest=revision.digest,
            reason=rejected.reason,
        )
        kept = f"; {self.active.revision.name} stays" if self.active else ""
        LOG.error(
            "revision %s is rejected (%s): %s%s",
            revision.name,
            rejected.reason.value,
            rejected.message,
            kept,
            extra={"revision": revision.name, "digest": revision.digest, "reason": rejected.reason.value},
        )
        for tell in tuple(self._on_rejected):
            try:
                tell(rejected)
            except Exception:
                LOG.exception("a listener failed on revision %s", revision.name)

    def _forget_rejected(self) -> None:
        """The newest revision is good: it decides, or waits for its rollout."""
        self.rejected = None
        self._metrics.clear("koordpolicy_rejected_revision_info")

    def _note(self, activated: bool, revision: Revision, reason: str, message: str, seconds: float) -> None:
        now = self._now()
        self.history.append(
            Past(now, revision.name, revision.digest, activated, str(reason), message, seconds)
        )
        result = "activated" if activated else "rejected"
        self._metrics.add("koordpolicy_reload_total", result=result, reason=str(reason))
        self._metrics.set("koordpolicy_reload_last_attempt_timestamp_seconds", now / 1e9)

    # --- the kept tree ----------------------------------------------------------------------------

    def _keep(self, revision: Revision) -> None:
        self._to_keep = revision
        self._keeping.set()

    async def _write(self, store: LastGood) -> None:
        """Keep the newest active revision, one write at a time."""
        while True:
            await self._keeping.wait()
            self._keeping.clear()
            revision = self._to_keep
            if revision is None:
                continue
            await asyncio.to_thread(self._save, store, revision)
            if self._to_keep is revision:
                self._to_keep = None

    @staticmethod
    def _save(store: LastGood, revision: Revision) -> None:
        try:
            store.save(revision)
        except OSError as error:
            LOG.warning("the last good policies cannot be kept: %s", error)

    async def _start_from_store(self) -> None:
        """Take the kept tree where nothing is active. Tried once: what is no good now stays so."""
        store = self._store
        if store is None or self._store_tried:
            return
        self._store_tried = True
        if self.active is not None:
            return
        started = monotonic()
        try:
            revision = await asyncio.to_thread(store.load)
        except StoreError as error:
            LOG.warning("the kept policies are of no use: %s", error)
            return
        if revision is None:
            return
        outcome = await self._compiler.compile(revision)
        if isinstance(outcome, RejectedRevision):
            LOG.warning("the kept policies are of no use: %s", outcome.message)
            return
        self._activate(outcome, Reason.STARTED_FROM_CACHE, monotonic() - started)
