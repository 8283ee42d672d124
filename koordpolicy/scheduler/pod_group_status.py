"""The status of PodGroup objects: what their pods do, and the phase that follows by policy; of Kubernetes' own, whether they are
scheduled. Written by the scheduler that leads.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from koordpolicy.algorithms.gang_records import GangPods, pod_group_facts
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Cluster, MergePatch, NotFound
from koordpolicy.kube.resources import KUBERNETES_POD_GROUPS, POD_GROUPS, PODS
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import TIMES
from koordpolicy.model.gang import GangKey, PodGroup
from koordpolicy.model.protocol import PHASE_FAILED, PHASE_SUCCEEDED, POD_GROUP
from koordpolicy.model.reading import mapping, objects, text
from koordpolicy.model.time import NANOSECONDS, time_text
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from koordpolicy.scheduler.plugins.gang.policy import KIND
from koordpolicy.scheduler.scheduler import Scheduler

_STEPS: Final = 8
"""Phases that follow from each other at once, at most."""
_NEW: Final = ("", "Pending")
_SCHEDULING: Final = "Scheduling"
_SCHEDULED: Final = "PodGroupScheduled"
"""The condition of Kubernetes' own PodGroups; its reasons are those of a pod's `PodScheduled`."""


class PodGroupStatus:
    """Keeps the status of PodGroups up to date, each by itself. `now` gives nanoseconds since 1970.

    Pods that are over are not watched; they are counted in the cluster where some have gone.
    """

    def __init__(self, scheduler: Scheduler, cluster: Cluster, now: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._now = now
        self._over: dict[str, tuple[int, int]] = {}
        """How many pods of each have ended well, and have failed, as far as they were counted."""

    def changed(self) -> list[str]:
        """The PodGroups, as `NAMESPACE/NAME`, whose status may be another one since this was asked last."""
        gangs = self._scheduler.gangs
        if gangs is None or not gangs.changed:
            return []
        found = list(gangs.changed)
        gangs.changed.clear()
        return found

    def everything(self) -> list[str]:
        """All PodGroups: nothing is known of what was written before."""
        self._over.clear()
        return [one.declaration.id for one in self._scheduler.cache.state.pod_groups.all]

    def workers(self) -> int:
        """How many are written at a time."""
        try:
            found = prepared(self._graph, f"{KIND}.phases.workers").value({})
        except CelError:
            return 1
        return found if isinstance(found, int) else 1

    def retry_after(self) -> float:
        """Seconds that have to pass after a write that failed."""
        try:
            found = prepared(self._graph, f"{KIND}.phases.retryAfter").value({})
        except CelError:
            return 1.0
        return found.ns / NANOSECONDS if isinstance(found, Duration) else 0.0

    async def reconcile(self, name: str) -> bool:
        """Write the status of a PodGroup where it is another one; whether anything was written. Raises KubeError."""
        namespace, _, own = name.partition("/")
        group, gangs = self._group((namespace, own)), self._scheduler.gangs
        if group is None or gangs is None or not self._says():
            self._over.pop(name, None)
            return False
        if group.of_kubernetes:
            return await self._tell(group, gangs)
        if name in gangs.lost or (name not in self._over and text(group.status, "phase") not in _NEW):
            gangs.lost.discard(name)
            self._over[name] = await self._count(namespace, own)
        status = self._status(group, gangs.counted(name, *self._over.get(name, (0, 0))))
        patch = {key: value for key, value in status.items() if group.status.get(key) != value}
        if not patch:
            return False
        try:
            await self._cluster.patch(POD_GROUPS, own, MergePatch({"status": patch}), namespace=namespace)
        except NotFound:
            return False  # gone in the meantime
        return True

    async def _tell(self, group: PodGroup, gangs: Gangs) -> bool:
        """Write whether a PodGroup of Kubernetes is scheduled, where that is known and does not stand there. Raises KubeError."""
        placed, why = gangs.is_placed(group.declaration.id), gangs.does_not_fit(group.declaration.id)
        if not placed and not why:
            return False
        told = {"type": _SCHEDULED, "status": "True", "reason": "Scheduled", "message": ""}
        if group.unheeded:
            told["message"] = f"Placed without what is not yet enforced: {', '.join(group.unheeded)}"
        if not placed:
            told |= {"status": "False", "reason": "Unschedulable", "message": why}
        conditions = objects(group.status, "conditions", "status")
        before = next((one for one in conditions if one.get("type") == _SCHEDULED), {})
        if all(before.get(key, "") == value for key, value in told.items()):
            return False
        since = before.get("lastTransitionTime") if before.get("status") == told["status"] else None
        told["lastTransitionTime"] = str(since or time_text(self._now() - self._now() % NANOSECONDS))
        others = [one for one in conditions if one.get("type") != _SCHEDULED]
        namespace, name = group.key
        try:
            await self._cluster.patch(
                KUBERNETES_POD_GROUPS,
                name,
                MergePatch({"status": {"conditions": [*others, told]}}),
                namespace=namespace,
                subresource="status",
            )
        except NotFound:
            return False  # gone in the meantime
        return True

    async def _count(self, namespace: str, name: str) -> tuple[int, int]:
        """How many pods of a PodGroup have ended well, and have failed."""
        found = await self._cluster.list(PODS, namespace=namespace, label_selector=f"{POD_GROUP}={name}")
        phases = [str(mapping(one, "status").get("phase") or "") for one in found.items]
        return phases.count(PHASE_SUCCEEDED), phases.count(PHASE_FAILED)

    def _status(self, group: PodGroup, pods: GangPods) -> Mapping[str, Any]:
        """What is to stand in its status; nothing where it is left alone, or its phase cannot be told."""
        before = text(group.status, "phase")
        try:
            if self._value("settled", group, before, pods) is True:
                return {}
            phase = self._phase(group, before, pods)
        except CelError:
            return {}
        if phase in _NEW:
            return {"phase": phase}
        found: dict[str, Any] = {
            "phase": phase,
            "scheduled": pods.bound,
            "running": pods.running,
            "succeeded": pods.succeeded,
            "failed": pods.failed,
        }
        gangs = self._scheduler.gangs
        if before in _NEW and gangs is not None and (owners := gangs.owners(group.declaration.id)):
            found["occupiedBy"] = owners
        if phase == _SCHEDULING and not group.status.get("scheduleStartTime"):
            found["scheduleStartTime"] = time_text(self._now())
        return found

    def _phase(self, group: PodGroup, phase: str, pods: GangPods) -> str:
        """The phase that follows, and what follows from that one with nothing else changed. Raises CelError."""
        for _ in range(_STEPS):
            following = self._value("phase", group, phase, pods)
            if following is None or following == phase:
                break
            phase = str(following)
        return phase

    def _value(self, field: str, group: PodGroup, phase: str, pods: GangPods) -> Any:
        now = self._now()
        namespaces = self._scheduler.cache.state.namespaces
        records: Records = {
            "podGroup": pod_group_facts(group, phase, pods, TIMES, now),
            "namespaceObject": namespaces.get(group.declaration.namespace, {}),
            "now": Timestamp(now - now % NANOSECONDS),
        }
        return prepared(self._graph, f"{KIND}.phases.{field}").value(records)

    def _says(self) -> bool:
        """Whether any policy speaks of phases."""
        return self._graph.about(KIND, "").says("phases.phase")

    def _group(self, key: GangKey) -> PodGroup | None:
        return self._scheduler.cache.state.pod_groups.get(key)

    @property
    def _graph(self) -> RuleGraph:
        return self._scheduler.framework.graph
