"""Pods of this machine without a kubelet: their groups where a kubelet makes them, their processes, and their objects."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from koordpolicy.linux.cgroups.hierarchy import Hierarchy
from koordpolicy.linux.cgroups.kubepods import CgroupDriver, Kubepods
from tests.conftest import REPOSITORY

_CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "memory")
KUBEPODS: Final = Kubepods(CgroupDriver.CGROUPFS)
_MOST_SHARES: Final = 262_144
"""For all pods together, so that other work of the machine is out of the way of what is compared."""


@dataclass(frozen=True, slots=True)
class BenchPod:
    """A pod of one container: `shares`, and `quota` (microseconds of 100 ms, 0 for no limit), as a kubelet writes them from its spec.

    Its PriorityClass is called `pPRIORITY`.
    """

    name: str
    kubernetes_class: str
    shares: int
    quota: int = 0
    priority: int = 9500
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    uid: str = field(default_factory=lambda: str(uuid.uuid4()))
    container_id: str = field(default_factory=lambda: uuid.uuid4().hex * 2)

    @property
    def group(self) -> str:
        """The pod's group, below each hierarchy."""
        return KUBEPODS.of_pod(self.uid, self.kubernetes_class)

    @property
    def container_group(self) -> str:
        return KUBEPODS.of_container(self.group, f"containerd://{self.container_id}")

    def with_uid(self, uid: str) -> "BenchPod":
        """The same pod under another UID, and so with other groups."""
        return replace(self, uid=uid)

    def object(self, node: str) -> dict[str, Any]:
        """The pod as the API server and a kubelet's /pods have it, running on that node."""
        container = {"name": "main", "image": "bench:1", "resources": dict(self.resources)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": "default",
                "uid": self.uid,
                "labels": dict(self.labels),
            },
            "spec": {
                "nodeName": node,
                "containers": [container],
                "priorityClassName": f"p{self.priority}",
                "priority": self.priority,
            },
            "status": {
                "phase": "Running",
                "qosClass": self.kubernetes_class,
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    {
                        "name": "main",
                        "containerID": f"containerd://{self.container_id}",
                        "image": "bench:1",
                        "imageID": "",
                        "ready": True,
                        "restartCount": 0,
                        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                    }
                ],
            },
        }


class Groups:
    """The groups of pods in the hierarchies of this machine; made with what a kubelet writes, and removed at the end."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy

    def directories(self, group: str) -> tuple[Path, ...]:
        """The group in each hierarchy, once where several controllers share one."""
        return tuple(dict.fromkeys(Path(self._hierarchy.directory(one, group)) for one in _CONTROLLERS))

    @contextmanager
    def of(self, pods: Sequence[BenchPod]) -> Iterator[None]:
        """Groups of these pods, their classes' and the root's among them."""
        classes = [KUBEPODS.root, KUBEPODS.of_class("Burstable"), KUBEPODS.of_class("BestEffort")]
        groups = [*classes, *(one.group for one in pods), *(one.container_group for one in pods)]
        try:
            for group in groups:
                for directory in self.directories(group):
                    self._make(directory)
            self.write(KUBEPODS.root, "cpu", {"cpu.shares": _MOST_SHARES, "cpu.weight": 10_000})
            asked = sum(pod.shares for pod in pods if pod.kubernetes_class == "Burstable")
            self.write(KUBEPODS.of_class("Burstable"), "cpu", {"cpu.shares": max(asked, 2)})
            self.write(KUBEPODS.of_class("BestEffort"), "cpu", {"cpu.shares": 2})
            for pod in pods:
                for group in (pod.group, pod.container_group):
                    self.write(group, "cpu", {"cpu.shares": pod.shares})
                    if pod.quota:
                        self.write(group, "cpu", {"cpu.cfs_quota_us": pod.quota, "cpu.max": pod.quota})
            yield
        finally:
            for group in reversed(groups):
                for directory in self.directories(group):
                    with suppress(OSError):
                        directory.rmdir()

    def write(self, group: str, controller: str, values: Mapping[str, int]) -> None:
        """Write those files of the group that this version of groups has."""
        directory = Path(self._hierarchy.directory(controller, group))
        for name, value in values.items():
            if (directory / name).exists():
                (directory / name).write_text(str(value), "ascii")

    def start(self, pod: BenchPod, module: str, *arguments: str) -> subprocess.Popen[str]:
        """A process of the pod: `python -m MODULE ARGUMENTS`, in the container's group before its first instruction."""
        return _started(self.inside(pod, [sys.executable, "-m", module, *arguments]))

    def inside(self, pod: BenchPod, command: Sequence[str]) -> list[str]:
        """That command, as one that runs in the pod's container."""
        joined = " && ".join(f"echo $$ > {one}/cgroup.procs" for one in self.directories(pod.container_group))
        return ["sh", "-c", f'{joined} && exec "$@"', "sh", *command]

    def kill(self, pod: BenchPod) -> None:
        """End all processes of the pod."""
        directory = Path(self._hierarchy.directory("memory", pod.container_group))
        with suppress(FileNotFoundError):
            for process in (directory / "cgroup.procs").read_text("ascii").split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)

    def used_cpu(self, group: str) -> float:
        """Seconds of CPU that the group and all below it have used; 0 where it is not there."""
        usage = Path(self._hierarchy.directory("cpuacct", group)) / "cpuacct.usage"
        if usage.exists():
            return int(usage.read_text("ascii")) / 1e9
        stat = Path(self._hierarchy.directory("cpu", group)) / "cpu.stat"
        lines = stat.read_text("ascii").splitlines() if stat.exists() else []
        return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith("usage_usec ")), 0.0)

    def memory_of(self, group: str) -> int:
        """Bytes in use by the group and all below it."""
        directory = Path(self._hierarchy.directory("memory", group))
        found = next(
            file
            for name in ("memory.usage_in_bytes", "memory.current")
            if (file := directory / name).exists()
        )
        return int(found.read_text("ascii"))

    def oom_kills(self, group: str) -> int:
        """How many processes of the group, or below it, the kernel's OOM killer has ended."""
        directory = Path(self._hierarchy.directory("memory", group))
        return sum(
            int(line.split()[1])
            for file in directory.rglob("memory.oom_control")
            for line in file.read_text("ascii").splitlines()
            if line.startswith("oom_kill ")
        )

    def throttled(self, pod: BenchPod) -> int:
        """In how many periods the pod's container was kept from its processors by its quota."""
        text = (Path(self._hierarchy.directory("cpu", pod.container_group)) / "cpu.stat").read_text("ascii")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("nr_throttled "))

    def _make(self, directory: Path) -> None:
        with suppress(FileExistsError):
            directory.mkdir(parents=True)
        # A new cpuset of version 1 is empty, and takes no process until it has CPUs and memory.
        for name in ("cpuset.cpus", "cpuset.mems"):
            file = directory / name
            if file.exists() and not file.read_text("ascii").strip():
                file.write_text((directory.parent / name).read_text("ascii"), "ascii")


def started(module: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of no pod: `python -m MODULE ARGUMENTS`."""
    return _started([sys.executable, "-m", module, *arguments])


def _started(command: Sequence[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def result(process: subprocess.Popen[str], seconds: float) -> Any:
    """What a process of these printed; it is killed when it has not ended in so long."""
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return json.loads(printed)
