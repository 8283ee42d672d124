"""A node's agent beside 110 pods with two containers each, in control groups of this machine's kernel.

The agent runs as its DaemonSet runs it: a process of its own with its role, which finds the pod's service account in a mount
namespace of its own, follows what is published for agents, and has every strategy switched on, at default intervals. Where no
such namespace can be made it is given a kubeconfig. A kubelet of the benchmark's tells it of the pods. It is watched once more
while suppression wants something else each second. `KOORDPOLICY_BENCH_SECONDS` says how long it is watched (600).
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.api.service_account import SERVICE_ACCOUNT
from koordpolicy.language.facts.table import Component
from koordpolicy.linux.root import CGROUPS
from koordpolicy.runtime.component import NAMESPACE
from koordpolicy.runtime.policies.parts import kinds_for, part_of
from koordpolicy.runtime.policies.publishing import PolicyPublisher
from tests.benchmarks.measure import Row, as_installed
from tests.benchmarks.processes import cpu_of, memory_of
from tests.conftest import REPOSITORY
from tests.parts import Missing
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.kubelet import OwnGroups, OwnKubelet, has_writable_groups
from tests.parts.processes import Running

PODS: Final = 110
CONTAINERS: Final = ("main", "side")
NEW_PODS: Final = 10
NODE: Final = "node-1"
SETTLING: Final = 20.0
MOVING_SHARE: Final = 5
"""Of the time, in parts, that the moving plan is watched."""
PATIENCE: Final = 60.0
POLICIES: Final = Path(__file__).with_name("agent.yaml")
_API: Final = "slo.koordinator.sh/v1alpha1"
_BATCH: Final = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": "64Mi"}
_NATIVE: Final = {"cpu": "100m", "memory": "64Mi"}
_SHARES: Final = "102"
"""What 100 millicores are as shares."""
_BLOCKS: Final = "blkio"
_BUNDLE: Final = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    "metadata: {name: bench}\nspec: {extends: [koordinator]}\n"
)
_MOVING: Final = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: moving}\n"
    "spec: {mechanism: cfsQuota, growth: {step: 100%, deadband: 0%},"
    ' target: {cel: "millicores(1000 + now.getSeconds() * 10)"}}\n'
)
"""Suppression to another quota each second."""
_IN_A_POD: Final = f'set -e; mount -t tmpfs tmpfs /run; mkdir -p {SERVICE_ACCOUNT}; cp $1/token $1/ca.crt {SERVICE_ACCOUNT}; shift; exec "$@"'
"""What a pod finds in /var/run, where nobody else sees it."""


def run() -> Iterable[Row]:
    """Shares of a core, MiB, and seconds."""
    seconds = float(os.environ.get("KOORDPOLICY_BENCH_SECONDS", "600"))
    if not has_writable_groups():
        return [{"what": "skipped: control groups (version 1) cannot be written"}]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with DeployedServer(Path(folder) / "server") as server:
                return measured(server, Path(folder), seconds)
        except Missing as missing:
            return [{"what": f"skipped: {missing}"}]


def measured(server: ApiServer, folder: Path, seconds: float) -> list[Row]:
    """All rows."""
    _make_node(server)
    asyncio.run(_publish(server))
    more = (_BLOCKS,) if os.access(f"{CGROUPS}/{_BLOCKS}", os.W_OK) else ()
    with OwnKubelet(OwnGroups("koordpolicy-bench", more), NODE) as kubelet:
        groups = [kubelet.run(_pod(f"pod-{index}", index % 3)) for index in range(PODS)]
        with _agent(server, folder, kubelet) as agent:
            agent.ready(lambda: _right(kubelet, groups[0][0]), PATIENCE)
            share = _share(agent.pid, seconds)
            memory = memory_of(agent.pid)
            asyncio.run(_publish(server, moving=_MOVING))
            moving = _share(agent.pid, seconds / MOVING_SHARE)
            waits = sorted(_new_pod(kubelet, index) for index in range(NEW_PODS))
    return [
        {"what": f"CPU over {seconds:.0f} s, % of one core", "value": round(share, 2), "wanted below": 3},
        {
            "what": "the same while suppression writes another quota each second",
            "value": round(moving, 2),
            "wanted below": 3,
        },
        {"what": "memory, MiB", "value": round(memory, 1), "wanted below": 100},
        {
            "what": "a new pod's files right after its groups appear, median s",
            "value": round(waits[NEW_PODS // 2], 2),
            "wanted below": 1,
        },
        {"what": f"the same, the slowest of {NEW_PODS}", "value": round(waits[-1], 2), "wanted below": 1},
    ]


def _make_node(server: ApiServer) -> None:
    amounts = {"cpu": str(os.cpu_count()), "memory": "8Gi", "pods": "250"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    metric = {"apiVersion": _API, "kind": "NodeMetric", "metadata": {"name": NODE}, "spec": {}}
    for path, body in (("/api/v1/nodes", node), (f"/apis/{_API}/nodemetrics", metric)):
        assert server.access.request("POST", path, body)[0] == 201
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    assert server.access.request("PATCH", f"/api/v1/nodes/{NODE}/status", status)[0] == 200


def _pod(name: str, sort: int) -> dict[str, Any]:
    """Best-effort on batch resources, latency-sensitive with limits, or as Kubernetes knows pods."""
    requests, label = ((_BATCH, "BE"), (_NATIVE, "LS"), (_NATIVE, ""))[sort]
    limits = {name: {"100m": "200m"}.get(amount, amount) for name, amount in requests.items()}
    resources = {"requests": requests, "limits": limits}
    labels = {"koordinator.sh/qosClass": label} if label else {}
    containers = [{"name": one, "image": "x", "resources": resources} for one in CONTAINERS]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}}


def _share(pid: int, seconds: float) -> float:
    """The share of a core, in percent, that a process takes for so long, once it has settled."""
    time.sleep(SETTLING)
    began, used = time.perf_counter(), cpu_of(pid)
    time.sleep(seconds)
    return 100 * (cpu_of(pid) - used) / (time.perf_counter() - began)


async def _publish(server: ApiServer, moving: str = "") -> None:
    """Publish the policies for agents, as a manager does."""
    files = {"koordpolicy.yaml": _BUNDLE, POLICIES.name: POLICIES.read_text().replace("DISK", _disk())}
    if moving:
        files["moving.yaml"] = moving
    connection = Connection.load(str(server.kubeconfig("koordpolicy-manager")))
    async with connect(connection, jitter=random.random, component="bench") as cluster:
        part = part_of(files, kinds_for(Component.AGENT))
        await PolicyPublisher(cluster, NAMESPACE).publish(part, "moving" if moving else "bench")


def _disk() -> str:
    """A disk of this machine."""
    return min(one.name for one in Path("/sys/block").iterdir() if (one / "device").exists())


@contextmanager
def _agent(server: ApiServer, folder: Path, kubelet: OwnKubelet) -> Iterator[Running]:
    terway = folder / "terway"
    terway.mkdir()
    command = [
        sys.executable, "-m", "koordpolicy.cli", "agent", "--policies-from-manager", "--node", NODE, "--instance", NODE,
        "--kubelet-cgroup-root", kubelet.groups.parent, "--kubelet-url", kubelet.url, "--terway-dir", str(terway),
        "--state-dir", str(folder / "state"), "--http", "127.0.0.1:0",
    ]  # fmt: skip
    environment = {**as_installed(), "PYTHONPATH": str(REPOSITORY)}
    if _has_namespaces():
        account = folder / "account"
        account.mkdir()
        (account / "token").write_text(server.access.token("koordpolicy-agent"))
        (account / "ca.crt").write_bytes(server.access.authority.read_bytes())
        command = ["unshare", "--mount", "sh", "-c", _IN_A_POD, "sh", str(account), *command]
        environment |= {
            "KUBECONFIG": str(folder / "none"),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.access.port),
        }
    else:
        command += ["--kubeconfig", str(server.kubeconfig("koordpolicy-agent"))]
    with Running(command, folder / "agent.log", environment=environment) as running:
        yield running


def _has_namespaces() -> bool:
    """Whether a mount namespace can be made here."""
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"]
    try:
        return subprocess.run(tried, capture_output=True, timeout=10, check=False).returncode == 0
    except OSError:
        return False


def _new_pod(kubelet: OwnKubelet, index: int) -> float:
    """Seconds from a pod's groups to the right shares in them."""
    began = time.perf_counter()
    groups = kubelet.run(_pod(f"new-{index}", 0))
    while not all(_right(kubelet, group) for group in groups):
        assert time.perf_counter() < began + PATIENCE, "the files of a new pod stay as they were"
        time.sleep(0.005)
    taken = time.perf_counter() - began
    time.sleep(1 + index / NEW_PODS)
    return taken


def _right(kubelet: OwnKubelet, group: str) -> bool:
    return kubelet.groups.file("cpu", group, "cpu.shares") == _SHARES
