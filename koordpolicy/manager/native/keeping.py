"""Keeps in the cluster the admission policies that a revision's rules and profiles come to. The leader does."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound, Rejected
from koordpolicy.kube.listing import every_object
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    Resource,
)
from koordpolicy.manager.native.admission import NOTHING_NATIVE, NativeAdmission, native_admission
from koordpolicy.manager.native.policies import Policy, PolicyKind
from koordpolicy.manager.webhooks.cluster_profiles import ClusterProfile
from koordpolicy.manager.webhooks.scope import Expression
from koordpolicy.runtime.clock import monotonic

LOG: Final = logging.getLogger(__name__)

KEPT_BY: Final = "koordpolicy.io/kept-by"
KEEPER: Final = "koordpolicy-manager"
LOOK: Final = 10.0
"""Seconds between looks of a replica that does not lead."""
SETTLE: Final = 10.0
"""Seconds that a policy has to be there before webhooks rely on it: API servers take it up in their own time, and tell nobody."""
_OBJECTS: Final = {
    PolicyKind.VALIDATING: (VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS),
    PolicyKind.MUTATING: (MUTATING_POLICIES, MUTATING_POLICY_BINDINGS),
}
"""What a policy of a kind consists of: itself, and its binding."""
MUTATIONS: Final = "MutatingAdmissionPolicies"
"""What is troubled where API servers have none or do not let us have them."""


def no_objects(_graph: RuleGraph) -> Sequence[ClusterProfile]:
    """A cluster without ClusterColocationProfiles."""
    return ()


class NativePolicies:
    """The policies of rules and profiles, with their bindings; without `enabled`, those of an earlier run are taken away.

    Objects of their names that somebody else has made stay as they are, and their rules with the webhook. Where API servers
    have no MutatingAdmissionPolicies, profiles stay. `objects` are the ClusterColocationProfiles whose place no policy takes.
    """

    def __init__(
        self,
        cluster: Cluster,
        spared: Sequence[Expression],
        *,
        enabled: bool,
        clock: Callable[[], float] = monotonic,
        objects: Callable[[RuleGraph], Sequence[ClusterProfile]] = no_objects,
    ) -> None:
        self.written = 0
        self.troubles: dict[str, str] = {}
        """Why a policy is not as it should be, by its name."""
        self._cluster = cluster
        self._spared = tuple(spared)
        self._enabled = enabled
        self._clock = clock
        self._objects = objects
        self._known: tuple[RuleGraph, tuple[ClusterProfile, ...], NativeAdmission] | None = None
        self._unserved = ""
        self._there: dict[Resource, dict[str, Object]] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._gone = False
        self._told: tuple[RuleGraph, frozenset[str]] | None = None
        self._looked = -LOOK

    async def follow(self, graph: Callable[[], RuleGraph]) -> None:
        """Look now and then what is in force, until cancelled: replicas that do not lead have to know as well."""
        while self._enabled:
            if self._clock() - self._looked >= LOOK:
                with suppress(KubeError):  # the leader tells of it; until then nothing counts as in force
                    await self.in_force(graph())
            await asyncio.sleep(LOOK / 4)

    def told(self, graph: RuleGraph) -> frozenset[str]:
        """The targets in force for a revision as last looked at: users hear of these from API servers."""
        known = self._told
        if known is None or known[0] is not graph or self._clock() - self._looked > 3 * LOOK:
            return frozenset()
        return known[1]

    async def in_force(self, graph: RuleGraph) -> frozenset[str]:
        """The targets (`AdmissionRule/NAME`) that API servers decide by themselves by now. Raises KubeError."""
        if not self._enabled:
            return frozenset()
        await self._look()
        wanted, now = await self._wanted(graph), self._clock()
        same = {target: _text(one) for target, one in wanted.policies.items() if self._is_there(one)}
        self._since = {
            target: known if (known := self._since.get(target, ("", now)))[0] == text else (text, now)
            for target, text in same.items()
        }
        settled = {target for target, (_, since) in self._since.items() if now - since >= SETTLE}
        found = frozenset(settled) | wanted.idle
        self._told, self._looked = (graph, found), now
        return found

    async def write(self, graph: RuleGraph) -> None:
        """Make what is missing, change what differs, delete what nobody wants any more. Raises KubeError."""
        if self._gone:
            return
        if not self._enabled:
            try:
                await self._look()
            except (
                Forbidden,
                NotFound,
            ) as error:  # roles or a server of before, with no such policies either
                LOG.info("whether there are admission policies of an earlier run cannot be told: %s", error)
                self._gone = True
                return
        wanted, troubles = await self._wanted(graph), dict[str, str]()
        if self._unserved and self._enabled:
            troubles[MUTATIONS] = self._unserved
        for policy in wanted.policies.values():
            try:
                for resource, obj in _parts(policy):
                    await self._put(resource, obj)
            except (Rejected, Conflict, Forbidden) as error:
                troubles[policy.object_name] = str(error)
                if self.troubles.get(policy.object_name) != str(error):
                    LOG.warning("the admission policy %s cannot be kept: %s", policy.object_name, error)
        self.troubles = troubles
        for kind, (policies, bindings) in _OBJECTS.items():
            names = {one.object_name for one in wanted.policies.values() if one.kind is kind}
            for resource in (bindings, policies):
                for name in sorted(self._there.get(resource, {}).keys() - names):
                    await self._delete(resource, name)
        self._gone = not self._enabled

    async def _wanted(self, graph: RuleGraph) -> NativeAdmission:
        if not self._enabled:
            return NOTHING_NATIVE
        objects = tuple(self._objects(graph))
        if self._known is None or self._known[0] is not graph or self._known[1] != objects:
            # A thousand policies take seconds, in which reviews go on.
            made = await asyncio.to_thread(native_admission, graph, self._spared, objects)
            self._known = (graph, objects, made)
        found = self._known[2]
        return found.without_mutations() if self._unserved else found

    async def _look(self) -> None:
        for resource in _OBJECTS[PolicyKind.VALIDATING]:
            self._there[resource] = await self._kept_of(resource)
        try:
            for resource in _OBJECTS[PolicyKind.MUTATING]:
                self._there[resource] = await self._kept_of(resource)
            self._unserved = ""
        except (Forbidden, NotFound) as error:
            if not self._unserved and self._enabled:
                LOG.info("profiles stay with the webhook: %s", error)
            self._unserved = (
                f"profiles stay with the webhook, API servers of 1.36 or newer could do them: {error}"
            )

    async def _kept_of(self, resource: Resource) -> dict[str, Object]:
        kept = await every_object(self._cluster, resource, label_selector=f"{KEPT_BY}={KEEPER}")
        return {one["metadata"]["name"]: one for one in kept}

    def _is_there(self, policy: Policy) -> bool:
        return all(
            _agrees(self._there.get(resource, {}).get(policy.object_name), obj)
            for resource, obj in _parts(policy)
        )

    async def _put(self, resource: Resource, wanted: dict[str, Any]) -> None:
        name = wanted["metadata"]["name"]
        found = self._there.get(resource, {}).get(name)
        if _agrees(found, wanted):
            return
        if found is None:
            try:
                await self._cluster.create(resource, wanted)
            except AlreadyExists:
                raise Conflict(
                    f"there is a {resource.kind} `{name}` that the manager has not made; delete it to have it kept"
                ) from None
        else:
            version = found["metadata"].get("resourceVersion", "")
            metadata = {**wanted["metadata"], "resourceVersion": version}
            await self._cluster.update(resource, {**wanted, "metadata": metadata})
        self.written += 1

    async def _delete(self, resource: Resource, name: str) -> None:
        try:
            await self._cluster.delete(resource, name)
        except NotFound:
            return
        self.written += 1


def _kept(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata["labels"], KEPT_BY: KEEPER}}}


def _agrees(found: Object | None, wanted: Mapping[str, Any]) -> bool:
    """Whether an object says what it should, whatever else its metadata may say."""
    if found is None or found.get("spec") != wanted["spec"]:
        return False
    return all(
        (found["metadata"].get(field) or {}).get(key) == value
        for field in ("labels", "annotations")
        for key, value in wanted["metadata"][field].items()
    )


def _parts(policy: Policy) -> Sequence[tuple[Resource, dict[str, Any]]]:
    """The objects that a policy consists of, as they are to be."""
    policies, bindings = _OBJECTS[policy.kind]
    return ((policies, _kept(policy.object())), (bindings, _kept(policy.binding())))


def _text(policy: Policy) -> str:
    """What a policy says."""
    return json.dumps([policy.object(), policy.binding()])
