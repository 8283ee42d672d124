"""What a node would measure without one of its pods."""

from collections.abc import Mapping
from dataclasses import replace

from koordpolicy.model.metric import AggregatedUsage, NodeMetric
from koordpolicy.model.pod import PodKey
from koordpolicy.model.reading import Amounts


def measured_without(metric: NodeMetric, pod: PodKey) -> NodeMetric:
    """The report less what was measured of a pod, whose use of now stands for that in windows of time, too."""
    used = next((one.usage for one in metric.pods if one.key == pod), None)
    if used is None:
        return metric
    return replace(
        metric,
        pods=tuple(one for one in metric.pods if one.key != pod),
        node_usage=None if metric.node_usage is None else _less(metric.node_usage, used),
        aggregated=tuple(
            AggregatedUsage(window.duration, {name: _less(of, used) for name, of in window.usage.items()})
            for window in metric.aggregated
        ),
    )


def _less(amounts: Amounts, used: Mapping[str, int]) -> Amounts:
    return {name: max(amount - used.get(name, 0), 0) for name, amount in amounts.items()}
