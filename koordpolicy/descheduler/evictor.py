"""Letting pods go: evictions by the API server, which heeds disruption budgets, at the pace that policy says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from koordpolicy.algorithms.token_bucket import TokenBucket
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import Stays
from koordpolicy.descheduler.snapshot import SeenPod
from koordpolicy.kube.errors import Conflict, KubeError, NotFound, TooManyRequests
from koordpolicy.kube.port import Cluster, Preconditions
from koordpolicy.model.pod import Pod

LOG: Final = logging.getLogger(__name__)


class EvictionResult(StrEnum):
    """What came of an eviction."""

    EVICTED = "evicted"
    REFUSED = "refused"
    """A disruption budget does not allow it for now."""
    GONE = "gone"
    """It was not there any more, or another of its name."""
    FAILED = "failed"
    DRY_RUN = "dry_run"


@dataclass(frozen=True, slots=True)
class Pace:
    """Evictions a second, how many may come at once after a rest, and the seconds in which a pod is passed over that was not let go."""

    per_second: float
    burst: float
    refused_for: float


Told = Callable[[Move, EvictionResult, str], None]
"""Told of each eviction: what came of it, and what was said where it was not to be."""


@dataclass(slots=True)
class Evictor:
    """Carries out what a round found. `clock` gives seconds that never go back."""

    cluster: Cluster
    objects: ClusterObjects
    clock: Callable[[], float]
    told: Told
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _bucket: TokenBucket = field(default_factory=TokenBucket)
    _refused: dict[str, float] = field(default_factory=dict)

    def allowed(self, going: Sequence[Pod], pod: SeenPod) -> Stays | None:
        """See `Allowed`."""
        until = self._refused.get(pod.pod.uid)
        if until is not None and self.clock() < until:
            return Stays("refused", "it was not let go a moment ago")
        views = [PodView(one, {}) for one in going if one.namespace == pod.pod.namespace]
        broken = self.objects.state.budgets.broken([*views, PodView(pod.pod, pod.facts)])
        if broken is not None and broken[-1]:
            return Stays("budget", "its disruption budget does not allow it")
        return None

    async def carry_out(self, moves: Sequence[Move], pace: Pace, *, dry: bool) -> list[EvictionResult]:
        """Evict each pod, or only tell of it. What fails is left to the next round."""
        results = []
        self._refused = {uid: until for uid, until in self._refused.items() if self.clock() < until}
        for move in moves:
            if dry or move.dry:
                results.append(EvictionResult.DRY_RUN)
                self.told(move, EvictionResult.DRY_RUN, "")
                continue
            wait = self._bucket.take(self.clock(), pace.per_second, pace.burst)
            if wait > 0:
                await self.sleep(wait)
            results.append(await self._evict(move, pace))
        return results

    async def _evict(self, move: Move, pace: Pace) -> EvictionResult:
        pod = move.pod
        result, said = EvictionResult.EVICTED, ""
        try:
            await self.cluster.evict(pod.namespace, pod.name, preconditions=Preconditions(uid=pod.uid))
        except TooManyRequests as error:
            result, said = EvictionResult.REFUSED, str(error)
            self._refused[pod.uid] = self.clock() + pace.refused_for
        except (NotFound, Conflict) as error:
            result, said = EvictionResult.GONE, str(error)
        except KubeError as error:
            result, said = EvictionResult.FAILED, str(error)
            LOG.warning("pod %s stays on %s: %s", "/".join(pod.key), move.node, error)
        self.told(move, result, said)
        return result
