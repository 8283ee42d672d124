"""A node with pods on the model of a kernel, for strategies that keep something from round to round."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.measurements.levels import Measurements
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.graph import RuleGraph
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.cgroups.kubepods import discover_kubepods
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.root import KernelRoot
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import QOS_CLASS
from koordpolicy.model.time import NANOSECONDS
from tests.contract.kernel.kernels import make_group
from tests.unit.agent.nodes import NOW, PROCESSORS

SECOND = NANOSECONDS
GIB = 1 << 30
COLLECTION = Collection(
    every=60 * SECOND,
    averages_over=300 * SECOND,
    percentiles_over=(300 * SECOND,),
    memory="usageWithoutPageCache",
    interval=SECOND,
    system_inputs_within=10 * SECOND,
    most_pods=110,
    pods_every=10 * SECOND,
    pods_timeout=3 * SECOND,
    pods_notice_within=SECOND // 2,
    pods_stale_after=30 * SECOND,
)
LIMITS = DoorLimits(
    refresh=60 * SECOND, attempts=3, first_delay=SECOND, longest_delay=8 * SECOND, most_files=1000
)
CAPACITY = {"cpu": 20_000, "memory": 64 * GIB}


def pod(name: str, qos: str, **more: Any) -> Pod:
    """A running pod of a class with one container, told by its name."""
    kubernetes = "BestEffort" if qos == "BE" else "Burstable"
    requests = {"cpu": 2000, "memory": 4 * GIB}
    facts: dict[str, Any] = {
        "uid": f"uid-{name}",
        "labels": {QOS_CLASS: qos},
        "kubernetes_qos": kubernetes,
        "phase": "Running",
        "node_name": "n",
        "created_at": NOW - 100_000 * SECOND,
        "containers": (Container("main", requests={} if qos == "BE" else requests),),
        **more,
    }
    return Pod(name, **facts)


class FakeNode:
    """A node of that kernel with these pods. Its clock stands until it is moved."""

    def __init__(
        self,
        pods: Sequence[Pod],
        version: CgroupVersion = CgroupVersion.V1,
        extra: Mapping[str, str] | None = None,
        root: KernelRoot | None = None,
        parent: str = "",
    ) -> None:
        self.root = FakeRoot(version, extra=extra) if root is None else root
        self.hierarchy = discover_hierarchy(self.root)
        self.pods = list(pods)
        self.elapsed = 0
        self.trusted = True
        top = f"{parent}/kubepods".strip("/")
        for group in (parent, top, f"{top}/besteffort", f"{top}/burstable"):
            if group:
                make_group(self.root, self.hierarchy, group)
        door = KernelDoor(self.root, self.hierarchy, lambda: self.monotonic, LIMITS, WriteLog(100))
        self.kernel = NodeKernel(self.root, self.hierarchy, door, parent)
        self.measurements = Measurements(COLLECTION)
        for one in self.pods:
            for group in (self.group(one), f"{self.group(one)}/main"):
                make_group(self.root, self.hierarchy, group)

    @property
    def monotonic(self) -> int:
        return 1000 * SECOND + self.elapsed

    @property
    def now(self) -> int:
        return NOW + self.elapsed

    def group(self, one: Pod) -> str:
        kubepods = discover_kubepods(self.root, self.hierarchy.directory("cpu"), self.kernel.parent)
        assert kubepods is not None
        return kubepods.of_pod(one.uid, one.kubernetes_qos)

    def node_pods(self) -> dict[str, NodePod]:
        return {
            one.uid: NodePod(one, self.group(one), {"main": f"{self.group(one)}/main"}) for one in self.pods
        }

    def frame(self, graph: RuleGraph, used: Mapping[str, int] | None = None, **more: Any) -> NodeFrame:
        """What strategies see now; the node uses so much of its 20 CPUs and 64 GiB."""
        node = Node("n", capacity=CAPACITY, allocatable=CAPACITY)
        metric = NodeMetric("n", updated_at=self.now, node_usage=dict(used or {"cpu": 1000, "memory": GIB}))
        record = agent_record(graph, CPUSuppression(graph), NodeSight(node, self.pods, metric), self.now)
        frame = NodeFrame(
            graph,
            node,
            record,
            self.node_pods(),
            self.measurements,
            COLLECTION,
            self.kernel,
            PROCESSORS,
            self.now,
            self.monotonic,
            self.trusted,
        )
        return replace(frame, **more)
