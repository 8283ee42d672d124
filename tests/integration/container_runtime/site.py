"""A node whose runtime, proxy and agent are real, and whose kubelet is the test."""

import json
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from koordpolicy.cri.calls import CallFailed
from tests.conftest import REPOSITORY
from tests.integration.agent.node import Node, until
from tests.integration.container_runtime.cri import Containerd, Kubelet
from tests.parts.processes import Running

FILES = (
    ("cpu", "cpu.shares"),
    ("cpu", "cpu.cfs_quota_us"),
    ("cpu", "cpu.cfs_period_us"),
    ("memory", "memory.limit_in_bytes"),
    ("cpuset", "cpuset.cpus"),
    ("cpuset", "cpuset.mems"),
)
BATCH = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "64Mi"}
WANTED = {
    "cpu.shares": "1536",
    "cpu.cfs_quota_us": "150000",
    "memory.limit_in_bytes": str(64 << 20),
    "oom_score_adj": "777",
}
"""What the pack makes of these resources, and of the annotation."""
OWNED = "1"
BEST_EFFORT = {"cpu_shares": 2, "cpu_period": 100_000, "oom_score_adj": 1000}
GUARANTEED = {"cpu_shares": 1024, "cpu_period": 100_000, "cpu_quota": 100_000, "memory_limit_in_bytes": 64 << 20, "oom_score_adj": 500}  # fmt: skip
"""What kubelets ask for: of batch resources they know nothing, of CPUs that are a pod's own as little."""
WANTED_OF_OWNER = {"cpu.cfs_quota_us": "-1", "cpuset.cpus": OWNED, "cpu.shares": "1024"}
CGROUPS = Path("/sys/fs/cgroup")
_COUNTED = re.compile(
    r"usage|stat|procs|threads|tasks|events|pressure|failcnt|recursive|service|merged|queued|_time|wait|sectors|peak|current|numa"
)
STRICT = {
    "apiVersion": "koordpolicy.io/v1alpha1",
    "kind": "RuntimeHooks",
    "metadata": {"name": "strict"},
    "spec": {"failurePolicy": "Fail"},
}


@dataclass
class Site:
    """A node whose runtime, proxy and agent are real, and whose kubelet is the test."""

    node: Node
    runtime: Containerd
    folder: Path
    policies: Path

    @property
    def hooks(self) -> Path:
        return self.folder / "hooks"

    @property
    def proxy_socket(self) -> Path:
        return self.folder / "proxy.sock"

    @contextmanager
    def agent(self, *, as_plugin: bool = True) -> Iterator[Running]:
        """An agent that answers: as a plugin where the runtime has NRI, if it is to be one, else as a hook server."""
        flags = ["--policies", str(self.policies)]
        nri = self.runtime.nri_socket if as_plugin else None
        if nri is not None:
            flags += ["--nri-socket", str(nri)]
        else:
            flags += ["--hook-socket", str(self.folder / "agent.sock"), "--hook-dir", str(self.hooks)]
        before = self.registrations()
        with self.node.agent(*flags) as running:
            until((lambda: self.registrations() > before) if nri else self.answers, running)
            yield running

    def answers(self) -> bool:
        return _listens(self.folder / "agent.sock") and bool(self.announced())

    def registrations(self) -> int:
        """How often agents have registered with NRI; they all write into one log."""
        log = self.node.folder / "agent.log"
        return log.read_text().count("registered with NRI") if log.exists() else 0

    def start_proxy(self) -> Running:
        words: list[str | Path] = [
            sys.executable, "-m", "koordpolicy.cli", "runtime-proxy", "--listen", self.proxy_socket,
            "--runtime", self.runtime.socket, "--hooks", self.hooks,
        ]  # fmt: skip
        running = Running(words, self.folder / "proxy.log", environment={"PYTHONPATH": str(REPOSITORY)})
        running.ready(self.proxy_answers)
        return running

    def proxy_answers(self) -> bool:
        if not self.proxy_socket.exists():
            return False
        kubelet = Kubelet(self.proxy_socket)
        try:
            kubelet.call("Version", seconds=1)
        except CallFailed:
            return False
        finally:
            kubelet.close()
        return True

    def owning_pod(self, name: str) -> dict[str, Any]:
        """A guaranteed pod that the scheduler has given a CPU of its own, and two cards."""
        amounts = {"cpu": "1", "memory": "64Mi"}
        allocated = {
            "scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": OWNED}),
            "scheduling.koordinator.sh/device-allocated": json.dumps({"gpu": [{"minor": 0}, {"minor": 2}]}),
        }
        return self._made(name, "LSR", allocated, {"requests": amounts, "limits": amounts})

    def pod(self, name: str) -> dict[str, Any]:
        """A best-effort pod that the API server has bound to the node, its group as a kubelet makes it."""
        score = {"koordinator.sh/oom-score-adj": "777"}
        return self._made(name, "BE", score, {"requests": BATCH, "limits": BATCH})

    def _made(
        self, name: str, qos: str, annotations: Mapping[str, str], resources: Mapping[str, Any]
    ) -> dict[str, Any]:
        body = {
            "metadata": {
                "name": name,
                "labels": {"koordinator.sh/qosClass": qos},
                "annotations": dict(annotations),
            },
            "spec": {
                "nodeName": "node-1",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "x", "resources": dict(resources)}],
            },
        }
        pod: dict[str, Any] = self.node.post("/api/v1/namespaces/default/pods", body)
        for controller in ("cpu", "cpuacct", "cpuset", "memory"):
            self.node.make(controller, self.parent(pod))
        return pod

    def parent(self, pod: Mapping[str, Any]) -> str:
        below = "besteffort/" if _is_best_effort(pod) else ""
        return f"{self.node.parent}/kubepods/{below}pod{pod['metadata']['uid']}"

    def start(self, kubelet: Kubelet, pod: Mapping[str, Any], attempt: int = 0) -> tuple[str, str]:
        """What a kubelet does for a pod: its sandbox and its container, by ID."""
        parent = f"/{self.parent(pod)}"
        sandbox = kubelet.run_pod(pod, parent, attempt)
        numbers = BEST_EFFORT if _is_best_effort(pod) else GUARANTEED
        container = kubelet.create(sandbox, pod, parent, "main", **numbers)
        kubelet.start(container)
        return sandbox, container

    def tell(self, pod: Mapping[str, Any], container: str) -> None:
        """Say in the pod's status that its container runs, as a kubelet does: only then does the agent know its group."""
        said = {"name": "main", "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
        said |= {"containerID": f"containerd://{container}", "state": {"running": {}}}
        status = {"status": {"phase": "Running", "containerStatuses": [said]}}
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status"
        assert self.node.access.request("PATCH", path, status)[0] == 200

    def files(self, pod: Mapping[str, Any], container: str) -> dict[str, str]:
        """What the kernel says of a container."""
        group = f"{self.parent(pod)}/{container}"
        found = {name: self.node.file(controller, group, name) for controller, name in FILES}
        return {
            **found,
            "oom_score_adj": Path("/proc", str(self.pid(pod, container)), "oom_score_adj")
            .read_text()
            .strip(),
        }

    def settings(self, pod: Mapping[str, Any], container: str) -> dict[str, str]:
        """Whatever the kernel says of a container, in all hierarchies, but for what it counts itself."""
        found = {"oom_score_adj": self.files(pod, container)["oom_score_adj"]}
        for controller in sorted(one for one in CGROUPS.iterdir() if not one.is_symlink()):
            for file in sorted((controller / self.parent(pod) / container).glob("*")):
                if file.is_file() and not _COUNTED.search(file.name):
                    with suppress(OSError):  # some can only be written
                        found[f"{controller.name}/{file.name}"] = file.read_text()
        return found

    def has_quota(self, pod: Mapping[str, Any], container: str, quota: str) -> bool:
        return self.files(pod, container)["cpu.cfs_quota_us"] == quota

    def pid(self, pod: Mapping[str, Any], container: str) -> int:
        return int(self.node.file("cpu", f"{self.parent(pod)}/{container}", "cgroup.procs").split()[0])

    def policy(self, name: str, said: Mapping[str, Any] | None) -> None:
        """Write a policy as a commit does, or take it away."""
        file = self.policies / f"{name}.yaml"
        if said is None:
            file.unlink()
        else:
            file.write_text(json.dumps(said))

    def announced(self) -> Any:
        with suppress(OSError, ValueError):
            return json.loads((self.hooks / "koordlet.json").read_text())
        return {}


def differs(
    found: Mapping[str, str], wanted: Mapping[str, str] = MappingProxyType(WANTED)
) -> dict[str, tuple[str, str]]:
    return {name: (found[name], value) for name, value in wanted.items() if found[name] != value}


def _is_best_effort(pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE")


@contextmanager
def kubelet_at(socket: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(socket)
    try:
        yield kubelet
    finally:
        kubelet.close()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
