"""The ElasticQuotaProfile objects of a real cluster: copies of them and of quotas, a queue, and what is told."""

import asyncio
from typing import Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.mirror import Key, Mirror, ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS
from koordpolicy.manager.controllers.quota_profile import (
    KnownQuotaObjects,
    QuotaProfileController,
    QuotaProfilePlan,
)
from koordpolicy.manager.controllers.tree_quota import KIND
from koordpolicy.model.protocol import QUOTA_PROFILE
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.runtime.workqueue import WorkQueue

_SHORTEST: Final = 0.1
"""Seconds between rounds, however short the interval of policies is."""

_IDLE: Final = 5.0
"""Seconds until it is seen whether policies speak of profiles by now."""


class QuotaProfiles:
    """Every replica looks at the objects; the leader writes the quotas."""

    def __init__(self, component: RunningComponent, objects: ClusterObjects) -> None:
        self._component = component
        self._profiles = Mirror(handlers=[self._profile_changed])
        self._quotas = Mirror(handlers=[self._quota_changed])
        self.watching = tuple(
            Watching(component.cluster, resource, mirror, component.watch_backoff())
            for resource, mirror in ((ELASTIC_QUOTA_PROFILES, self._profiles), (ELASTIC_QUOTAS, self._quotas))
        )
        self.controller = QuotaProfileController(
            lambda: component.live.graph,
            KnownQuotaObjects(self._profiles.objects, self._quotas.objects, lambda: objects.nodes),
            now_ns,
            self._planned,
            self._failed,
        )
        self.queue = WorkQueue(
            "quota_profiles",
            component.process.metrics,
            component.backoff(initial=0.5, longest=60.0),
            least=self.controller.retry_after,
        )
        self._leading = False

    def start(self, tasks: Tasks) -> None:
        """Look at the objects."""
        for watching in self.watching:
            tasks.start(f"watch {watching.resource}", watching.run())

    async def lead(self) -> None:
        """Keep the quotas as policies want them, until cancelled."""
        for watching in self.watching:
            await watching.settled.wait()
        self._leading = True
        try:
            async with Tasks() as tasks:
                tasks.start("rounds", self._rounds())
                await self.queue.run(self._reconcile)
        finally:
            self._leading = False

    def all_profiles(self) -> None:
        """Every profile may be another matter now."""
        if self._leading:
            for key in tuple(self._profiles.objects):
                self.queue.add(_name(key))

    def _profile_changed(self, change: ObjectChange) -> None:
        if self._leading:
            self.queue.add(_name(change.key))

    def _quota_changed(self, change: ObjectChange) -> None:
        """Somebody changed or deleted a quota: those look whose it is."""
        if not self._leading:
            return
        for obj in (change.old, change.new):
            labels = None if obj is None else obj["metadata"].get("labels")
            profile = labels.get(QUOTA_PROFILE) if isinstance(labels, dict) else None
            if isinstance(profile, str) and (change.key[0], profile) in self._profiles.objects:
                self.queue.add(_name((change.key[0], profile)))

    async def _rounds(self) -> None:
        """Look at every profile now and then: what nodes offer changes without a word about profiles."""
        while True:
            every = self.controller.every()
            if every is not None:
                self.all_profiles()
            await asyncio.sleep(_IDLE if every is None else max(every, _SHORTEST))

    async def _reconcile(self, name: str) -> bool:
        namespace, _, profile = name.partition("/")
        if (namespace, profile) not in self._profiles.objects:
            self.queue.forget(name)
            return False
        return await self.controller.reconcile(self._component.cluster, (namespace, profile))

    def _planned(self, graph: RuleGraph, plan: QuotaProfilePlan) -> None:
        component = self._component
        component.counts.add(KIND, component.revision_of(graph.digest), failed=plan.failed)
        if plan.failed:
            component.troubles.add(
                KIND, graph.digest, plan.problem, example=f"elasticquotaprofile {_name(plan.key)}"
            )

    def _failed(self, profile: Object, reason: str, text: str) -> None:
        regarding = {
            "apiVersion": ELASTIC_QUOTA_PROFILES.api_version,
            "kind": ELASTIC_QUOTA_PROFILES.kind,
            "metadata": profile["metadata"],
        }
        self._component.recorder.record(regarding, reason, text, type="Warning", action="Reconcile")


def _name(key: Key) -> str:
    return "/".join(key)
