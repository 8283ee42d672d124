"""The status of policy objects: whether what they say is in force, and if not, whose fault it is.

An object is in force (Ready) when the active revision holds it as it stands. When the newest revision is bad:

- Objects that changed and that an error names are Stalled, with the finding: waiting for them ends at once.
- Objects that changed and are innocent wait for the others: not Ready, Reconciling, reason Blocked.
- Objects that did not change stay Ready: what they say is still in force. Only where no changed object is
  named, as after the deletion of something they need, those that are named are Stalled all the same.

Blame waits for a moment: a tool applies objects one by one, and what breaks halfway is not wrong.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostic, Severity
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Conflict, KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import POLICIES
from koordpolicy.model.policy_revision import RevisionStatus, ShownDiagnostic, StatusCondition, status_to_json
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live import ActiveRevision, LivePolicies, RejectedRevision
from koordpolicy.runtime.policies.objects import ClusterSource
from koordpolicy.runtime.reconciling import ReconcileLoop
from koordpolicy.runtime.reports.conditions import failed, good, settled, shown, stands, under_way
from koordpolicy.runtime.reports.status_patches import apply_status

LOG: Final = logging.getLogger(__name__)

GRACE: Final = 2.0
"""Seconds that a revision must have been bad before an object is blamed for it."""
REFRESH: Final = 300.0
MANAGER: Final = "koordpolicy-manager"
_BY_KIND: Final = {resource.kind: resource for resource in POLICIES}


@dataclass(frozen=True, slots=True)
class ObjectVerdicts:
    """What is known of revisions at one moment; `files` are the objects as texts by path."""

    files: Mapping[str, str]
    active: ActiveRevision | None
    rejected: RejectedRevision | None
    blame: bool = True
    """Whether the rejected revision has been the newest for long enough."""

    def of(self, path: str) -> tuple[tuple[StatusCondition, ...], tuple[ShownDiagnostic, ...]]:
        """The conditions and findings of one object."""
        text = self.files[path]
        in_force = self.active is not None and self.active.revision.files.get(path) == text
        bad = self.rejected
        judged = bad is not None and bad.revision.files.get(path) == text
        if bad is not None and judged and self.blame and path in self.guilty:
            mine = [one for one in bad.errors if _names(one, path)] or list(bad.errors)
            told = shown(mine, bad.sources, fields=True)
            return failed(str(bad.reason), _message(told[0], len(mine)) if told else bad.message), told
        if in_force:
            assert self.active is not None
            own = [one for one in self.active.found if one.span.file == path]
            return good("Succeeded", "in force"), shown(own, self.active.sources, fields=True)
        if bad is not None and judged and self.blame:
            others = ", ".join(sorted(self.guilty)[:3]) or str(bad.reason)
            return under_way("Blocked", f"waits for what does not compile: {others}", ready="False"), ()
        return under_way("Progressing", "waits for its revision to be active"), ()

    @property
    def guilty(self) -> frozenset[str]:
        """The objects that the rejected revision is rejected for."""
        bad = self.rejected
        if bad is None:
            return frozenset()
        files = bad.revision.files
        before = self.active.revision.files if self.active is not None else {}
        changed = {path for path, text in files.items() if before.get(path) != text}
        named = {path for path in files if any(_names(one, path) for one in bad.errors)}
        return frozenset(named & changed or named or changed)


class StatusWriter:
    """Keeps the status of all policy objects right while `run` runs; runs on the leader only.

    `tree` gives the objects as texts by path, as the source last gave them.
    """

    def __init__(
        self,
        cluster: Cluster,
        source: ClusterSource,
        live: LivePolicies,
        metrics: Metrics,
        backoff: Backoff,
        *,
        now: Callable[[], int],
        grace: float = GRACE,
    ) -> None:
        self._cluster = cluster
        self._source = source
        self._live = live
        self._metrics = metrics
        self._now = now
        self._grace = grace
        self._loop = ReconcileLoop(self._reconcile, backoff)

    async def run(self) -> None:
        """Write until cancelled."""
        end = [
            self._live.subscribe(lambda _: self._loop.trigger()),
            self._live.subscribe_rejected(lambda _: self._loop.trigger()),
            self._source.subscribe(self._loop.trigger),
        ]
        try:
            await self._loop.run()
        finally:
            for unsubscribe in end:
                unsubscribe()

    async def _reconcile(self) -> float | None:
        return None if await self.write() else self._due()

    async def write(self) -> int:
        """Write every status that differs; how many could not be written."""
        verdicts = self._verdicts()
        failures = 0
        for path, obj in self._source.objects.items():
            if path not in verdicts.files:
                continue
            conditions, found = verdicts.of(path)
            body = readable(lambda one: self._wanted(one, conditions, found), obj)  # noqa: B023  # asked at once
            kind = path.partition("/")[0]
            if body is None:
                continue
            if isinstance(body, Unreadable):
                self._metrics.add("koordpolicy_policy_status_writes_total", kind=kind, result="failed")
                LOG.warning("the status of %s cannot be read: %s", path.removesuffix(".yaml"), body.reason)
                continue
            try:
                metadata = obj["metadata"]
                version = str(metadata.get("resourceVersion", ""))
                await apply_status(
                    self._cluster, _BY_KIND[kind], metadata["name"], body, MANAGER, version=version
                )
                self._metrics.add("koordpolicy_policy_status_writes_total", kind=kind, result="written")
            except NotFound:
                continue
            except Conflict:
                failures += 1  # by the next time it is heard of what changed it, perhaps by this writer
            except KubeError as error:
                failures += 1
                self._metrics.add("koordpolicy_policy_status_writes_total", kind=kind, result="failed")
                LOG.warning("the status of %s cannot be written: %s", path.removesuffix(".yaml"), error)
        return failures

    def _verdicts(self) -> ObjectVerdicts:
        live = self._live
        rejected = live.rejected
        blame = rejected is None or self._now() - rejected.at >= self._grace * 1e9
        return ObjectVerdicts(self._source.texts(), live.active, rejected, blame)

    def _due(self) -> float:
        """Seconds until somebody has to be blamed, or everything is looked at again."""
        rejected = self._live.rejected
        if rejected is None:
            return REFRESH
        left = self._grace - (self._now() - rejected.at) / 1e9
        return left + 0.01 if left > 0 else REFRESH

    def _wanted(
        self, obj: Object, conditions: tuple[StatusCondition, ...], found: tuple[ShownDiagnostic, ...]
    ) -> dict[str, Any] | None:
        """The status to apply, None when it stands already."""
        status: Mapping[str, Any] = obj.get("status") or {}
        generation = int(obj["metadata"].get("generation", 1))
        standing = status.get("conditions") or ()
        told = status_to_json(RevisionStatus(generation, (), found, len(found) or None))
        same = (
            status.get("observedGeneration") == generation
            and list(status.get("diagnostics") or ()) == told.get("diagnostics", [])
            and stands(conditions, standing, generation)
        )
        if same:
            return None
        told["conditions"] = status_to_json(
            RevisionStatus(conditions=settled(conditions, standing, generation, self._now()))
        )["conditions"]
        if conditions[0].status == "True" and self._live.active is not None:
            told["revision"] = self._live.active.revision.name
        elif status.get("revision"):
            told["revision"] = status["revision"]
        return told


def _names(one: Diagnostic, path: str) -> bool:
    """Whether an error speaks of a file, at its place or in its notes."""
    if one.severity is not Severity.ERROR:
        return False
    return one.span.file == path or any(note.span and note.span.file == path for note in one.notes)


def _message(first: ShownDiagnostic, number: int) -> str:
    more = f" (and {number - 1} more)" if number > 1 else ""
    return f"{first.code} {first.message}{more}"
