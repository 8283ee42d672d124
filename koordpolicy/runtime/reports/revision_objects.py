"""PolicyRevision objects in a cluster: made, read, and written part by part.

Each process owns its entry under `status.instances`; what is said of the revision as a whole is owned by one field
manager, whoever speaks. A status is never left without conditions: the API server refuses one without any content,
and people cannot tell one without conditions from one that nobody has looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.kube.errors import AlreadyExists, Conflict, NotFound
from koordpolicy.kube.port import Cluster, Object, Preconditions
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import (
    InstanceState,
    PolicyRevision,
    RevisionStatus,
    status_to_json,
    to_json,
)
from koordpolicy.runtime.counting import Counters
from koordpolicy.runtime.reports.conditions import NOT_RUN, READY, REPORTED, reported, settled
from koordpolicy.runtime.reports.presence import Member
from koordpolicy.runtime.reports.status_patches import apply_status, field_manager

SPEAKER: Final = "koordpolicy-manager"
"""The field manager of what is said of a revision as a whole: one name, so that who speaks next can take it back."""

ATTEMPTS: Final = 5
"""How often a write is tried on an object that others write or remove at the same time."""

_WRITES: Final = "koordpolicy_policy_status_writes_total"


def manager_of(member: Member) -> str:
    """The field manager of a process's entries: one an instance, since applying lets go what is no longer said."""
    return field_manager(f"koordpolicy-{member.component}-{member.instance}")


@dataclass(frozen=True, slots=True)
class Who:
    """The process that reports: `instance` is its pod's name, or its host's; `node` where it belongs to one."""

    component: str
    instance: str
    node: str = ""

    @property
    def member(self) -> Member:
        """By what others know it."""
        return Member(self.component, self.instance)

    @property
    def manager(self) -> str:
        """The field manager of its entries."""
        return manager_of(self.member)


class RevisionObjects:
    """The PolicyRevision objects of a cluster. All methods raise KubeError.

    `now` gives nanoseconds since 1970.
    """

    def __init__(self, cluster: Cluster, metrics: Counters, now: Callable[[], int]) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self.now = now

    async def all(self) -> Sequence[Object]:
        """All of them."""
        return (await self._cluster.list(POLICY_REVISIONS)).items

    async def of(self, revision: PolicyRevision) -> Object:
        """The object of a revision, made where there is none."""
        return await ensured(self._cluster, revision)

    async def begun(self, obj: Object, who: Who) -> None:
        """Give an object its first conditions where nobody has judged it; Conflict where somebody does just now."""
        if has_conditions(obj):
            return
        metadata = obj["metadata"]
        generation = generation_of(obj)
        conditions = settled(reported(f"{who.component} {who.instance}"), (), generation, self.now())
        status = status_to_json(RevisionStatus(generation, conditions))
        await self.apply(metadata["name"], status, SPEAKER, version=str(metadata.get("resourceVersion", "")))

    async def release(self, name: str, member: Member) -> None:
        """Take back a process's entry, ours or that of one that is gone."""
        for left in reversed(range(ATTEMPTS)):
            obj = await found(self._cluster, name)
            if obj is None or entry_of(obj, member) is None:
                return
            try:
                await self.begun(obj, Who(*member))
                await self.apply(name, {}, manager_of(member))
                return
            except NotFound:
                return
            except Conflict:
                if not left:
                    raise

    async def apply(self, name: str, status: Mapping[str, Any], manager: str, *, version: str = "") -> None:
        """Say something in a status, as a field manager; with `version`, of the object as it was read."""
        await apply_status(self._cluster, POLICY_REVISIONS, name, status, manager, version=version)
        self._metrics.add(_WRITES, kind="PolicyRevision", result="written")

    def failed(self) -> None:
        """Count a report that could not be written."""
        self._metrics.add(_WRITES, kind="PolicyRevision", result="failed")

    async def remove(self, obj: Object) -> None:
        """Delete an object as it was read; Conflict where it has changed since."""
        metadata = obj["metadata"]
        preconditions = Preconditions(metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        try:
            await self._cluster.delete(POLICY_REVISIONS, metadata["name"], preconditions=preconditions)
        except NotFound:
            return


async def found(cluster: Cluster, name: str) -> Object | None:
    """An object as it is now; None where there is none. Raises KubeError."""
    try:
        return await cluster.get(POLICY_REVISIONS, name)
    except NotFound:
        return None


async def ensured(cluster: Cluster, revision: PolicyRevision) -> Object:
    """The object of a revision, made where there is none, without a status. Raises KubeError."""
    standing = await found(cluster, revision.name)
    if standing is not None:
        return standing
    bare = replace(revision, status=RevisionStatus())
    try:
        return await cluster.create(POLICY_REVISIONS, to_json(bare), field_manager="koordpolicy")
    except AlreadyExists:
        return await cluster.get(POLICY_REVISIONS, revision.name)


def regarding(name: str, uid: str = "") -> Object:
    """As much of an object as Events need to speak of it."""
    return {
        "apiVersion": POLICY_REVISIONS.api_version,
        "kind": POLICY_REVISIONS.kind,
        "metadata": {"name": name, **({"uid": uid} if uid else {})},
    }


def generation_of(obj: Object) -> int:
    """The generation that a status speaks of."""
    return int(obj["metadata"].get("generation", 1))


def conditions_of(obj: Object) -> Sequence[Mapping[str, Any]]:
    """What is said of the revision as a whole."""
    return (obj.get("status") or {}).get("conditions") or ()


def has_conditions(obj: Object) -> bool:
    """Whether somebody has said anything of the revision as a whole."""
    return any(one.get("type") == READY for one in conditions_of(obj))


def is_judged(obj: Object) -> bool:
    """Whether somebody has found out what becomes of the revision."""
    ready = next((one for one in conditions_of(obj) if one.get("type") == READY), {})
    return ready.get("reason") not in (None, REPORTED, NOT_RUN)


def entries_of(obj: Object) -> Sequence[Mapping[str, Any]]:
    """What processes have said, each of itself."""
    return (obj.get("status") or {}).get("instances") or ()


def entry_of(obj: Object, member: Member) -> Mapping[str, Any] | None:
    """What one process has said."""
    return next((dict(entry) for entry in entries_of(obj) if member_of(entry) == member), None)


def member_of(entry: Mapping[str, Any]) -> Member:
    """Whose entry it is."""
    return Member(str(entry.get("component", "")), str(entry.get("name", "")))


def put_off_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The requests that the API server puts off, as a process says in its entry."""
    said = entry.get("putOff")
    return tuple(map(str, said)) if isinstance(said, list | tuple) else ()


def members_of(obj: Object, state: InstanceState) -> frozenset[Member]:
    """The processes in whose entries a state stands."""
    return frozenset(member_of(entry) for entry in entries_of(obj) if entry.get("state") == state)


def is_running(obj: Object) -> bool:
    """Whether a process runs the revision, or may yet."""
    return any(entry.get("state") != InstanceState.REJECTED for entry in entries_of(obj))
