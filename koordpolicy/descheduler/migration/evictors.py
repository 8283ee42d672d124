"""How a pod is let go: by the API server's eviction, by its deletion, or asked to go by an annotation."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.token_bucket import TokenBucket
from koordpolicy.descheduler.migration.job import MigrationJob, soft_eviction
from koordpolicy.kube.errors import Conflict, NotFound
from koordpolicy.kube.port import Cluster, MergePatch, Preconditions
from koordpolicy.kube.resources import PODS
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import EVICT_POLICY, SOFT_EVICTION

Evict = Callable[[Cluster, Pod, MigrationJob, int], Awaitable[None]]


async def _by_eviction(cluster: Cluster, pod: Pod, job: MigrationJob, _now: int) -> None:
    await cluster.evict(
        pod.namespace,
        pod.name,
        grace_seconds=job.grace_seconds,
        preconditions=Preconditions(uid=pod.uid),
    )


async def _by_deletion(cluster: Cluster, pod: Pod, job: MigrationJob, _now: int) -> None:
    await cluster.delete(
        PODS,
        pod.name,
        namespace=pod.namespace,
        grace_seconds=job.grace_seconds,
        preconditions=Preconditions(uid=pod.uid),
    )


async def _by_asking(cluster: Cluster, pod: Pod, job: MigrationJob, now: int) -> None:
    if SOFT_EVICTION in pod.annotations:
        return
    metadata = {"uid": pod.uid, "annotations": {SOFT_EVICTION: soft_eviction(job, now)}}
    await cluster.patch(PODS, pod.name, MergePatch({"metadata": metadata}), namespace=pod.namespace)


EVICTORS: Final[Mapping[str, Evict]] = MappingProxyType(
    {"Eviction": _by_eviction, "Delete": _by_deletion, "SoftEviction": _by_asking}
)
"""By the names that policies and labels have for them."""


@dataclass(slots=True)
class MigrationEvictor:
    """Lets pods of migrations go, at a pace. `clock` gives seconds that never go back."""

    cluster: Cluster
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _bucket: TokenBucket = field(default_factory=TokenBucket)

    async def evict(
        self, pod: Pod, job: MigrationJob, usual: str, pace: tuple[float, float], now: int
    ) -> None:
        """Let a pod go; one that is gone already is so too. `usual`: how, where neither pod nor job says it.

        Raises KubeError where it is not let go.
        """
        wait = self._bucket.take(self.clock(), *pace)
        if wait > 0:
            await self.sleep(wait)
        said = next(
            (
                name
                for labels in (pod.labels, job.labels)
                if (name := labels.get(EVICT_POLICY, "")) in EVICTORS
            ),
            usual,
        )
        try:
            await EVICTORS[said](self.cluster, pod, job, now)
        except (NotFound, Conflict):
            return  # it is gone, or another pod of its name is there: the next look will tell
