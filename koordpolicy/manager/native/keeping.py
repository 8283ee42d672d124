"""Keeps in the cluster the admission policies that a revision's rules come to. The leader does."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound, Rejected
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS, Resource
from koordpolicy.manager.native.rules import NativeRules, native_rules
from koordpolicy.manager.webhooks.scope import Expression
from koordpolicy.runtime.clock import monotonic

LOG: Final = logging.getLogger(__name__)

KEPT_BY: Final = "koordpolicy.io/kept-by"
KEEPER: Final = "koordpolicy-manager"
SETTLE: Final = 10.0
"""Seconds that a policy has to be there before webhooks rely on it: API servers take it up in their own time, and tell nobody."""
_PAGE: Final = 500
_NOTHING: Final = NativeRules({}, (), frozenset())


class NativePolicies:
    """The policies of rules, with their bindings; without `enabled`, those of an earlier run are taken away.

    Objects of their names that somebody else has made stay as they are, and their rules with the webhook.
    """

    def __init__(
        self,
        cluster: Cluster,
        spared: Sequence[Expression],
        *,
        enabled: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.written = 0
        self.troubles: dict[str, str] = {}
        """Why a policy is not as it should be, by its name."""
        self._cluster = cluster
        self._spared = tuple(spared)
        self._enabled = enabled
        self._clock = clock
        self._there: dict[Resource, dict[str, Object]] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._gone = False

    async def in_force(self, graph: RuleGraph) -> frozenset[str]:
        """The rules that API servers decide by themselves by now. Raises KubeError."""
        if not self._enabled:
            return frozenset()
        await self._look()
        wanted, now = self._wanted(graph), self._clock()
        same = {name: text for name, text in _texts(wanted).items() if self._is_there(name, wanted)}
        self._since = {
            name: known if (known := self._since.get(name, ("", now)))[0] == text else (text, now)
            for name, text in same.items()
        }
        settled = {name for name, (_, since) in self._since.items() if now - since >= SETTLE}
        return frozenset(settled) | wanted.idle

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
        wanted, troubles = self._wanted(graph), dict[str, str]()
        for policy in wanted.policies.values():
            try:
                await self._put(VALIDATING_POLICIES, _kept(policy.object()))
                await self._put(VALIDATING_POLICY_BINDINGS, _kept(policy.binding()))
            except (Rejected, Conflict) as error:
                troubles[policy.object_name] = str(error)
                if self.troubles.get(policy.object_name) != str(error):
                    LOG.warning("the admission policy %s cannot be kept: %s", policy.object_name, error)
        self.troubles = troubles
        names = {policy.object_name for policy in wanted.policies.values()}
        for resource in (VALIDATING_POLICY_BINDINGS, VALIDATING_POLICIES):
            for name in sorted(self._there.get(resource, {}).keys() - names):
                await self._delete(resource, name)
        self._gone = not self._enabled

    def _wanted(self, graph: RuleGraph) -> NativeRules:
        if not self._enabled:
            return _NOTHING
        return graph.once(("native rules", str(self._spared)), lambda: native_rules(graph, self._spared))

    async def _look(self) -> None:
        for resource in (VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS):
            found: dict[str, Object] = {}
            token = ""
            while True:
                page = await self._cluster.list(
                    resource, label_selector=f"{KEPT_BY}={KEEPER}", limit=_PAGE, continue_token=token
                )
                found.update((one["metadata"]["name"], one) for one in page.items)
                token = page.continue_token
                if not token:
                    break
            self._there[resource] = found

    def _is_there(self, name: str, wanted: NativeRules) -> bool:
        policy = wanted.policies[name]
        return all(
            _agrees(self._there.get(resource, {}).get(policy.object_name), _kept(obj))
            for resource, obj in (
                (VALIDATING_POLICIES, policy.object()),
                (VALIDATING_POLICY_BINDINGS, policy.binding()),
            )
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


def _texts(wanted: NativeRules) -> dict[str, str]:
    """What the policies say, by their rules."""
    return {name: json.dumps([one.object(), one.binding()]) for name, one in wanted.policies.items()}
