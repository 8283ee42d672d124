"""A kubelet of a test's own: makes the control groups of pods on this machine's kernel, and tells of them over HTTP."""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

from koordpolicy.linux.root import CGROUPS
from koordpolicy.model.quantity import amount
from tests.parts.http_answers import answering

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
_CLASSES = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
_CONFIGURATION = b'{"kubeletconfig": {"cpuManagerPolicy": "none"}}'
_PATIENCE = 30.0


def has_writable_groups() -> bool:
    """Whether groups of cgroup v1 can be made here."""
    return os.access(CGROUPS, os.W_OK) and all(os.access(f"{CGROUPS}/{one}", os.W_OK) for one in CONTROLLERS)


class OwnGroups:
    """Groups below one of the test's own, in every hierarchy and some `more`; `clean` takes them away again."""

    def __init__(self, name: str, more: Sequence[str] = ()) -> None:
        self.parent = f"{name}-{os.getpid()}"
        self._controllers = (*CONTROLLERS, *more)
        self._made: list[Path] = []

    def make(self, group: str) -> None:
        """A group and those above it, with the CPUs and memory of its parent."""
        for controller in self._controllers:
            place = Path(CGROUPS, controller)
            for part in f"{self.parent}/{group}".split("/"):
                place /= part
                if not place.exists():
                    place.mkdir()
                    self._made.append(place)
                for file in ("cpuset.mems", "cpuset.cpus") if controller == "cpuset" else ():
                    if not (place / file).read_text().strip():
                        (place / file).write_text((place.parent / file).read_text())

    def write(self, controller: str, group: str, name: str, value: object) -> None:
        """Write a file, as a kubelet does when it makes a group."""
        Path(CGROUPS, controller, self.parent, group, name).write_text(str(value))

    def file(self, controller: str, group: str, name: str) -> str:
        """What a file says."""
        return Path(CGROUPS, controller, self.parent, group, name).read_text().strip()

    def enter(self, group: str, pid: int) -> None:
        """Put a process there."""
        for controller in self._controllers:
            Path(CGROUPS, controller, self.parent, group, "cgroup.procs").write_text(str(pid))

    def clean(self) -> None:
        """Take all groups away, the deepest first."""
        end = time.monotonic() + _PATIENCE
        for place in sorted(self._made, key=lambda one: -len(one.parts)):
            while place.exists() and time.monotonic() < end:
                try:
                    place.rmdir()
                except OSError:
                    time.sleep(0.01)
        self._made.clear()


class OwnKubelet:
    """Runs pods, which are processes that sleep, and answers for them at `url`. A context manager.

    A pod is an object as its kubelet tells it; `run` completes it with what a kubelet knows.
    """

    def __init__(self, groups: OwnGroups, node: str) -> None:
        self.groups = groups
        self.pods: list[Mapping[str, Any]] = []
        self._node = node
        self._answer = b'{"items": []}'
        self._stack = ExitStack()
        self.url = ""

    def __enter__(self) -> Self:
        self._stack.callback(self.groups.clean)
        self.url = self._stack.enter_context(answering(self._said))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _said(self, path: str, _headers: Mapping[str, str]) -> tuple[int, bytes]:
        return 200, _CONFIGURATION if path == "/configz" else self._answer

    def run(self, pod: Mapping[str, Any], *, sleeps: bool = True) -> Sequence[str]:
        """Make a pod's groups and begin to tell of it. Gives the groups of its containers, below the test's own."""
        metadata = dict(pod["metadata"])
        uid = metadata.setdefault("uid", str(uuid5(NAMESPACE_URL, metadata["name"])))
        metadata.setdefault("namespace", "default")
        quality = _kubernetes_class(pod)
        known = {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": self._node}}
        self._tell(known, {"phase": "Pending", "qosClass": quality})
        top = "/".join(part for part in ("kubepods", _CLASSES[quality], f"pod{uid}") if part)
        groups, statuses = [], []
        for index, container in enumerate(pod["spec"]["containers"]):
            identity = f"{uuid5(NAMESPACE_URL, f'{uid}/{index}').hex}{uid.replace('-', '')}"
            groups.append(f"{top}/{identity}")
            self.groups.make(groups[-1])
            cores, limit = (_cores(container, part) for part in ("requests", "limits"))
            self.groups.write("cpu", groups[-1], "cpu.shares", max(int(cores * 1024), 2))
            if limit:
                self.groups.write("cpu", groups[-1], "cpu.cfs_quota_us", int(limit * 100_000))
            if sleeps:
                self._sleep(groups[-1])
            state = {"containerID": f"containerd://{identity}", "state": {"running": {}}}
            statuses.append({"name": container["name"], **state})
        self._tell(known, {"phase": "Running", "qosClass": quality, "containerStatuses": statuses})
        return groups

    def _tell(self, pod: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Tell of a pod, as of now, beside the others."""
        uid = pod["metadata"]["uid"]
        others = [one for one in self.pods if one["metadata"]["uid"] != uid]
        self.pods = [*others, {**pod, "status": status}]
        self._answer = json.dumps({"items": self.pods}).encode()

    def _sleep(self, group: str) -> None:
        process = self._stack.enter_context(subprocess.Popen(["sleep", "86400"]))
        self._stack.callback(process.kill)
        self.groups.enter(group, process.pid)


def _cores(container: Mapping[str, Any], part: str) -> float:
    """Cores that a container requests, or may use at most; 0 for none."""
    return amount("cpu", container.get("resources", {}).get(part, {}).get("cpu", "0")) / 1000


def _kubernetes_class(pod: Mapping[str, Any]) -> str:
    """As Kubernetes tells it by what containers ask for."""
    resources = [one.get("resources", {}) for one in pod["spec"]["containers"]]
    asked = [
        {
            name: amount
            for part in ("requests", "limits")
            for name, amount in one.get(part, {}).items()
            if name in ("cpu", "memory")
        }
        for one in resources
    ]
    if not any(asked):
        return "BestEffort"
    with suppress(KeyError):
        if all(
            one["requests"] == one["limits"] and len(found) == 2
            for one, found in zip(resources, asked, strict=True)
        ):
            return "Guaranteed"
    return "Burstable"
