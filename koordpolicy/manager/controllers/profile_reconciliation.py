"""ClusterColocationProfile objects and pods that exist: what a pod gets of them while it waits for a node, and writing it.

Labels and annotations alone: what else a profile does is for pods that are created.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.algorithms.profile import PriorityClass, ProfileEffect, apply_profile
from koordpolicy.algorithms.records import pod_record
from koordpolicy.algorithms.token_bucket import TokenBucket
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import NotFound, Rejected
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import Key
from koordpolicy.kube.port import Cluster, MergePatch, Object
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, NAMESPACES, PODS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.cluster_profiles import ClusterProfile, ClusterProfiles
from koordpolicy.manager.webhooks.profiles import KIND as POLICY
from koordpolicy.manager.webhooks.profiles import ColocationProfileError
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.labels import read_selector
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import ObjectError, mapping, text, texts
from koordpolicy.model.strategic_merge import PatchError
from koordpolicy.model.unreadable import Unreadable, readable

KIND: Final = "ProfileReconciliation"

_WRITTEN: Final = ("labels", "annotations")
_SHARES: Final = 2**32


@dataclass(frozen=True, slots=True)
class PodProfilePlan:
    """What becomes of a pod, `profiles` being the objects that select it, with their versions.

    `patch` is what is to be written, empty for nothing; `problems` are phrases why an object does not change it.
    """

    key: Key
    uid: str
    profiles: tuple[tuple[str, str], ...]
    patch: Mapping[str, Any]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchPace:
    """How often pods are looked at, for how long one is left alone (seconds), and how many are written at most."""

    interval: float
    again_after: float
    per_second: int
    burst: int


@dataclass(frozen=True, slots=True)
class PatchClock:
    """Time: nanoseconds since 1970 for policies, seconds of a clock that never goes back, and waiting in such seconds."""

    now: Callable[[], int]
    monotonic: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class ProfileReconciler:
    """Keeps pods that wait for a node as profiles say, where the graph that `policies` gives wants it.

    `objects` knows pods, namespaces and profiles. A policy takes the place of the object of its name, here as at creation. One
    pod is written at a time.
    """

    def __init__(
        self,
        policies: Callable[[], RuleGraph],
        objects: KnownObjects,
        clock: PatchClock,
        planned: Callable[[RuleGraph, PodProfilePlan], None] = lambda graph, plan: None,
    ) -> None:
        self._policies = policies
        self._objects = objects
        self._profiles = ClusterProfiles(objects)
        self._clock = clock
        self._planned = planned
        self._bucket = TokenBucket()
        self._done: dict[str, tuple[tuple[tuple[str, str], ...], float]] = {}
        """By UID of pods that wait: the profiles that they are kept to, and since when."""

    def pace(self) -> PatchPace | None:
        """How fast; None where no policy speaks of it. Raises `CelError`."""
        graph = self._policies()
        if not graph.subjects(KIND):
            return None
        about = graph.about(KIND, "", {})
        interval, again_after = (float(about.value(field).ns) / 1e9 for field in ("interval", "againAfter"))
        return PatchPace(interval, again_after, about.value("mostPerSecond"), about.value("burst"))

    def waiting(self) -> list[Key]:
        """The pods that wait for a node; what was remembered of others is forgotten."""
        found = [pod for pod in self._objects.every(PODS) if readable(_waits, pod) is True]
        uids = {_uid(pod) for pod in found}
        self._done = {uid: done for uid, done in self._done.items() if uid in uids}
        return [(pod["metadata"].get("namespace", ""), pod["metadata"]["name"]) for pod in found]

    def plan(self, key: Key) -> PodProfilePlan | None:
        """What is to be written for a pod; None where nobody asks for anything, or it is left alone for now.

        Raises ObjectError for a pod that is malformed, `CelError`.
        """
        pod = self._objects.find(PODS, key[1], namespace=key[0])
        pace = self.pace()
        if pod is None or pace is None or readable(_waits, pod) is not True:
            return None
        graph = self._policies()
        problems: list[str] = []
        roots = self._roots(graph, key, pod)
        selected = [
            one for one in self._selecting(graph, key, roots) if self._enabled(graph, roots, one, problems)
        ]
        if not selected and not problems:
            return None
        uid, versions = _uid(pod), tuple((one.key, self._version(one.key)) for one in selected)
        if uid in self._done:
            before, since = self._done[uid]
            if before == versions and self._clock.monotonic() - since < pace.again_after:
                return None
        return PodProfilePlan(
            key,
            uid,
            versions,
            _patch(pod, _effects(uid, selected, roots, problems), problems),
            tuple(problems),
        )

    async def reconcile(self, cluster: Cluster, key: Key) -> bool:
        """Write what differs; whether anything was. Raises KubeError, Conflict among them where the pod has changed since."""
        graph, pace = self._policies(), self.pace()
        plan = self.plan(key)
        if plan is None or pace is None:
            return False
        self._planned(graph, plan)
        if not plan.patch:
            self._remember(plan)
            return False
        clock = self._clock
        await clock.sleep(self._bucket.take(clock.monotonic(), pace.per_second, pace.burst))
        try:
            await cluster.patch(PODS, key[1], MergePatch(plan.patch), namespace=key[0])
        except NotFound:
            return False
        except Rejected:
            self._remember(plan)  # it would be refused again at once
            raise
        self._remember(plan)
        return True

    def _remember(self, plan: PodProfilePlan) -> None:
        self._done[plan.uid] = (plan.profiles, self._clock.monotonic())

    def _roots(self, graph: RuleGraph, key: Key, pod: Object) -> dict[str, Any]:
        namespace = self._objects.find(NAMESPACES, key[0])
        return {
            "pod": pod_record(read_pod(pod), graph.catalogue, TIMES),
            "namespaceObject": namespace_facts(namespace or {"metadata": {"name": key[0]}}),
            "now": TIMES.timestamp(self._clock.now()),
        }

    def _selecting(self, graph: RuleGraph, key: Key, roots: Mapping[str, Any]) -> list[ClusterProfile]:
        """The objects that select a pod, in order of name. One whose selector makes no sense selects none that exists."""
        known = self._objects.find(NAMESPACES, key[0]) is not None
        taken = frozenset(graph.subjects(POLICY))
        return [
            one
            for one in self._profiles.near(roots)
            if one.key not in taken
            and (known or not one.namespaces.requirements)
            and readable(_has_selector, one.spec) is True
            and one.matches(roots)
        ]

    def _enabled(
        self, graph: RuleGraph, roots: Mapping[str, Any], profile: ClusterProfile, problems: list[str]
    ) -> bool:
        obj = self._objects.find(CLUSTER_COLOCATION_PROFILES, profile.key)
        record = None if obj is None else readable(_profile_facts, obj)
        if record is None:
            return False
        if isinstance(record, Unreadable):
            problems.append(f"profile `{profile.name}`: {record.reason}")
            return False
        try:
            return bool(graph.about(KIND, "", {**roots, "colocationProfile": record}).value("enabled"))
        except CelError as error:
            problems.append(f"profile `{profile.name}`: {error}")
            return False

    def _version(self, name: str) -> str:
        obj = self._objects.find(CLUSTER_COLOCATION_PROFILES, name)
        return "" if obj is None else str(obj["metadata"].get("resourceVersion", ""))


def _waits(pod: Object) -> bool:
    """Whether a pod waits for a node and may get one. Raises ObjectError."""
    metadata, spec = mapping(pod, "metadata"), mapping(pod, "spec")
    return (
        not metadata.get("deletionTimestamp")
        and not text(spec, "nodeName", "spec")
        and text(mapping(pod, "status"), "phase", "status") == "Pending"
    )


def _uid(pod: Object) -> str:
    return str(pod["metadata"].get("uid", ""))


def _has_selector(spec: Mapping[str, Any]) -> bool:
    """Raises ObjectError for selectors that make no sense."""
    read_selector(mapping(spec, "namespaceSelector", "spec"), "namespaceSelector")
    read_selector(mapping(spec, "selector", "spec"), "selector")
    return spec.get("selector") is not None


def _profile_facts(obj: Object) -> Record:
    metadata = mapping(obj, "metadata")
    return {
        "name": text(metadata, "name", "metadata"),
        "labels": texts(metadata, "labels", "metadata"),
        "annotations": texts(metadata, "annotations", "metadata"),
    }


def _effects(
    uid: str, profiles: Iterable[ClusterProfile], roots: Mapping[str, Any], problems: list[str]
) -> list[ProfileEffect]:
    """What those do to a pod that take it, by a draw that is the same each time."""
    found: list[ProfileEffect] = []
    for one in profiles:
        digest = hashlib.sha256(f"{uid}/{one.key}".encode()).digest()
        draw = int.from_bytes(digest[:4], "big") * 100 / _SHARES
        try:
            if one.takes(draw, roots):
                effect = one.effect(
                    roots, lambda name: PriorityClass(name, 0)
                )  # which it is does not matter here
                found.append(replace(effect, priority_class=None, scheduler_name=""))
        except ColocationProfileError as error:
            problems.append(str(error))
    return found


def _patch(pod: Object, effects: Iterable[ProfileEffect], problems: list[str]) -> dict[str, Any]:
    """The merge patch of labels and annotations, for this version of the pod; empty where it is as it should be."""
    effects = list(effects)
    before = {field: texts(mapping(pod, "metadata"), field, "metadata") for field in _WRITTEN}
    changed: Mapping[str, Any] = _without_suffixes(pod, effects)
    for effect in effects:
        try:
            after = apply_profile(changed, effect)
            for field in _WRITTEN:
                texts(mapping(after, "metadata"), field, "metadata")
        except (PatchError, ObjectError) as error:
            problems.append(str(error))
            continue
        changed = after
    wanted = {field: texts(mapping(changed, "metadata"), field, "metadata") for field in _WRITTEN}
    patch = {
        field: {
            key: wanted[field].get(key)
            for key in sorted({*before[field], *wanted[field]})
            if before[field].get(key) != wanted[field].get(key)
        }
        for field in _WRITTEN
    }
    told = {field: values for field, values in patch.items() if values}
    if not told:
        return {}
    return {"metadata": {"resourceVersion": pod["metadata"].get("resourceVersion", ""), **told}}


def _without_suffixes(pod: Object, effects: Iterable[ProfileEffect]) -> Object:
    """The pod before suffixes were put on its labels, the last one first: no round makes labels longer."""
    metadata = mapping(pod, "metadata")
    labels = dict(texts(metadata, "labels", "metadata"))
    for effect in reversed(list(effects)):
        for key, suffix in effect.label_suffixes.items():
            if key in labels:
                labels[key] = labels[key].removesuffix(suffix)
    return {**pod, "metadata": {**metadata, "labels": labels}}
