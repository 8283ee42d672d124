"""Rollouts in PolicyRevision objects: `status.rollout` for everybody to see, annotations as commands."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import NO_AGENTS, InstanceState, PolicyRevision, agents_of
from koordpolicy.model.protocol import ROLLOUT, ROLLOUT_BY, ROLLOUT_ID
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.reports.revision_objects import ensured, found
from koordpolicy.runtime.reports.status_patches import apply_status, field_manager
from koordpolicy.runtime.rollout.counts import ComparisonCounts, counts_from_json, counts_to_json, sum_of
from koordpolicy.runtime.rollout.judging import Gathered
from koordpolicy.runtime.rollout.state import (
    RolloutAction,
    RolloutCommand,
    RolloutProgress,
    Subject,
    from_json,
    to_json,
)
from koordpolicy.runtime.rollout.store import StoreTrouble

MANAGER: Final = "koordpolicy-rollout"
_PUBLISH: Final = 30.0
"""Seconds between two reports of one process, and between two looks at the whole."""


class ClusterStore:
    """The PolicyRevision objects, asked and written through `cluster`. `instance` names this process.

    `monotonic` gives seconds that never run backwards. Without `publishes` nothing is told of what this process counts: of
    a component that is on every node, what all of them wrote would not fit into one object.
    """

    def __init__(
        self,
        cluster: Cluster,
        instance: str,
        *,
        monotonic: Callable[[], float],
        publish_every: float = _PUBLISH,
        poll: float = 5.0,
        publishes: bool = True,
    ) -> None:
        self._cluster = cluster
        self._instance = instance
        self._manager = field_manager(f"{MANAGER}-{instance}")
        self._monotonic = monotonic
        self._publish_every = publish_every
        self._poll = poll
        self._publishes = publishes
        self._told: tuple[str, str, ComparisonCounts, bool] | None = None
        self._latest: tuple[str, str, ComparisonCounts, bool] | None = None
        self._told_at = 0.0

    async def load(self, subject: Subject) -> RolloutProgress | None:
        """See `RolloutStore.load`."""
        obj = await self._get(subject.name)
        return None if obj is None else state_of(obj)

    async def unfinished(self) -> tuple[RolloutProgress, ...]:
        """See `RolloutStore.unfinished`."""
        try:
            listed = await self._cluster.list(POLICY_REVISIONS)
        except NotFound:
            return ()
        except KubeError as error:
            raise StoreTrouble(str(error)) from None
        states = (state_of(obj) for obj in listed.items)
        return tuple(state for state in states if state is not None and not state.phase.is_end)

    async def save(self, state: RolloutProgress) -> None:
        """See `RolloutStore.save`. Makes the object where nobody has yet."""
        subject = state.subject
        try:
            revision = PolicyRevision(subject.bundle, subject.revision, subject.digest, subject.commit)
            await ensured(self._cluster, revision)
            await self._apply(subject.name, to_json(state), MANAGER)
        except KubeError as error:
            raise StoreTrouble(str(error)) from None

    async def command(self, subject: Subject) -> RolloutCommand | None:
        """See `RolloutStore.command`."""
        obj = await self._get(subject.name)
        return None if obj is None else command_of(obj)

    async def done(self, subject: Subject, command: RolloutCommand) -> None:
        """See `RolloutStore.done`: the annotations go."""
        gone = {ROLLOUT: None, ROLLOUT_BY: None, ROLLOUT_ID: None}
        body = {"metadata": {"annotations": gone}}
        try:
            await self._cluster.patch(POLICY_REVISIONS, subject.name, MergePatch(body), field_manager=MANAGER)
        except NotFound:
            return
        except KubeError as error:
            raise StoreTrouble(str(error)) from None

    async def publish(self, subject: Subject, step: str, counts: ComparisonCounts, *, canary: bool) -> None:
        """See `RolloutStore.publish`. Written when it differs, not more often than twice a minute but for first troubles."""
        told = self._latest = (subject.name, step, counts, canary)
        before = self._told
        if told == before or not self._publishes:
            return
        soon = before is not None and self._monotonic() - self._told_at < self._publish_every
        if before is not None and soon and before[:2] == told[:2] and not _worse(before[2], counts):
            return
        entry = {"name": self._instance, "step": step, "canary": canary, **counts_to_json(counts)}
        try:
            await self._apply(subject.name, {"observations": [entry]}, self._manager)
        except NotFound:
            return  # nobody has shown the revision yet
        except KubeError as error:
            raise StoreTrouble(str(error)) from None
        self._told, self._told_at = told, self._monotonic()

    async def gathered(self, subject: Subject, step: str) -> Gathered:
        """See `RolloutStore.gathered`."""
        obj = await self._get(subject.name)
        if obj is None:
            return Gathered()
        own = self._latest
        if own is None or own[:2] != (subject.name, step):
            return gathered_of(obj, step)
        return gathered_of(obj, step, (self._instance, own[2], own[3]))

    async def news(self, seconds: float) -> None:
        """See `RolloutStore.news`: a look now and then; a rollout has time."""
        await asyncio.sleep(min(self._poll, seconds))

    async def _get(self, name: str) -> Object | None:
        try:
            return await found(self._cluster, name)
        except KubeError as error:
            raise StoreTrouble(str(error)) from None

    async def _apply(self, name: str, rollout: Mapping[str, Any], manager: str) -> None:
        await apply_status(self._cluster, POLICY_REVISIONS, name, {"rollout": rollout}, manager)


def subject_of(obj: Object) -> Subject:
    """The revision that an object speaks of."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    return Subject(
        str(obj["metadata"]["name"]),
        str(spec.get("bundle", "")),
        str(spec.get("revision", "")),
        str(spec.get("digest", "")),
        "",
        str(spec.get("commit", "")),
    )


def state_of(obj: Object) -> RolloutProgress | None:
    """The state that an object shows; None where no rollout has begun, or none of ours."""
    rollout = (obj.get("status") or {}).get("rollout") or {}
    if not rollout.get("stepName"):
        return None
    try:
        return from_json(subject_of(obj), rollout)
    except ObjectError:
        return None


def command_of(obj: Object) -> RolloutCommand | None:
    """What the object's annotations ask for."""
    said: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    action = said.get(ROLLOUT, "")
    if action not in tuple(RolloutAction):
        return None
    return RolloutCommand(RolloutAction(action), said.get(ROLLOUT_BY, ""), said.get(ROLLOUT_ID, ""))


def _worse(before: ComparisonCounts, counts: ComparisonCounts) -> bool:
    """Whether there is a first difference or failure: what the leader should hear of at once."""
    old, new = before.total, counts.total
    return (not old.different and bool(new.different)) or (not old.failed and bool(new.failed))


def gathered_of(obj: Object, step: str, own: tuple[str, ComparisonCounts, bool] | None = None) -> Gathered:
    """The observations of a step in an object, added up, and the processes that have seen the revision, agents included.

    `own` is the asking process, what it has counted by now, and whether it has canaries: newer than its own entry.
    """
    status = obj.get("status") or {}
    reports = [
        one
        for one in (status.get("rollout") or {}).get("observations") or ()
        if one.get("step") == step and (own is None or one.get("name") != own[0])
    ]
    counts = [] if own is None else [own[1]]
    canary = 0 if own is None else int(own[2])
    for one in reports:
        try:
            counts.append(counts_from_json(one))
        except ObjectError:
            continue
        canary += bool(one.get("canary"))
    instances = status.get("instances") or ()
    rejected = sum(1 for one in instances if one.get("state") == InstanceState.REJECTED)
    said = readable(agents_of, status)
    agents = NO_AGENTS if isinstance(said, Unreadable) else said
    return Gathered(
        sum_of(counts),
        max(len(instances), len(counts)) + agents.seen,
        rejected + agents.rejected,
        canary + agents.canary,
        agents,
    )
