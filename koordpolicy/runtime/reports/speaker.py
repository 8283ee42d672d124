"""What is said of policy revisions as a whole, by the one process that speaks for all.

That is the manager that leads. Where no manager is there, as in a cluster that only schedules by policy, the first
process by component and name speaks in its place.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.kube.errors import Conflict, Forbidden, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.model.policy_revision import (
    Instance,
    InstanceState,
    PolicyRevision,
    RevisionStatus,
    StatusCondition,
    status_to_json,
)
from koordpolicy.runtime.reports.conditions import (
    NOT_RUN,
    READY,
    RECONCILING,
    STALLED,
    THROTTLED,
    failed,
    good,
    not_run,
    settled,
    stands,
    superseded,
    throttled,
)
from koordpolicy.runtime.reports.presence import Member, RollCall
from koordpolicy.runtime.reports.revision_objects import (
    SPEAKER,
    RevisionObjects,
    conditions_of,
    entries_of,
    generation_of,
    is_judged,
    is_running,
    member_of,
    members_of,
    put_off_of,
)

LOG: Final = logging.getLogger(__name__)

KEPT: Final = 20
"""PolicyRevision objects that stay; older ones that nobody runs go."""
_NAMED: Final = 3
"""Revisions that a message names."""
LEADING: Final = "manager"
"""The component that speaks wherever it is."""


@dataclass(frozen=True, slots=True)
class RevisionReport:
    """What is to stand about one revision: a process's entry, and what is said of it as a whole."""

    revision: PolicyRevision
    instance: Instance
    conditions: tuple[StatusCondition, ...]


class Speaker:
    """Says of revisions as a whole what their processes do not. `own` is the process that this is. Raises KubeError."""

    def __init__(self, objects: RevisionObjects, roll: RollCall, own: Member) -> None:
        self._objects = objects
        self._roll = roll
        self._own = own
        self._told: set[str] = set()
        self._gone: frozenset[Member] = frozenset()
        self._first = False
        self._seen: frozenset[tuple[str, Member, str]] = frozenset()
        self._surveyed: frozenset[tuple[str, Member, str]] = frozenset()
        self._running: dict[str, frozenset[Member]] = {}
        self._put_off: dict[str, dict[str, tuple[str, ...]]] = {}
        """What others say that the API server puts off, by revision and process."""
        self.looked = False
        """Whether it is known who is there."""
        self.struck: frozenset[str] = frozenset()
        """The revisions without an entry of this process."""

    def speaks(self, *, leads: bool) -> bool:
        """Whether this process is the one; `leads` says that it is the manager that leads."""
        return leads or self._first

    async def look(self) -> None:
        """See which processes there are."""
        listed = await self._objects.all()
        self._seen = self._others(listed)
        self.struck = frozenset(
            str(obj["metadata"]["name"])
            for obj in listed
            if all(member_of(entry) != self._own for entry in entries_of(obj))
        )
        try:
            self._gone = await self._roll.absent(
                {member_of(entry) for obj in listed for entry in entries_of(obj)}
            )
        except Forbidden as error:
            self._tell_once(f"which processes there are cannot be told: {error.message}")
            return
        present = self._roll.present | {self._own}
        self._first = self._own == min(present) and not any(one.component == LEADING for one in present)
        self.looked = True

    @property
    def news(self) -> bool:
        """Whether other processes run something else than when it was last said who runs what."""
        return self._seen != self._surveyed

    async def survey(self, active: str) -> None:
        """See who runs what; `active` is the object of what this process runs, "" where it runs nothing."""
        listed = await self._objects.all()
        self._surveyed = self._seen = self._others(listed)
        self._running = self._decided_by(listed, active)
        self._put_off = {
            str(obj["metadata"]["name"]): {
                " ".join(member): what
                for entry in entries_of(obj)
                if (member := member_of(entry)) != self._own and (what := put_off_of(entry))
            }
            for obj in listed
        }

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

    async def speak(self, obj: Object, report: RevisionReport, *, version: str = "") -> bool:
        """Say of a revision what is wrong with it and what becomes of it; whether that was news.

        With `version`, of the object as it was read: Conflict where it has changed since.
        """
        status = obj.get("status") or {}
        generation, standing = generation_of(obj), conditions_of(obj)
        bare = status_to_json(report.revision.status)
        same = {key: status.get(key) for key in bare} == bare and not (
            status.get("diagnostics") and "diagnostics" not in bare
        )
        wanted = report.conditions
        if report.instance.state is InstanceState.ACTIVE:
            wanted = _in_how_many(wanted, report.revision.name, self._running)
            late = dict(self._put_off.get(report.revision.name, {}))
            if report.instance.put_off:
                late[" ".join(self._own)] = report.instance.put_off
            wanted = (*wanted, *throttled(late))
        if same and stands(wanted, standing, generation):
            return False
        conditions = settled(wanted, standing, generation, self._objects.now())
        whole = RevisionStatus(
            generation,
            conditions,
            report.revision.status.diagnostics,
            report.revision.status.diagnostics_total,
            report.revision.status.rules,
        )
        await self._objects.apply(report.revision.name, status_to_json(whole), SPEAKER, version=version)
        # How many processes run it changes with each of them: that is no outcome.
        return _outcome(wanted) != {
            (one.get("type"), one.get("status"), one.get("reason"))
            for one in standing
            if one.get("type") != THROTTLED
        }

    async def collect(self, wanted: Collection[str], active: str, decides: str) -> None:
        """Say what became of revisions that are not `wanted`, and remove the oldest that nobody runs.

        `wanted` are the objects of what this process knows of now, `active` what people call the active revision and
        `decides` its object, "" where there is none.
        """
        listed = await self._objects.all()
        others = [obj for obj in listed if obj["metadata"]["name"] not in wanted]
        running = self._decided_by(listed, decides)
        for obj in others:
            conditions = _fate(obj, active, running)
            if conditions and not stands(conditions, conditions_of(obj), generation_of(obj)):
                await self._say(obj, conditions)
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

    def _others(self, listed: Iterable[Object]) -> frozenset[tuple[str, Member, str]]:
        """What all but this process say that they make of which revision, and what keeps them from it."""
        return frozenset(
            (str(obj["metadata"]["name"]), member, " ".join((str(entry.get("state")), *put_off_of(entry))))
            for obj in listed
            for entry in entries_of(obj)
            if (member := member_of(entry)) != self._own
        )

    def _decided_by(self, listed: Iterable[Object], active: str) -> dict[str, frozenset[Member]]:
        """Which processes decide by which revision; this one by `active`, whatever its entry says yet."""
        running = {
            str(obj["metadata"]["name"]): members_of(obj, InstanceState.ACTIVE) - {self._own}
            for obj in listed
        }
        if active:
            running[active] = running.get(active, frozenset()) | {self._own}
        return running

    async def _say(self, obj: Object, wanted: Sequence[StatusCondition]) -> None:
        generation = generation_of(obj)
        conditions = settled(wanted, conditions_of(obj), generation, self._objects.now())
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


def _fate(obj: Object, active: str, running: Mapping[str, frozenset[Member]]) -> tuple[StatusCondition, ...]:
    """What is to be said of a revision that is not wanted here; nothing where what stands is to stay.

    Only what was good can be superseded: a revision that was rejected keeps its reason for good.
    """
    standing = {one.get("type"): one for one in conditions_of(obj)}
    ready = standing.get(READY, {})
    if standing.get(STALLED, {}).get("status") == "True":
        return ()
    name = str(obj["metadata"]["name"])
    if running.get(name):
        reason = str(ready["reason"]) if ready.get("status") == "True" else "Succeeded"
        return _in_how_many(good(reason, "the revision decides"), name, running)
    if "True" in (ready.get("status"), standing.get(RECONCILING, {}).get("status")):
        return superseded(f"{active} has taken its place") if active else ()
    if is_judged(obj) or is_running(obj):
        return ()
    by = sorted(members_of(obj, InstanceState.REJECTED))
    if by:
        return failed("Rejected", f"{by[0].component} {by[0].instance} rejects it; its log says why")
    if ready.get("reason") == NOT_RUN:
        return ()
    return not_run(f"no process runs it; {active} decides" if active else "no process runs it")


def _in_how_many(
    conditions: Sequence[StatusCondition], name: str, running: Mapping[str, frozenset[Member]]
) -> tuple[StatusCondition, ...]:
    """Conditions of a revision that decides, saying so where it does not decide everywhere."""
    here = running.get(name, frozenset())
    everywhere = frozenset[Member]().union(*running.values())
    elsewhere = sorted(other for other, members in running.items() if members - here)
    if not elsewhere:
        return tuple(conditions)
    more = f" and {len(elsewhere) - _NAMED} more" if len(elsewhere) > _NAMED else ""
    where = (
        f" in {len(here)} of {len(everywhere)} processes; others run {', '.join(elsewhere[:_NAMED])}{more}"
    )
    return tuple(replace(one, message=one.message + where) for one in conditions)


def _outcome(conditions: Iterable[StatusCondition]) -> set[tuple[str, str, str]]:
    return {(one.type, one.status, one.reason) for one in conditions if one.type != THROTTLED}
