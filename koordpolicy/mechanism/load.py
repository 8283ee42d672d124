"""What a node carries beyond what was measured: pods that the last report does not show yet.

A report is older than the pods placed since. For each of them an estimate stands in until it shows in
a report: the part of the estimate that exceeds its measured use is added to the node's measured use.
How a pod is estimated, which pods count as protected (`prod`), and how long an estimate is held are
decided elsewhere and arrive here as values. Times and durations are nanoseconds.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from koordpolicy.model.metric import AggregatedUsage
from koordpolicy.model.reading import NOTHING, Amounts

PodKey = tuple[str, str]
"""Namespace and name, as reports name pods."""


@dataclass(frozen=True, slots=True)
class AssignedPod:
    """A pod that is on the node, or on its way.

    `estimate` is None when nothing is estimated for it (all zero). `since` is when it was scheduled;
    `hold_until` keeps its estimate in force against reports up to that time.
    """

    key: PodKey
    estimate: Amounts | None
    prod: bool
    since: int
    hold_until: int | None = None


@dataclass(frozen=True, slots=True)
class ReportedPod:
    """What a report says of one pod. `prod` is the class that the report gives it."""

    usage: Amounts
    prod: bool


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The parts of a node's report that load needs. `node_usage` is None without a node part."""

    updated_at: int
    interval: int
    node_usage: Amounts | None
    system_usage: Amounts = field(default_factory=lambda: NOTHING)
    windows: tuple[AggregatedUsage, ...] = ()
    pods: Mapping[PodKey, ReportedPod] = field(default_factory=dict)


def estimate_end(
    scheduled_at: int, initialized_at: int | None, after_scheduled: int | None, after_initialized: int | None
) -> int | None:
    """Until when an estimate is held: counted from initialisation if that is set and known, else from
    scheduling; None when neither duration (nanoseconds) is above zero.
    """
    if after_initialized is not None and after_initialized > 0 and initialized_at is not None:
        return initialized_at + after_initialized
    if after_scheduled is not None and after_scheduled > 0:
        return scheduled_at + after_scheduled
    return None


class _Share(NamedTuple):
    """What one pod adds to the node's sums."""

    prod_usage: Amounts = NOTHING
    estimated: Amounts = NOTHING
    node_extra: Amounts = NOTHING
    prod_extra: Amounts = NOTHING


class NodeLoad:
    """The load of one node, kept up to date pod by pod.

    Adding and removing pods gives the same sums as starting anew. `resources` are the ones looked at;
    others in usages and estimates are ignored. With `prod_includes_system` the use outside pods counts
    as protected too.
    """

    __slots__ = ("_pods", "_prod_includes_system", "_report", "_resources", "_shares", "_sums", "_usages")

    def __init__(self, resources: Collection[str], *, prod_includes_system: bool = False) -> None:
        self._resources = tuple(resources)
        self._prod_includes_system = prod_includes_system
        self._report: LoadReport | None = None
        self._pods: dict[PodKey, AssignedPod] = {}
        self._shares: dict[PodKey, _Share] = {}
        self._sums = _Sums()
        self._usages: dict[tuple[str, int], Amounts | None] = {}

    @property
    def empty(self) -> bool:
        """Whether neither pods nor a report are known."""
        return self._report is None and not self._pods

    @property
    def pods(self) -> Collection[AssignedPod]:
        """The pods on the node, in the order they came."""
        return self._pods.values()

    def copy(self) -> "NodeLoad":
        """Another load that begins with the same pods and report."""
        other = NodeLoad(self._resources, prod_includes_system=self._prod_includes_system)
        other._report = self._report
        other._pods, other._shares = dict(self._pods), dict(self._shares)
        other._sums = self._sums.copy()
        return other

    def set_report(self, report: LoadReport | None) -> None:
        """Take a new report, or forget the last; everything is computed anew."""
        self._report = report
        self._usages.clear()
        self._rebuild(tuple(self._pods.values()))

    def add(self, pod: AssignedPod) -> None:
        """Add a pod, or replace what is known of it."""
        if pod.key in self._pods:
            self.remove(pod.key)
        self._pods[pod.key] = pod
        if self._report is not None:
            share = self._share(pod, self._report)
            self._shares[pod.key] = share
            self._sums.change(share, 1)

    def remove(self, key: PodKey) -> None:
        """Forget a pod; nothing happens when it is unknown."""
        self._pods.pop(key, None)
        share = self._shares.pop(key, None)
        if share is not None:
            self._sums.change(share, -1)

    def existing(self, *, prod: bool = False, aggregation: str = "", duration: int = 0) -> dict[str, int]:
        """The load without the pod that is being placed, by resource.

        `prod`: of protected pods alone. `aggregation`: on top of a percentile, over the window of exactly
        this duration, or with 0 over the longest that has values (and plain usage when none has).
        Where the usage asked for is unknown, the sum of all estimates stands for it.
        """
        if prod:
            return self._total(self._sums.prod_usage, self._sums.prod_extra)
        asked = aggregation, duration
        if asked not in self._usages:
            self._usages[asked] = self._usage(aggregation, duration)
        usage = self._usages[asked]
        if usage is None:
            return self._total(self._sums.estimated, NOTHING)
        return self._total(usage, self._sums.node_extra)

    def _usage(self, aggregation: str, duration: int) -> Amounts | None:
        report = self._report
        if report is None or report.node_usage is None:
            return None
        if not aggregation:
            return report.node_usage
        windows = [window for window in report.windows if window.usage.get(aggregation)]
        if duration:
            exact = (window.usage[aggregation] for window in windows if window.duration == duration)
            return next(exact, None)
        if not windows:
            return report.node_usage
        return max(windows, key=lambda window: window.duration).usage[aggregation]

    def _total(self, usage: Amounts, extra: Amounts) -> dict[str, int]:
        total = {}
        for name in self._resources:
            total[name] = usage.get(name, 0) + extra.get(name, 0)
        return total

    def _rebuild(self, pods: Iterable[AssignedPod]) -> None:
        self._pods.clear()
        self._shares.clear()
        self._sums = _Sums()
        if self._report is not None and self._prod_includes_system:
            self._sums.change(_Share(prod_usage=self._report.system_usage), 1)
        for pod in pods:
            self.add(pod)

    def _share(self, pod: AssignedPod, report: LoadReport) -> _Share:
        reported = report.pods.get(pod.key)
        # A report can list a pod without having measured it.
        usage = reported.usage if reported is not None and reported.usage else None
        prod_reported = pod.prod and reported is not None and reported.prod
        prod_usage = usage if prod_reported and usage is not None else NOTHING
        if pod.estimate is None:
            return _Share(prod_usage=prod_usage)
        unseen = (
            usage is None
            or report.updated_at - report.interval < pod.since
            or (pod.hold_until is not None and pod.hold_until > report.updated_at)
        )
        return _Share(
            prod_usage=prod_usage,
            estimated=pod.estimate,
            node_extra=self._excess(pod.estimate, usage) if unseen else NOTHING,
            prod_extra=self._prod_excess(pod, usage, prod_reported=prod_reported, unseen=unseen),
        )

    def _prod_excess(
        self, pod: AssignedPod, usage: Amounts | None, *, prod_reported: bool, unseen: bool
    ) -> Amounts:
        """What the estimate adds to the protected load.

        A pod that is protected, but was reported otherwise, is not in the protected usage; its whole
        estimate stands for it.
        """
        if not pod.prod or pod.estimate is None:
            return NOTHING
        if usage is not None and not prod_reported:
            return self._excess(pod.estimate, None)
        return self._excess(pod.estimate, usage) if unseen else NOTHING

    def _excess(self, estimate: Amounts, usage: Amounts | None) -> Amounts:
        if not usage and min(estimate.values(), default=0) >= 0:
            return estimate
        measured = usage or NOTHING
        return {name: max(0, value - measured.get(name, 0)) for name, value in estimate.items()}


@dataclass(slots=True)
class _Sums:
    """Sums over the pods of a node."""

    prod_usage: dict[str, int] = field(default_factory=dict)
    estimated: dict[str, int] = field(default_factory=dict)
    node_extra: dict[str, int] = field(default_factory=dict)
    prod_extra: dict[str, int] = field(default_factory=dict)

    def copy(self) -> "_Sums":
        """The same sums, to be changed apart."""
        return _Sums(
            dict(self.prod_usage), dict(self.estimated), dict(self.node_extra), dict(self.prod_extra)
        )

    def change(self, share: _Share, sign: int) -> None:
        """Add a pod's share, or with sign -1 take it away."""
        if share.prod_usage:
            _add(self.prod_usage, share.prod_usage, sign)
        if share.estimated:
            _add(self.estimated, share.estimated, sign)
        if share.node_extra:
            _add(self.node_extra, share.node_extra, sign)
        if share.prod_extra:
            _add(self.prod_extra, share.prod_extra, sign)


def _add(total: dict[str, int], part: Amounts, sign: int) -> None:
    for name, value in part.items():
        total[name] = total.get(name, 0) + sign * value
