"""Whole fact records: what objects say, joined with the class and band that policy gives them.

The builders of `model` know no policy, and the components that ask policies must not each join the
parts anew. Here the classes and bands still arrive as an argument.
"""

from collections.abc import Iterable, Sequence

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.pod_request import pod_demand
from koordpolicy.model.amounts import within
from koordpolicy.model.facts import Record, Times
from koordpolicy.model.facts.node import host_application_facts
from koordpolicy.model.facts.pod import (
    class_facts,
    placed_pod_facts,
    pod_facts,
    pod_usage_facts,
    unknown_pod_facts,
)
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import PRIORITY_CLASS, QOS_CLASS


def pod_record(pod: Pod, catalogue: Catalogue, times: Times) -> Record:
    """A pod with its class and bands, not yet measured."""
    label = pod.labels.get(QOS_CLASS)
    found = catalogue.resolve(label, pod.labels.get(PRIORITY_CLASS), pod.priority, pod.kubernetes_qos)
    record = pod_facts(pod, pod_demand(pod), times)
    record.update(class_facts(found.qos, catalogue.labelled_qos(label), found.band, found.raw_band))
    return record


def pods_on_node(
    pods: Sequence[Pod], metric: NodeMetric | None, catalogue: Catalogue, times: Times
) -> list[Record]:
    """The pods that the cluster has on a node, with what was measured of them; then those only measured."""
    reported = {} if metric is None else {one.key: one for one in metric.pods}
    records = []
    for pod in pods:
        record = pod_record(pod, catalogue, times)
        record.update(placed_pod_facts(pod))
        found = reported.pop(pod.key, None)
        if found is not None:
            record.update(pod_usage_facts(found.usage, catalogue.band_of_class(found.priority)))
        records.append(record)
    records.extend(_unknown(found, catalogue) for found in reported.values())
    return records


def host_application_records(metric: NodeMetric, catalogue: Catalogue) -> list[Record]:
    """The host applications of a node's report, with the bands of their classes."""
    return [
        host_application_facts(one, catalogue.band_of_class(one.priority)) for one in metric.host_applications
    ]


def usage_of(pods: Iterable[Record], bands: Iterable[str] = (), *, outside: bool = False) -> dict[str, int]:
    """Measured cpu and memory of the active pods of some bands, or of all `outside` them."""
    named = frozenset(bands)
    total = {"cpu": 0, "memory": 0}
    for pod in pods:
        if pod["active"] and (pod["band"] in named) != outside:
            for step in total:
                used = pod.get(f"usage.{step}", 0)
                assert isinstance(used, int)
                total[step] += used
    return {step: within(used) for step, used in total.items()}


def _unknown(found: PodMetric, catalogue: Catalogue) -> Record:
    return unknown_pod_facts(
        found.namespace,
        found.name,
        catalogue.labelled_qos(found.qos),
        catalogue.band_of_class(found.priority),
        found.usage,
    )
