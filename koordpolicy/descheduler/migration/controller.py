"""The controller of PodMigrationJobs: what the process that leads does about them, again and again."""

import asyncio
from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.migration.driver import MigrationDriver, MigrationSite
from koordpolicy.descheduler.migration.rules import KIND
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching

_WITHOUT_RULES: Final = 5.0
"""Seconds after which policy is asked again where it cannot say how pods are migrated."""


class MigrationController(MigrationDriver):
    """All migrations of a cluster. Every replica watches them, the one that leads carries them out."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects) -> None:
        def troubled(graph: RuleGraph, error: CelError) -> None:
            component.troubles.add(KIND, graph.digest, str(error), example="all migrations")

        site = MigrationSite(
            component.cluster,
            objects,
            component.unreadable,
            lambda: component.live.graph,
            component.recorder,
            component.process.metrics,
            troubled,
            now_ns,
            monotonic,
        )
        super().__init__(site, lambda: None)
        self._component = component
        backoff = component.watch_backoff()
        self._watching = tuple(
            Watching(component.cluster, resource, mirror, backoff)
            for resource, mirror in self.jobs.mirrors.items()
        )

    def start(self, tasks: Tasks) -> None:
        """Watch jobs and Reservations."""
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())

    async def synced(self) -> None:
        """Wait until all there is was heard of once."""
        for watching in self._watching:
            await watching.settled.wait()

    async def run(self) -> None:
        """Carry migrations out while this process leads."""
        await self.synced()
        self.forget()
        while True:
            graph = self._component.live.graph
            rules = self.rules_of(graph)
            if rules is None:
                await self.end_late("policy cannot say how pods are migrated", begun=True)
                await asyncio.sleep(_WITHOUT_RULES)
                continue
            began = monotonic()
            await self.look(rules, graph)
            await asyncio.sleep(max(rules.interval - (monotonic() - began), 0.0))
