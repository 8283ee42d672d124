"""What is said of policy revisions as a whole, by the one process that speaks for all.

That is the manager that leads. Where no manager is there, as in a cluster that only schedules by policy, the first
process by component and name speaks in its place.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from koordpolicy.kube.errors import Conflict, Forbidden, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.model.policy_revision import (
    Condition,
    Instance,
    PolicyRevision,
    RevisionStatus,
    status_to_json,
)
from koordpolicy.runtime.conditions import READY, RECONCILING, settled, stands, superseded
from koordpolicy.runtime.presence import Member, RollCall
from koordpolicy.runtime.revision_objects import (
    SPEAKER,
    RevisionObjects,
    conditions_of,
    entries_of,
    generation_of,
    is_running,
    member_of,
)

LOG: Final = logging.getLogger(__name__)

KEPT: Final = 20
"""PolicyRevision objects that stay; older ones that nobody runs go."""
LEADING: Final = "manager"
"""The component that speaks wherever it is."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is to stand about one revision: a process's entry, and what is said of it as a whole."""

    revision: PolicyRevision
    instance: Instance
    conditions: tuple[Condition, ...]


class Speaker:
    """Says of revisions as a whole what their processes do not. `own` is the process that this is. Raises KubeError."""

    def __init__(self, objects: RevisionObjects, roll: RollCall, own: Member) -> None:
        self._objects = objects
        self._roll = roll
        self._own = own
        self._told: set[str] = set()
        self._gone: frozenset[Member] = frozenset()
        self._first = False
        self.looked = False
        """Whether it is known who is there."""

    def speaks(self, *, leads: bool) -> bool:
        """Whether this process is the one; `leads` says that it is the manager that leads."""
        return leads or self._first

    async def look(self) -> None:
        """See which processes there are."""
        try:
            self._gone = await self._roll.absent(
                {member_of(entry) for obj in await self._objects.all() for entry in entries_of(obj)}
            )
        except Forbidden as error:
            self._tell_once(f"which processes there are cannot be told: {error.message}")
            return
        present = self._roll.present | {self._own}
        self._first = self._own == min(present) and not any(one.component == LEADING for one in present)
        self.looked = True

    async def clear(self) -> None:
        """Take back what processes said that are gone, and their leases."""
        if not self._gone:
            return
        for obj in await self._objects.all():
            for entry in entries_of(obj):
                member = member_of(entry)
                if member in self._gone and member != self._own:
                    LOG.info("%s %s is gone: it runs %s no more", *member, obj["metadata"]["name"])
                    await self._objects.release(str(obj["metadata"]["name"]), member)
        await self._roll.forget(self._gone - {self._own})

    async def speak(self, obj: Object, report: Report) -> bool:
        """Say of a revision what is wrong with it and what becomes of it; whether that was news."""
        status = obj.get("status") or {}
        generation, standing = generation_of(obj), conditions_of(obj)
        bare = status_to_json(report.revision.status)
        same = {key: status.get(key) for key in bare} == bare and not (
            status.get("diagnostics") and "diagnostics" not in bare
        )
        if same and stands(report.conditions, standing, generation):
            return False
        conditions = settled(report.conditions, standing, generation, self._objects.now())
        whole = RevisionStatus(
            generation,
            conditions,
            report.revision.status.diagnostics,
            report.revision.status.diagnostics_total,
            report.revision.status.rules,
        )
        await self._objects.apply(report.revision.name, status_to_json(whole), SPEAKER)
        return not stands(report.conditions, standing, generation)

    async def collect(self, wanted: Collection[str], active: str) -> None:
        """Say of revisions that others have taken their place, and remove the oldest that nobody runs.

        `wanted` are the objects of what this process knows of now, `active` what people call the active revision.
        """
        listed = await self._objects.all()
        others = [obj for obj in listed if obj["metadata"]["name"] not in wanted]
        for obj in others:
            if active and _is_over(obj):
                await self._supersede(obj, f"{active} has taken its place")
        old = sorted(
            (obj for obj in others if not is_running(obj)),
            key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")),
        )
        for obj in old[: max(0, len(listed) - KEPT)]:
            try:
                await self._objects.remove(obj)
            except Conflict:
                continue  # somebody has just written it; the next look finds it as it is then
            except Forbidden as error:
                self._tell_once(f"old policy revisions stay: {error.message}")
                return

    async def _supersede(self, obj: Object, message: str) -> None:
        generation = generation_of(obj)
        conditions = settled(superseded(message), conditions_of(obj), generation, self._objects.now())
        status = obj.get("status") or {}
        kept = {key: status[key] for key in ("diagnostics", "diagnosticsTotal", "rules") if key in status}
        body = {**kept, **status_to_json(RevisionStatus(generation, conditions))}
        try:
            await self._objects.apply(obj["metadata"]["name"], body, SPEAKER)
        except NotFound:
            return

    def _tell_once(self, what: str) -> None:
        if what not in self._told:
            LOG.warning("%s", what)
            self._told.add(what)


def _is_over(obj: Object) -> bool:
    """Whether a revision that is not wanted here has to be called superseded.

    One that decided, or might have, is. One that a process runs but nobody has judged is newer than what we know.
    """
    standing = {one.get("type"): one.get("status") for one in conditions_of(obj)}
    if "True" in (standing.get(READY), standing.get(RECONCILING)):
        return True
    return standing.get(READY) in (None, "Unknown") and not is_running(obj)
