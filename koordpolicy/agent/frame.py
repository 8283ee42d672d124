"""The node at one moment, as strategies look at it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from koordpolicy.agent.collection import Collection
from koordpolicy.agent.measurements.levels import Measurements
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.owned_cpus import OwnedCPUs, owned_cpus_of
from koordpolicy.agent.strategies.interference import PodSignals
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node
from koordpolicy.model.topology import Processor


@dataclass(frozen=True, slots=True)
class NodeFrame:
    """Everything that a strategy may ask: policies, the node's facts, what was measured, and the kernel.

    `now` is nanoseconds since 1970, `monotonic` those of the measurements' clock. `pods` are by UID. `trusted` says whether
    the list of pods is recent enough to evict by it.
    """

    graph: RuleGraph
    node: Node
    record: Record
    pods: Mapping[str, NodePod]
    found: Measurements
    collection: Collection
    kernel: NodeKernel
    processors: Sequence[Processor]
    now: int
    monotonic: int
    trusted: bool = True
    kubelet_places_cpus: bool = False
    reserved_cpus: frozenset[int] = frozenset()
    kubelet_cpus: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The CPUs that the kubelet has given to pods by itself, by UID: nobody shares them."""
    signals: Mapping[str, PodSignals] = field(default_factory=dict)
    """What says that pods are held up, by UID; none where no rule asks for it."""

    @property
    def pod_records(self) -> list[Record]:
        """The facts of the node's pods."""
        found: list[Record] = self.record["pods"]  # type: ignore[assignment]  # a record holds anything
        return found

    @property
    def kept_cpus(self) -> frozenset[int]:
        """The CPUs that the node reserves, and those that its kubelet has given to pods by itself."""
        return self.reserved_cpus.union(*self.kubelet_cpus.values())

    def owned(self) -> OwnedCPUs:
        """The CPUs that the scheduler has given to pods, of those whose classes may have any."""
        free = frozenset(one.cpu for one in self.processors) - self.kept_cpus
        return owned_cpus_of(self.graph, self.pods, free)
