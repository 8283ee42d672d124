"""What the cluster says of this node: the node, its NodeMetric, topology and devices; its pods, by `supply.py`."""

from typing import Final

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects_by_node import ObjectsByNode
from koordpolicy.kube import resources
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching

BY_NAME: Final = (
    resources.NODES,
    resources.NODE_METRICS,
    resources.NODE_RESOURCE_TOPOLOGIES,
    resources.DEVICES,
)
"""What is watched of which only the object of this node's name."""


class NodeWatch:
    """Watches that feed the objects of one node; nothing of any other node is listed or heard of."""

    def __init__(self, component: RunningComponent, node: str) -> None:
        self.node = node
        self.objects = ObjectsByNode()
        self._component = component
        self._handlers = EventHandlers(
            self.objects, unreadable=component.unreadable, wanted={*BY_NAME, resources.PODS}
        )
        self._watching = tuple(
            Watching(
                component.cluster,
                resource,
                self._handlers.mirrors[resource],
                component.watch_backoff(),
                field_selector=f"metadata.name={node}",
            )
            for resource in BY_NAME
        )

    @property
    def pods(self) -> Mirror:
        """The pods of the node, whoever tells of them."""
        return self._handlers.mirrors[resources.PODS]

    def own(self, resource: Resource) -> Object | None:
        """The object of this node's name, as last heard of."""
        return self._handlers.mirrors[resource].get(self.node)

    def pod_informer(self) -> Informer:
        """One that feeds the pods of this node as the API server knows them."""
        return Informer(
            self._component.cluster,
            resources.PODS,
            self.pods,
            self._component.watch_backoff(),
            field_selector=f"spec.nodeName={self.node}",
        )

    def start(self, tasks: Tasks) -> None:
        """Watch; the process counts as ready once the node was heard of."""
        readiness = self._component.process.readiness
        readiness.wait_for("cluster", f"the API server has not told of node {self.node} yet")
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())
        tasks.start("ready", self._ready())

    async def settled(self) -> None:
        """Wait until everything there is was heard of once."""
        for watching in self._watching:
            await watching.settled.wait()

    async def _ready(self) -> None:
        await self.settled()
        self._component.process.readiness.reached("cluster")
