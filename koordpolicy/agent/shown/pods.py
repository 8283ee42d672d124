"""Metrics of pods, their containers, and programs outside Kubernetes."""

from collections.abc import Iterator, Mapping
from typing import Final

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.measurements.levels import COLD, CPU, MEMORY
from koordpolicy.agent.plan import Level, Write
from koordpolicy.agent.shown.node import SECOND_OFFERS
from koordpolicy.agent.shown.rows import Rows, container_labels, pod_labels
from koordpolicy.agent.strategies.cpu_burst import KIND as BURST
from koordpolicy.agent.strategies.cpu_isolation import COOKIE
from koordpolicy.linux.core_scheduling import HostCoreScheduling
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.members import read_processes
from koordpolicy.linux.readings.pressure import PressureStall
from koordpolicy.runtime.clock import monotonic_ns
from koordpolicy.runtime.counting import Sample

_RESOURCES: Final = {"cpu": "cpu", "memory": "mem", "io": "io"}
"""koordlet's names of what is waited for."""
_OOM_SCORE: Final = "oom_score_adj"


def _evictions(agent: NodeAgent) -> Iterator[Sample]:
    yield from (((reason,), count) for reason, count in agent.doing.counts.items())


def _evicted(agent: NodeAgent) -> Iterator[Sample]:
    yield from agent.doing.evicted.items()


def _scaled(file: str) -> Rows:
    """What bursts wrote last of containers that are there."""

    def rows(agent: NodeAgent) -> Iterator[Sample]:
        plan, pods = agent.doing.plans.get(BURST), agent.pods()
        for write in () if plan is None else plan.writes:
            pod = pods.get(write.group.pod)
            if write.file == file and _of_container(write) and pod is not None:
                name = write.group.name
                key = pod.pod.key
                yield (*key, pod.identities.get(name, ""), name), float(write.value)  # type: ignore[arg-type]

    return rows


def _of_container(write: Write) -> bool:
    return write.group.level is Level.CONTAINER and isinstance(write.value, int)


def _cycles(agent: NodeAgent) -> Iterator[Sample]:
    pods = agent.pods()
    for key, (cycles, instructions) in agent.signals.cycles.items():
        if key.uid in pods:
            labels = container_labels(pods[key.uid], key.name)
            yield (*labels, "cycles"), cycles
            yield (*labels, "instructions"), instructions


def _pressure(*, containers: bool) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        pods = agent.pods()
        for key, stalls in agent.signals.stalls.items():
            if key.uid in pods and bool(key.name) is containers:
                pod = pods[key.uid]
                labels = container_labels(pod, key.name) if containers else pod_labels(pod)
                for resource, stall in stalls.items():
                    yield from _stalled(labels, _RESOURCES[resource], stall)

    return rows


def _stalled(labels: tuple[str, ...], resource: str, stall: PressureStall) -> Iterator[Sample]:
    full = "false" if stall.full is None else "true"
    for degree, time in (("some", stall.some), ("full", stall.full)):
        if time is not None:
            yield (*labels, resource, "avg10", degree, full), time.average_10
            yield (*labels, resource, "avg60", degree, full), time.average_60
            yield (*labels, resource, "avg300", degree, full), time.average_300


def _sizes(*, limits: bool) -> Rows:
    def rows(agent: NodeAgent) -> Iterator[Sample]:
        for one in agent.pods().values():
            for container in one.pod.containers:
                amounts = container.limits if limits else container.requests
                for resource, unit in SECOND_OFFERS.items():
                    if resource in amounts:
                        identity = one.identities.get(container.name, "")
                        labels = (resource, unit, *pod_labels(one), identity, container.name)
                        yield labels, amounts[resource]

    return rows


def _oom_scores(agent: NodeAgent) -> Iterator[Sample]:
    pods = agent.pods()
    for plan in agent.doing.plans.values():
        for write in plan.writes:
            pod = pods.get(write.group.pod)
            if write.file == _OOM_SCORE and _of_container(write) and pod is not None:
                labels = (pod.pod.name, pod.pod.namespace, pod.pod.uid, write.group.name)
                yield labels, float(write.value)  # type: ignore[arg-type]


def _cookies(agent: NodeAgent) -> Iterator[Sample]:
    """The cookies that the first processes of containers have now."""
    pods, kernel = agent.pods(), agent.kernel
    for plan in agent.doing.plans.values():
        for write in plan.writes:
            pod = pods.get(write.group.pod)
            group = None if pod is None else pod.containers.get(write.group.name)
            if write.file != COOKIE or not write.value or pod is None or group is None:
                continue
            try:
                processes = read_processes(kernel.root, kernel.hierarchy, group)
                cookie = HostCoreScheduling().cookie(processes[0]) if processes else 0
            except KernelFileError:
                continue  # it has ended, or the kernel knows no cookies
            if cookie:
                name = write.group.name
                labels = (pod.pod.name, pod.pod.namespace, pod.pod.uid, name, pod.identities.get(name, ""))
                yield (*labels, str(write.value), str(cookie)), 1


def _given(agent: NodeAgent) -> Iterator[Sample]:
    for (group, succeeded), count in agent.doing.cookies.items():
        yield (group, "succeeded" if succeeded else "failed"), count


def _applications(agent: NodeAgent) -> Iterator[Sample]:
    if agent.measurements is None:
        return
    now, fresh = monotonic_ns(), agent.collection().fresh
    for measure in (CPU, MEMORY):
        used = agent.measurements.applications.latest(measure, now, fresh)
        for one in agent.applications.known:
            if one.name in used:
                yield (one.name, measure, one.priority, one.qos), used[one.name]


def _cold(agent: NodeAgent) -> Iterator[Sample]:
    if agent.measurements is None:
        return
    cold = agent.measurements.cold.latest(COLD, monotonic_ns(), agent.collection().averages_over)
    for uid, one in agent.pods().items():
        if uid in cold:
            yield one.pod.key, cold[uid]


POD_ROWS: Final[Mapping[str, Rows]] = {
    "koordlet_pod_eviction": _evictions,
    "koordlet_pod_eviction_detail": _evicted,
    "koordlet_container_scaled_cfs_burst_us": _scaled("cpu.cfs_burst_us"),
    "koordlet_container_scaled_cfs_quota_us": _scaled("cpu.cfs_quota_us"),
    "koordlet_container_cpi": _cycles,
    "koordlet_container_psi": _pressure(containers=True),
    "koordlet_pod_psi": _pressure(containers=False),
    "koordlet_container_resource_requests": _sizes(limits=False),
    "koordlet_container_resource_limits": _sizes(limits=True),
    "koordlet_container_oom_score_adj": _oom_scores,
    "koordlet_container_core_sched_cookie": _cookies,
    "koordlet_core_sched_cookie_manage_status": _given,
    "koordlet_host_application_resource_usage": _applications,
    "koordpolicy_pod_cold_memory_bytes": _cold,
}
"""By the names of the table of metrics."""
