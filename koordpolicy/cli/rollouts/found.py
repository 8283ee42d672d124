"""Rollouts where they are kept: in PolicyRevision objects of a cluster, or in a process's state directory."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from koordpolicy.cli.command import CannotRunError
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster, MergePatch
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.protocol import ROLLOUT, ROLLOUT_BY, ROLLOUT_ID
from koordpolicy.runtime.rollout.cluster_store import gathered_of, state_of
from koordpolicy.runtime.rollout.judging import Gathered
from koordpolicy.runtime.rollout.state import RolloutAction, RolloutCommand, RolloutProgress
from koordpolicy.runtime.rollout.store import FileStore, StoreTrouble

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundRollout:
    """One rollout and what processes report of its present step; `asked` is a command not yet obeyed."""

    state: RolloutProgress
    gathered: Gathered = field(default_factory=Gathered)
    asked: str = ""


class RolloutPlace(Protocol):
    """Where rollouts are. Both raise `CannotRunError`."""

    def rollouts(self) -> tuple[FoundRollout, ...]:
        """All there are, the newest first."""
        ...

    def ask(self, found: FoundRollout, command: RolloutCommand) -> None:
        """Leave a command for whoever runs the rollout."""
        ...


class Directory:
    """The state directory of a process that is alone."""

    def __init__(self, path: str) -> None:
        self._store = FileStore(path)

    def rollouts(self) -> tuple[FoundRollout, ...]:
        """See `RolloutPlace.rollouts`: the last one."""
        try:
            state = self._store.read()
        except StoreTrouble as trouble:
            raise CannotRunError(str(trouble)) from None
        return () if state is None else (FoundRollout(state),)

    def ask(self, found: FoundRollout, command: RolloutCommand) -> None:
        """See `RolloutPlace.ask`."""
        try:
            self._store.ask(command.action, found.state.subject.name, command.by, command.id)
        except StoreTrouble as trouble:
            raise CannotRunError(str(trouble)) from None


class InCluster:
    """A cluster's PolicyRevision objects."""

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        try:
            self._connection = Connection.load(kubeconfig, context, os.environ)
        except ConfigurationError as error:
            raise CannotRunError(str(error)) from None

    def rollouts(self) -> tuple[FoundRollout, ...]:
        """See `RolloutPlace.rollouts`."""
        return asyncio.run(self._with(found_in))

    def ask(self, found: FoundRollout, command: RolloutCommand) -> None:
        """See `RolloutPlace.ask`."""

        async def annotate(cluster: Cluster) -> None:
            await ask_in(cluster, found.state.subject.name, command)

        asyncio.run(self._with(annotate))

    async def _with(self, work: Callable[[Cluster], Awaitable[T]]) -> T:
        try:
            async with connect(self._connection, jitter=random.random, component="rollout") as cluster:
                return await work(cluster)
        except KubeError as error:
            raise CannotRunError(str(error)) from None


async def found_in(cluster: Cluster) -> tuple[FoundRollout, ...]:
    """The rollouts of a cluster, the newest first. Raises `KubeError`."""
    try:
        listed = await cluster.list(POLICY_REVISIONS)
    except NotFound:
        raise CannotRunError("the cluster does not know PolicyRevisions; apply deploy/crds first") from None
    found = []
    for obj in listed.items:
        state = state_of(obj)
        if state is not None:
            annotations: Mapping[str, str] = obj["metadata"].get("annotations") or {}
            asked = annotations.get(ROLLOUT, "")
            found.append(FoundRollout(state, gathered_of(obj, state.step), asked))
    return tuple(sorted(found, key=lambda one: (-one.state.began, one.state.subject.name)))


async def ask_in(cluster: Cluster, name: str, command: RolloutCommand) -> None:
    """Annotate the PolicyRevision. Raises `KubeError`."""
    said = {ROLLOUT: str(command.action), ROLLOUT_BY: command.by, ROLLOUT_ID: command.id}
    await cluster.patch(POLICY_REVISIONS, name, MergePatch({"metadata": {"annotations": said}}))


def chosen(
    found: tuple[FoundRollout, ...], revision: str | None, action: RolloutAction | None
) -> FoundRollout:
    """The rollout that is meant: by name or the beginning of commit or digest, else the only one that goes on."""
    if revision is None:
        going = [one for one in found if not one.state.phase.is_end]
        if len(going) != 1:
            what = "no rollout goes on" if not going else "several rollouts go on; name the revision"
            raise CannotRunError(what)
        return going[0]
    wanted = revision.removeprefix("sha256:").lower()
    fitting = [one for one in found if _is(one.state, wanted)]
    if len(fitting) > 1 and action is not None:
        fitting = [one for one in fitting if not one.state.phase.is_end]
    if not fitting:
        raise CannotRunError(f"there is no rollout of `{revision}`; `koordpolicy rollout status` lists them")
    if len(fitting) > 1:
        names = ", ".join(f"`{one.state.subject.name}`" for one in fitting)
        raise CannotRunError(f"`{revision}` may be {names}")
    return fitting[0]


def _is(state: RolloutProgress, wanted: str) -> bool:
    subject = state.subject
    beginnings = (subject.commit, subject.digest, subject.revision.removeprefix("sha256:"))
    return wanted == subject.name or any(one.startswith(wanted) for one in beginnings if one and wanted)
