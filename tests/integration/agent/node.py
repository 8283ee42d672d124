"""A node of a real API server whose pods have control groups of this machine's, below a group of the test's own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from koordpolicy.linux.root import CGROUPS
from tests.conftest import REPOSITORY
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import install
from tests.parts.processes import Running

PATIENCE = 90.0
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
CONTAINER = "c" * 64
NODE = "node-1"


def has_writable_groups() -> bool:
    return os.access(CGROUPS, os.W_OK) and all(os.access(f"{CGROUPS}/{one}", os.W_OK) for one in CONTROLLERS)


def until(question: Callable[[], Any], process: Running | None = None) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := question()):
        log = "it takes too long" if process is None else process.tail()
        assert process is None or process.running, log
        assert time.monotonic() < end, log
        time.sleep(0.1)
    return found


class Node:
    """A node with one best-effort pod whose container burns CPU, in groups of the test's own."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.access = server.access
        self.folder = folder
        self.parent = f"koordpolicy-test-{os.getpid()}"
        self.made: list[Path] = []

    def prepare(self) -> None:
        install(self.access)
        amounts = {"cpu": str(os.cpu_count()), "memory": "8Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        self.post("/api/v1/nodes", node)
        status = {"status": {"capacity": amounts, "allocatable": amounts}}
        assert self.access.request("PATCH", f"/api/v1/nodes/{NODE}/status", status)[0] == 200
        api = "slo.koordinator.sh/v1alpha1"
        spec = {"metricCollectPolicy": {"reportIntervalSeconds": 30}}
        metric = {"apiVersion": api, "kind": "NodeMetric", "metadata": {"name": NODE}, "spec": spec}
        self.post(f"/apis/{api}/nodemetrics", metric)

    def without_taints(self) -> None:
        """An API server gives new nodes one, which a controller would take away."""
        _, found = self.access.request("GET", f"/api/v1/nodes/{NODE}")
        found["spec"]["taints"] = []
        assert self.access.request("PUT", f"/api/v1/nodes/{NODE}", found)[0] == 200

    def post(self, path: str, body: Any) -> Any:
        status, answer = self.access.request("POST", path, body)
        assert status == 201, answer
        return answer

    def pod(self, name: str, qos: str = "BE", **spec: str) -> str:
        """A pod on batch resources, or a service, running as a kubelet tells of it; its group below the hierarchies."""
        amounts = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
        if qos != "BE":
            amounts = {"cpu": "500m", "memory": "64Mi"}
        pod = {
            "metadata": {
                "name": name,
                "labels": {"koordinator.sh/qosClass": qos},
                "annotations": {"koordinator.sh/oom-score-adj": "777"},
            },
            "spec": {
                "nodeName": NODE,
                **spec,
                "containers": [
                    {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
                ],
            },
        }
        uid = self.post("/api/v1/namespaces/default/pods", pod)["metadata"]["uid"]
        self.run_container(name)
        return self.make_group(uid, qos)

    def run_container(self, name: str) -> None:
        """Say what a kubelet says of a pod whose container runs."""
        container = {"name": "main", "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
        container |= {"containerID": f"containerd://{CONTAINER}", "state": {"running": {}}}
        status = {"status": {"phase": "Running", "containerStatuses": [container]}}
        assert (
            self.access.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", status)[0] == 200
        )

    def make_group(self, uid: str, qos: str = "BE") -> str:
        """The groups of a pod's container; their place below each hierarchy."""
        parent = f"{self.parent}/kubepods{'/besteffort' if qos == 'BE' else ''}"
        group = f"{parent}/pod{uid}/{CONTAINER}"
        for controller in CONTROLLERS:
            self.make(controller, group)
        return group

    def make(self, controller: str, group: str) -> None:
        place = Path(CGROUPS, controller)
        for part in group.split("/"):
            place /= part
            if not place.exists():
                place.mkdir()
                self.made.append(place)
            for file in ("cpuset.mems", "cpuset.cpus") if controller == "cpuset" else ():
                if not (place / file).read_text().strip():
                    (place / file).write_text((place.parent / file).read_text())

    @contextmanager
    def process(self, group: str) -> Iterator[Path]:
        """A process in a container's group; its directory below /proc."""
        with subprocess.Popen(["sleep", str(10 * PATIENCE)]) as process:
            try:
                Path(CGROUPS, "cpu", group, "cgroup.procs").write_text(str(process.pid))
                yield Path("/proc", str(process.pid))
            finally:
                process.kill()

    def file(self, controller: str, group: str, name: str) -> str:
        return Path(CGROUPS, controller, group, name).read_text().strip()

    def clean(self) -> None:
        for place in sorted(self.made, key=lambda one: -len(one.parts)):
            until(partial(_removed, place))

    def command(self, *more: str) -> list[str]:
        return [
            sys.executable, "-m", "koordpolicy.cli", "agent", "--node", NODE, "--kubelet-cgroup-root", self.parent,
            "--kubeconfig", str(self.access.kubeconfig("koordpolicy-agent")), "--instance", NODE, *more,
        ]  # fmt: skip

    @contextmanager
    def agent(self, *more: str) -> Iterator[Running]:
        log = self.folder / "agent.log"
        environment = {"PYTHONPATH": str(REPOSITORY)}
        with Running(self.command("--http=off", *more), log, environment=environment) as running:
            yield running

    def status(self) -> Any:
        return self.access.request("GET", f"/api/v1/nodes/{NODE}")[1]["status"]

    def topology(self) -> Any:
        path = f"/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies/{NODE}"
        status, found = self.access.request("GET", path)
        return found if status == 200 else None

    def say_of_topology(self, annotations: dict[str, str]) -> None:
        """Write annotations of the node's topology, as somebody else than its agent."""
        path = f"/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies/{NODE}"
        status, answer = self.access.request("PATCH", path, {"metadata": {"annotations": annotations}})
        assert status == 200, answer

    def device(self) -> Any:
        path = f"/apis/scheduling.koordinator.sh/v1alpha1/devices/{NODE}"
        status, found = self.access.request("GET", path)
        return found if status == 200 else None

    def agents(self) -> list[Any]:
        """What is said of agents in PolicyRevisions: the column of a table, how many run it, and who does not."""
        _, listed = self.access.request("GET", "/apis/koordpolicy.io/v1alpha1/policyrevisions")
        found = [one.get("status", {}).get("agents") for one in listed["items"]]
        return [(one["summary"], one["running"], one.get("lagging", [])) for one in found if one]

    def report(self) -> Any:
        _, metric = self.access.request("GET", f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}")
        return metric


def _removed(place: Path) -> bool:
    try:
        place.rmdir()
    except OSError:
        return False
    return True
