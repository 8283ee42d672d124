"""Those who may go, node by node, and who has to where only room is short: arithmetic over many nodes at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column, Mask
from koordpolicy.algorithms.eviction import Crowds, reprieve_all
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import PODS
from koordpolicy.scheduler.plugins.preemption.policy import PreemptionPolicy

_KEPT: Final = 4
"""Sets of nodes' pools that are kept at once, one for each set of pods that may go."""

Amounts = Mapping[str, int]


@dataclass(slots=True)
class Pool:
    """Those who may go from one node, the most important first."""

    changes: int
    views: tuple[PodView, ...]
    priorities: Column
    keys: tuple[PodKey, ...] = field(init=False)
    """Their namespaces and names."""
    amounts: dict[str, Column] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = tuple(view.pod.key for view in self.views)

    def taken(self, resource: str) -> Column:
        """What each of them takes of a resource, `pods` as such being one."""
        found = self.amounts.get(resource)
        if found is None:
            taken = [1 if resource == PODS else view.occupied.get(resource, 0) for view in self.views]
            found = self.amounts[resource] = np.array(taken, dtype=np.int64)
        return found

    def total(self, resource: str) -> int:
        """What all of them take of a resource together."""
        found = self.totals.get(resource)
        if found is None:
            found = self.totals[resource] = int(self.taken(resource).sum())
        return found


@dataclass(frozen=True, slots=True)
class Short:
    """A node on which room for a pod would be made by sending these away."""

    node: str
    victims: tuple[PodView, ...]
    violations: int


@dataclass(slots=True)
class _Known:
    """The pools of nodes that were asked for, and up to which change of pods on nodes they are right."""

    pools: dict[str, Pool] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    """The nodes of these from which nobody may go."""
    number: int = -1

    def follow(self, cache: ClusterCache) -> None:
        """Drop the pools of nodes that changed."""
        changed = cache.log.since(self.number)
        if changed is None:
            self.pools.clear()
            self.empty.clear()
        else:
            self.empty.difference_update(changed)
            for name in changed:
                self.pools.pop(name, None)
        self.number = cache.log.number


class Pools:
    """The pools of all nodes that were asked for, up to date."""

    __slots__ = ("_cache", "_here", "_known", "_last", "_policy")

    def __init__(self, cache: ClusterCache, policy: PreemptionPolicy) -> None:
        self._cache = cache
        self._policy = policy
        self._known: dict[tuple[object, ...], _Known] = {}
        self._last: tuple[str, int] | None = None
        self._here: dict[tuple[object, ...], Pool] = {}
        """The pools of the node that was asked about last, in that state of it."""

    def at(self, records: Records, node: str) -> Pool:
        """Those who may go from one node, for one of many pods that are asked about one after another there."""
        now = (node, self._cache.changes_on(node))
        if self._last != now:
            self._last, self._here = now, {}
        signature = self._policy.signature(records)
        found = self._here.get(signature)
        if found is None:
            found = self._here[signature] = PoolsFor(self._cache, self._policy, records, _Known()).on(node)
        return found

    def of(self, records: Records) -> "PoolsFor":
        """The pools for the pod that the records are of. Pods that may displace the same others share them."""
        signature = self._policy.signature(records)
        known = self._known.pop(signature, None)
        if known is None:
            known = _Known()
            while len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
        self._known[signature] = known
        known.follow(self._cache)
        return PoolsFor(self._cache, self._policy, records, known)


class PoolsFor:
    """The pools for one pod; for one search."""

    __slots__ = ("_cache", "_eligible", "_known", "_now", "_policy")

    def __init__(
        self,
        cache: ClusterCache,
        policy: PreemptionPolicy,
        records: Records,
        known: "_Known",
    ) -> None:
        self._cache = cache
        self._policy = policy
        self._known = known
        self._now: Timestamp = records["now"]
        self._eligible = policy.eligible_for(records)

    def on(self, node: str) -> Pool:
        """Those who may go from a node."""
        known, pools = self._known, self._known.pools
        found = pools.get(node)
        if found is not None and not self._cache.trying and known.number == self._cache.log.number:
            return found
        changes = self._cache.changes_on(node)
        if found is None or found.changes != changes:
            found = self._made(node, changes)
            if not self._cache.trying:
                pools[node] = found
                if not found.views:
                    known.empty.add(node)
        return found

    def crowded(self, nodes: Sequence[str]) -> list[str]:
        """Those of some nodes from which somebody may go."""
        known = self._known
        if self._cache.trying or known.number != self._cache.log.number:
            return [name for name in nodes if self.on(name).views]
        pools, empty = known.pools, known.empty
        for name in nodes:
            if name not in pools:
                self.on(name)
        return [name for name in nodes if name not in empty]

    def _made(self, node: str, changes: int) -> Pool:
        importance, now = self._policy.importance, self._now
        able = [view for view in self._cache.pods_on(node).values() if self._eligible(view)]
        able.sort(key=lambda view: importance(view, now))
        return Pool(changes, tuple(able), np.array([view.priority for view in able], dtype=np.int64))

    def broken(self, pool: Pool) -> list[bool] | None:
        """Whose going breaks a disruption budget; None for nobody's."""
        return self._cache.state.budgets.broken(pool.views)

    def short(
        self, nodes: Sequence[str], wanted: Amounts, beside: Mapping[str, Sequence[PodView]]
    ) -> Iterator[Short]:
        """The nodes on which somebody has to go so that the amounts wanted are free, and who.

        `beside` are pods that count as being on a node, though they are not.
        """
        nodes = self.crowded(nodes)
        if not nodes:
            return
        pools = [self.on(name) for name in nodes]
        most = max(len(pool.views) for pool in pools)
        shape = (len(nodes), most)
        amounts = np.zeros((*shape, len(wanted)), np.int64)
        present, breaks = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        for at, pool in enumerate(pools):
            size = len(pool.views)
            present[at, :size] = True
            for number, resource in enumerate(wanted):
                amounts[at, :size, number] = pool.taken(resource)
            broken = self.broken(pool)
            if broken is not None:
                breaks[at, :size] = broken
        free = self._free(nodes, wanted, beside) + amounts.sum(axis=1)
        victims, enough = reprieve_all(
            np.array(list(wanted.values()), np.int64), free, Crowds(amounts, present, breaks)
        )
        yield from _found(nodes, pools, victims & enough[:, None], breaks)

    def _free(
        self, nodes: Sequence[str], wanted: Amounts, beside: Mapping[str, Sequence[PodView]]
    ) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
        """What is free of each resource on each node now."""
        free = np.zeros((len(nodes), len(wanted)), np.int64)
        table = self._cache.table
        for at, name in enumerate(nodes):
            row = table.row(table.index(name))
            has, used = row["resources.allocatable"], row["resources.requested"]
            assert isinstance(has, Mapping)
            assert isinstance(used, Mapping)
            free[at] = [has.get(resource, 0) - used.get(resource, 0) for resource in wanted]
            for view in beside.get(name, ()):
                free[at] -= [1 if one == PODS else view.occupied.get(one, 0) for one in wanted]
        return free


def _found(nodes: Sequence[str], pools: Sequence[Pool], victims: Mask, breaks: Mask) -> Iterator[Short]:
    for at in np.flatnonzero(victims.any(axis=1)).tolist():
        views = pools[at].views
        going = tuple(views[place] for place in np.flatnonzero(victims[at]).tolist())
        yield Short(nodes[at], going, int(np.count_nonzero(victims[at] & breaks[at])))
