"""NodeMetric as a value: what the agent measured on a node, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.amounts import within
from koordpolicy.model.pod import read_time
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import (
    NOTHING,
    Amounts,
    Json,
    ObjectError,
    amounts,
    integer,
    mapping,
    objects,
    optional_mapping,
    text,
)
from koordpolicy.model.time import NANOSECONDS, parse_duration

DEFAULT_REPORT_INTERVAL_SECONDS: Final = 60
"""The API's default of `spec.metricCollectPolicy.reportIntervalSeconds`."""

_MOST: Final = 2**53
"""Millicores or bytes: more than any node has, and so little that formulas can add and multiply it without an overflow,
which would leave what was made of an older report as it is.
"""


@dataclass(frozen=True, slots=True)
class AggregatedUsage:
    """Usage over one window: `usage` by aggregation (`avg`, `p95`, ...). `duration` in nanoseconds.

    An aggregation with an empty list is one for which there were not enough samples.
    """

    duration: int
    usage: Mapping[str, Amounts]


@dataclass(frozen=True, slots=True)
class PodMetric:
    """Measured usage of one pod, with the class and QoS the agent reported for it."""

    namespace: str
    name: str
    usage: Amounts
    priority: str = ""
    qos: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class HostApplicationMetric:
    """Measured usage of an application that runs outside Kubernetes.

    `cgroup_base` is the control group that it stands in (`KubepodsBesteffort`, ...), which only the node knows:
    reports leave it out.
    """

    name: str
    usage: Amounts
    priority: str = ""
    qos: str = ""
    cgroup_base: str = ""


@dataclass(frozen=True, slots=True)
class NodeMetric:
    """A node's report.

    `updated_at` is None when it has never been filled. `node_usage` is None when the report has no
    node part, which is not the same as using nothing. Intervals are nanoseconds.
    """

    name: str
    updated_at: int | None = None
    report_interval: int = DEFAULT_REPORT_INTERVAL_SECONDS * NANOSECONDS
    node_usage: Amounts | None = None
    system_usage: Amounts = field(default_factory=lambda: NOTHING)
    aggregated: tuple[AggregatedUsage, ...] = ()
    aggregated_system: tuple[AggregatedUsage, ...] = ()
    pods: tuple[PodMetric, ...] = ()
    host_applications: tuple[HostApplicationMetric, ...] = ()
    prod_reclaimable: Amounts | None = None
    prod_peak: Amounts | None = None

    def longest(self, aggregation: str) -> Amounts | None:
        """The aggregation over the longest window that has it with values; None when none has."""
        with_values = [window for window in self.aggregated if window.usage.get(aggregation)]
        if not with_values:
            return None
        return max(with_values, key=lambda window: window.duration).usage[aggregation]


def read_node_metric(obj: Json) -> NodeMetric:
    """A NodeMetric from its JSON. Raises ObjectError with the place of what is malformed."""
    status = mapping(obj, "status")
    node = optional_mapping(status, "nodeMetric", "status")
    policy = mapping(mapping(obj, "spec"), "metricCollectPolicy", "spec")
    seconds = integer(policy, "reportIntervalSeconds", "spec.metricCollectPolicy")
    return NodeMetric(
        name=text(mapping(obj, "metadata"), "name", "metadata"),
        updated_at=read_time(status, "updateTime", "status"),
        report_interval=within(
            (DEFAULT_REPORT_INTERVAL_SECONDS if seconds is None else seconds) * NANOSECONDS
        ),
        node_usage=None if node is None else _usage(node, "nodeUsage"),
        system_usage=NOTHING if node is None else _usage(node, "systemUsage"),
        aggregated=() if node is None else _windows(node, "aggregatedNodeUsages"),
        aggregated_system=() if node is None else _windows(node, "aggregatedSystemUsages"),
        pods=tuple(
            PodMetric(
                text(pod, "namespace"),
                text(pod, "name"),
                _usage(pod, "podUsage"),
                text(pod, "priority"),
                text(pod, "qos"),
            )
            for pod in objects(status, "podsMetric", "status")
        ),
        host_applications=tuple(
            HostApplicationMetric(
                text(app, "name"), _usage(app, "usage"), text(app, "priority"), text(app, "qos")
            )
            for app in objects(status, "hostApplicationMetric", "status")
        ),
        prod_reclaimable=_predicted(status, "prodReclaimableMetric"),
        prod_peak=_predicted(status, "prodPeakMetric"),
    )


def read_best_effort_cpu(obj: Json) -> int | None:
    """How many millicores best-effort work may use on the node now, all of it together; None where no agent of ours says so.

    Koordinator's reports have no such field. Raises ObjectError.
    """
    said = optional_mapping(mapping(obj, "status"), "bestEffort", "status")
    return None if said is None else amounts(said, "allowed", "status.bestEffort").get(CPU)


def _usage(parent: Json, key: str) -> Amounts:
    used = amounts(mapping(parent, key), "resources", key)
    for resource, number in used.items():
        if number > _MOST:
            raise ObjectError(f"{key}.resources.{resource}: no node and no pod uses as much")
    return used


def _predicted(status: Json, key: str) -> Amounts | None:
    metric = optional_mapping(status, key, "status")
    resource = None if metric is None else optional_mapping(metric, "resource", key)
    return None if resource is None else amounts(resource, "resources", key)


def _windows(node: Json, key: str) -> tuple[AggregatedUsage, ...]:
    windows = []
    for index, window in enumerate(objects(node, key)):
        at = f"{key}[{index}]"
        usage = mapping(window, "usage", at)
        windows.append(
            AggregatedUsage(
                _duration(window, at), {aggregation: _usage(usage, aggregation) for aggregation in usage}
            )
        )
    return tuple(windows)


def _duration(window: Json, at: str) -> int:
    source = text(window, "duration", at)
    try:
        return parse_duration(source) if source else 0
    except ValueError as error:
        raise ObjectError(f"{at}.duration: {error}") from error
