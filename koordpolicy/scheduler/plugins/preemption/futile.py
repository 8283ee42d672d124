"""Searches that were in vain, by what they depend on: who is like a pod that nobody goes for need not search again.

A long queue of pods that wait for the same is gone through whenever something happens that may help one of them. As long as none of
them gets a node nothing changes, and the answer is the same for all that are alike.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.scheduler.decision import NoCandidate
from koordpolicy.scheduler.plugins.base import FilterRun, Promises
from koordpolicy.scheduler.plugins.preemption.policy import PreemptionPolicy

_KEPT: Final = 256
"""Kinds of pods that are remembered at once."""


@dataclass(frozen=True, slots=True)
class Futile:
    """What was said of all nodes, and among how many one was drawn to begin with; 0 where none was."""

    said: NoCandidate
    drawn: int


class FutileSearches:
    """Those of one profile over one cache, as long as rows, pods on nodes and promises are what they were."""

    __slots__ = ("_cache", "_known", "_of", "_policy", "_promises")

    def __init__(self, cache: ClusterCache, policy: PreemptionPolicy, promises: Promises) -> None:
        self._cache = cache
        self._policy = policy
        self._promises = promises
        self._of: tuple[int, ...] = ()
        self._known: dict[Hashable, Futile] = {}

    def key(self, run: FilterRun, possible: bytes) -> Hashable | None:
        """By what a search is remembered now, of which nodes too: those of another shard are looked at in a second one. None where
        it is not remembered. Raises CycleProblem.
        """
        cache = self._cache
        if cache.trying or self._promises.promised_to(run.view.pod.key) is not None:
            return None
        situation = run.situation
        if situation is None:
            return None
        now = (cache.table.version, cache.log.number, self._promises.promise_changes)
        if now != self._of:
            self._of = now
            self._known.clear()
        return situation, repr(self._policy.signature(run.records)), possible

    def get(self, key: Hashable | None) -> Futile | None:
        """What is known under a key."""
        return None if key is None else self._known.get(key)

    def note(self, key: Hashable | None, found: Futile) -> None:
        """A search was in vain."""
        if key is not None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = found
