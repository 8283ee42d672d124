"""What the kernel keeps for pods of their memory, where it slows them down, and whom it kills first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.agent.plan import Group, Level, Order, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.isolation import BE, LS, LSR, Isolations, group_of
from koordpolicy.algorithms.memory_protection import (
    CacheLimits,
    MemoryShares,
    ProtectedMemory,
    asked_for,
    container_protection,
    page_cache_limit,
    protected,
    together,
)
from koordpolicy.graph.bands import band_resources
from koordpolicy.graph.graph import Facts
from koordpolicy.model.pod_strategies import said_of_memory, whole_number
from koordpolicy.model.protocol import MEMORY, QOS_BEST_EFFORT, QOS_BURSTABLE, QOS_GUARANTEED
from koordpolicy.model.reading import Json

WRITER: Final = "memory-qos"
_SECTION: Final = "memory"
_LEVELS: Final = ((QOS_GUARANTEED, LSR), (QOS_BURSTABLE, LS), (QOS_BEST_EFFORT, BE))


@dataclass(frozen=True, slots=True)
class _PlainFile:
    """A file that takes a field as it is: the field, what a pod's annotation calls it, and its value while switched off."""

    field: str
    said: str
    off: int


_PLAIN: Final[Mapping[str, _PlainFile]] = {
    "memory.wmark_ratio": _PlainFile("watermark", "wmarkRatio", 0),
    "memory.wmark_scale_factor": _PlainFile("watermarkScale", "wmarkScalePermill", 50),
    "memory.wmark_min_adj": _PlainFile("watermarkAdjustment", "wmarkMinAdj", 0),
    "memory.use_priority_oom": _PlainFile("hasPriority", "priorityEnable", 0),
    "memory.priority": _PlainFile("priority", "priority", 0),
    "memory.oom.group": _PlainFile("killsGroup", "oomKillGroup", 0),
}
_OOM: Final = ("memory.use_priority_oom", "memory.priority", "memory.oom.group")


FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "memory.min": ("minimum",),
    "memory.low": ("low",),
    "memory.high": ("throttling",),
    "memory.pagecache_limit.size": ("pageCache.size", "pageCache.limit"),
    "memory.pagecache_limit.sync": ("pageCache.reclaimsAtOnce",),
    "memory.pagecache_limit.enable": ("pageCache.enabled",),
    **{file: (one.field,) for file, one in _PLAIN.items()},
}
"""Which fields of a class each file follows from."""

_NO_SHARES: Final = MemoryShares()
_NO_LIMITS: Final = CacheLimits()


@dataclass(frozen=True, slots=True)
class MemoryTreatment:
    """How the memory of one pod is treated: shares of requests, numbers for plain files, page cache."""

    shares: MemoryShares = _NO_SHARES
    plain: Mapping[str, int] = field(default_factory=dict)
    cache: CacheLimits = _NO_LIMITS
    cache_on: bool | None = None
    reclaims_at_once: bool = False


@dataclass(frozen=True, slots=True)
class IsolatedMemory:
    """The policies of a node on memory. Values are asked for each pod, whose annotation may say them over."""

    isolations: Isolations

    def treatment(self, pod: Facts) -> MemoryTreatment:
        """How a pod is treated: as its group is, and its annotation says over that."""
        said = said_of_memory(pod["annotations"])
        policy, group = said.get("policy"), group_of(pod)

        def value(name: str, off: Any) -> Any:
            if policy == "none":
                return off
            if policy == "auto":
                about = self.isolations.about(group)
                return off if about is None else about.value(f"{_SECTION}.{name}")
            return self.isolations.value(group, _SECTION, name, disabled=off)

        plain = {file: _over(said, one.said, value(one.field, one.off)) for file, one in _PLAIN.items()}
        return MemoryTreatment(
            MemoryShares(
                _over(said, "minLimitPercent", value("minimum", 0.0)),
                _over(said, "lowLimitPercent", value("low", 0.0)),
                _over(said, "throttlingPercent", value("throttling", 0.0)),
            ),
            {file: int(one) for file, one in plain.items() if one is not None},
            CacheLimits(
                _over(said, "pageCacheLimitPercent", value("pageCache.limit", None)),
                _over(said, "pageCacheLimitSize", value("pageCache.size", None)),
            ),
            _flag(said, "pageCacheEnable", value("pageCache.enabled", None)),
            bool(_flag(said, "pageCacheReclaimSync", value("pageCache.reclaimsAtOnce", None))),
        )

    def plan(self, pods: Iterable[Facts]) -> Plan:
        """What is to be written for the pods of the node, all of them; parents hold what their children do."""
        active = [pod for pod in pods if pod["active"] and pod["known"]]
        writes: list[Write] = []
        for group, kept, plain in self.levels(active):
            writes += _numbers(group, kept, f"memory of all pods of {group.name}")
            writes += _files(group, plain, f"Isolation for {group.name}")
        there = int(self.isolations.node["resources.allocatable"].get(MEMORY, 0))
        for pod in active:
            treated = self.treatment(pod)
            uid, reason = str(pod["uid"]), f"memory of a pod of class {pod['qos']}"
            writes += _numbers(pod_group(uid), self.pod_memory(pod, treated), reason)
            writes += _files(pod_group(uid), treated.plain, reason)
            writes += self._cache(pod, treated, reason)
            for name, kept in self.container_memory(pod, treated, there).items():
                writes += _numbers(container_group(uid, name), kept, reason)
                writes += _files(container_group(uid, name), treated.plain, reason)
        return Plan(tuple(writes))

    def levels(self, pods: Iterable[Facts]) -> Iterator[tuple[Group, ProtectedMemory, Mapping[str, int]]]:
        """What the groups of Kubernetes' classes hold, the one of all pods first: as much as their active pods together."""
        kept: dict[str, list[ProtectedMemory]] = {name: [] for name, _group in _LEVELS}
        for pod in pods:
            if pod["active"]:
                requested = sum(self._request(pod, one) for one in _containers(pod))
                kept[str(pod["kubernetesQoS"])].append(asked_for(requested, self.treatment(pod).shares))
        all_pods = [one for pods_of in kept.values() for one in pods_of]
        for name, group in _LEVELS:
            plain = {file: self._plain(group, file) for file in _OOM}
            yield (
                Group(Level.QOS, name=name),
                together(all_pods if name == QOS_GUARANTEED else kept[name]),
                {file: value for file, value in plain.items() if value is not None},
            )

    def pod_memory(self, pod: Facts, treated: MemoryTreatment) -> ProtectedMemory:
        """What is kept for a pod."""
        return protected(sum(self._request(pod, one) for one in _containers(pod)), treated.shares)

    def container_memory(
        self, pod: Facts, treated: MemoryTreatment, there: int
    ) -> dict[str, ProtectedMemory]:
        """What is kept for each container, and where it is slowed down; `there` is what pods may have on the node."""
        return {
            str(one["name"]): container_protection(
                self._request(pod, one), self._limit(pod, one), there, treated.shares
            )
            for one in _containers(pod)
        }

    def _plain(self, group: str, file: str) -> int | None:
        one = _PLAIN[file]
        found = self.isolations.value(group, _SECTION, one.field, disabled=one.off)
        return None if found is None else int(found)

    def _cache(self, pod: Facts, treated: MemoryTreatment, reason: str) -> Iterator[Write]:
        size = page_cache_limit(sum(self._limit(pod, one) for one in _containers(pod)), treated.cache)
        if size is None and treated.cache_on is None:
            return
        group, size = pod_group(str(pod["uid"])), size or 0
        on = size > 0 if treated.cache_on is None else treated.cache_on
        yield Write("memory.pagecache_limit.size", group, size, reason, WRITER)
        yield Write("memory.pagecache_limit.sync", group, int(treated.reclaims_at_once), reason, WRITER)
        yield Write("memory.pagecache_limit.enable", group, int(on), reason, WRITER)

    def _resource(self, pod: Facts) -> str:
        """What best-effort pods request in place of memory."""
        if str(pod["qosLabel"]) != BE:
            return MEMORY
        graph = self.isolations.graph
        found = graph.catalogue.classes.get(BE)
        return band_resources(graph, "" if found is None else found.default_band).get(MEMORY, MEMORY)

    def _request(self, pod: Facts, container: Facts) -> int:
        return int(container["resources.request"].get(self._resource(pod), 0))

    def _limit(self, pod: Facts, container: Facts) -> int:
        return int(container["resources.limit"].get(self._resource(pod), 0))


def _containers(pod: Facts) -> list[Facts]:
    return [one for one in pod["containers"] if not one["init"] and not one["sidecar"]]


def _numbers(group: Group, kept: ProtectedMemory, reason: str) -> Iterator[Write]:
    for file, value in (
        ("memory.min", kept.minimum),
        ("memory.low", kept.low),
        ("memory.high", kept.high),
    ):
        if value is not None:
            yield Write(file, group, value, reason, WRITER, Order.LEVELLED)


def _files(group: Group, plain: Mapping[str, int], reason: str) -> Iterator[Write]:
    for file, value in plain.items():
        yield Write(file, group, value, reason, WRITER)


def _over(said: Json, name: str, otherwise: Any) -> Any:
    own = whole_number(said, name)
    return otherwise if own is None else own


def _flag(said: Json, name: str, otherwise: Any) -> bool | None:
    own = said.get(name)
    if isinstance(own, bool):
        return own
    return None if otherwise is None else bool(otherwise)
