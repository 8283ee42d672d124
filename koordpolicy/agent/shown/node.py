"""Metrics of the node as a whole."""

from collections.abc import Iterator, Mapping
from typing import Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.collectors.machine import CPUS, DISKS, ZONES
from koordpolicy.agent.measurements.levels import COLD, CORES, CPU, MEMORY, NODE
from koordpolicy.agent.shown.rows import BYTE, INTEGER, Rows, cpu_and_memory
from koordpolicy.agent.strategies.prediction import BANDS, PODS, TOGETHER
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.resctrl import read_cache_use
from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    QOS_BEST_EFFORT,
    QOS_CLASS,
)
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.clock import monotonic_ns
from koordpolicy.runtime.counting import Sample

SECOND_OFFERS: Final = {BATCH_CPU: INTEGER, BATCH_MEMORY: BYTE, MID_CPU: INTEGER, MID_MEMORY: BYTE}
"""The resources of best-effort work with their units."""
_PROD: Final = "koord-prod"
_BEST_EFFORT: Final = "BE"
_CLASSES: Final = ("LSR", "LS", "BE")
"""Groups of resctrl, as isolation of caches makes them."""
_PREDICTORS: Final = {
    PODS: "podReclaimablePredictor",
    BANDS: "priorityReclaimablePredictor",
    TOGETHER: "minPredictor",
}


def _used(measure: str) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        if agent.measurements is not None:
            latest = agent.measurements.node.latest(measure, monotonic_ns(), agent.collection().fresh)
            if NODE in latest:
                yield (), latest[NODE]

    return rows


def _looks(part: str) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        for (of, succeeded), count in sorted(agent.machine.looks.items()):
            if of == part:
                yield ("succeeded" if succeeded else "failed",), count

    return rows


def _used_by(best_effort: bool) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        if agent.measurements is None:
            return
        cpu = agent.measurements.pods.latest(CPU, monotonic_ns(), agent.collection().fresh)
        pods = agent.pods()
        total = 0.0
        for uid, cores in cpu.items():
            pod = pods[uid].pod if uid in pods else None
            yields = pod is not None and (
                pod.labels.get(QOS_CLASS) == _BEST_EFFORT or pod.kubernetes_qos == QOS_BEST_EFFORT
            )
            total += cores if yields is best_effort else 0.0
        yield (), total

    return rows


def _allocatable(agent: NodeAgent) -> Iterator[Sample]:
    node = agent.watch.objects.nodes.get(agent.watch.node)
    for resource, unit in SECOND_OFFERS.items() if node is not None else ():
        assert node is not None
        yield (resource, unit), node.allocatable.get(resource, 0)


def _predicted(of: str) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        for method, found in agent.predictions.predicted.items():
            amounts = found.reclaimable if of == "reclaimable" else found.peak
            yield from cpu_and_memory(amounts, _PREDICTORS[method])

    return rows


def _reclaimable(agent: NodeAgent) -> Iterator[Sample]:
    if agent.reporter.last is not None:
        yield from cpu_and_memory(agent.reporter.last.prod_reclaimable or {CPU: 0, MEMORY: 0}, _PROD)


def _reclaimable_status(agent: NodeAgent) -> Iterator[Sample]:
    if agent.reporter.last is not None:
        yield (_PROD,), float(bool(agent.predictions.trouble))


def _reported(of: str) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        last: NodeMetric | None = agent.reporter.last
        if last is not None:
            yield from cpu_and_memory(last.node_usage if of == "node" else last.system_usage)

    return rows


def _zones(part: int) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        for zone, use in sorted(agent.reporter.zones.items()):
            yield from cpu_and_memory(use[part], str(zone))

    return rows


def _pool(best_effort: bool, *, listed: bool) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        pools = agent.topology.pools
        if pools is None:
            return
        chosen = pools.best_effort if best_effort else pools.shared
        cpus = sorted(cpu for said in chosen.values() for cpu in parse_cpuset(said))
        if listed:
            yield from (((str(cpu),), 1) for cpu in cpus)
        else:
            yield (), len(cpus)

    return rows


def _caches(agent: NodeAgent, *, occupied: bool) -> Iterator[Sample]:
    for name in _CLASSES:
        try:
            found = read_cache_use(agent.kernel.root, name)
        except KernelFileError:
            continue  # nobody isolates caches here, or the CPU counts nothing
        for cache, use in sorted(found.items()):
            if occupied:
                yield (str(cache), name), use.occupied
            else:
                yield (str(cache), name, "mbm_local"), use.local
                yield (str(cache), name, "mbm_total"), use.total


def _cold(agent: NodeAgent) -> Iterator[Sample]:
    if agent.measurements is not None:
        cold = agent.measurements.cold.latest(COLD, monotonic_ns(), agent.collection().averages_over)
        if NODE in cold:
            yield (), cold[NODE]


def _healthy(agent: NodeAgent) -> Iterator[Sample]:
    for one in agent.devices.listed:
        yield (one.type, str(one.minor), one.id), float(one.healthy)


def _device(measure: str) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        if agent.measurements is None:
            return
        window = agent.collection().averages_over
        latest = agent.measurements.devices.latest(measure, monotonic_ns(), window)
        for one in agent.devices.listed:
            if one.id in latest:
                yield (one.type, str(one.minor), one.id), latest[one.id]

    return rows


NODE_ROWS: Final[Mapping[str, Rows]] = {
    "koordlet_start_time": lambda agent: [((), agent.began / NANOSECONDS)],
    "koordlet_node_used_cpu_cores": _used(CPU),
    "koordlet_node_used_memory_bytes": _used(MEMORY),
    "koordlet_node_resource_allocatable": _allocatable,
    "koordlet_collect_node_cpu_info_status": _looks(CPUS),
    "koordlet_collect_node_numa_info_status": _looks(ZONES),
    "koordlet_collect_node_local_storage_info_status": _looks(DISKS),
    "koordlet_be_suppress_cpu_cores": lambda agent: [
        ((kind,), cores) for kind, cores in agent.doing.suppressed.items()
    ],
    "koordlet_be_suppress_ls_used_cpu_cores": _used_by(best_effort=False),
    "koordlet_be_suppress_be_used_cpu_cores": _used_by(best_effort=True),
    "koordlet_node_predicted_resource_reclaimable": _predicted("reclaimable"),
    "koordlet_node_predicted_resource_peak": _predicted("peak"),
    "koordlet_node_priority_resource_reclaimable": _reclaimable,
    "koordlet_node_resource_priority_reclaimable_status": _reclaimable_status,
    "koordlet_node_metric_node_usage": _reported("node"),
    "koordlet_node_metric_system_usage": _reported("system"),
    "koordlet_node_metric_numa_node_usage": _zones(0),
    "koordlet_node_metric_numa_system_usage": _zones(1),
    "koordlet_cpuset_share_pool_cpu_cores": _pool(best_effort=False, listed=False),
    "koordlet_cpuset_be_share_pool_cpu_cores": _pool(best_effort=True, listed=False),
    "koordlet_cpuset_share_pool_info": _pool(best_effort=False, listed=True),
    "koordlet_cpuset_be_share_pool_info": _pool(best_effort=True, listed=True),
    "koordlet_resctrl_llc_occupancy": lambda agent: _caches(agent, occupied=True),
    "koordlet_resctrl_memory_bandwidth": lambda agent: _caches(agent, occupied=False),
    "koordpolicy_node_cold_memory_bytes": _cold,
    "koordpolicy_device_healthy": _healthy,
    "koordpolicy_device_busy_percent": _device(CORES),
    "koordpolicy_device_used_memory_bytes": _device(MEMORY),
}
"""By the names of the table of metrics."""
