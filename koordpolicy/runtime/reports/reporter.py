"""PolicyRevision objects: which revisions there are, what is wrong with them, and which processes run which."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Conflict, KubeError, NotFound
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import Object
from koordpolicy.model.policy_revision import (
    Instance,
    InstanceState,
    PolicyRevision,
    RevisionStatus,
    StatusCondition,
    status_to_json,
)
from koordpolicy.model.time import time_text
from koordpolicy.runtime.policies.gating import RolloutStage
from koordpolicy.runtime.policies.live import ActiveRevision, LivePolicies, RejectedRevision
from koordpolicy.runtime.policies.revisions import CandidateRevision, Reason
from koordpolicy.runtime.reconciling import ReconcileLoop
from koordpolicy.runtime.reports.conditions import failed, good, shown, under_way
from koordpolicy.runtime.reports.presence import RollCall
from koordpolicy.runtime.reports.revision_objects import (
    ATTEMPTS,
    RevisionObjects,
    Who,
    entry_of,
    is_judged,
    regarding,
)
from koordpolicy.runtime.reports.speaker import KEPT, RevisionReport, Speaker
from koordpolicy.source.revision import Revision

LOG: Final = logging.getLogger(__name__)

REFRESH: Final = 300.0
"""Seconds after which everything is looked at again, whether or not something happened."""
LOOK: Final = 10.0
"""Seconds between two looks at which processes there are."""

_NOT_BEGUN: Final = RolloutStage(message="the rollout waits for the process that leads it to begin")


class Reporter:
    """Keeps the PolicyRevision objects saying what this process runs, for as long as `run` runs.

    `leads` says whether this process speaks for all; where no process that could lead is there, the first of those
    that `roll` finds does (see `Speaker`). Who speaks also writes conditions and diagnostics, takes back what
    processes said that are gone, and removes old objects. A cluster that cannot be reached delays a report and stops
    nothing.
    """

    def __init__(
        self,
        objects: RevisionObjects,
        live: LivePolicies,
        who: Who,
        backoff: Backoff,
        roll: RollCall,
        *,
        leads: Callable[[], bool] = lambda: False,
        recorder: Recorder | None = None,
        look: float = LOOK,
    ) -> None:
        self._objects = objects
        self._live = live
        self._who = who
        self._leads = leads
        self._recorder = recorder
        self._look = look
        self.put_off: Callable[[], tuple[str, ...]] = tuple
        """Which sorts of requests the API server takes none of now."""
        self._told_put_off: tuple[str, ...] = ()
        self._speaker = Speaker(objects, roll, who.member)
        self.speaking = False
        """Whether this process speaks for all."""
        self._loop = ReconcileLoop(self._reconcile, backoff)
        self._due = 0.0
        """When to report whatever has happened, by the loop's clock."""
        self._failing = False
        self._ours: set[str] | None = None
        self._rejected: deque[RejectedRevision] = deque(maxlen=KEPT)
        """What was rejected and is not written yet: in a quick run of revisions, more than the newest."""

    @property
    def stands_in(self) -> bool:
        """Whether no process is there that could lead all, and this one is the first of those that are."""
        return self._speaker.looked and self._speaker.speaks(leads=False)

    def again(self) -> None:
        """Look at everything again, as after becoming the leader."""
        self._due = 0.0
        self._loop.trigger()

    async def run(self) -> None:
        """Report until cancelled."""
        end = [
            self._live.subscribe(lambda _: self.again()),
            self._live.subscribe_rejected(self._note),
            self._live.subscribe_stage(lambda _: self.again()),
        ]
        try:
            await self._loop.run()
        finally:
            for unsubscribe in end:
                unsubscribe()

    def _note(self, rejected: RejectedRevision) -> None:
        self._rejected.append(rejected)
        self.again()

    async def _reconcile(self) -> float | None:
        """Report where something happened, or it is time, and look now and then at who is there."""
        now = asyncio.get_running_loop().time()
        try:
            if now < self._due:
                await self._look_around()
            if now >= self._due or self._has_news():
                self._due = now + REFRESH
                await self.report()
        except KubeError as error:
            if not self._failing:
                LOG.warning("the policy revision cannot be reported: %s", error)
            self._failing, self._due = True, 0.0
            self._objects.failed()
            return None
        self._failing = False
        return self._look

    def _has_news(self) -> bool:
        """Whether the last look has shown that somebody else is to speak, that others run something else, or that an entry of ours is gone,
        as of one whose lease could not be renewed; or the API server puts off something else.
        """
        if self._told_put_off != self.put_off() or self._speaker.struck & (self._ours or set()):
            return True
        if self.speaking != self._speaker.speaks(leads=self._leads()):
            return True
        return self.speaking and self._speaker.news

    async def _look_around(self) -> None:
        """See who is there, and where we speak, what is left of those who are not."""
        await self._speaker.look()
        if self.speaking:
            await self._speaker.clear()

    async def withdraw(self) -> None:
        """Take our entries back: this process ends. Raises KubeError."""
        for name in sorted(self._ours or ()):
            await self._objects.release(name, self._who.member)

    async def report(self) -> None:
        """Write what differs. Raises KubeError."""
        if self._ours is None:
            await self._find_ours()
        ours = self._ours = self._ours or set()
        put_off = self.put_off()
        if not self._speaker.looked:
            await self._speaker.look()
        self.speaking = self._speaker.speaks(leads=self._leads())
        active = self._live.active
        reports = self.wanted()
        names = [report.revision.name for report in reports]
        decides = names[0] if active is not None else ""
        if self.speaking:
            await self._speaker.survey(decides)
        running = [one.revision.name for one in reports if one.instance.state is not InstanceState.REJECTED]
        await self._write_rejected(running)
        for report in reports:
            ours.add(report.revision.name)
            await self._write(report)
        for name in sorted(ours - set(names)):
            await self._objects.release(name, self._who.member)
            ours.discard(name)
        if self.speaking:
            await self._speaker.collect(names, "" if active is None else active.revision.name, decides)
        self._told_put_off = put_off

    def wanted(self) -> list[RevisionReport]:
        """The revisions that matter now, the active one first."""
        live, reports = self._live, []
        if live.active is not None:
            reports.append(self._of_active(live.active))
        if live.candidate is not None:
            reports.append(self._of_candidate(live.candidate, live.stage or _NOT_BEGUN))
        if live.rejected is not None:
            reports.append(self._of_rejected(live.rejected))
        seen: dict[str, RevisionReport] = {}
        for (
            report
        ) in reports:  # a revision can be active from the cache and rejected as it is now: first wins
            seen.setdefault(report.revision.name, report)
        return list(seen.values())

    def _of_active(self, active: ActiveRevision) -> RevisionReport:
        rules = sum(len(decision.rules) for decision in active.graph.decisions.values())
        status = _diagnosed(active.found, active.sources, rules)
        message = "the revision decides"
        if active.reason is Reason.STARTED_FROM_CACHE:
            message = "the revision decides, from the copy kept on disk"
        return self._report(
            active.bundle,
            active.revision,
            status,
            InstanceState.ACTIVE,
            active.since,
            good(str(active.reason), message),
        )

    def _of_candidate(self, candidate: CandidateRevision, stage: RolloutStage) -> RevisionReport:
        """As the stage says. Where the rollout stands, the rollout itself writes."""
        rules = sum(len(decision.rules) for decision in candidate.graph.decisions.values())
        status = _diagnosed(candidate.found, candidate.sources, rules)
        return self._report(
            candidate.bundle,
            candidate.revision,
            status,
            stage.state,
            self._objects.now(),
            under_way("Progressing", stage.message),
        )

    def _of_rejected(self, rejected: RejectedRevision) -> RevisionReport:
        status = _diagnosed(rejected.found, rejected.sources, None)
        return self._report(
            rejected.bundle,
            rejected.revision,
            status,
            InstanceState.REJECTED,
            rejected.at,
            failed(str(rejected.reason), f"{rejected.message}; {rejected.remedy}"),
        )

    def _report(
        self,
        bundle: str,
        revision: Revision,
        status: RevisionStatus,
        state: InstanceState,
        since: int,
        conditions: tuple[StatusCondition, ...],
    ) -> RevisionReport:
        who = self._who
        put_off = self.put_off() if state is InstanceState.ACTIVE else ()
        instance = Instance(who.instance, who.component, state, who.node, time_text(since), put_off)
        told = PolicyRevision(
            bundle, revision.name, revision.digest, revision.commit, self._live.origin, status
        )
        return RevisionReport(told, instance, conditions)

    # --- writing ----------------------------------------------------------------------------------

    async def _write_rejected(self, running: Collection[str]) -> None:
        """Say why revisions were rejected, though newer ones may have followed, but of those that run after all."""
        while self._rejected:
            rejected = self._rejected[0]
            report = self._of_rejected(rejected)
            if report.revision.name not in running:
                await self._write(report, entered=False)
            if self._rejected[0] is rejected:  # else so many came meanwhile that it went
                self._rejected.popleft()

    async def _write(self, report: RevisionReport, *, entered: bool = True) -> None:
        """Say what becomes of a revision, and where `entered`, what this process makes of it.

        What a leader says comes first, so that no revision is ever shown without conditions. Of what is rejected
        here and judged by nobody yet, this process says why: the leader may never see that revision. Of several that
        do so at once, one does, and it alone tells.
        """
        for left in reversed(range(ATTEMPTS)):
            try:
                obj = await self._objects.of(report.revision)
                judges = report.instance.state is InstanceState.REJECTED and not is_judged(obj)
                if self.speaking or judges:
                    version = str(obj["metadata"]["resourceVersion"]) if judges else ""
                    if await self._speaker.speak(obj, report, version=version):
                        self._tell(obj, report)
                else:
                    await self._objects.begun(obj, self._who)
                if not entered:
                    return
                entry = entry_of(obj, self._who.member)
                wanted = _entry(report.instance, entry)
                if entry != wanted:
                    await self._objects.apply(
                        report.revision.name, {"instances": [wanted]}, self._who.manager
                    )
                return
            except (NotFound, Conflict):
                if not left:
                    raise
                # Removed, or written by another, since it was read.

    async def _find_ours(self) -> None:
        """The objects with an entry of this name, perhaps from before a restart."""
        self._ours = {
            str(obj["metadata"]["name"])
            for obj in await self._objects.all()
            if entry_of(obj, self._who.member) is not None
        }

    def _tell(self, obj: Object, report: RevisionReport) -> None:
        """The audit trail: each outcome of a revision, by who has said so in its status."""
        if self._recorder is None:
            return
        about = regarding(report.revision.name, obj["metadata"].get("uid", ""))
        ready = report.conditions[0]
        if report.instance.state is InstanceState.REJECTED:
            message = f"{ready.reason}: {ready.message}"
            self._recorder.record(about, "PolicyRevisionRejected", message, type="Warning", action="Reject")
        elif report.instance.state is InstanceState.ACTIVE:
            self._recorder.record(about, "PolicyRevisionActivated", ready.message, action="Activate")


def _diagnosed(found: Diagnostics, sources: Mapping[str, str], rules: int | None) -> RevisionStatus:
    return RevisionStatus(diagnostics=shown(found, sources), diagnostics_total=len(found), rules=rules)


def _entry(instance: Instance, standing: Mapping[str, Any] | None) -> dict[str, Any]:
    """Our entry; since when stays as long as the state does, so that a restart writes nothing."""
    status = status_to_json(RevisionStatus(instances=(instance,)))
    entry: dict[str, Any] = status["instances"][0]
    if standing is not None and standing.get("state") == entry["state"] and standing.get("since"):
        entry["since"] = standing["since"]
    return entry
