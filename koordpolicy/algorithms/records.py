"""Whole fact records: what objects say, joined with the class and band that policy gives them.

The builders of `model` know no policy, and the components that ask policies must not each join the
parts anew. Here the classes and bands still arrive as an argument.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

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
from koordpolicy.model.facts.pod_spec import container_specs, submitted_pod_facts
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


def submitted_pod_record(pod: Pod, catalogue: Catalogue, times: Times) -> Record:
    """The same, with what only the object says that the pod was read from. Raises ObjectError."""
    record = pod_record(pod, catalogue, times)
    containers = cast(Sequence[Record], record["containers"])
    record.update(submitted_pod_facts(pod))
    specs = zip(containers, container_specs(pod), strict=True)
    record["containers"] = [{**container, **spec} for container, spec in specs]
    return record


class PodRecords:
    """Records of pods that were asked about before, for who asks about the same pods again and again; with `more` facts of each."""

    def __init__(self, more: Callable[[Pod], Record] = lambda pod: {}) -> None:
        self._more = more
        self._made: dict[tuple[str, str], tuple[Pod, Catalogue, Record]] = {}

    def placed(self, pod: Pod, catalogue: Catalogue, times: Times) -> Record:
        """A record of the caller's own, whose values are shared: what is in them must stay as it is."""
        known = self._made.get(pod.key)
        if known is not None and known[0] is pod and known[1] is catalogue:
            return dict(known[2])
        record = {**_placed(pod, catalogue, times), **self._more(pod)}
        self._made[pod.key] = (pod, catalogue, record)
        return dict(record)

    def keep(self, pods: Sequence[Pod]) -> None:
        """Forget all others, once they are as many."""
        if len(self._made) > 2 * len(pods):
            kept = {pod.key for pod in pods}
            self._made = {key: one for key, one in self._made.items() if key in kept}


def _placed(pod: Pod, catalogue: Catalogue, times: Times) -> Record:
    return {**pod_record(pod, catalogue, times), **placed_pod_facts(pod)}


def pods_on_node(
    pods: Sequence[Pod],
    metric: NodeMetric | None,
    catalogue: Catalogue,
    times: Times,
    known: PodRecords | None = None,
) -> list[Record]:
    """The pods that the cluster has on a node, with what was measured of them; then those only measured."""
    reported = {} if metric is None else {one.key: one for one in metric.pods}
    records = []
    make = _placed if known is None else known.placed
    for pod in pods:
        record = make(pod, catalogue, times)
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
