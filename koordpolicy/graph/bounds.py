"""Bounds of values that would do harm or nothing at all outside them, though their type and slot take any."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Final

from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import BANDWIDTH, CPU, DOUBLE, DURATION, MEMORY, PERCENT, Type
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.kinds import Slot

_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a decision's value, in points for percentages and nanoseconds for durations.

    `why` completes the sentence "because ...". Without `low_fits` the lower bound itself is outside.
    """

    kind: str
    field: str
    type: Type
    why: str
    low: float = -inf
    high: float = inf
    low_fits: bool = True

    @property
    def permitted(self) -> Permitted:
        """The same for values that are computed."""
        return Permitted(self.words, low=self.low, high=self.high, low_fits=self.low_fits)

    @property
    def words(self) -> str:
        """What to write."""
        low = (
            ""
            if self.low == -inf
            else f"{'at least' if self.low_fits else 'more than'} {self._shown(self.low)}"
        )
        high = "" if self.high == inf else f"at most {self._shown(self.high)}"
        return " and ".join(part for part in (low, high) if part)

    def _shown(self, bound: float) -> str:
        return show(self.type, Duration(int(bound)) if self.type == DURATION else bound)


def _share(kind: str, field: str, why: str, *, low: float = 0.0, low_fits: bool = True) -> Range:
    return Range(kind, field, PERCENT, why, low=low, high=100.0, low_fits=low_fits)


def _time(kind: str, field: str, why: str, *, low: float = 0.0, low_fits: bool = False) -> Range:
    return Range(kind, field, DURATION, why, low=low, low_fits=low_fits)


def _amount(kind: str, field: str, type: Type, why: str) -> Range:
    return Range(kind, field, type, why, low=0.0)


RANGES: tuple[Range, ...] = (
    _share("ColocationProfile", "probability", "it is a share of the matching pods"),
    _share("SchedulingProfile", "sampling", "it is a share of the nodes"),
    _share(
        "CPUSuppress",
        "growth.step",
        "best-effort work would never get back the CPU that was taken from it",
        low_fits=False,
    ),
    _share("CPUSuppress", "growth.deadband", "no change would ever be written"),
    _time("CPUSuppress", "interval", "the agent would do nothing else"),
    _time("CPUSuppress", "onMissing.after", "every measurement would count as missing"),
    _time(
        "CPUSuppress",
        "minimumQuota",
        "the kernel runs nothing on a smaller quota",
        low=_MILLISECOND,
        low_fits=True,
    ),
    _share("CPUSuppress", "parameters.threshold", "it is a share of the node's CPU"),
    _share("CPUSuppress", "parameters.floor", "it is a share of the node's CPU"),
    _share("MemoryEviction", "threshold", "it is a share of the node's memory"),
    _share("MemoryEviction", "lower", "it is a share of the node's memory"),
    *(
        Range(kind, f"byRequests.{field}", PERCENT, "requests are never below nothing", low=0.0)
        for kind in ("CPUEviction", "MemoryEviction")
        for field in ("threshold", "lower")
    ),
    _share("CPUEviction", "byPriority.threshold", "it is a share of the node's CPU"),
    _share("CPUEviction", "byPriority.lower", "it is a share of the node's CPU"),
    _share("CPUEviction", "bestEffort.threshold", "it is a share of requests"),
    _share("CPUEviction", "bestEffort.upper", "it is a share of requests"),
    _share("CPUEviction", "bestEffort.usage", "it is a share of what they get"),
    _time("CPUEviction", "window", "nothing can be averaged over that"),
    _time("CPUEviction", "cooldown", "one eviction would follow the other", low_fits=True),
    _time("MemoryEviction", "cooldown", "one eviction would follow the other", low_fits=True),
    *(
        _time(kind, f"conduct.{field}", why, low_fits=fits)
        for kind in ("CPUEviction", "MemoryEviction")
        for field, why, fits in (
            ("staleAfter", "every measurement would be too old", False),
            ("expectedWithin", "no time is shorter than none", True),
        )
    ),
    _time("Descheduling", "interval", "the descheduler would do nothing else"),
    Range("Descheduling", "pace.perSecond", DOUBLE, "a round would never end", 0.0, 1_000.0, low_fits=False),
    _time("Descheduling", "strategies[*].load.staleAfter", "every measurement would be too old"),
    _time("Descheduling", "strategies[*].load.anomaly.lasts", "no node would ever give a pod away"),
    _time("Descheduling", "strategies[*].load.anomaly.forgottenAfter", "no round would be counted"),
    *(
        _share("Descheduling", f"strategies[*].load.{field}", "it is a share of what nodes have")
        for field in ("high", "low", "prodHigh", "prodLow")
    ),
    _share("Descheduling", "parameters.packThresholds", "it is a share of what nodes have"),
    _time("Descheduling", "pace.refusedFor", "no time is shorter than none", low_fits=True),
    _time("Migration", "ttl", "no time is shorter than none", low_fits=True),
    _time("Migration", "retryAfter", "one attempt would follow the other"),
    Range("Migration", "pace.perSecond", DOUBLE, "no pod would ever go", 0.0, 1_000.0, low_fits=False),
    _time("Migration", "arbitration.interval", "the descheduler would do nothing else"),
    _time("Migration", "frequency.workload.period", "no period is shorter than none", low_fits=True),
    _time("Migration", "frequency.namespace.period", "no period is shorter than none", low_fits=True),
    _time("Migration", "kept.afterTtl", "no time is shorter than none", low_fits=True),
    _time("Migration", "kept.withoutTtl", "every migration would be forgotten before it is over"),
    _time("Migration", "kept.interval", "the descheduler would do nothing else"),
    _time("CPUEviction", "interval", "the agent would do nothing else"),
    _time("MemoryEviction", "interval", "the agent would do nothing else"),
    _time("CPUBurst", "interval", "the agent would do nothing else"),
    Range(
        "CPUBurst",
        "burst",
        PERCENT,
        "the kernel takes no more than a hundred times the limit",
        0.0,
        10_000.0,
        low_fits=False,
    ),
    Range("CPUBurst", "quota.ceiling", PERCENT, "a quota is never below the limit", low=100.0),
    Range("CPUBurst", "quota.growth", PERCENT, "the quota would not grow", low=100.0),
    Range("CPUBurst", "quota.spendsFrom", PERCENT, "less than its limit is no burst", low=100.0),
    _share("CPUBurst", "quota.savesBelow", "it is a share of the limit"),
    _share("CPUBurst", "quota.shrinkage", "the quota would not shrink"),
    Range("CPUBurst", "quota.period", DURATION, "less than no time means no end", low=-1e9),
    Range("Prediction", "margin", PERCENT, "no pod is predicted to use less than it did", low=0.0),
    *(
        _share("Prediction", f"{resource}.{field}", "it is a percentile")
        for resource in ("cpu", "memory")
        for field in ("percentile", "sampled")
    ),
    *(
        Range(
            "Prediction", f"{resource}.buckets.growth", PERCENT, "no bucket is larger than the last", low=0.0
        )
        for resource in ("cpu", "memory")
    ),
    *(_time("Prediction", f"{resource}.halfLife", "nothing would be kept") for resource in ("cpu", "memory")),
    _amount("Prediction", "cpu.buckets.first", CPU, "nobody uses less than nothing"),
    _amount("Prediction", "cpu.buckets.most", CPU, "nobody uses less than nothing"),
    _amount("Prediction", "memory.buckets.first", MEMORY, "nobody uses less than nothing"),
    _amount("Prediction", "memory.buckets.most", MEMORY, "nobody uses less than nothing"),
    _share("Interference", "share", "it is a share of the node's CPU"),
    _time("Interference", "after", "no time is shorter than none", low_fits=True),
    _time("Interference", "lasts", "no time is shorter than none", low_fits=True),
    _time("Prediction", "coldStart", "no pod is younger than nothing", low_fits=True),
    _time("Prediction", "interval", "the agent would do nothing else"),
    _time("Prediction", "forgetAfter", "nothing would be kept"),
    _time("Prediction", "checkpoint.interval", "the agent would do nothing else"),
    _share("CPUBurst", "sharePool.threshold", "it is a share of the shared CPUs"),
    _share("CPUBurst", "sharePool.cooling", "it is a share of the threshold"),
    *(
        _share("Isolation", field, why)
        for field, why in (
            ("memory.minimum", "it is a share of requests"),
            ("memory.low", "it is a share of requests"),
            ("memory.throttling", "it lies between request and limit"),
            ("memory.watermark", "it is a share of the limit"),
            ("memory.pageCache.limit", "it is a share of the limit"),
            ("cache.start", "it is a share of the cache"),
            ("cache.end", "it is a share of the cache"),
            ("cache.bandwidth", "it is a share of the bandwidth"),
        )
    ),
    _amount("CPUSuppress", "minimum", CPU, "nobody uses less than nothing"),
    _amount("NodeReservation", "cpu", CPU, "nothing less than nothing can be kept"),
    _amount("NodeReservation", "memory", MEMORY, "nothing less than nothing can be kept"),
    _amount("Isolation", "memory.pageCache.size", MEMORY, "nothing is smaller than nothing"),
    _amount("SystemTuning", "networkBandwidth", BANDWIDTH, "nothing carries less than nothing"),
    _time("SystemTuning", "idleSaverWatermark", "the kernel takes no time below nothing", low_fits=True),
    *(
        Range(
            kind,
            "timeout",
            DURATION,
            "the API server waits no other time",
            low=1_000 * _MILLISECOND,
            high=30_000 * _MILLISECOND,
        )
        for kind in ("AdmissionRule", "ColocationProfile")
    ),
    *(
        _time("MetricCollection", field, "agents count whole seconds", low=1e9, low_fits=True)
        for field in ("every", "averagesOver")
    ),
    *(
        _time(
            "MetricCollection",
            field,
            "the agent would do nothing else",
            low=100 * _MILLISECOND,
            low_fits=True,
        )
        for field in (
            *("interval", "pods.every", "pods.noticeWithin", "pressure.every", "cpi.every"),
            *("coldMemory.every", "devices.every"),
        )
    ),
    _time(
        "MetricCollection", "coldMemory.scanEvery", "the kernel counts whole seconds", low=1e9, low_fits=True
    ),
    _time("MetricCollection", "cpi.window", "no time is shorter than none", low_fits=True),
    _time("MetricCollection", "pods.timeout", "no answer would be in time"),
    _time("MetricCollection", "pods.staleAfter", "everything would be stale"),
    _time("MetricCollection", "systemInputsWithin", "everything would be too old"),
    _time("MetricCollection", "summary.every", "the manager would do nothing else"),
    _time("MetricCollection", "summary.silentAfter", "every agent would count as silent"),
    _time("QuotaTree", "admission.timeout", "every pod would be refused"),
    _time("QuotaTree", "admission.retryJitter", "no pause is shorter than none", low_fits=True),
    _time("QuotaTree", "admission.longestJitter", "no pause is shorter than none", low_fits=True),
    _time("QuotaTree", "revocation.after", "no time is shorter than none", low_fits=True),
    _time("QuotaTree", "revocation.every", "quotas would be looked at all the time"),
    _time("QuotaTree", "reporting.every", "no pause is shorter than none", low_fits=True),
    _time("QuotaTree", "builtin.retryAfter", "a failed write would be tried again at once"),
    _time("ProfileReconciliation", "interval", "the manager would do nothing else"),
    _time("ProfileReconciliation", "againAfter", "no time is shorter than none", low_fits=True),
    _time("QuotaProfile", "interval", "the manager would do nothing else"),
    _time("QuotaProfile", "retryAfter", "no pause is shorter than none", low_fits=True),
    _time("ReservationPolicy", "status.every", "the scheduler would do nothing else"),
    _time("ReservationPolicy", "removal.every", "the scheduler would do nothing else"),
    _time("ReservationPolicy", "removal.after", "no time is shorter than none", low_fits=True),
    _time("GangScheduling", "waitingTime", "no time is shorter than none", low_fits=True),
    _time("GangScheduling", "network.statusEvery", "no pause is shorter than none", low_fits=True),
    _time("GangScheduling", "phases.retryAfter", "no pause is shorter than none", low_fits=True),
    *(
        _time("SchedulingProfile", field, "no time is shorter than none", low_fits=True)
        for field in (
            "queue.initialBackoff",
            "queue.maximumBackoff",
            "queue.confirmWithin",
            "estimator.holdAfterScheduled",
            "estimator.holdAfterInitialized",
            "load.score.window",
            "preemption.lookAhead",
            "diagnosis.renewAfter",
            "diagnosis.slowDecision",
        )
    ),
    _time("SchedulingProfile", "queue.retryAfter", "the scheduler would do nothing else"),
    _time("SchedulingProfile", "diagnosis.slice", "nothing would be found out"),
    _share("SchedulingProfile", "diagnosis.share", "it is a share of the scheduler's time"),
    _share("SchedulingProfile", "preemption.search.share", "it is a share of the nodes"),
    _share("Rollout", "steps[*].shadow.sample", "it is a share of the decisions"),
    _share("Rollout", "steps[*].canary.share", "it is a share of the nodes"),
    _time("Rollout", "steps[*].hold", "no time is shorter than none", low_fits=True),
    _time("Rollout", "guards[*].patience", "no time is shorter than none", low_fits=True),
    _time("Rollout", "guards[*].knownWithin", "no time is shorter than none", low_fits=True),
    _time("Rollout", "every", "the guards would be looked at all the time"),
    *(
        one
        for resource, type in (("cpu", CPU), ("memory", MEMORY))
        for one in (
            _time("Recommendation", f"{resource}.halfLife", "no sample would count"),
            *(
                _share("Recommendation", f"{resource}.{percentile}", "it is a percentile")
                for percentile in ("lower", "target", "upper")
            ),
            Range("Recommendation", f"{resource}.margin", PERCENT, "it is added", low=0.0),
            Range(
                "Recommendation",
                f"{resource}.buckets.growth",
                PERCENT,
                "no bucket would be larger",
                low=0.0,
                low_fits=False,
            ),
            *(
                _amount("Recommendation", f"{resource}.{field}", type, "nobody uses less than nothing")
                for field in ("buckets.first", "buckets.most", "minimum", "maximum")
            ),
        )
    ),
    _time("Recommendation", "history.confidentAfter", "no time is shorter than none", low_fits=True),
    _time("Recommendation", "history.forgetAfter", "everything would be forgotten at once"),
    _time("Recommendation", "checkpoint.interval", "one checkpoint would follow the other"),
    _time("Recommendation", "publish.interval", "the manager would do nothing else"),
    _time("Recommendation", "publish.atLeastEvery", "every recommendation would be written all the time"),
    _share("Recommendation", "publish.whenChangedBy", "no change would ever be written"),
    Range("YARNNode", "vcore", CPU, "it stands for some CPU", low=0.0, low_fits=False),
    _amount("YARNNode", "offer.cpu", CPU, "nothing is the least that is offered"),
    _amount("YARNNode", "offer.memory", MEMORY, "nothing is the least that is offered"),
    _share("YARNNode", "whenChangedBy", "no change would ever be written"),
    _time("YARNNode", "overCommitTimeout", "no time is shorter than none", low_fits=True),
    _time("YARNNode", "releaseAfter", "no time is shorter than none", low_fits=True),
    _time("YARNNode", "pace.interval", "the operator would do nothing else"),
    _time("YARNNode", "pace.timeout", "no answer would come in time"),
    _time("Overcommit", "onMissing.after", "every metric would count as missing"),
    _time("Overcommit", "abnormal.after", "no time is shorter than none", low_fits=True),
    _time("Overcommit", "abnormal.wellAfter", "no time is shorter than none", low_fits=True),
    _share("Overcommit", "abnormal.offers", "it is a share of the amount"),
    _time("Overcommit", "publish.atLeastEvery", "every node would be written all the time"),
    _share("Overcommit", "publish.whenChangedBy", "no change would ever be written"),
)
"""What the values of the built-in kinds must lie between; `[*]` stands for the entry of any name."""

_NAME: Final = re.compile(r"\[[^\]]*\]")

_BY_FIELD: Mapping[tuple[str, str], Range] = MappingProxyType({(one.kind, one.field): one for one in RANGES})


def range_of(key: DecisionKey, type: Type) -> Range | None:
    """The range of a decision's value of this type; None where any will do, as for a parameter that counts otherwise."""
    field = _NAME.sub("[*]", key.field) if "[" in key.field else key.field
    bounds = _BY_FIELD.get((key.kind, field))
    if bounds is None or not key.field.startswith("parameters."):
        return bounds
    return bounds if bounds.type in (type, *type.params) else None


def permitted_of(key: DecisionKey, slot: Slot) -> Permitted | None:
    """What the values of a slot are held to at run time; None for nothing beyond their type."""
    bounds = range_of(key, slot.type)
    if bounds is not None:
        return bounds.permitted
    return None if slot.unknown else slot.permitted
