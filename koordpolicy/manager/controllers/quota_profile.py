"""Root quotas of ElasticQuotaProfile objects: what is to be written for a profile, and writing it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from koordpolicy.kube.mirror import Key
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.controllers.tree_quota import KIND, TreeQuota, counted, is_followed, tree_quota
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import (
    QUOTA_IS_ROOT,
    QUOTA_PROFILE,
    QUOTA_TOTAL,
    QUOTA_TREE_ID,
    QUOTA_UNSCHEDULABLE,
)
from koordpolicy.model.quantity import QuantityError, amount, amount_text
from koordpolicy.model.quota import amounts_text, embedded_amounts
from koordpolicy.model.quota_profile import QuotaProfile, read_quota_profile
from koordpolicy.model.reading import NOTHING, Amounts, ObjectError, mapping, texts
from koordpolicy.model.unreadable import Unreadable, readable

CREATE_FAILED: Final = "CreateQuotaFailed"
UPDATE_FAILED: Final = "UpdateQuotaFailed"
"""Reasons of Events, Koordinator's."""

_AT_ONCE: Final = 200
"""Nodes that are counted before others get their turn: 5 ms or so."""


@dataclass(frozen=True, slots=True)
class QuotaProfilePlan:
    """What is to be written for a profile, where anything is; `problem` is a phrase why nothing is.

    `failed` says that policy could not be evaluated; else a problem is one of the objects. `tree` is the id to be put on the profile itself, empty where it stands there. `create` is the root quota where there
    is none yet, `patch` what is to become of the one that there is.
    """

    key: Key
    quota: str = ""
    tree: str = ""
    create: Object | None = None
    patch: Mapping[str, Any] | None = None
    problem: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class KnownQuotaObjects:
    """The profiles and quotas that there are, by namespace and name, and the nodes that can be read, by name."""

    profiles: Mapping[Key, Object]
    quotas: Mapping[Key, Object]
    nodes: Callable[[], Mapping[str, Node]]


Failed = Callable[[Object, str, str], None]
"""Told of a profile whose quota is not as it should be: the profile, the reason for an Event, what is in the way."""


@dataclass(frozen=True, slots=True)
class QuotaProfileController:
    """Makes the root quota of each profile, and keeps its totals, as the graph that `policies` gives says.

    `now` is nanoseconds since 1970. What others put on a quota stays: bounds, the labels and annotations that follow from
    the profile are written, and nothing else. A quota outlives its profile.
    """

    policies: Callable[[], RuleGraph]
    known: KnownQuotaObjects
    now: Callable[[], int]
    planned: Callable[[RuleGraph, QuotaProfilePlan], None] = lambda graph, plan: None
    failed: Failed = lambda profile, reason, text: None

    def every(self) -> float | None:
        """Seconds between looks at a profile to which nothing happened; None where no policy speaks of profiles."""
        return self._seconds("interval")

    def retry_after(self) -> float:
        """Seconds that have to pass after a write that failed."""
        return self._seconds("retryAfter") or 0.0

    async def decide(self, key: Key) -> QuotaProfilePlan | None:
        """What is to be written for a profile; None where there is none, or policy does not follow it."""
        obj = self.known.profiles.get(key)
        if obj is None:
            return None
        graph, now = self.policies(), self.now()
        if not graph.subjects(KIND):
            return None
        plan: QuotaProfilePlan | None
        try:
            plan = await self._plan(graph, key, obj, now)
        except CelError as error:
            plan = QuotaProfilePlan(key, problem=str(error), failed=True)
        except ObjectError as error:
            plan = QuotaProfilePlan(key, problem=str(error))
            self.failed(obj, UPDATE_FAILED, str(error))
        if plan is not None:
            self.planned(graph, plan)
        return plan

    async def reconcile(self, cluster: Cluster, key: Key) -> bool:
        """Write what differs; whether anything was written. Raises KubeError, of which the profile is told."""
        plan = await self.decide(key)
        if plan is None:
            return False
        namespace, name = key
        if plan.tree:
            label = MergePatch({"metadata": {"labels": {QUOTA_TREE_ID: plan.tree}}})
            try:
                await cluster.patch(ELASTIC_QUOTA_PROFILES, name, label, namespace=namespace)
            except NotFound:
                return False  # gone in the meantime
            except KubeError as error:
                self._told(key, UPDATE_FAILED, error)
                raise
        return await self._write_quota(cluster, plan) or bool(plan.tree)

    async def _write_quota(self, cluster: Cluster, plan: QuotaProfilePlan) -> bool:
        namespace = plan.key[0]
        reason = UPDATE_FAILED if plan.create is None else CREATE_FAILED
        try:
            if plan.create is not None:
                await cluster.create(ELASTIC_QUOTAS, plan.create, namespace=namespace)
            elif plan.patch is not None:
                await cluster.patch(ELASTIC_QUOTAS, plan.quota, MergePatch(plan.patch), namespace=namespace)
        except (AlreadyExists, Conflict):
            raise  # what we know is old: nothing for people
        except KubeError as error:
            self._told(plan.key, reason, error)
            raise
        return plan.create is not None or plan.patch is not None

    async def _plan(self, graph: RuleGraph, key: Key, obj: Object, now: int) -> QuotaProfilePlan | None:
        profile = readable(read_quota_profile, obj)
        if isinstance(profile, Unreadable):
            raise ObjectError(profile.reason)
        if not is_followed(graph, profile, now):
            return None
        if not profile.quota:
            raise ObjectError("spec.quotaName: the name of the root quota is missing")
        existing = self.known.quotas.get((key[0], profile.quota))
        other = self._other_owner(profile, existing)
        if other:
            raise ObjectError(f"spec.quotaName: `{profile.quota}` is the root quota of the profile `{other}`")
        nodes = [] if profile.selector is None else list(self.known.nodes().values())
        parts: list[tuple[Amounts, bool]] = []
        for at, node in enumerate(nodes):
            if at % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            if profile.selector is not None and profile.selector.matches(node.labels):
                parts.append(counted(graph, node, now))
        wanted = tree_quota(graph, profile, parts, now)
        tree = "" if profile.tree == wanted.tree else wanted.tree
        if existing is None:
            return QuotaProfilePlan(key, profile.quota, tree, create=_new(profile, wanted))
        patch = _difference(existing, profile, wanted)
        return QuotaProfilePlan(key, profile.quota, tree, patch=patch or None)

    def _other_owner(self, profile: QuotaProfile, quota: Object | None) -> str:
        """Another profile that makes this quota: two would undo each other's work for ever. Empty for none."""
        if quota is None:
            return ""
        labels = readable(lambda one: texts(mapping(one, "metadata"), "labels", "metadata"), quota)
        owner = "" if isinstance(labels, Unreadable) else labels.get(QUOTA_PROFILE, "")
        if owner in {"", profile.name, profile.quota_labels.get(QUOTA_PROFILE)}:
            return ""
        theirs = self.known.profiles.get((profile.namespace, owner))
        read = None if theirs is None else readable(read_quota_profile, theirs)
        return owner if isinstance(read, QuotaProfile) and read.quota == profile.quota else ""

    def _told(self, key: Key, reason: str, error: KubeError) -> None:
        obj = self.known.profiles.get(key)
        if obj is not None:
            self.failed(obj, reason, str(error))

    def _seconds(self, field: str) -> float | None:
        graph = self.policies()
        if not graph.subjects(KIND):
            return None
        value: Any = graph.about(KIND, "", {}).value(field)
        return float(value.ns) / 1e9


def _labels(profile: QuotaProfile, wanted: TreeQuota) -> dict[str, str]:
    fixed = {QUOTA_TREE_ID: wanted.tree, QUOTA_IS_ROOT: "true"}
    return {QUOTA_PROFILE: profile.name, **profile.quota_labels, **fixed}


def _new(profile: QuotaProfile, wanted: TreeQuota) -> Object:
    return {
        "metadata": {
            "name": profile.quota,
            "labels": _labels(profile, wanted),
            "annotations": {
                QUOTA_TOTAL: amounts_text(wanted.totals.total),
                QUOTA_UNSCHEDULABLE: amounts_text(wanted.totals.unschedulable),
            },
        },
        "spec": {
            name: {key: amount_text(key, number) for key, number in amounts.items()}
            for name, amounts in (("min", wanted.min), ("max", wanted.max))
        },
    }


def _difference(existing: Object, profile: QuotaProfile, wanted: TreeQuota) -> dict[str, Any]:
    """The merge patch that makes the quota what it should be; empty where it is. Raises ObjectError."""
    metadata, spec = mapping(existing, "metadata"), mapping(existing, "spec")
    labels = texts(metadata, "labels", "metadata")
    annotations = texts(metadata, "annotations", "metadata")
    changed: dict[str, Any] = {
        "labels": {key: value for key, value in _labels(profile, wanted).items() if labels.get(key) != value},
        "annotations": {
            key: amounts_text(amounts)
            for key, amounts in (
                (QUOTA_TOTAL, wanted.totals.total),
                (QUOTA_UNSCHEDULABLE, wanted.totals.unschedulable),
            )
            if _written(annotations, key) != amounts
        },
    }
    bounds = {
        name: _bounds(mapping(spec, name, "spec"), amounts)
        for name, amounts in (("min", wanted.min), ("max", wanted.max))
    }
    patch = {
        "metadata": {key: value for key, value in changed.items() if value},
        "spec": {key: value for key, value in bounds.items() if value},
    }
    return {key: value for key, value in patch.items() if value}


def _written(annotations: Mapping[str, str], key: str) -> Amounts | None:
    """What an annotation says; None where it is missing or says nothing that can be read."""
    if key not in annotations:
        return None
    try:
        return embedded_amounts(annotations, key) or NOTHING
    except ObjectError:
        return None


def _bounds(known: Mapping[str, Any], wanted: Amounts) -> dict[str, Any]:
    """The merge patch of a resource list: equal amounts stay as they are written, others go."""
    patch: dict[str, Any] = {key: None for key in known if key not in wanted}
    for key, number in wanted.items():
        if key not in known or _amount(key, known[key]) != number:
            patch[key] = amount_text(key, number)
    return patch


def _amount(name: str, written: object) -> int | None:
    try:
        return amount(name, written)
    except QuantityError:
        return None
