"""The chain of co-location with all its processes: what an agent measures becomes batch resources, by which a pod is placed."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.model.protocol import BATCH_CPU
from tests.conftest import REPOSITORY
from tests.integration.agent.node import NODE, Node, has_writable_groups, until
from tests.integration.agent.test_agent_process import BUNDLE
from tests.integration.runtime.managers import share
from tests.parts.apiserver import ApiServer
from tests.parts.processes import Running

pytestmark = pytest.mark.skipif(
    not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
)

ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110"}
"""More than this machine uses, whatever else it does."""
AMOUNTS = {BATCH_CPU: "2000", "kubernetes.io/batch-memory": "1Gi"}
COLLECTION = "apiVersion: koordpolicy.io/v1alpha1\nkind: MetricCollection\nmetadata: {name: fleet}\nspec: {every: 30s}\n"
"""Reports as often as there can be."""
DOUBLE = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: ContainerHook\nmetadata: {name: batch-resources}\n"
    "spec:\n  match: {condition: pod.qosLabel == 'BE'}\n"
    '  container: {cpuRequest: {cel: "container.request.batch.cpu * 2"}}\n'
)


def gate(require: str) -> str:
    return (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: koord-scheduler}\nspec:\n"
        f'  schedulerName: koord-scheduler\n  filters:\n    - name: Gate\n      require: {{cel: "{require}"}}\n'
    )


@pytest.fixture
def node(own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Iterator[Node]:
    node = Node(own_apiserver(deployed=True), tmp_path)
    node.prepare()
    path = f"/api/v1/nodes/{NODE}"
    for where, body in (
        (path, {"spec": {"taints": None}}),
        (f"{path}/status", {"status": {"capacity": ROOM, "allocatable": ROOM}}),
    ):
        assert node.access.request("PATCH", where, body)[0] == 200
    try:
        yield node
    finally:
        node.clean()


def waiting(node: Node, name: str) -> None:
    """A best-effort pod that waits for a node."""
    container = {"name": "main", "image": "x", "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}
    node.post(
        "/api/v1/namespaces/default/pods",
        {
            "metadata": {"name": name, "labels": {"koordinator.sh/qosClass": "BE", "role": name}},
            "spec": {"schedulerName": "koord-scheduler", "containers": [container]},
        },
    )


def placed(node: Node, name: str) -> bool:
    _, pod = node.access.request("GET", f"/api/v1/namespaces/default/pods/{name}")
    return bool(pod["spec"].get("nodeName") == NODE)


def offered(node: Node) -> int:
    _, found = node.access.request("GET", f"/api/v1/nodes/{NODE}")
    return int(found["status"]["allocatable"].get(BATCH_CPU, 0))


def component(node: Node, name: str, *more: str) -> Running:
    command: list[Any] = [
        sys.executable, "-m", "koordpolicy.cli", name, "--policies", str(node.folder / "policies"), "--http=off",
        "--kubeconfig", str(node.access.kubeconfig(f"koordpolicy-{name}")), "--instance", name, *more,
    ]  # fmt: skip
    return Running(command, node.folder / f"{name}.log", environment={"PYTHONPATH": str(REPOSITORY)})


def test_what_is_measured_is_offered_and_taken_and_one_commit_changes_all_three(node: Node) -> None:
    policies = node.folder / "policies"
    policies.mkdir()
    (policies / "koordpolicy.yaml").write_text(BUNDLE)
    (policies / "collection.yaml").write_text(COLLECTION)
    fleet = policies / "fleet.yaml"
    fleet.write_text("---\n".join((share(60), gate("pod.labels[?'role'].orValue('') != 'late'"))))
    group = node.pod("running")
    for name in ("early", "late"):
        waiting(node, name)
    assert offered(node) == 0
    with (
        component(node, "manager", "--no-leader-elect") as manager,
        component(node, "scheduler", "--no-leader-elect") as scheduler,
        node.agent("--policies-from-manager", "--state-dir", str(node.folder / "state")) as agent,
    ):
        until(lambda: node.file("cpu", group, "cpu.shares") == "512", agent)
        until(lambda: offered(node) > 0, manager)
        assert node.report()["status"]["nodeMetric"]["nodeUsage"]["resources"]
        until(lambda: placed(node, "early"), scheduler)
        assert not placed(node, "late")
        before = offered(node)

        draft = node.folder / "draft"
        draft.write_text("---\n".join((share(20), gate("true"), DOUBLE)))
        draft.replace(fleet)
        until(lambda: node.file("cpu", group, "cpu.shares") == "1024", agent)
        until(lambda: offered(node) < before, manager)
        until(lambda: placed(node, "late"), scheduler)
