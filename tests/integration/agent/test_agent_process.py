"""`koordpolicy agent` as it runs on a node: with its shipped role, a real API server and this machine's control groups."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent.explanation_text import checked_record
from koordpolicy.linux.root import CGROUPS
from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.numa import read_cpu_info, read_zones
from koordpolicy.model.protocol import CPU_SHARED_POOLS, RUNS_ANNOTATION
from tests.conftest import REPOSITORY
from tests.integration.agent.node import (
    CONTAINER,
    NODE,
    PATIENCE,
    Node,
    has_writable_groups,
    until,
)
from tests.parts.apiserver import SYSTEM_NAMESPACE, ApiServer
from tests.parts.processes import Running

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


pytestmark = pytest.mark.skipif(
    not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
)


@pytest.fixture
def node(own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Iterator[Node]:
    node = Node(own_apiserver(deployed=True), tmp_path)
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
        # What it runs is told beside what it measures, in a write of its own.
        until(lambda: RUNS_ANNOTATION in node.report()["metadata"].get("annotations", {}), agent)
        runs = json.loads(node.report()["metadata"]["annotations"][RUNS_ANNOTATION])
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
        node.say_of_topology({CPU_SHARED_POOLS: "[]"})
        until(
            lambda: json.loads(node.topology()["metadata"]["annotations"][CPU_SHARED_POOLS]) == pools, agent
        )
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


@pytest.mark.soak
def test_a_dry_run_is_told_of_by_status_while_it_runs_and_touches_nothing(node: Node) -> None:
    group = node.pod("batch")
    policies = node.folder / "policies"
    policies.mkdir()
    (policies / "koordpolicy.yaml").write_text(BUNDLE)
    (policies / "collection.yaml").write_text(COLLECTION.replace("every: 30s", "every: 1s"))

    def told() -> Any:
        command = [sys.executable, "-m", "koordpolicy.cli", "status", "--output", "json"]
        asked = subprocess.run(
            [*command, "--kubeconfig", str(node.access.kubeconfig())],
            cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return json.loads(asked.stdout)

    with node.agent("--dry-run", "--policies", str(policies)) as agent:
        found = until(lambda: one if (one := told())["dryRunAgents"] else None, agent)
        assert [one["agents"] for one in found["dryRunAgents"]] == [1]
        assert found["agents"] == []
        assert any("are in a dry run" in one for one in found["troubles"]), found["troubles"]
    assert told()["dryRunAgents"] == []
    assert node.file("cpu", group, "cpu.shares") == "1024"
    assert "nodeMetric" not in node.report().get("status", {})
