"""Revisions of a live cluster as the console shows them, and what its owner asks of their rollouts."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.rollouts.asking import request_of, sensible
from koordpolicy.cli.rollouts.found import ask_in, found_in
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.diagnostics.wording import worded
from koordpolicy.kube.errors import Forbidden, KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import InstanceState, from_json
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.rollout.cluster_store import command_of, state_of
from koordpolicy.runtime.rollout.state import RolloutAction


class LiveRevisions:
    """What a cluster tells of revisions, as of the latest look. `by` is who asks for things here, as histories show it.

    `here` is the digest of the tree that answers in the console, empty where it is not known.
    """

    def __init__(self, cluster: Cluster, by: str) -> None:
        self._cluster = cluster
        self._by = by
        self.here = ""
        self._seen: list[dict[str, Any]] = []

    async def look(self) -> None:
        """Read them anew; nothing where the cluster has no such objects, or they may not be read. Raises `KubeError`."""
        try:
            found = (await self._cluster.list(POLICY_REVISIONS)).items
            self._seen = sorted(map(_shown, found), key=_newest, reverse=True)
        except (NotFound, Forbidden):
            self._seen = []

    def all(self) -> list[dict[str, Any]]:
        """The objects, the newest first.

        Each has `asked`, what was asked of its rollout and is not obeyed yet, `actions`, what may be asked, `live`, whether processes
        decide by it, and `here`, whether the console answers by the same content.
        """
        return [{**one, "here": bool(self.here) and _digest(one) == self.here} for one in self._seen]

    async def ask(self, name: str, action: str) -> str:
        """See `RolloutHand`."""
        if action not in tuple(RolloutAction):
            raise CannotAnswer(f"`action` is one of {', '.join(RolloutAction)}")
        try:
            asked = request_of(await found_in(self._cluster), name, RolloutAction(action), self._by)
            if asked.command is not None:
                await ask_in(self._cluster, asked.rollout.state.subject.name, asked.command)
            await self.look()
        except CannotRunError as error:
            raise CannotAnswer(str(error)) from None
        except KubeError as error:
            raise CannotAnswer(f"the cluster does not let this console do so: {worded(error)}") from None
        return asked.said


def _shown(obj: Object) -> dict[str, Any]:
    state, command = state_of(obj), command_of(obj)
    return {
        **obj,
        "live": _is_live(obj),
        "asked": None if command is None else {"action": str(command.action), "by": command.by},
        "actions": [] if state is None else [str(one) for one in sensible(state.phase)],
    }


def _is_live(obj: Object) -> bool:
    revision = readable(from_json, obj)
    if isinstance(revision, Unreadable):
        return False
    status = revision.status
    return status.agents.running > 0 or any(
        one.state in {InstanceState.ACTIVE, InstanceState.CANARY} for one in status.instances
    )


def _digest(obj: Object) -> str:
    spec = obj.get("spec")
    return str(spec.get("digest", "")) if isinstance(spec, Mapping) else ""


def _newest(obj: Object) -> tuple[str, str]:
    """When it came, or since when processes decide by it, where it came again: times as the API writes them sort as texts."""
    revision = readable(from_json, obj)
    instances = () if isinstance(revision, Unreadable) else revision.status.instances
    since = [one.since for one in instances if one.state is InstanceState.ACTIVE]
    made = str(obj["metadata"].get("creationTimestamp") or "")
    return max([made, *since]), str(obj["metadata"]["name"])
