"""Which workload a pod is of, how many replicas that is to have, and the controllers of all its pods."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.descheduling.throttle import ThrottledWorkload
from koordpolicy.kube import resources
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.selectors import label_text
from koordpolicy.model.labels import read_selector
from koordpolicy.model.pod import Owner, read_owner
from koordpolicy.model.reading import ObjectError, integer, mapping, objects, text

_SCALED: Final = {
    (one.group, one.kind): one
    for one in (
        resources.REPLICATION_CONTROLLERS,
        resources.DEPLOYMENTS,
        resources.REPLICA_SETS,
        resources.STATEFUL_SETS,
    )
}
_KNOWN_FOR: Final = 2.0
"""Seconds in which a workload is not read again: several of its pods are asked about at once, again and again."""
_DEFINED_FOR: Final = 300.0
"""The same of what a cluster defines."""
_MOST: Final = 10_000
"""Workloads that are known at once."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. `uid`: what is to be limited; `replicas` is None where it cannot be found or counts none."""

    uid: str
    replicas: int | None
    owners: frozenset[str]
    deleting: bool = False

    def throttled_of(self, owners: frozenset[str]) -> ThrottledWorkload:
        """The same as limits look at it, whose pods are controlled by `owners`."""
        return ThrottledWorkload(self.replicas or 0, owners)


class WorkloadFinder:
    """Reads the controllers of pods from the API server. `clock` gives seconds that never go back."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Workload]] = OrderedDict()
        self._defined: tuple[float, dict[tuple[str, str], Resource]] | None = None

    async def of(self, namespace: str, owner: Owner) -> Workload:
        """The workload of a pod by its controller. Raises KubeError, and ObjectError where its objects cannot be read."""
        known = self._known.get(owner.uid)
        if known is not None and self._clock() < known[0]:
            return known[1]
        found = await self._find(namespace, owner)
        self._known[owner.uid] = self._clock() + _KNOWN_FOR, found
        self._known.move_to_end(owner.uid)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found

    async def _find(self, namespace: str, owner: Owner) -> Workload:
        nothing = Workload(owner.uid, None, frozenset({owner.uid}))
        group = owner.api_version.rpartition("/")[0]
        if (group, owner.kind) == (resources.JOBS.group, resources.JOBS.kind):
            job = await self._get(resources.JOBS, namespace, owner)
            if job is None:
                return nothing
            parallel = integer(mapping(job, "spec"), "parallelism", "spec")
            return _workload(job, 1 if parallel is None else parallel)
        resource = _SCALED.get((group, owner.kind))
        if resource is None:
            return await self._by_scale(namespace, owner, nothing)
        found = await self._get(resource, namespace, owner)
        if found is None:
            return nothing
        if resource is resources.REPLICA_SETS:
            above = next((one for one in _owners(found) if one.controller), None)
            if above is not None and above.kind == resources.DEPLOYMENTS.kind:
                return await self._of_deployment(namespace, above, nothing)
        return _workload(found, _replicas(found))

    async def _of_deployment(self, namespace: str, owner: Owner, nothing: Workload) -> Workload:
        """All ReplicaSets of a Deployment count together."""
        found = await self._get(resources.DEPLOYMENTS, namespace, owner)
        if found is None:
            return nothing
        sets: set[str] = {owner.uid}
        token = ""
        while True:
            page = await self._cluster.list(
                resources.REPLICA_SETS,
                namespace=namespace,
                label_selector=label_text(read_selector(mapping(mapping(found, "spec"), "selector", "spec"))),
                limit=500,
                continue_token=token,
            )
            sets.update(
                text(mapping(one, "metadata"), "uid")
                for one in page.items
                if any(above.uid == owner.uid for above in _owners(one))
            )
            token = page.continue_token
            if not token:
                return _workload(found, _replicas(found), frozenset(sets))

    async def _by_scale(self, namespace: str, owner: Owner, nothing: Workload) -> Workload:
        """A workload of somebody else's kind says by its scale how many replicas it is to have."""
        group = owner.api_version.rpartition("/")[0]
        resource = (await self._definitions()).get((group, owner.kind))
        if resource is None:
            return nothing
        try:
            scale = await self._cluster.get(resource, owner.name, namespace=namespace, subresource="scale")
        except NotFound:
            return nothing
        if text(mapping(scale, "metadata"), "uid", "metadata") != owner.uid:
            return nothing
        return _workload(scale, integer(mapping(scale, "spec"), "replicas", "spec") or 0)

    async def _definitions(self) -> dict[tuple[str, str], Resource]:
        """The namespaced kinds with a scale that the cluster defines, by group and kind."""
        if self._defined is None or self._clock() >= self._defined[0]:
            found = (await self._cluster.list(resources.CUSTOM_RESOURCE_DEFINITIONS)).items
            kinds = {(one.group, one.kind): one for one in map(_scaled_kind, found) if one is not None}
            self._defined = self._clock() + _DEFINED_FOR, kinds
        return self._defined[1]

    async def _get(self, resource: Resource, namespace: str, owner: Owner) -> Object | None:
        """A controller; None where it is gone, or another one of its name is there."""
        try:
            found = await self._cluster.get(resource, owner.name, namespace=namespace)
        except NotFound:
            return None
        return found if text(mapping(found, "metadata"), "uid", "metadata") == owner.uid else None


def _workload(found: Object, replicas: int, owners: frozenset[str] = frozenset()) -> Workload:
    metadata = mapping(found, "metadata")
    uid = text(metadata, "uid", "metadata")
    return Workload(uid, replicas, owners or frozenset({uid}), bool(metadata.get("deletionTimestamp")))


def _replicas(found: Object) -> int:
    said = integer(mapping(found, "spec"), "replicas", "spec")
    return 1 if said is None else said


def _owners(found: Object) -> list[Owner]:
    return [read_owner(one) for one in objects(mapping(found, "metadata"), "ownerReferences", "metadata")]


def _scaled_kind(definition: Any) -> Resource | None:
    """The resource that a definition makes; None without scale, or where it cannot be read."""
    try:
        spec = mapping(definition, "spec")
        names = mapping(spec, "names", "spec")
        versions = [
            one
            for one in objects(spec, "versions", "spec")
            if one.get("served") and "scale" in mapping(one, "subresources")
        ]
        if not versions or text(spec, "scope", "spec") != "Namespaced":
            return None
        return Resource(
            text(spec, "group", "spec"),
            text(versions[0], "name"),
            text(names, "plural"),
            text(names, "kind"),
            subresources=("status", "scale"),
            custom=True,
            strict_update=True,
        )
    except ObjectError:
        return None
