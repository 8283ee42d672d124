"""Objects that are named after their nodes, kept on a real cluster: a queue of nodes, and when each is looked at."""

import asyncio
from collections.abc import Awaitable, Callable

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.workqueue import WorkQueue


class NodeObjects:
    """Looks at a node when it or its object is another, and at every one now and then; only while it leads."""

    def __init__(
        self,
        component: RunningComponent,
        objects: ClusterObjects,
        name: str,
        reconcile: Callable[[str], Awaitable[bool]],
        resync: float,
    ) -> None:
        """`resync` is in seconds: how often each node is looked at, though nothing happened to it."""
        self._objects = objects
        self._reconcile = reconcile
        self._resync_every = resync
        self._leading = False
        backoff = component.backoff(initial=0.5, longest=60.0)
        self.queue = WorkQueue(name, component.process.metrics, backoff)

    async def lead(self, known: Mirror) -> None:
        """Keep the objects, of which `known` are those that there are, until cancelled."""
        self._leading = True
        try:
            async with Tasks() as tasks:
                tasks.start("resync", self._resync(known))
                await self.queue.run(self._reconcile, workers=2)
        finally:
            self._leading = False

    def all_nodes(self) -> None:
        """Every node may be another matter now."""
        if self._leading:
            for name in tuple(self._objects.nodes):
                self.queue.add(name)

    def node_changed(self, change: ObjectChange) -> None:
        """A node is another: look where that can matter."""
        if self._leading and _relevant(change.old) != _relevant(change.new):
            self.queue.add(change.key[1])

    def object_changed(self, change: ObjectChange) -> None:
        """An object is another: look at its node, unless all that changed is what the node's agent reports."""
        if self._leading and _spec(change.old) != _spec(change.new):
            self.queue.add(change.key[1])

    async def _resync(self, known: Mirror) -> None:
        """Look at every node now and then, spread over the period, and at objects whose nodes are gone."""
        while True:
            names = sorted({*self._objects.nodes, *(name for _, name in known.objects)})
            step = self._resync_every / max(len(names), 1)
            for at, name in enumerate(names):
                self.queue.add_after(name, at * step)
            await asyncio.sleep(self._resync_every)


def _relevant(node: Object | None) -> object:
    """What of a node policies may depend on here and no heartbeat changes."""
    if node is None:
        return None
    metadata, status = node.get("metadata") or {}, node.get("status") or {}
    return [metadata.get("labels"), metadata.get("annotations"), status.get("allocatable")]


def _spec(obj: Object | None) -> object:
    return None if obj is None else [obj.get("spec")]
