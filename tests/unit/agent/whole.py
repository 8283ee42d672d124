"""The whole agent on a cluster in memory: every round is its own, on a kernel and by policies that a test gives it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from koordpolicy.agent.agent import NodeAgent
from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.pods import PodAnswers, PodSource
from koordpolicy.agent.shown.agent_metrics import show_metrics
from koordpolicy.agent.watch import NodeWatch
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODE_METRICS, NODES
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.runtime.apiserver import ServerSight
from koordpolicy.runtime.clock import monotonic, monotonic_ns, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.decisions import DecisionCounts
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.runtime.requests import RequestCounts

NODE = "n"


class CompiledPolicies:
    """Policies that were compiled before, and stay."""

    active = rejected = candidate = stage = None
    origin = "compiled before"

    def __init__(self, graph: RuleGraph) -> None:
        self.graph = graph
        self.ready = asyncio.Event()
        self.ready.set()

    def graph_for(self, _node: str, _labels: object) -> RuleGraph:
        return self.graph

    def subscribe(self, _heard: object) -> Any:
        """Nothing is ever told: nothing changes."""


def pod_object(
    name: str, qos: str, container: str, resources: dict[str, Any] | None = None, **metadata: Any
) -> Object:
    """A running pod of a class, as a kubelet tells of it; its UID is `uid-NAME`."""
    status = {"name": "main", "containerID": f"containerd://{container}", "state": {"running": {}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"koordinator.sh/qosClass": qos},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {
            "nodeName": NODE,
            "containers": [{"name": "main", "image": "x", "resources": resources or {}}],
        },
        "status": {
            "phase": "Running",
            "qosClass": "BestEffort" if qos == "BE" else "Burstable",
            "containerStatuses": [status],
        },
    }


@asynccontextmanager
async def whole_agent(
    graph: RuleGraph,
    kernel: NodeKernel,
    cluster: MemoryCluster,
    pods: Sequence[Object],
    *,
    capacity: dict[str, str],
    peaks: PeakFiles | None = None,
    dry_run: bool = False,
    clock: Callable[[], int] = monotonic_ns,
) -> AsyncIterator[NodeAgent]:
    """An agent that has begun: its watches run, its rounds are the test's to make or to start."""
    metrics = Metrics("agent")
    process = Process("agent", NODE, metrics)
    policies = cast(Any, CompiledPolicies(graph))
    recorder = Recorder(
        cluster, component="koordpolicy-agent", instance=NODE, now_ns=now_ns, backoff=Backoff(lambda: 0.5)
    )
    component = RunningComponent(
        process,
        cluster,
        cast(Any, None),
        policies,
        None,
        cast(Any, None),
        recorder,
        DecisionCounts(metrics),
        None,
        UnreadableObjects(lambda *_found: None),
        Troubles(metrics, policies, recorder, leads=lambda: False, now=now_ns),
        ServerSight(RequestCounts(metrics), monotonic),
    )
    status = {"capacity": capacity, "allocatable": capacity}
    await _create(cluster, NODES, {"metadata": {"name": NODE}}, status)
    await _create(cluster, NODE_METRICS, {"metadata": {"name": NODE}, "spec": {}}, {})
    watch = NodeWatch(component, NODE)
    answers = PodAnswers(PodSource.KUBELET, began=clock())
    agent = NodeAgent(
        component,
        watch,
        kernel,
        answers,
        AuditLog(1 << 20, clock, lambda: "token"),
        dry_run=dry_run,
        peaks=peaks,
    )
    show_metrics(agent)
    async with Tasks() as tasks:
        watch.start(tasks)
        watch.pods.replace(pods, "")  # as a kubelet tells of them
        async with asyncio.timeout(30):
            await agent.begin()
        answers.good(PodSource.KUBELET, clock())
        yield agent


async def _create(cluster: MemoryCluster, resource: Any, body: Object, status: object) -> None:
    made = await cluster.create(resource, dict(body))
    if status:
        await cluster.update(resource, {**made, "status": status}, subresource="status")
