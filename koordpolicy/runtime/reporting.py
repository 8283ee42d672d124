"""PolicyRevision objects: which revisions there are, what is wrong with them, and which processes run which."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import AlreadyExists, KubeError, NotFound
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.port import ApplyPatch, Cluster, Object, Preconditions
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import (
    Condition,
    Instance,
    InstanceState,
    PolicyRevision,
    RevisionStatus,
    status_to_json,
    to_json,
)
from koordpolicy.runtime.conditions import (
    READY,
    RECONCILING,
    failed,
    good,
    settled,
    shown,
    stands,
    superseded,
    time_text,
    under_way,
)
from koordpolicy.runtime.live import Active, LivePolicies, Rejected
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.revisions import Candidate, Reason
from koordpolicy.source.revision import Revision

LOG: Final = logging.getLogger(__name__)

KEPT: Final = 20
"""PolicyRevision objects that stay; older ones that nobody runs go."""
REFRESH: Final = 300.0
"""Seconds after which everything is looked at again, whether or not something happened."""
_LONGEST_MANAGER: Final = 128


@dataclass(frozen=True, slots=True)
class Who:
    """The process that reports: `instance` is its pod's name, or its host's; `node` where it belongs to one."""

    component: str
    instance: str
    node: str = ""

    @property
    def manager(self) -> str:
        """The field manager of its entries: one an instance, since applying lets go what is no longer said."""
        name = f"koordpolicy-{self.component}-{self.instance}"
        if len(name) <= _LONGEST_MANAGER:
            return name
        return f"{name[: _LONGEST_MANAGER - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Shown:
    """How a candidate that is held back is shown. Where its rollout stands, the rollout itself writes."""

    state: InstanceState = InstanceState.SHADOW
    message: str = "the revision is being rolled out"


@dataclass(frozen=True, slots=True)
class _Report:
    """What is to stand about one revision: our entry, and what a leader says of it as a whole."""

    revision: PolicyRevision
    instance: Instance
    conditions: tuple[Condition, ...]


class Reporter:
    """Keeps the PolicyRevision objects saying what this process runs, for as long as `run` runs.

    `leads` says whether this process speaks for all: then it also writes conditions and diagnostics and removes
    old objects. A cluster that cannot be reached delays a report and stops nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        live: LivePolicies,
        who: Who,
        metrics: Metrics,
        backoff: Backoff,
        *,
        leads: Callable[[], bool] = lambda: False,
        recorder: Recorder | None = None,
        now: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._live = live
        self._who = who
        self._metrics = metrics
        self._backoff = backoff
        self._leads = leads
        self._recorder = recorder
        self._now = now
        self._changed = asyncio.Event()
        self._ours: set[str] | None = None
        self._held = Shown()

    def show(self, held: Shown) -> None:
        """Show the candidate that is held back like this from now on."""
        if held != self._held:
            self._held = held
            self._changed.set()

    def again(self) -> None:
        """Look at everything again, as after becoming the leader."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled; then take our entries back, if the cluster answers."""
        end = [
            self._live.subscribe(lambda _: self._changed.set()),
            self._live.subscribe_rejected(lambda _: self._changed.set()),
        ]
        failures = 0
        try:
            while True:
                self._changed.clear()
                try:
                    await self.report()
                    failures = 0
                except KubeError as error:
                    failures += 1
                    if failures == 1:
                        LOG.warning("the policy revision cannot be reported: %s", error)
                    self._metrics.add(
                        "koordpolicy_policy_status_writes_total", kind="PolicyRevision", result="failed"
                    )
                    await self._backoff.sleep(self._backoff.delay(failures))
                    continue
                try:
                    async with asyncio.timeout(REFRESH):
                        await self._changed.wait()
                except TimeoutError:
                    pass
        finally:
            for unsubscribe in end:
                unsubscribe()

    async def withdraw(self) -> None:
        """Take our entries back: this process ends. Raises KubeError."""
        for name in sorted(self._ours or ()):
            await self._let_go(name)

    async def report(self) -> None:
        """Write what differs. Raises KubeError."""
        if self._ours is None:
            await self._find_ours()
        ours = self._ours = self._ours or set()
        reports = self.wanted()
        names = [report.revision.name for report in reports]
        for report in reports:
            ours.add(report.revision.name)
            await self._write(report)
        for name in sorted(ours - set(names)):
            await self._let_go(name)
            ours.discard(name)
        if self._leads():
            await self._collect(names)

    def wanted(self) -> list[_Report]:
        """The revisions that matter now, the active one first."""
        live, reports = self._live, []
        if live.active is not None:
            reports.append(self._of_active(live.active))
        if live.candidate is not None:
            reports.append(self._of_candidate(live.candidate))
        if live.rejected is not None:
            reports.append(self._of_rejected(live.rejected))
        seen: dict[str, _Report] = {}
        for (
            report
        ) in reports:  # a revision can be active from the cache and rejected as it is now: first wins
            seen.setdefault(report.revision.name, report)
        return list(seen.values())

    def _of_active(self, active: Active) -> _Report:
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

    def _of_candidate(self, candidate: Candidate) -> _Report:
        compilation = candidate.compilation
        rules = sum(len(decision.rules) for decision in candidate.graph.decisions.values())
        status = _diagnosed(compilation.found, compilation.sources, rules)
        return self._report(
            candidate.bundle,
            candidate.revision,
            status,
            self._held.state,
            self._now(),
            under_way("Progressing", self._held.message),
        )

    def _of_rejected(self, rejected: Rejected) -> _Report:
        status = _diagnosed(rejected.found, rejected.sources, None)
        return self._report(
            rejected.bundle,
            rejected.revision,
            status,
            InstanceState.REJECTED,
            rejected.at,
            failed(str(rejected.reason), rejected.message),
        )

    def _report(
        self,
        bundle: str,
        revision: Revision,
        status: RevisionStatus,
        state: InstanceState,
        since: int,
        conditions: tuple[Condition, ...],
    ) -> _Report:
        who = self._who
        instance = Instance(who.instance, who.component, state, who.node, time_text(since))
        told = PolicyRevision(
            bundle, revision.name, revision.digest, revision.commit, self._live.origin, status
        )
        return _Report(told, instance, conditions)

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, report: _Report) -> None:
        name = report.revision.name
        obj = await self._object(report.revision)
        entry = _entry_of(obj, self._who.instance)
        wanted = _entry(report.instance, entry)
        if entry != wanted:
            await self._apply(name, {"instances": [wanted]}, self._who.manager)
        if self._leads() and await self._speak(obj, report):
            self._tell(obj, report)

    async def _object(self, revision: PolicyRevision) -> Object:
        try:
            return await self._cluster.get(POLICY_REVISIONS, revision.name)
        except NotFound:
            pass
        bare = to_json(PolicyRevision(*_spec(revision)))
        try:
            return await self._cluster.create(POLICY_REVISIONS, bare, field_manager="koordpolicy")
        except AlreadyExists:
            return await self._cluster.get(POLICY_REVISIONS, revision.name)

    async def _speak(self, obj: Object, report: _Report) -> bool:
        """Say of a revision as a whole what the leader says; whether that was news."""
        status: Mapping[str, Any] = obj.get("status") or {}
        generation = int(obj["metadata"].get("generation", 1))
        standing = status.get("conditions") or ()
        bare = status_to_json(report.revision.status)
        same = {key: status.get(key) for key in bare} == bare and not (
            status.get("diagnostics") and "diagnostics" not in bare
        )
        if same and stands(report.conditions, standing, generation):
            return False
        conditions = settled(report.conditions, standing, generation, self._now())
        whole = RevisionStatus(
            generation,
            conditions,
            report.revision.status.diagnostics,
            report.revision.status.diagnostics_total,
            report.revision.status.rules,
        )
        await self._apply(report.revision.name, status_to_json(whole), f"koordpolicy-{self._who.component}")
        return not stands(report.conditions, standing, generation)

    async def _apply(self, name: str, status: Mapping[str, Any], manager: str) -> None:
        body = {
            "apiVersion": POLICY_REVISIONS.api_version,
            "kind": POLICY_REVISIONS.kind,
            "metadata": {"name": name},
            "status": status,
        }
        await self._cluster.patch(
            POLICY_REVISIONS, name, ApplyPatch(body, manager, force=True), subresource="status"
        )
        self._metrics.add("koordpolicy_policy_status_writes_total", kind="PolicyRevision", result="written")

    async def _let_go(self, name: str) -> None:
        try:
            obj = await self._cluster.get(POLICY_REVISIONS, name)
            if _entry_of(obj, self._who.instance) is not None:
                await self._apply(name, {}, self._who.manager)
        except NotFound:
            pass

    async def _find_ours(self) -> None:
        """The objects with an entry of this name, perhaps from before a restart."""
        listed = await self._cluster.list(POLICY_REVISIONS)
        self._ours = {
            obj["metadata"]["name"] for obj in listed.items if _entry_of(obj, self._who.instance) is not None
        }

    async def _collect(self, wanted: Iterable[str]) -> None:
        """Remove the oldest objects that nobody runs, beyond those that are kept."""
        listed = await self._cluster.list(POLICY_REVISIONS)
        keep = set(wanted)
        for obj in listed.items:
            if obj["metadata"]["name"] not in keep:
                await self._supersede(obj)
        old = sorted(
            (obj for obj in listed.items if obj["metadata"]["name"] not in keep and not _running(obj)),
            key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")),
        )
        for obj in old[: max(0, len(listed.items) - KEPT)]:
            metadata = obj["metadata"]
            try:
                await self._cluster.delete(
                    POLICY_REVISIONS,
                    metadata["name"],
                    preconditions=Preconditions(metadata.get("uid", ""), metadata.get("resourceVersion", "")),
                )
            except NotFound:
                continue

    async def _supersede(self, obj: Object) -> None:
        """Say of a revision that decided, or might have, that another has taken its place."""
        status: Mapping[str, Any] = obj.get("status") or {}
        standing = status.get("conditions") or ()
        alive = any(
            one.get("status") == "True" and one.get("type") in {READY, RECONCILING} for one in standing
        )
        if not alive or self._live.active is None:
            return
        generation = int(obj["metadata"].get("generation", 1))
        message = f"{self._live.active.revision.name} has taken its place"
        conditions = settled(superseded(message), standing, generation, self._now())
        kept = {key: status[key] for key in ("diagnostics", "diagnosticsTotal", "rules") if key in status}
        body = {**kept, **status_to_json(RevisionStatus(generation, conditions))}
        await self._apply(obj["metadata"]["name"], body, f"koordpolicy-{self._who.component}")

    def _tell(self, obj: Object, report: _Report) -> None:
        """The audit trail: each outcome of a revision, by the one that speaks for all."""
        name = report.revision.name
        if self._recorder is None:
            return
        about = {
            "apiVersion": POLICY_REVISIONS.api_version,
            "kind": POLICY_REVISIONS.kind,
            "metadata": {"name": name, "uid": obj["metadata"].get("uid", "")},
        }
        ready = report.conditions[0]
        if report.instance.state is InstanceState.REJECTED:
            message = f"{ready.reason}: {ready.message}"
            self._recorder.record(about, "PolicyRevisionRejected", message, type="Warning", action="Reject")
        elif report.instance.state is InstanceState.ACTIVE:
            self._recorder.record(about, "PolicyRevisionActivated", ready.message, action="Activate")


def _spec(revision: PolicyRevision) -> tuple[str, str, str, str, str]:
    return revision.bundle, revision.revision, revision.digest, revision.commit, revision.origin


def _diagnosed(found: Diagnostics, sources: Mapping[str, str], rules: int | None) -> RevisionStatus:
    return RevisionStatus(diagnostics=shown(found, sources), diagnostics_total=len(found), rules=rules)


def _entry(instance: Instance, standing: Mapping[str, Any] | None) -> dict[str, Any]:
    """Our entry; since when stays as long as the state does, so that a restart writes nothing."""
    status = status_to_json(RevisionStatus(instances=(instance,)))
    entry: dict[str, Any] = status["instances"][0]
    if standing is not None and standing.get("state") == entry["state"] and standing.get("since"):
        entry["since"] = standing["since"]
    return entry


def _entry_of(obj: Object, name: str) -> Mapping[str, Any] | None:
    entries = (obj.get("status") or {}).get("instances") or ()
    return next((dict(entry) for entry in entries if entry.get("name") == name), None)


def _running(obj: Object) -> bool:
    entries = (obj.get("status") or {}).get("instances") or ()
    return any(entry.get("state") != InstanceState.REJECTED for entry in entries)
