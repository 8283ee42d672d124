"""The strategies of a node, in the order in which they are carried out: what each reads, asks and wants."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from koordpolicy.agent.collection import KIND as COLLECTION
from koordpolicy.agent.collectors.kernel_reader import group_cpus
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.hooks.containers import KIND as HOOK
from koordpolicy.agent.measurements.levels import CPU, LIMIT, NODE, REQUEST, THROTTLED, USAGE, ContainerKey
from koordpolicy.agent.plan import BEST_EFFORT, Plan, joined
from koordpolicy.agent.rounds.caches import CacheRounds
from koordpolicy.agent.rounds.containers import ContainerRounds
from koordpolicy.agent.rounds.disks import DiskRounds
from koordpolicy.agent.rounds.interference import InterferenceRounds
from koordpolicy.agent.rounds.networks import NetworkRounds
from koordpolicy.agent.strategies.cold_memory import cold_memory_plan
from koordpolicy.agent.strategies.cpu_burst import KIND as BURST
from koordpolicy.agent.strategies.cpu_burst import ContainerCPU, CPUBursts, KnownPods, PodCPU, TokensOf
from koordpolicy.agent.strategies.cpu_eviction import KIND as CPU_EVICTION
from koordpolicy.agent.strategies.cpu_eviction import MeasuredCPU, cpu_needs, eviction_window
from koordpolicy.agent.strategies.cpu_isolation import IsolatedCPU
from koordpolicy.agent.strategies.eviction_need import Needs
from koordpolicy.agent.strategies.host_applications import KIND as APPLICATIONS
from koordpolicy.agent.strategies.host_applications import application_plan, host_applications
from koordpolicy.agent.strategies.interference import KIND as INTERFERENCE
from koordpolicy.agent.strategies.isolation import KIND as ISOLATION
from koordpolicy.agent.strategies.isolation import Isolations
from koordpolicy.agent.strategies.memory_eviction import KIND as MEMORY_EVICTION
from koordpolicy.agent.strategies.memory_eviction import memory_needs
from koordpolicy.agent.strategies.memory_isolation import IsolatedMemory
from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.agent.strategies.suppression_plan import BestEffortGroup
from koordpolicy.agent.strategies.suppression_plan import plan as suppression_plan
from koordpolicy.agent.strategies.suppression_writes import suppression_writes
from koordpolicy.agent.strategies.system_tuning import KIND as TUNING
from koordpolicy.agent.strategies.system_tuning import system_plan
from koordpolicy.agent.unchanged import JoinedPlans, Unchanged
from koordpolicy.algorithms.aggregation import millicores
from koordpolicy.algorithms.cpu_pools import CPUPools, pools_of
from koordpolicy.algorithms.satisfaction import BestEffortUse
from koordpolicy.language.facts import TIMES
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.model.protocol import CPU as CPU_RESOURCE
from koordpolicy.model.protocol import QOS_BEST_EFFORT
from koordpolicy.model.time import NANOSECONDS

_T = TypeVar("_T")

_QUOTA: Final = "cpu.cfs_quota_us"
_ALLOCATABLE: Final = ("resources.allocatable",)
"""What memory isolation reads of the node besides policies."""
_BURST_INTERVALS: Final = 5
_BURST_WINDOW: Final = 10 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class NodeStrategy:
    """One strategy: the kind whose `interval` says how often, and what it wants of a moment.

    `plan` raises `CelError` where policy cannot decide. One that evicts has `needs` instead. `interval` is in nanoseconds.
    """

    kind: str
    interval: Callable[[NodeFrame], int]
    plan: Callable[[NodeFrame], Plan] | None = None
    needs: Callable[[NodeFrame], Needs] | None = None


def node_strategies(chance: Callable[[], float]) -> tuple[NodeStrategy, ...]:
    """The strategies of one process; what they keep from round to round is theirs. `chance` gives numbers from 0 to 1."""
    containers, held_up = ContainerRounds(), InterferenceRounds()
    disks, caches, networks = DiskRounds(), CacheRounds(), NetworkRounds()
    bursts = _Bursts(chance, containers)
    sized = Unchanged(lambda frame: containers.plan(frame, cpu_pools(frame)), (HOOK,))
    isolated, kept_apart = Unchanged(_isolate, (ISOLATION, TUNING), _ALLOCATABLE), JoinedPlans()
    looked_for = Unchanged(
        lambda frame: cold_memory_plan(frame.graph, frame.record, frame.now), (COLLECTION,)
    )
    return (
        NodeStrategy(INTERFERENCE, _often, held_up.plan),
        NodeStrategy(SUPPRESS, _of_policy(SUPPRESS), _Suppressions(held_up).plan),
        NodeStrategy(HOOK, _often, sized.plan),
        NodeStrategy(BURST, _of_policy(BURST), bursts.plan),
        NodeStrategy(
            ISOLATION,
            _often,
            lambda frame: kept_apart.join(
                isolated.plan(frame), caches.plan(frame), disks.plan(frame), networks.plan(frame)
            ),
        ),
        NodeStrategy(APPLICATIONS, _often, _applications),
        NodeStrategy(TUNING, _often, _tune),
        NodeStrategy(COLLECTION, _often, looked_for.plan),
        NodeStrategy(
            CPU_EVICTION,
            _of_policy(CPU_EVICTION),
            needs=lambda frame: held_up.needs(frame, _needs_cpu(frame)),
        ),
        NodeStrategy(MEMORY_EVICTION, _of_policy(MEMORY_EVICTION), needs=_needs_memory),
    )


def _often(frame: NodeFrame) -> int:
    return frame.collection.interval


def _of_policy(kind: str) -> Callable[[NodeFrame], int]:
    """The kind's own interval; that of the collectors where it says none."""

    def interval(frame: NodeFrame) -> int:
        if not frame.graph.subjects(kind):
            return frame.collection.interval
        about = frame.graph.about(kind, "", {"node": frame.record, "now": TIMES.timestamp(frame.now)})
        said = about.value_or("interval", None)
        return frame.collection.interval if said is None else int(said.ns)

    return interval


def _quota(frame: NodeFrame, group: str) -> int | None:
    return _or_none(lambda: frame.kernel.files.number(_QUOTA, group))


def _or_none(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except KernelFileError:
        return None


# --- CPU suppression ----------------------------------------------------------------------------------


class _Suppressions:
    """Keeps the last plan, which stays while what is decided and the pods do."""

    def __init__(self, held_up: InterferenceRounds) -> None:
        self._held_up = held_up
        self._pods: object = None
        self._decided: tuple[object, ...] = ()
        self._plan = Plan()

    def plan(self, frame: NodeFrame) -> Plan:
        """What is written for best-effort work."""
        kernel, kubepods = frame.kernel, frame.kernel.kubepods()
        if kubepods is None:
            return Plan(notes=("the kubelet has made no groups yet",))
        capacity = int(frame.record.get("capacity.cpu", 0))  # type: ignore[call-overload]  # a record holds anything
        decided, because = self._held_up.suppressed(
            CPUSuppression(frame.graph).decide(frame.record, frame.now), capacity
        )
        group = kernel.target_of(BEST_EFFORT, frame.pods)
        owned = frame.owned()
        planned = suppression_plan(
            decided,
            BestEffortGroup(
                frame.processors,
                capacity,
                _or_none(lambda: group_cpus(kernel.files, kernel.hierarchy, group)),
                _quota(frame, group),
                owned.bound,
                owned.exclusive | frame.reserved_cpus,
                frame.kubelet_places_cpus,
                takes_fewer=True,
            ),
        )
        found = (decided, planned, because)
        if frame.pods is not self._pods or found != self._decided:
            self._pods, self._decided = frame.pods, found
            self._plan = suppression_writes(decided, planned, _best_effort_pods(frame), because)
        return self._plan


def _best_effort_pods(frame: NodeFrame) -> dict[str, tuple[str, ...]]:
    return {
        uid: tuple(one.containers)
        for uid, one in frame.pods.items()
        if one.pod.kubernetes_qos == QOS_BEST_EFFORT
    }


# --- CPU burst ----------------------------------------------------------------------------------------


class _Bursts:
    """Keeps what containers have saved up; quotas without bursts are those of the last round of hooks."""

    def __init__(self, chance: Callable[[], float], sizes: ContainerRounds) -> None:
        self._chance = chance
        self._sizes = sizes
        self._tokens: TokensOf = {}
        self._known: KnownPods = {}

    def plan(self, frame: NodeFrame) -> Plan:
        """What is written for all pods."""
        bursts = CPUBursts(frame.graph, self._chance, self._known)
        if not frame.graph.subjects(BURST):
            return Plan()
        window = min(_BURST_INTERVALS * frame.collection.interval, _BURST_WINDOW)
        node = frame.found.node.excerpt(CPU, frame.monotonic, window).aggregate("avg").get(NODE)
        used = None if node is None else millicores(node)
        pool = bursts.pool(frame.record, len(frame.processors), used, frame.now)
        cpu = frame.found.containers.latest(CPU, frame.monotonic, frame.collection.fresh)
        throttled = frame.found.containers.latest(THROTTLED, frame.monotonic, frame.collection.fresh)
        records = {str(pod.get("uid", "")): pod for pod in frame.pod_records}
        pods = []
        for uid, one in frame.pods.items():
            if uid in records:
                limits = {each.name: each.limits.get(CPU_RESOURCE, 0) for each in one.pod.containers}
                containers = {}
                for name, group in one.containers.items():
                    cores = cpu.get(ContainerKey(uid, name))
                    sized = self._sizes.quotas.get(ContainerKey(uid, name))
                    limit = limits.get(name, 0) if sized is None or sized > 0 else 0
                    containers[name] = ContainerCPU(
                        limit,
                        _quota(frame, group) if limit > 0 else None,
                        None if cores is None else millicores(cores),
                        throttled.get(ContainerKey(uid, name)),
                        sized,
                    )
                pods.append(PodCPU(records[uid], _quota(frame, one.group), containers))
        plan, self._tokens = bursts.plan(frame.record, pods, pool, self._tokens, frame.now)
        return plan


# --- containers, classes, programs beside Kubernetes, the node as a whole -------------------------------


def cpu_pools(frame: NodeFrame) -> CPUPools:
    """The CPUs that pods share, and those that best-effort work may use: none that the kubelet has given to a pod by itself."""
    zones: dict[int, list[int]] = {}
    for one in frame.processors:
        zones.setdefault(one.node, []).append(one.cpu)
    owned = frame.owned()
    return pools_of(zones, owned.unshared, owned.exclusive, frame.kept_cpus)


def _isolate(frame: NodeFrame) -> Plan:
    isolations = Isolations(frame.graph, frame.record, frame.now)
    pods = [pod for pod in frame.pod_records if pod["active"] and pod["known"]]
    named = [
        (pod, tuple(frame.pods[str(pod["uid"])].containers)) for pod in pods if str(pod["uid"]) in frame.pods
    ]
    return joined((IsolatedMemory(isolations).plan(pods), IsolatedCPU(isolations).plan(named)))


def _applications(frame: NodeFrame) -> Plan:
    isolation = IsolatedCPU(Isolations(frame.graph, frame.record, frame.now))
    applications = host_applications(frame.graph, frame.record, frame.now)
    return application_plan(isolation, applications, cpu_pools(frame))


def _tune(frame: NodeFrame) -> Plan:
    return system_plan(frame.graph, frame.record, frame.now)


# --- evictions ----------------------------------------------------------------------------------------


def _needs_cpu(frame: NodeFrame) -> Needs:
    interval = frame.collection.interval / NANOSECONDS
    window = int(eviction_window(frame.graph, frame.record, interval, frame.now) * NANOSECONDS)
    node = frame.found.node.excerpt(CPU, frame.monotonic, window).aggregate("avg").get(NODE)
    measured = MeasuredCPU(
        interval,
        None if node is None else millicores(node),
        _best_effort(frame, window, "avg"),
        _best_effort(frame, frame.collection.fresh, "last"),
    )
    return cpu_needs(frame.graph, frame.record, measured, frame.now)


def _needs_memory(frame: NodeFrame) -> Needs:
    return memory_needs(frame.graph, frame.record, frame.now)


def _best_effort(frame: NodeFrame, window: int, how: str) -> BestEffortUse | None:
    """What best-effort pods used, asked for and might use; None where one of them was not measured."""
    values: list[float] = []
    count = 0
    for measure in (USAGE, REQUEST, LIMIT):
        excerpt = frame.found.best_effort.excerpt(measure, frame.monotonic, window)
        found = (excerpt.latest() if how == "last" else excerpt.aggregate(how)).get(NODE)
        if found is None:
            return None
        values.append(found)
        count = excerpt.counts()[NODE] if measure == USAGE else count
    usage, request, limit = values
    return BestEffortUse(usage, request, limit, count)
