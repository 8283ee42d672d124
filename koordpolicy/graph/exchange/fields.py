"""The table of both languages: which field of Koordinator's configuration is which decision.

Import, export and what is rendered for koordlets all follow it. A field may be several decisions, which then say the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.graph.exchange.carriage import (
    BANDWIDTH,
    BASE,
    DURATIONS,
    HYPER_THREAD,
    HYPER_THREAD_TURBO,
    MINUTES,
    NANOS,
    NETWORK,
    PERCENT,
    PLAIN,
    RATIO,
    RATIOS,
    SECONDS,
    SWITCH,
    TURBO,
    Carriage,
    among,
    renamed,
)
from koordpolicy.model.slo_config import (
    AMPLIFICATION,
    BURST,
    COLOCATION,
    NORMALIZATION,
    QOS,
    SYSTEM,
    THRESHOLD,
)


@dataclass(frozen=True, slots=True)
class Carried:
    """A field (its path in a strategy) and the decision that says it: the target and its field.

    `many` stands for a mapping whose keys are those of the policy's.
    """

    path: tuple[str, ...]
    target: str
    field: str
    carriage: Carriage = PLAIN
    many: bool = False

    @property
    def kind(self) -> str:
        return self.target.partition("/")[0]

    @property
    def subject(self) -> str:
        return self.target.partition("/")[2]


def _rows(target: str, prefix: str, *rows: tuple[str, str] | tuple[str, str, Carriage]) -> Iterator[Carried]:
    for path, field, *carriage in rows:
        whole = f"{prefix}.{path}" if prefix else path
        yield Carried(tuple(whole.split(".")), target, field, carriage[0] if carriage else PLAIN)


def _class(name: str, group: str) -> Iterator[Carried]:
    """What a class of `resource-qos-config` says."""
    yield from _rows(
        f"Isolation/{group}",
        name,
        ("cpuQOS.enable", "cpu.enabled"),
        ("cpuQOS.groupIdentity", "cpu.identity"),
        ("cpuQOS.schedIdle", "cpu.idle", SWITCH),
        ("cpuQOS.coreExpeller", "cpu.expels"),
        ("memoryQOS.enable", "memory.enabled"),
        ("memoryQOS.minLimitPercent", "memory.minimum", PERCENT),
        ("memoryQOS.lowLimitPercent", "memory.low", PERCENT),
        ("memoryQOS.throttlingPercent", "memory.throttling", PERCENT),
        ("memoryQOS.wmarkRatio", "memory.watermark", PERCENT),
        ("memoryQOS.wmarkScalePermill", "memory.watermarkScale"),
        ("memoryQOS.wmarkMinAdj", "memory.watermarkAdjustment"),
        ("memoryQOS.priorityEnable", "memory.hasPriority", SWITCH),
        ("memoryQOS.priority", "memory.priority"),
        ("memoryQOS.oomKillGroup", "memory.killsGroup", SWITCH),
        ("memoryQOS.pageCacheEnable", "memory.pageCache.enabled"),
        ("memoryQOS.pageCacheLimitPercent", "memory.pageCache.limit", PERCENT),
        ("memoryQOS.pageCacheLimitSize", "memory.pageCache.size"),
        ("memoryQOS.pageCacheReclaimSync", "memory.pageCache.reclaimsAtOnce"),
        ("resctrlQOS.enable", "cache.enabled"),
        ("resctrlQOS.catRangeStartPercent", "cache.start", PERCENT),
        ("resctrlQOS.catRangeEndPercent", "cache.end", PERCENT),
        ("resctrlQOS.mbaPercent", "cache.bandwidth", PERCENT),
        ("networkQOS.enable", "network.enabled"),
        ("networkQOS.ingressRequest", "network.ingress.request", NETWORK),
        ("networkQOS.ingressLimit", "network.ingress.limit", NETWORK),
        ("networkQOS.egressRequest", "network.egress.request", NETWORK),
        ("networkQOS.egressLimit", "network.egress.limit", NETWORK),
        ("blkioQOS.enable", "disk.enabled"),
    )


GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {"lsrClass": "LSR", "lsClass": "LS", "beClass": "BE", "systemClass": "SYSTEM", "cgroupRoot": "root"}
)
"""The classes of `resource-qos-config`, and the groups of `Isolation` that they are."""

SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cpuQOS": "cpu",
        "memoryQOS": "memory",
        "resctrlQOS": "cache",
        "networkQOS": "network",
        "blkioQOS": "disk",
    }
)
"""The blocks of a class, and the sections of `Isolation` that they are."""

_EVICT_POLICY: Final = renamed(evictByRealLimit="RealLimit", evictByAllocatable="Allocatable")

FIELDS: Final[Mapping[str, tuple[Carried, ...]]] = MappingProxyType(
    {
        THRESHOLD: (
            *_rows(
                "CPUSuppress",
                "",
                ("enable", "enabled"),
                ("cpuSuppressThresholdPercent", "parameters.threshold", PERCENT),
                ("cpuSuppressMinPercent", "parameters.floor", PERCENT),
                ("cpuSuppressPolicy", "mechanism", among("cpuset", "cfsQuota")),
            ),
            *_rows(
                "MemoryEviction",
                "",
                ("memoryEvictThresholdPercent", "threshold", PERCENT),
                ("memoryEvictLowerPercent", "lower", PERCENT),
                ("memoryAllocatableEvictThresholdPercent", "byRequests.threshold", PERCENT),
                ("memoryAllocatableEvictLowerPercent", "byRequests.lower", PERCENT),
                ("evictEnabledPriorityThreshold", "byPriority.highestPriority"),
                ("allocatableEvictPriorityThreshold", "byRequests.highestPriority"),
            ),
            *_rows(
                "CPUEviction",
                "",
                ("cpuEvictBESatisfactionLowerPercent", "bestEffort.threshold", PERCENT),
                ("cpuEvictBESatisfactionUpperPercent", "bestEffort.upper", PERCENT),
                ("cpuEvictBEUsageThresholdPercent", "bestEffort.usage", PERCENT),
                ("cpuEvictPolicy", "bestEffort.measured", _EVICT_POLICY),
                ("cpuEvictTimeWindowSeconds", "window", SECONDS),
                ("cpuEvictThresholdPercent", "byPriority.threshold", PERCENT),
                ("cpuEvictLowerPercent", "byPriority.lower", PERCENT),
                ("evictEnabledPriorityThreshold", "byPriority.highestPriority"),
                ("cpuAllocatableEvictThresholdPercent", "byRequests.threshold", PERCENT),
                ("cpuAllocatableEvictLowerPercent", "byRequests.lower", PERCENT),
                ("allocatableEvictPriorityThreshold", "byRequests.highestPriority"),
            ),
        ),
        QOS: (
            *_rows(
                "SystemTuning",
                "policies",
                ("cpuPolicy", "cpuMechanism", among("groupIdentity", "coreSched")),
                ("netQOSPolicy", "networkMechanism", among("tc", "terway-qos")),
            ),
            *(row for name, group in GROUPS.items() for row in _class(name, group)),
        ),
        BURST: tuple(
            _rows(
                "CPUBurst",
                "",
                ("policy", "policy", among("none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto")),
                ("cpuBurstPercent", "burst", PERCENT),
                ("cfsQuotaBurstPercent", "quota.ceiling", PERCENT),
                ("cfsQuotaBurstPeriodSeconds", "quota.period", SECONDS),
                ("sharePoolThresholdPercent", "sharePool.threshold", PERCENT),
            )
        ),
        SYSTEM: (
            *_rows(
                "SystemTuning",
                "",
                ("minFreeKbytesFactor", "minFreeFactor"),
                ("watermarkScaleFactor", "watermarkScaleFactor"),
                ("memcgReapBackGround", "reapsMemory", SWITCH),
                ("schedGroupIdentityEnabled", "groupIdentity", SWITCH),
                ("schedIdleSaverWmark", "idleSaverWatermark", NANOS),
                ("pageCacheLimitEnabled", "limitsPageCache", SWITCH),
                ("totalNetworkBandwidth", "parameters.bandwidth", BANDWIDTH),
            ),
            Carried(("schedFeatures",), "SystemTuning", "features", many=True),
        ),
        COLOCATION: (
            *_rows(
                "Overcommit/batch",
                "",
                ("enable", "parameters.offered"),
                ("cpuReclaimThresholdPercent", "parameters.cpuReclaim", PERCENT),
                ("cpuCalculatePolicy", "parameters.cpuPolicy"),
                ("memoryReclaimThresholdPercent", "parameters.memoryReclaim", PERCENT),
                ("memoryCalculatePolicy", "parameters.memoryPolicy"),
                ("batchCPUThresholdPercent", "parameters.cpuLimit", PERCENT),
                ("batchMemoryThresholdPercent", "parameters.memoryLimit", PERCENT),
                ("degradeTimeMinutes", "parameters.staleAfter", MINUTES),
                ("updateTimeThresholdSeconds", "parameters.refreshAfter", SECONDS),
                ("resourceDiffThreshold", "parameters.changedBy", RATIO),
            ),
            *_rows(
                "Overcommit/mid",
                "",
                ("enable", "parameters.offered"),
                ("midReclaimMode", "parameters.mode"),
                ("midCPUThresholdPercent", "parameters.cpuLimit", PERCENT),
                ("midMemoryThresholdPercent", "parameters.memoryLimit", PERCENT),
                ("midUnallocatedPercent", "parameters.unallocated", PERCENT),
                ("midStaticCPUReservedPercent", "parameters.staticCPU", PERCENT),
                ("midStaticMemoryReservedPercent", "parameters.staticMemory", PERCENT),
                ("degradeTimeMinutes", "parameters.staleAfter", MINUTES),
                ("updateTimeThresholdSeconds", "parameters.refreshAfter", SECONDS),
                ("resourceDiffThreshold", "parameters.changedBy", RATIO),
            ),
            *_rows(
                "MetricCollection",
                "",
                ("metricAggregateDurationSeconds", "parameters.averagesOver", SECONDS),
                ("metricReportIntervalSeconds", "parameters.every", SECONDS),
                ("metricAggregatePolicy.durations", "parameters.percentilesOver", DURATIONS),
                ("metricMemoryCollectPolicy", "parameters.memory"),
            ),
        ),
        NORMALIZATION: tuple(
            _rows(
                "Amplification",
                "",
                ("enable", "parameters.normalize"),
                ("defaultRatio", "parameters.defaultRatio"),
                ("ratioModel", "parameters.baseRatios", BASE),
                ("ratioModel", "parameters.turboRatios", TURBO),
                ("ratioModel", "parameters.hyperThreadRatios", HYPER_THREAD),
                ("ratioModel", "parameters.hyperThreadTurboRatios", HYPER_THREAD_TURBO),
            )
        ),
        AMPLIFICATION: tuple(
            _rows(
                "Amplification",
                "",
                ("enable", "parameters.amplify"),
                ("resourceAmplificationRatio", "parameters.ratios", RATIOS),
            )
        ),
    }
)
"""By document of `slo-controller-config`, in the order of its fields."""

MEASURED: Final = tuple(
    dict.fromkeys(row.path[0] for row in FIELDS[COLOCATION] if row.kind == "MetricCollection")
)
"""What `colocation-config` says of measuring; where nothing is offered, nodes are measured as usual."""

WHOLE: Final = frozenset({"ratioModel", "resourceAmplificationRatio"})
"""Mappings that a policy says as a whole, whatever those below it say; a ConfigMap adds to them key by key."""

RENDERED: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {("SystemTuning", "parameters.bandwidth"): "networkBandwidth"}
)
"""Decisions that read a parameter, and are rendered in its place."""

SETTLED: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (f"Overcommit/{resource}", f"parameters.{parameter}"): field
        for resource in ("batch", "mid")
        for parameter, field in (
            ("offered", "enabled"),
            ("staleAfter", "onMissing.after"),
            ("refreshAfter", "publish.atLeastEvery"),
            ("changedBy", "publish.whenChangedBy"),
        )
    }
)
"""Decisions that a parameter is written for, since nodes have a say too; what holds for a node that says nothing is read of them."""
