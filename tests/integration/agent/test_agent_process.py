"""`koordpolicy agent` as it runs on a node: with its shipped role, a real API server and this machine's control groups."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent.explanation_text import checked_record
from koordpolicy.linux.root import CGROUPS
from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.numa import read_cpu_info, read_zones
from koordpolicy.model.protocol import CPU_SHARED_POOLS
from tests.conftest import REPOSITORY
from tests.parts.apiserver import SYSTEM_NAMESPACE, ApiServer
from tests.parts.deployed import install
from tests.parts.processes import Running

PATIENCE = 90.0
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
CONTAINER = "c" * 64
NODE = "node-1"
BUNDLE = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    "metadata: {name: fleet}\nspec: {extends: [koordinator]}\n"
)
COLLECTION = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: MetricCollection\nmetadata: {name: fleet}\n"
    "spec: {every: 30s, summary: {every: 1s}, devices: {gpus: true, every: 1s}}\n"
)
ACCELERATOR = {
    "vendor": "huawei",
    "model": "Ascend-910B",
    "uuid": "185011D4-21104518",
    "minor": "0",
    "resources": {"huawei.com/npu-core": "32", "gpu-memory": "32Gi"},
    "topology": {"p2pLinks": [{"peerMinor": "1", "type": "HCCS"}], "nodeID": "0", "pcieID": "pci0000:08"},
    "status": {"healthy": True},
}
PREDICTION = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: Prediction\nmetadata: {name: soon}\n"
    "spec: {coldStart: 1s, interval: 1s, method: Pods}\n"
)


def has_writable_groups() -> bool:
    return os.access(CGROUPS, os.W_OK) and all(os.access(f"{CGROUPS}/{one}", os.W_OK) for one in CONTROLLERS)


pytestmark = pytest.mark.skipif(
    not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
)


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

    def post(self, path: str, body: Any) -> Any:
        status, answer = self.access.request("POST", path, body)
        assert status == 201, answer
        return answer

    def pod(self, name: str, qos: str = "BE") -> str:
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
                "containers": [
                    {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
                ],
            },
        }
        uid = self.post("/api/v1/namespaces/default/pods", pod)["metadata"]["uid"]
        container = {"name": "main", "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
        container |= {"containerID": f"containerd://{CONTAINER}", "state": {"running": {}}}
        status = {"status": {"phase": "Running", "containerStatuses": [container]}}
        assert (
            self.access.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", status)[0] == 200
        )
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


@pytest.fixture
def node(own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Iterator[Node]:
    node = Node(own_apiserver(), tmp_path)
    node.prepare()
    try:
        yield node
    finally:
        node.clean()


def accelerators_are_offered(node: Node, infos: Path, agent: Running) -> None:
    """What a vendor's daemon tells of an accelerator the agent tells all, and the manager lets the node offer it."""
    device = until(node.device, agent)
    assert [(one["type"], one["health"]) for one in device["spec"]["devices"]] == [("gpu", True)]
    assert device["metadata"]["labels"]["node.koordinator.sh/gpu-model"] == "Ascend-910B"
    until(lambda: node.status()["allocatable"].get("huawei.com/npu-core") == "32", agent)
    assert node.status()["allocatable"]["koordinator.sh/gpu-memory"] in {"32Gi", str(32 << 30)}
    ill = {**ACCELERATOR, "status": {"healthy": False, "errCode": "80E18005"}}
    (infos / "npu.json").write_text(json.dumps([ill]))
    until(lambda: not node.device()["spec"]["devices"][0].get("health"), agent)


def test_an_agent_sizes_containers_reports_and_follows_what_the_manager_publishes(node: Node) -> None:
    group = node.pod("batch")
    policies = node.folder / "policies"
    policies.mkdir()
    (policies / "koordpolicy.yaml").write_text(BUNDLE)
    (policies / "prediction.yaml").write_text(PREDICTION)
    (policies / "collection.yaml").write_text(COLLECTION)
    node.pod("service", "LS")

    with socket.create_server(("127.0.0.1", 0)) as taken:  # by the agent that runs: a look serves nothing
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        planned = subprocess.run(
            node.command("--once", "--output", "json", "--http", address, "--policies", str(REPOSITORY / "examples/06-node")),
            cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
    record = json.loads(planned.stdout)
    assert checked_record(record) == record
    assert record["bundle"] == "nodes"
    shares = next(one for one in record["files"] if one["file"].endswith(f"{CONTAINER}/cpu.shares"))
    assert (shares["outcome"], shares["now"], shares["wanted"]) == ("planned", "1024", 512)
    assert shares["rules"][0]["file"] == "koordinator/agent/batch-containers.yaml"
    assert node.file("cpu", group, "cpu.shares") == "1024"

    manager = [
        sys.executable, "-m", "koordpolicy.cli", "manager", "--policies", str(policies), "--http=off",
        "--kubeconfig", str(node.access.kubeconfig("koordpolicy-manager")), "--no-leader-elect",
    ]  # fmt: skip
    environment = {"PYTHONPATH": str(REPOSITORY)}
    state, infos = node.folder / "state", node.folder / "infos"
    infos.mkdir()
    (infos / "npu.json").write_text(json.dumps([ACCELERATOR]))
    with (
        Running(manager, node.folder / "manager.log", environment=environment),
        node.agent(
            "--policies-from-manager", "--state-dir", str(state), "--device-infos", str(infos)
        ) as agent,
    ):
        until(lambda: node.file("cpu", group, "cpu.shares") == "512", agent)
        until(lambda: node.file("cpu", group, "cpu.cfs_quota_us") == "50000", agent)
        until(lambda: node.file("memory", group, "memory.limit_in_bytes") == str(64 << 20), agent)
        until(lambda: len(node.report().get("status", {}).get("podsMetric", ())) == 2, agent)
        report = node.report()
        metrics = {one["name"]: one["qos"] for one in report["status"]["podsMetric"]}
        assert metrics == {"batch": "BE", "service": "LS"}
        # The service requests half a core and uses nothing: that is offered as mid resources.
        spare = report["status"]["prodReclaimableMetric"]["resource"]["resources"]
        assert 400 < int(spare["cpu"].removesuffix("m")) <= 500
        assert 0 < int(spare["memory"]) <= 64 << 20
        assert (state / "peaks" / "system.json").exists()
        until(lambda: int(node.status()["allocatable"].get("kubernetes.io/mid-cpu", "0")) > 0, agent)
        runs = json.loads(report["metadata"]["annotations"]["koordpolicy.io/runs"])
        assert runs["state"] == "Active"
        # What the agent runs is a part; the manager knows of which revision, and adds agents up there.
        until(lambda: node.agents() == [("1/1", 1, [])], agent)
        topology = until(node.topology, agent)
        zones = read_zones(topology)
        assert sum(zone.allocatable["cpu"] for zone in zones) == 1000 * (os.cpu_count() or 0)
        assert read_cpu_info(topology) is not None
        pools = json.loads(topology["metadata"]["annotations"][CPU_SHARED_POOLS])
        assert frozenset().union(*(parse_cpuset(one["cpuset"]) for one in pools)) == parse_cpuset(
            Path("/sys/devices/system/cpu/online").read_text()
        )
        assert topology["metadata"]["ownerReferences"][0]["name"] == NODE
        accelerators_are_offered(node, infos, agent)
        with node.process(group) as process:
            until(lambda: (process / "oom_score_adj").read_text().strip() == "777", agent)
        later = node.pod("later")
        until(lambda: node.file("cpu", later, "cpu.shares") == "512", agent)

        # A commit changes what nodes do, through the manager alone.
        (policies / "double.yaml").write_text(
            "apiVersion: koordpolicy.io/v1alpha1\nkind: ContainerHook\nmetadata: {name: batch-resources}\n"
            "spec:\n  match: {condition: pod.qosLabel == 'BE'}\n"
            '  container: {cpuRequest: {cel: "container.request.batch.cpu * 2"}}\n'
        )
        until(lambda: node.file("cpu", group, "cpu.shares") == "1024", agent)
    # Without a manager, and published policies out of sight: what was kept holds.
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps/koordpolicy-agents"
    assert node.access.request("DELETE", path)[0] == 200
    Path(CGROUPS, "cpu", group, "cpu.shares").write_text("77")
    with node.agent("--policies-from-manager", "--state-dir", str(state)) as agent:
        until(lambda: node.file("cpu", group, "cpu.shares") == "1024", agent)


def test_the_node_slo_of_a_stock_manager_is_obeyed_and_undone_at_the_stop(node: Node) -> None:
    group = node.pod("batch")
    best_effort = group.rsplit("/", 2)[0]
    api = "slo.koordinator.sh/v1alpha1"
    strategy = {"enable": True, "cpuSuppressThresholdPercent": 1, "cpuSuppressPolicy": "cfsQuota"}
    slo = {
        "apiVersion": api,
        "kind": "NodeSLO",
        "metadata": {"name": NODE},
        "spec": {"resourceUsedThresholdWithBE": strategy},
    }
    node.post(f"/apis/{api}/nodeslos", slo)
    with node.agent("--policies-from-node-slo") as agent:
        until(lambda: node.file("cpu", best_effort, "cpu.cfs_quota_us") == "2000", agent)
        # One quota for all best-effort work stands for those of its containers.
        until(lambda: node.file("cpu", group, "cpu.shares") == "512", agent)
        assert node.file("cpu", group, "cpu.cfs_quota_us") == "-1"
        strategy["enable"] = False
        patch = {"spec": {"resourceUsedThresholdWithBE": strategy}}
        assert node.access.request("PATCH", f"/apis/{api}/nodeslos/{NODE}", patch)[0] == 200
        until(lambda: node.file("cpu", best_effort, "cpu.cfs_quota_us") == "-1", agent)
        strategy["enable"] = True
        assert node.access.request("PATCH", f"/apis/{api}/nodeslos/{NODE}", patch)[0] == 200
        until(lambda: node.file("cpu", best_effort, "cpu.cfs_quota_us") == "2000", agent)
    assert node.file("cpu", best_effort, "cpu.cfs_quota_us") == "-1"
