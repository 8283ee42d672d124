"""What a node carries beyond what was measured: pods that the last report does not show yet.

A report is older than the pods placed since. For each of them an estimate stands in until it shows in
a report: the part of the estimate that exceeds its measured use is added to the node's measured use.
How a pod is estimated, which pods count as protected (`prod`), and how long an estimate is held are
decided elsewhere and arrive here as values. Times and durations are nanoseconds.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import add, sub
from typing import Final, NamedTuple

from koordpolicy.model.metric import AggregatedUsage
from koordpolicy.model.reading import NOTHING, Amounts

PodKey = tuple[str, str]
"""Namespace and name, as reports name pods."""


class AssignedPod(NamedTuple):
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


_UNKNOWN: Final[tuple[None, tuple[()]]] = (None, ())

_Row = tuple[int, ...]
"""An amount for each resource that is looked at, in their order."""

_Share = tuple[int, ...]
"""What one pod adds to the sums over all: its rows of the estimate, of what the estimate adds to the node's
use, and of protected use with what the estimate adds to that, one behind the other."""


class NodeLoad:
    """The load of one node, kept up to date pod by pod.

    Adding and removing pods gives the same sums as starting anew. `resources` are the ones looked at;
    others in usages and estimates are ignored. With `prod_includes_system` the use outside pods counts
    as protected too.
    """

    __slots__ = (
        "_pods", "_prod_includes_system", "_report", "_resources", "_sums", "_usage_now", "_usages",
    )  # fmt: skip

    def __init__(self, resources: Collection[str], *, prod_includes_system: bool = False) -> None:
        self._resources = tuple(resources)
        self._prod_includes_system = prod_includes_system
        self._report: LoadReport | None = None
        # Each with its share, which is empty as long as there is no report.
        self._pods: dict[PodKey, tuple[AssignedPod, _Share]] = {}
        self._sums: _Share = (0,) * (3 * len(self._resources))
        self._usage_now: _Row | None = None
        self._usages: dict[tuple[str, int], _Row | None] = {}

    @property
    def empty(self) -> bool:
        """Whether neither pods nor a report are known."""
        return self._report is None and not self._pods

    @property
    def pods(self) -> Collection[AssignedPod]:
        """The pods on the node, in the order they came."""
        return [pod for pod, _ in self._pods.values()]

    def copy(self) -> "NodeLoad":
        """Another load that begins with the same pods and report."""
        other = NodeLoad(self._resources, prod_includes_system=self._prod_includes_system)
        other._report, other._sums = self._report, self._sums
        other._pods, other._usage_now = dict(self._pods), self._usage_now
        return other

    def set_report(self, report: LoadReport | None) -> None:
        """Take a new report, or forget the last; everything is computed anew."""
        self._report = report
        usage = None if report is None else report.node_usage
        self._usage_now = None if usage is None else self._row(usage)
        self._usages.clear()
        self._rebuild(self.pods)

    def add(self, pod: AssignedPod) -> None:
        """Add a pod, or replace what is known of it."""
        if pod.key in self._pods:
            self.remove(pod.key)
        if self._report is None:
            self._pods[pod.key] = pod, ()
        else:
            share = self._share(pod, self._report)
            self._pods[pod.key] = pod, share
            self._sums = tuple(map(add, self._sums, share))

    def remove(self, key: PodKey) -> None:
        """Forget a pod; nothing happens when it is unknown."""
        _, share = self._pods.pop(key, _UNKNOWN)
        if share:
            self._sums = tuple(map(sub, self._sums, share))

    def existing(self, *, prod: bool = False, aggregation: str = "", duration: int = 0) -> dict[str, int]:
        """The load without the pod that is being placed, by resource.

        `prod`: of protected pods alone. `aggregation`: on top of a percentile, over the window of exactly
        this duration, or with 0 over the longest that has values (and plain usage when none has).
        Where the usage asked for is unknown, the sum of all estimates stands for it.
        """
        sums, many = self._sums, len(self._resources)
        if prod:
            return self._named(sums[2 * many :])
        usage = self._usage_over(aggregation, duration) if aggregation else self._usage_now
        if usage is None:
            return self._named(sums[:many])
        return self._named(map(add, usage, sums[many : 2 * many]))

    def _usage_over(self, aggregation: str, duration: int) -> _Row | None:
        asked = aggregation, duration
        if asked not in self._usages:
            found = self._usage(aggregation, duration)
            self._usages[asked] = None if found is None else self._row(found)
        return self._usages[asked]

    def _usage(self, aggregation: str, duration: int) -> Amounts | None:
        report = self._report
        if report is None or report.node_usage is None:
            return None
        windows = [window for window in report.windows if window.usage.get(aggregation)]
        if duration:
            exact = (window.usage[aggregation] for window in windows if window.duration == duration)
            return next(exact, None)
        if not windows:
            return report.node_usage
        return max(windows, key=lambda window: window.duration).usage[aggregation]

    def _named(self, row: Iterable[int]) -> dict[str, int]:
        return dict(zip(self._resources, row))  # noqa: B905  # quicker; all are as long

    def _row(self, amounts: Amounts) -> _Row:
        return tuple([amounts.get(name, 0) for name in self._resources])

    def _rebuild(self, pods: Iterable[AssignedPod]) -> None:
        self._pods.clear()
        nothing = system = self._row(NOTHING)
        if self._report is not None and self._prod_includes_system:
            system = self._row(self._report.system_usage)
        self._sums = nothing * 2 + system
        for pod in pods:
            self.add(pod)

    def _share(self, pod: AssignedPod, report: LoadReport) -> _Share:
        reported = report.pods.get(pod.key)
        # A report can list a pod without having measured it.
        usage = reported.usage if reported is not None and reported.usage else None
        prod_reported = pod.prod and reported is not None and reported.prod
        nothing = (0,) * len(self._resources)
        prod_usage = self._row(usage) if prod_reported and usage is not None else nothing
        if pod.estimate is None:
            return nothing * 2 + prod_usage
        unseen = (
            usage is None
            or report.updated_at - report.interval < pod.since
            or (pod.hold_until is not None and pod.hold_until > report.updated_at)
        )
        node_extra = self._excess(pod.estimate, usage) if unseen else nothing
        if usage is not None and pod.prod and not prod_reported:
            # Protected, but reported otherwise: it is not in the protected usage, and its whole estimate
            # stands for it.
            prod_extra = self._excess(pod.estimate, None)
        else:
            prod_extra = node_extra if pod.prod else nothing
        prod = prod_extra if prod_usage is nothing else tuple(map(add, prod_usage, prod_extra))
        return self._row(pod.estimate) + node_extra + prod

    def _excess(self, estimate: Amounts, usage: Amounts | None) -> _Row:
        """By how much an estimate exceeds what was measured, of the resources that it estimates."""
        measured = usage or NOTHING
        return tuple(
            [
                max(0, estimate[name] - measured.get(name, 0)) if name in estimate else 0
                for name in self._resources
            ]
        )
