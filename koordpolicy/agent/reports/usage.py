"""What was measured, as the values that policies and reports speak of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.measurements.levels import (
    CPU,
    MEMORY,
    NODE,
    WITH_CACHE,
    WITH_HOT_CACHE,
    Measurements,
    application_key,
)
from koordpolicy.agent.measurements.table import Excerpt, MeasurementTable
from koordpolicy.algorithms.aggregation import AVERAGE, begins_cold, millicores
from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.model.facts.node import AGGREGATIONS
from koordpolicy.model.metric import AggregatedUsage, HostApplicationMetric, NodeMetric, PodMetric
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import PRIORITY_CLASS, QOS_CLASS
from koordpolicy.model.reading import NOTHING, Amounts

_MEMORY: Final[Mapping[str, str]] = {
    "usageWithoutPageCache": MEMORY,
    "usageWithHotPageCache": WITH_HOT_CACHE,
    "usageWithPageCache": WITH_CACHE,
}


@dataclass(frozen=True, slots=True)
class ApplicationOnHost:
    """A host application as policy names it: its priority and QoS class, and where its control group is based."""

    name: str
    priority: str = ""
    qos: str = ""
    cgroup_base: str = ""


def pods_by_uid(pods: Iterable[Pod]) -> dict[str, Pod]:
    """The pods that are not over, by UID."""
    return {pod.uid: pod for pod in pods if not pod.terminal}


@dataclass(frozen=True, slots=True)
class UsageView:
    """Measurements read for one moment, `now` of the tables' clock."""

    found: Measurements
    collection: Collection
    catalogue: Catalogue
    now: int

    def averaged(
        self, name: str, wall: int, pods: Mapping[str, Pod], applications: Sequence[ApplicationOnHost]
    ) -> NodeMetric:
        """What is reported: averages over the window that policy says, aggregations over the others.

        `wall` is nanoseconds since 1970.
        """
        window = self.collection.averages_over
        return NodeMetric(
            name,
            wall,
            self.collection.every,
            node_usage=self._whole(self.found.node, window, self._counted),
            system_usage=self._whole(self.found.system, window, self._counted) or NOTHING,
            aggregated=self._windows(self.found.node),
            aggregated_system=self._windows(self.found.system),
            pods=self._pods(pods, AVERAGE, window, self._counted),
            host_applications=self._applications(applications, AVERAGE, window, self._counted),
        )

    def latest(
        self,
        name: str,
        wall: int,
        pods: Mapping[str, Pod],
        applications: Sequence[ApplicationOnHost],
        reported: NodeMetric | None,
    ) -> NodeMetric | None:
        """What was measured last, not more than two intervals ago; None where the node was not measured since.

        Memory is without page cache, whatever is reported: what can be dropped presses nobody. Percentiles are those that were `reported` last.
        """
        fresh = self.collection.fresh
        node = self._whole(self.found.node, fresh, MEMORY, "last")
        if node is None:
            return None
        age = self.now - int(self.found.node.excerpt(CPU, self.now, fresh).times[-1])
        return NodeMetric(
            name,
            wall - age,
            self.collection.every,
            node_usage=node,
            system_usage=self._whole(self.found.system, fresh, MEMORY, "last") or NOTHING,
            aggregated=() if reported is None else reported.aggregated,
            aggregated_system=() if reported is None else reported.aggregated_system,
            pods=self._pods(pods, "last", fresh, MEMORY),
            host_applications=self._applications(applications, "last", fresh, MEMORY),
            prod_reclaimable=None if reported is None else reported.prod_reclaimable,
            prod_peak=None if reported is None else reported.prod_peak,
        )

    @property
    def _counted(self) -> str:
        """What policy wants to be reported as memory."""
        return _MEMORY.get(self.collection.memory, MEMORY)

    def _whole(
        self,
        table: MeasurementTable[str],
        window: int,
        wanted: str,
        how: str = AVERAGE,
        *,
        cold: bool = True,
    ) -> Amounts | None:
        """CPU and memory of the node or its system; None where one of them was not measured."""
        cpu = table.excerpt(CPU, self.now, window)
        if not cold and begins_cold(cpu.spans().get(NODE, 0), window):
            return None
        cores, memory = _told(cpu, how).get(NODE), self._memory(table, window, wanted, how).get(NODE)
        return None if cores is None or memory is None else _amounts(cores, memory)

    def _memory(self, table: MeasurementTable[str], window: int, wanted: str, how: str) -> dict[str, float]:
        """Bytes of each subject: as wanted where that was measured, without page cache where it was not."""
        found = _told(table.excerpt(MEMORY, self.now, window), how)
        if wanted != MEMORY and wanted in table.measures:
            found |= _told(table.excerpt(wanted, self.now, window), how)
        return found

    def _hot(self, found: dict[str, float], window: int, wanted: str, how: str) -> dict[str, float]:
        """The same with what was measured of memory that is in use, at its own pace."""
        if wanted != WITH_HOT_CACHE:
            return found
        hot = _told(self.found.cold.excerpt(WITH_HOT_CACHE, self.now, window), how)
        return {subject: hot.get(subject, memory) for subject, memory in found.items()}

    def _windows(self, table: MeasurementTable[str]) -> tuple[AggregatedUsage, ...]:
        return tuple(
            AggregatedUsage(
                window,
                {
                    name: self._whole(table, window, self._counted, name, cold=False) or NOTHING
                    for name in AGGREGATIONS
                },
            )
            for window in self.collection.percentiles_over
        )

    def _pods(self, pods: Mapping[str, Pod], how: str, window: int, wanted: str) -> tuple[PodMetric, ...]:
        cpu = _told(self.found.pods.excerpt(CPU, self.now, window), how)
        memory = self._hot(self._memory(self.found.pods, window, wanted, how), window, wanted, how)
        metrics = []
        for uid in cpu.keys() & memory.keys() & pods.keys():
            pod = pods[uid]
            label = pod.labels.get(QOS_CLASS)
            found = self.catalogue.resolve(
                label, pod.labels.get(PRIORITY_CLASS), pod.priority, pod.kubernetes_qos
            )
            priority = self.catalogue.class_name(found.band)
            metrics.append(
                PodMetric(pod.namespace, pod.name, _amounts(cpu[uid], memory[uid]), priority, found.qos)
            )
        return tuple(sorted(metrics, key=lambda one: one.key))

    def _applications(
        self, applications: Sequence[ApplicationOnHost], how: str, window: int, wanted: str
    ) -> tuple[HostApplicationMetric, ...]:
        cpu = _told(self.found.applications.excerpt(CPU, self.now, window), how)
        memory = self._memory(self.found.applications, window, wanted, how)
        memory = {
            name: self._hot({application_key(name): one}, window, wanted, how)[application_key(name)]
            for name, one in memory.items()
        }
        return tuple(
            HostApplicationMetric(
                one.name, _amounts(cpu[one.name], memory[one.name]), one.priority, one.qos, one.cgroup_base
            )
            for one in sorted(applications, key=lambda one: one.name)
            if one.name in cpu and one.name in memory
        )


def _told(excerpt: Excerpt[str], how: str) -> dict[str, float]:
    return excerpt.latest() if how == "last" else excerpt.aggregate(how)


def _amounts(cores: float, memory: float) -> Amounts:
    return {CPU: millicores(cores), MEMORY: int(memory)}
