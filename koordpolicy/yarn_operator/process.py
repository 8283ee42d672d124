"""The YARN operator as a process: every replica listens, the one that leads says what YARN may use."""

from typing import Any, Final

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.watch import ClusterWatch
from koordpolicy.runtime.component import RunningComponent, Settings, running_component
from koordpolicy.runtime.process import Process, Tasks
from koordpolicy.yarn.resource_manager import ResourceManagerAccess
from koordpolicy.yarn_operator.rounds import YARNSharing
from koordpolicy.yarn_operator.watched import ON_DEMAND, WATCHED, PolicyReads

NAME: Final = "yarn-operator"
LEASE: Final = "koordpolicy-yarn-operator"


async def run_yarn_operator(process: Process, settings: Settings, access: ResourceManagerAccess) -> None:
    """Share batch resources with that YARN until the process is told to stop. Raises `CannotStart`."""
    process.readiness.wait_for("cluster", "the cluster's objects have not been read yet")
    async with running_component(process, settings) as component:
        if not await process.before_stop(component.live.ready.wait()):
            return
        operator = YARNOperator(component, access, settings.namespace)
        process.status.add(operator.status)
        async with Tasks() as tasks:
            operator.start(tasks)
            await process.stopped()


class YARNOperator:
    """The rounds, and what they look at. Every replica looks; the leader writes."""

    def __init__(self, component: RunningComponent, access: ResourceManagerAccess, namespace: str) -> None:
        self._component = component
        self.objects = ClusterObjects()
        handlers = EventHandlers(self.objects, unreadable=component.unreadable, wanted=WATCHED)
        self._watch = ClusterWatch(component, handlers, on_demand=ON_DEMAND)
        self._reads = PolicyReads(self._watch, component.live)
        self.sharing = YARNSharing(component, self.objects, access, self._reads, (namespace, LEASE))

    def start(self, tasks: Tasks) -> None:
        """Look, and stand for election."""
        self._reads.follow()
        self._watch.start(tasks)
        tasks.start("lead", self._component.leadership.run(LEASE, self.sharing.lead))

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {
            "nodes": len(self.objects.nodes),
            "pods": len(self.objects.pods),
            **self.sharing.status(),
        }
