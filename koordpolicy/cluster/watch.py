"""A component's picture of a cluster, kept up to date: one watch for each resource that it hears of."""

import asyncio
from collections.abc import Collection
from typing import Final

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.kube import Object
from koordpolicy.kube.resources import PODS, Resource
from koordpolicy.runtime.collector import give_back, hold_back, keep_what_is_there, look_again
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching

_RUNNING_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"


class ClusterWatch:
    """Watches that feed event handlers. Pods that are over are not asked for; what is of `last` is, once all else is there.

    What is `on_demand` is asked for from the moment that somebody wants it (`want`), and until then nobody waits for it.
    """

    def __init__(
        self,
        component: RunningComponent,
        handlers: EventHandlers,
        last: Collection[Resource] = (),
        on_demand: Collection[Resource] = (),
    ) -> None:
        self._component = component
        self._last = frozenset(last)
        self._on_demand = {resource: asyncio.Event() for resource in on_demand}
        self._mirrors = handlers.mirrors
        backoff = component.watch_backoff()
        self._watching = tuple(
            Watching(
                component.cluster,
                resource,
                mirror,
                backoff,
                field_selector=_RUNNING_PODS if resource is PODS else "",
                on_change=self._changed,
            )
            for resource, mirror in handlers.mirrors.items()
        )

    def start(self, tasks: Tasks) -> None:
        """Watch the cluster; the process counts as ready once everything was heard."""
        hold_back()
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", self._run(watching))
        tasks.start("ready", self._ready())

    async def synced(self, besides: Collection[Resource] = ()) -> None:
        """Wait until everything there is was heard of once, `besides` what is of some resources, or wanted by nobody."""
        for watching in self._watching:
            if watching.resource not in besides and self._is_wanted(watching.resource):
                await watching.settled.wait()

    def knows(self, resources: Collection[Resource]) -> bool:
        """Whether everything that there is of these was heard of once."""
        return all(one.settled.is_set() for one in self._watching if one.resource in resources)

    def want(self, resources: Collection[Resource]) -> None:
        """Follow these from now on; `synced` then waits for them, too. Of what is followed anyway it says nothing new."""
        for resource in resources:
            if resource in self._on_demand:
                self._on_demand[resource].set()

    def pod(self, namespace: str, name: str) -> Object | None:
        """A pod as last heard of; None when there is none that is not over."""
        return self._mirrors[PODS].get(name, namespace)

    def _changed(self) -> None:
        """A list has come in, or cannot be had: while one waits and tries again, there is garbage and time."""
        if any(watching.trouble is not None for watching in self._watching):
            look_again()

    def _is_wanted(self, resource: Resource) -> bool:
        return resource not in self._on_demand or self._on_demand[resource].is_set()

    async def _run(self, watching: Watching) -> None:
        if watching.resource in self._on_demand:
            await self._on_demand[watching.resource].wait()
        if watching.resource in self._last:
            await self.synced(besides=self._last)
        await watching.run()

    async def _ready(self) -> None:
        await self.synced()
        keep_what_is_there()
        give_back()
        self._component.process.readiness.reached("cluster")
