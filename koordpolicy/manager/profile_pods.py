"""Pods of a real cluster that exist when ClusterColocationProfile objects change: copies of what is needed, rounds, a queue."""

import asyncio
from collections.abc import Mapping
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.resources import CLUSTER_COLOCATION_PROFILES, NAMESPACES, PODS, Resource
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.controllers.profile_reconciliation import (
    KIND,
    PatchClock,
    PodProfilePlan,
    ProfileReconciler,
)
from koordpolicy.manager.serving import MirroredObjects
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.clock import monotonic, now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.runtime.workqueue import WorkQueue

_SHORTEST: Final = 1.0
"""Seconds between rounds, however short the interval of policies is."""
_IDLE: Final = 5.0
"""Seconds until it is seen whether policies speak of such pods by now."""


class ProfilePods:
    """Every replica looks at the objects; the leader writes. `mirrors` are those that are fed already, with the one of pods."""

    def __init__(self, component: RunningComponent, mirrors: Mapping[Resource, Mirror]) -> None:
        self._component = component
        self._changed = asyncio.Event()
        profiles, namespaces = Mirror(handlers=[self._profile_changed]), Mirror()
        own = {CLUSTER_COLOCATION_PROFILES: profiles, NAMESPACES: namespaces}
        self.watching = tuple(
            Watching(component.cluster, resource, mirror, component.watch_backoff())
            for resource, mirror in own.items()
        )
        self.controller = ProfileReconciler(
            lambda: component.live.graph,
            MirroredObjects({PODS: mirrors[PODS], **own}),
            PatchClock(now_ns, monotonic),
            self._planned,
        )
        self.queue = WorkQueue(
            "profile_pods", component.process.metrics, component.backoff(initial=0.5, longest=60.0)
        )

    def start(self, tasks: Tasks) -> None:
        """Look at the objects."""
        for watching in self.watching:
            tasks.start(f"watch {watching.resource}", watching.run())

    async def lead(self) -> None:
        """Keep pods as profiles say, until cancelled."""
        for watching in self.watching:
            await watching.settled.wait()
        async with Tasks() as tasks:
            tasks.start("rounds", self._rounds())
            await self.queue.run(self._reconcile)

    def again(self) -> None:
        """Other policies decide."""
        self._changed.set()

    def _profile_changed(self, _: ObjectChange) -> None:
        self._changed.set()

    async def _rounds(self) -> None:
        """Look at all pods that wait, now and then, and when profiles or policies change."""
        while True:
            self._changed.clear()
            pause = self._round()
            await asyncio.sleep(_SHORTEST)
            try:
                async with asyncio.timeout(max(pause - _SHORTEST, 0.0)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _round(self) -> float:
        """Let pods be looked at; the seconds until the next round."""
        try:
            pace = self.controller.pace()
        except CelError as error:
            self._component.troubles.add(KIND, self._component.live.graph.digest, str(error))
            return _IDLE
        if pace is None:
            return _IDLE
        for key in self.controller.waiting():
            self.queue.add("/".join(key))
        return pace.interval

    async def _reconcile(self, name: str) -> bool:
        namespace, _, pod = name.partition("/")
        try:
            written = await self.controller.reconcile(self._component.cluster, (namespace, pod))
        except (CelError, ObjectError) as error:
            self._tell(self._component.live.graph, str(error), name)
            written = False
        if not written:
            self.queue.forget(name)
        return written

    def _planned(self, graph: RuleGraph, plan: PodProfilePlan) -> None:
        component = self._component
        component.counts.add(KIND, component.revision_of(graph.digest), failed=bool(plan.problems))
        for problem in plan.problems:
            self._tell(graph, problem, "/".join(plan.key))

    def _tell(self, graph: RuleGraph, problem: str, pod: str) -> None:
        self._component.troubles.add(KIND, graph.digest, problem, example=f"pod {pod}")
