"""The kernel of a simulated node: the model of `linux/fake`, with groups as a kubelet makes them and pods as work in them.

CPU is divided in two steps of a quota's period each time that somebody looks, since a third would be as the second: nobody
wishes for anything else meanwhile. The rest is passed over in one go (`FakeMachine.go_on`). Pods use the CPU that they wish,
and grow as they say. A container that the OOM killer ends is begun anew by its kubelet, with the memory that it had at first.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isqrt
from typing import Final

from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.algorithms.container_resources import PERIOD, UNLIMITED, quota_of, shares_of
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.cgroups.kubepods import CgroupDriver, Kubepods
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.fake.machine import FakeMachine, FakeTask, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import CPU, MEMORY, QOS_BEST_EFFORT, QOS_BURSTABLE
from koordpolicy.model.reading import integer, mapping
from koordpolicy.model.shares import LEAST_SHARES, weight_of_shares
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.machines import Machine, PodKey

STEP: Final = PERIOD * 1000
"""Nanoseconds of a step: the period of quotas."""
_STEPS: Final = 2

_DOOR: Final = DoorLimits(60 * SECOND, 3, SECOND, 60 * SECOND, 20_000)
"""As the agent's process has it."""
_SYSTEM: Final = "system.slice"
_LEAST_FREE, _MOST_FREE = 128, 256 << 10
"""Kilobytes of min_free_kbytes (calculate_min_free_kbytes of mm/page_alloc.c)."""
_UNSAID: Final = 1 << 50
"""Bytes of a node that does not say how many it has: more than its pods use."""
_MILLI: Final = 1000
_USUAL_GRACE: Final = 30
"""Seconds that Kubernetes gives where a pod says nothing."""


@dataclass(slots=True)
class PlacedPod:
    """A pod that runs here: its groups, and the work of each container by PID with its share of what the pod wishes.

    `first` is the memory that each began with, `growth` what the pod takes more a second, in bytes. `ends_at` is when its time
    to stop is over, by the kernel's clock; None while it is to run.
    """

    pod: NodePod
    best_effort: bool
    shares: dict[int, float]
    first: dict[int, int]
    growth: int = 0
    wish: float = 0.0
    ends_at: int | None = None
    tasks: dict[int, FakeTask] = field(default_factory=dict)


class SimulatedKernel:
    """The files and the work of one node. Its clock moves by `go_on` and `run` alone; `now` is nanoseconds since it began."""

    def __init__(self, machine: Machine) -> None:
        self.root = FakeRoot(CgroupVersion.V2, range(len(machine.processors)))
        memory = machine.memory or _UNSAID
        self.machine = FakeMachine(self.root, MachineSettings(memory, _kept_free(memory), STEP))
        self.hierarchy = discover_hierarchy(self.root)
        door = KernelDoor(self.root, self.hierarchy, lambda: self.now, _DOOR, WriteLog(0))
        self.node = NodeKernel(self.root, self.hierarchy, door)
        self.kubepods = Kubepods(CgroupDriver.CGROUPFS)
        self.placed: dict[PodKey, PlacedPod] = {}
        self.pods: Mapping[str, NodePod] = {}
        """The pods that run, by UID: the same mapping until one of them comes or goes."""
        self._pids = 1
        self._whose: dict[int, PodKey] = {}
        for group in (
            _SYSTEM,
            *dict.fromkeys(self.kubepods.of_class(one) for one in ("Guaranteed", "Burstable", "BestEffort")),
        ):
            self._make(group)
        self._write("cpu.shares", self.kubepods.root, weight_of_shares(shares_of(machine.cpu)))
        self.best_effort = self.kubepods.of_class(QOS_BEST_EFFORT)
        self._write("cpu.shares", self.best_effort, weight_of_shares(LEAST_SHARES))
        threads = len(machine.processors)
        system = FakeTask(self._pid(), _SYSTEM, machine.system_cpu / _MILLI, threads)
        system.memory, system.oom_score_adj = machine.system_memory, -1000
        self.machine.start(system)

    @property
    def now(self) -> int:
        """Nanoseconds since it began."""
        return self.machine.now

    @property
    def growth(self) -> int:
        """Bytes that all pods together take more a second."""
        return sum(one.growth for one in self.placed.values())

    # --- what the kubelet does --------------------------------------------------------------------

    def start(self, pod: Pod, memory: int, growth: int) -> None:
        """Begin a pod that uses so much memory and takes so much more a second, in bytes."""
        group = self.kubepods.of_pod(pod.uid, pod.kubernetes_qos)
        identities = [f"{pod.uid}-{number}" for number in range(len(pod.containers))]
        groups = [self.kubepods.of_container(group, f"containerd://{one}") for one in identities]
        self._make(group)
        for container, path in zip(pod.containers, groups, strict=True):
            self._make(path)
            self._size(path, (container,))
        self._size(group, pod.containers)
        weights = [max(sum(one.requests.values()), 1) for one in pod.containers]
        best_effort = pod.kubernetes_qos == QOS_BEST_EFFORT
        running = PlacedPod(
            NodePod(
                pod,
                group,
                dict(zip((one.name for one in pod.containers), groups, strict=True)),
                grace=_grace(pod),
            ),
            best_effort,
            {},
            {},
            growth,
        )
        self.placed[pod.key] = running
        for path, weight in zip(groups, weights, strict=True):
            self._begin(pod.key, running, path, weight / sum(weights), int(memory * weight / sum(weights)))
        self._changed()

    def stop(self, key: PodKey) -> None:
        """End a pod, and its groups; nothing where it has ended."""
        running = self.placed.pop(key, None)
        if running is None:
            return
        for pid in running.tasks:
            self.machine.end(pid)
            self._whose.pop(pid, None)
        for group in (*running.pod.containers.values(), running.pod.group):
            self.root.remove_directory(self.hierarchy.directory(CPU, group))
            self.node.door.forget(group)
        self._changed()

    # --- time -------------------------------------------------------------------------------------

    def go_on(self, time: int) -> list[PodKey]:
        """Pass over so many nanoseconds, in which nobody wishes for anything else; the pods of which a container was killed."""
        if time > 0:
            self.machine.go_on(time)
        return list(self._restarted())

    def run(self, time: int) -> list[PodKey]:
        """Divide CPU, and let it stay so for so many nanoseconds in all; the pods of which a container was killed."""
        divided = min(_STEPS * STEP, time)
        self.machine.advance(divided)
        self.machine.go_on(time - divided)
        return list(self._restarted())

    def demand(self, wishes: Mapping[PodKey, float]) -> None:
        """What pods wish to use from now on, in millicores."""
        for key, running in self.placed.items():
            running.wish = wishes.get(key, 0.0)
            for pid, task in running.tasks.items():
                task.demand = running.wish * running.shares[pid] / _MILLI

    # --- what is seen -----------------------------------------------------------------------------

    def used(self, running: PlacedPod) -> float:
        """Millicores that a pod used in the last step."""
        return _MILLI * sum(task.runs for task in running.tasks.values())

    @staticmethod
    def memory(running: PlacedPod) -> int:
        """Bytes that a pod holds."""
        return sum(task.memory for task in running.tasks.values())

    def throttled(self) -> dict[str, tuple[int, int]]:
        """Periods and those of them that were throttled, of each container that any quota holds, by its group."""
        tree = self.root.tree("cpu")
        found = {}
        for running in self.placed.values():
            for path in running.pod.containers.values():
                group = tree.find(path)
                held = [] if group is None else [one for one in group.above() if one.quota != UNLIMITED]
                if held:
                    worst = max(held, key=lambda one: one.throttled)
                    found[path] = (worst.periods, worst.throttled)
        return found

    # --- within -----------------------------------------------------------------------------------

    def _restarted(self) -> Iterator[PodKey]:
        killed, self.machine.killed = self.machine.killed, []
        for pid in killed:
            key = self._whose.pop(pid, None)
            running = None if key is None else self.placed.get(key)
            if key is not None and running is not None:
                ended = running.tasks.pop(pid)
                share, first = running.shares.pop(pid), running.first.pop(pid)
                self._begin(key, running, ended.group, share, first)
                yield key

    def _begin(self, key: PodKey, running: PlacedPod, group: str, share: float, memory: int) -> None:
        pid = self._pid()
        threads = len(self.root.tree("cpu").all_cpus)
        task = FakeTask(
            pid, group, running.wish * share / _MILLI, threads, int(running.growth * share), memory=memory
        )
        self.machine.start(task)
        running.tasks[pid], running.shares[pid], running.first[pid] = task, share, memory
        self._whose[pid] = key

    def _pid(self) -> int:
        self._pids += 1
        return self._pids

    def _size(self, group: str, containers: tuple[Container, ...]) -> None:
        """The numbers that a kubelet gives to a group of containers, by what they request and may use of native resources."""
        request = sum(one.requests.get(CPU, 0) for one in containers)
        self._write("cpu.shares", group, weight_of_shares(shares_of(request)))
        limits = [one.limits.get(CPU, 0) for one in containers]
        if limits and all(limits):
            self._write("cpu.cfs_quota_us", group, quota_of(sum(limits)))
        memory = [one.limits.get(MEMORY, 0) for one in containers]
        if memory and all(memory):
            self._write("memory.limit_in_bytes", group, sum(memory))

    def _changed(self) -> None:
        """Others run than before. The class of burstable pods weighs what they request together."""
        self.pods = {one.pod.pod.uid: one.pod for one in self.placed.values()}
        request = sum(
            container.requests.get(CPU, 0)
            for one in self.placed.values()
            if one.pod.pod.kubernetes_qos == QOS_BURSTABLE
            for container in one.pod.pod.containers
        )
        self._write("cpu.shares", self.kubepods.of_class(QOS_BURSTABLE), weight_of_shares(shares_of(request)))

    def _make(self, group: str) -> None:
        self.root.make_directory(self.hierarchy.directory(CPU, group))  # of version 2 there is one hierarchy

    def _write(self, file: str, group: str, value: int) -> None:
        """Write a file; what the kernel does not take, such as a quota of years, leaves it as it was."""
        with suppress(KernelFileError):
            self.root.write(self.hierarchy.located(file, group)[0].path, str(value))


def _grace(pod: Pod) -> int:
    """Seconds that its containers have to end."""
    said = integer(mapping(pod.raw, "spec"), "terminationGracePeriodSeconds", "spec")
    return _USUAL_GRACE if said is None else max(said, 0)


def _kept_free(memory: int) -> int:
    """Bytes that the kernel keeps free of so many: its low watermark, a quarter more than min_free_kbytes."""
    kilobytes = min(max(isqrt((memory >> 10) * 16), _LEAST_FREE), _MOST_FREE)
    return kilobytes * 1024 * 5 // 4
