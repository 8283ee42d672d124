"""Letting pods go: by PodMigrationJobs, or at once by the API server's eviction, at the pace that policy says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from koordpolicy.algorithms.token_bucket import TokenBucket
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.rules import ProfileRules, Stays
from koordpolicy.descheduler.snapshot import SeenPod
from koordpolicy.kube.errors import Conflict, KubeError, NotFound, TooManyRequests
from koordpolicy.kube.port import Cluster, Preconditions
from koordpolicy.model.pod import Pod, PodKey

LOG: Final = logging.getLogger(__name__)


class EvictionResult(StrEnum):
    """What came of an eviction."""

    EVICTED = "evicted"
    REFUSED = "refused"
    """A disruption budget does not allow it for now."""
    GONE = "gone"
    """It was not there any more, or another of its name."""
    FAILED = "failed"
    MIGRATING = "migrating"
    """It has a PodMigrationJob now."""
    DRY_RUN = "dry_run"


Check = Callable[[], None]
"""Asked right before a pod goes; raises where none may go any more."""


def always() -> None:
    """The `Check` of who goes by policies that do not change meanwhile."""


Told = Callable[[Move, EvictionResult, str], None]
"""Told of each eviction: what came of it, and what was said where it was not to be."""


def within_budgets(objects: ClusterObjects, going: Sequence[Pod], pod: SeenPod) -> Stays | None:
    """Why a pod may not go beside others for the sake of a disruption budget; none covers what has ended."""
    if pod.pod.terminal:
        return None
    return _budget(objects, [PodView(one, {}) for one in going if one.namespace == pod.pod.namespace], pod)


def _budget(objects: ClusterObjects, views: Sequence[PodView], pod: SeenPod) -> Stays | None:
    broken = objects.state.budgets.broken([*views, PodView(pod.pod, pod.facts)])
    if broken is not None and broken[-1]:
        return Stays("budget", "its disruption budget does not allow it")
    return None


class Migrations(Protocol):
    """Who carries migrations out."""

    def going(self, namespace: str) -> list[PodView]:
        """The pods of a namespace that are to go, and are there still."""

    def migrates(self, pod: PodKey) -> bool:
        """Whether a pod is being migrated."""

    async def migrate(self, move: Move, profile: ProfileRules, check: Check) -> tuple[EvictionResult, str]:
        """Make a PodMigrationJob; what came of it, and why there is none. Raises what `check` raises, and makes none then."""


@dataclass(slots=True)
class Evictor:
    """Carries out what a round found. `clock` gives seconds that never go back."""

    cluster: Cluster
    objects: ClusterObjects
    clock: Callable[[], float]
    told: Told
    migrations: "Migrations"
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _bucket: TokenBucket = field(default_factory=TokenBucket)
    _refused: dict[str, float] = field(default_factory=dict)

    def allowed(self, going: Sequence[Pod], pod: SeenPod) -> Stays | None:
        """See `Allowed`."""
        until = self._refused.get(pod.pod.uid)
        if until is not None and self.clock() < until:
            return Stays("refused", "it was not let go a moment ago")
        if pod.pod.terminal:
            return None  # no budget covers what has ended
        if self.migrations.migrates(pod.pod.key):
            return Stays("migrating", "it is being migrated already")
        views = self.migrations.going(pod.pod.namespace)
        views += [PodView(one, {}) for one in going if one.namespace == pod.pod.namespace]
        return _budget(self.objects, views, pod)

    async def carry_out(
        self, moves: Sequence[Move], rules: ProfileRules, *, dry: bool, check: Check = always
    ) -> list[EvictionResult]:
        """Let each pod go, or only tell of it. What fails is left to the next round. Raises what `check` raises before a pod."""
        results = []
        self._refused = {uid: until for uid, until in self._refused.items() if self.clock() < until}
        for move in moves:
            check()
            if dry or move.dry:
                results.append(EvictionResult.DRY_RUN)
                self.told(move, EvictionResult.DRY_RUN, "")
                continue
            if rules.migrate and not move.pod.terminal:
                result, said = await self.migrations.migrate(move, rules, check)
            else:
                wait = self._bucket.take(self.clock(), rules.per_second, rules.burst)
                if wait > 0:
                    await self.sleep(wait)
                    check()
                result, said = await self._evict(move)
            if result is EvictionResult.REFUSED:
                self._refused[move.pod.uid] = self.clock() + rules.refused_for
            results.append(result)
            self.told(move, result, said)
        return results

    async def _evict(self, move: Move) -> tuple[EvictionResult, str]:
        pod = move.pod
        result, said = EvictionResult.EVICTED, ""
        try:
            await self.cluster.evict(pod.namespace, pod.name, preconditions=Preconditions(uid=pod.uid))
        except TooManyRequests as error:
            result, said = EvictionResult.REFUSED, str(error)
        except (NotFound, Conflict) as error:
            result, said = EvictionResult.GONE, str(error)
        except KubeError as error:
            result, said = EvictionResult.FAILED, str(error)
            LOG.warning("pod %s stays on %s: %s", "/".join(pod.key), move.node, error)
        return result, said
