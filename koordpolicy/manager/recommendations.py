"""The Recommendations of a real cluster: a copy of them, queues, and the times at which they are computed and written."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.controllers.recommendation import RecommendationController
from koordpolicy.manager.recommender.histories import Key
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.manager.recommender.policy import KIND, WritingPace, pace_of
from koordpolicy.model.metric import NodeMetric
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.runtime.workqueue import WorkQueue

_MINUTE: Final = 60.0
_WORKERS: Final = 2
_RETRY: Final = 30.0
"""Seconds until policies are asked again that had no answer."""


class Recommendations:
    """Every replica looks at the objects; the leader remembers what nodes report, and writes."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects) -> None:
        self._component = component
        self._objects = objects
        backoff = component.backoff(initial=0.5, longest=60.0)
        self.queue = WorkQueue("recommendations", component.process.metrics, backoff)
        self._lookups = WorkQueue("owners", component.process.metrics, backoff)
        self._mirror = Mirror(handlers=[self._changed])
        self.watching = Watching(
            component.cluster, resources.RECOMMENDATIONS, self._mirror, component.watch_backoff()
        )
        self.controller = RecommendationController(
            lambda: component.live.graph,
            objects,
            lambda key: self._mirror.get(key[1], key[0]),
            Owners(self._lookups.add),
            now_ns,
            self._told,
        )
        self._checkpoints: set[Key] = set()
        self._leading = False

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows."""
        return {"recommendations": len(self._mirror.objects), "containers": self.controller.histories.count}

    async def lead(self) -> None:
        """Remember and write, until cancelled."""
        await self.watching.settled.wait()
        self._leading = True
        try:
            for key, obj in tuple(self._mirror.objects.items()):
                self.controller.heard(key, obj)
            async with Tasks() as tasks:
                tasks.start("compute", self._every(self._compute))
                tasks.start("checkpoint", self._every(self._checkpoint))
                tasks.start("owners", self._lookups.run(self._look_up, workers=_WORKERS))
                await self.queue.run(self._reconcile, workers=_WORKERS)
        finally:
            self._leading = False
            self._checkpoints.clear()
            self.controller.clear()

    def reported(self, change: ObjectChange) -> None:
        """A node has reported, or is gone."""
        if not self._leading:
            return
        sight = self._objects.sight(change.key[1])
        metric: NodeMetric | None = None if sight is None else sight.metric
        if metric is None:
            self.controller.node_gone(change.key[1])
        else:
            self.controller.reported(metric)

    def pod_changed(self, change: ObjectChange) -> None:
        """A pod is another, or gone."""
        if self._leading:
            self.controller.pod_changed(change.key)

    def _changed(self, change: ObjectChange) -> None:
        if self._leading and self.controller.heard(change.key, change.new) and change.new is not None:
            self.queue.add("/".join(change.key))

    async def _reconcile(self, name: str) -> bool:
        namespace, _, short = name.partition("/")
        key = (namespace, short)
        if self._mirror.get(short, namespace) is None:
            self.queue.forget(name)
        checkpoint = key in self._checkpoints
        written = await self.controller.reconcile(self._component.cluster, key, checkpoint=checkpoint)
        self._checkpoints.discard(key)
        return written

    async def _look_up(self, name: str) -> bool:
        return await self.controller.owners.look_up(self._component.cluster, name)

    async def _every(self, act: Callable[[WritingPace], float]) -> None:
        """Do something now and then; it says in how many seconds again."""
        while True:
            try:
                pause = act(pace_of(self._component.live.graph))
            except CelError as error:
                self._component.troubles.add(KIND, self._component.live.graph.digest, str(error))
                pause = _RETRY
            await asyncio.sleep(pause)

    def _compute(self, pace: WritingPace) -> float:
        """Look at every Recommendation, spread over the period."""
        keys = sorted(self._mirror.objects)
        for at, key in enumerate(keys):
            self.queue.add_after("/".join(key), (at + 1) * pace.interval / len(keys))
        return pace.interval

    def _checkpoint(self, pace: WritingPace) -> float:
        """Let the histories be written that are due, spread over a minute."""
        due = self.controller.due()
        for at, key in enumerate(due):
            self._checkpoints.add(key)
            self.queue.add_after("/".join(key), at * _MINUTE / len(due))
        return min(_MINUTE, pace.checkpoint)

    def _told(self, graph: RuleGraph, problem: str, key: Key) -> None:
        self._component.troubles.add(KIND, graph.digest, problem, example="recommendation " + "/".join(key))
