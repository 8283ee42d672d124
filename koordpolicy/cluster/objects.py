"""The objects of a cluster as values, by node: for those who need no table, and before any policy is asked."""

from koordpolicy.cluster.objects_by_node import ObjectsByNode
from koordpolicy.cluster.state import ClusterState


class ClusterObjects(ObjectsByNode):
    """All nodes, pods and reports as they were last heard of; `state` is all that there is beside them, no rows."""

    __slots__ = ()

    state: ClusterState

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
