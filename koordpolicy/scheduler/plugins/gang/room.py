"""Room for a gang that finds none: who would have to go for all of its pods, tried and taken back.

All who may go are off their nodes at first, in the order of what that costs; the pods of the gang are placed one after the other on
the cheapest node that takes each, or as is planned where policy gathers the gang in the network. Then those come back, the most
important first, beside whom the gang still has its places. Koordinator means to do the same, and loses the places of those placed
before; here they count.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column, Mask
from koordpolicy.algorithms.eviction import reprieve
from koordpolicy.algorithms.gathering import GangNetwork
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.decision import PostFilterResult, Victim
from koordpolicy.scheduler.plugins.base import FilterRun, Host, JobRoom, request_of
from koordpolicy.scheduler.plugins.gang.parties import Company, Parties, Party
from koordpolicy.scheduler.plugins.gang.victims import GangVictims
from koordpolicy.scheduler.plugins.gang.words import no_room_text, room_text
from koordpolicy.scheduler.plugins.leaving import is_leaving
from koordpolicy.scheduler.plugins.topology.plan import NO_NETWORK, NoPlan, Planner

_FIRST: Final = 32
"""Nodes that are cleared at first; so many more each time that they are not enough as are cleared already."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why nobody goes. `waits` says that pods are on their way already."""

    reason: str
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pods that room is sought for, one at least; `asks` is the one that found no node, `beside` are those of the gang that
    have one, `network` how all are gathered, `near` the nodes of all of the gang that have one. `spares` has those stay first
    whose going breaks a disruption budget.
    """

    asks: PodView
    pods: Sequence[PodView]
    beside: Collection[PodKey] = ()
    network: GangNetwork | None = None
    spares: bool = False
    near: Collection[str] = ()


def as_told(named: str, found: PostFilterResult | NoRoom) -> JobRoom:
    """What is done for a gang and told of it."""
    if isinstance(found, NoRoom):
        return JobRoom(no_room_text(named, found.reason, waits=found.waits))
    return JobRoom(room_text(named, found), found)


class RoomForGang:
    """Looks for room by the policy of one graph."""

    def __init__(self, host: Host, policy: GangVictims, company: Company) -> None:
        self._host = host
        self._policy = policy
        self._company = company

    def find(self, wanted: Wanted) -> PostFilterResult | NoRoom:
        """Who goes for all of these pods; or why nobody does. Nothing is changed. Raises CycleProblem."""
        host, cache, now = self._host, self._host.cache, self._host.now()
        runs = {view.pod.key: host.filters(view) for view in wanted.pods}
        asks = runs[wanted.asks.pod.key]
        looked = _Look.at(cache, runs, wanted.asks.pod.key)
        eligible = self._policy.eligible_for(asks.records)
        for key in (*runs, *wanted.beside):
            if self._still_leaving(key, looked if key == wanted.asks.pod.key else None, eligible):
                return NoRoom("pods have still to leave the nodes that are promised to it", waits=True)
        nodes = [cache.table.name(row) for row in np.flatnonzero(looked.possible).tolist()]
        if not nodes:
            return NoRoom("fewer pods on nodes would not help it")
        parties = Parties(self._policy, cache, self._company, now)
        own = {*runs, *wanted.beside}
        parties.find(nodes, own, eligible, self._policy.whole_for(asks.records))
        if not parties.on:
            return NoRoom("nobody may go for it")
        with cache.trial():
            trial = _Trial(host, runs, parties, nodes, own, far=looked.far)
            why = trial.settle(wanted)
            if why is not None:
                return NoRoom(why)
            victims, violations = trial.reprieve(spares=wanted.spares)
            if trial.far and not trial.holds():
                return NoRoom("filters refuse its pods beside each other")
        return self._found(wanted, trial.places, victims, violations)

    def _found(
        self, wanted: Wanted, places: Mapping[PodKey, str], victims: Sequence[Party], violations: int
    ) -> PostFilterResult:
        promises, cache = self._host.promises, self._host.cache
        asks, beside = wanted.asks, {**places}
        beside.update((key, node) for key in wanted.beside if (node := cache.node_of(key)) is not None)
        node = beside.pop(asks.pod.key)
        going = tuple(
            Victim(
                view.pod.key,
                view.pod.uid,
                view.pod.terminating,
                waits=promises.waits(view.pod.key),
                node=where,
            )
            for party in victims
            for view, where, _ in party.pods
        )
        cleared = tuple(
            key
            for where in dict.fromkeys(places.values())
            for key, view in promises.promised_on(where).items()
            if key not in places and key not in beside and view.priority < asks.priority
        )
        return PostFilterResult(node, going, violations, cleared, tuple(beside.items()))

    def _still_leaving(self, key: PodKey, looked: "_Look | None", eligible: "Eligible") -> bool:
        """Whether pods have still to leave the node that a pod waits for, so that there is hope yet."""
        cache, promises = self._host.cache, self._host.promises
        node = promises.promised_to(key)
        if node is None or node not in cache:
            return False
        if looked is not None and looked.hopeless[cache.table.index(node)]:
            return False
        return any(
            eligible(other) and is_leaving(other.pod, promises) for other in cache.pods_on(node).values()
        )


Eligible = Callable[[PodView], bool]


@dataclass(frozen=True, slots=True)
class _Look:
    """What filters say of all nodes as they are: where fewer pods might help one of the pods, where none would help the one that
    asks, and whether it matters who is on other nodes.
    """

    possible: Mask
    hopeless: Mask
    far: bool

    @classmethod
    def at(cls, cache: ClusterCache, runs: Mapping[PodKey, FilterRun], asks: PodKey) -> "_Look":
        possible = np.zeros(len(cache.table), np.bool_)
        hopeless, far = possible, False
        seen: set[Hashable] = set()
        for key, run in runs.items():
            if run.likeness in seen and key != asks:
                continue
            seen.add(run.likeness)
            results = run.evaluate(cache.table)
            never = run.unresolvable(results)
            possible = possible | ~never
            far |= bool(results.cache_keys)
            if key == asks:
                hopeless = never
        return cls(possible, hopeless, far)


class _Trial:
    """The nodes as they would be, within a trial of the cache. `places` are the pods of the gang that have a node so far."""

    def __init__(
        self,
        host: Host,
        runs: Mapping[PodKey, FilterRun],
        parties: Parties,
        nodes: Sequence[str],
        own: Collection[PodKey],
        *,
        far: bool,
    ) -> None:
        self._cache = host.cache
        self._host = host
        self._runs = runs
        self._parties = parties
        self._own = own
        self._costs = parties.costs()
        self._order = sorted(nodes, key=lambda name: (name in self._costs, self._costs.get(name, 0), name))
        self._rows = np.array([self._cache.table.index(name) for name in self._order], np.int64)
        self._cleared = 0
        self._gone: dict[int, Party] = {}
        self.places: dict[PodKey, str] = {}
        self.far = far

    # --- everybody gets a place ---------------------------------------------------------------------

    def settle(self, wanted: Wanted) -> str | None:
        """Place all pods; why they cannot be, None where they are. Raises CycleProblem."""
        if wanted.network is not None:
            return self._settle_gathered(wanted, wanted.network)
        left: dict[Hashable, int] = {}
        for view in sorted(wanted.pods, key=_request, reverse=True):
            if not self._settle_one(view, left):
                count = len(wanted.pods)
                return f"without all who may go, {len(self.places)} of its {count} pods would find a node"
        return None

    def _settle_one(self, view: PodView, left: dict[Hashable, int]) -> bool:
        """Place a pod on the cheapest node that takes it; `left` is where to begin for pods like it."""
        run = self._runs[view.pod.key]
        while True:
            begin = 0 if self.far else left.get(run.likeness, 0)
            at = self._first(run, self._rows[begin : self._cleared])
            if at is not None:
                if not self.far:
                    left[run.likeness] = begin + at
                self._put(view, self._order[begin + at])
                return True
            left[run.likeness] = 0 if self.far else self._cleared
            if not self._clear():
                return False

    def _first(self, run: FilterRun, rows: Column) -> int | None:
        """The first of some rows that pass all filters, by its place among them."""
        passes = np.ones(len(rows), np.bool_)
        for moment in run.moments if len(rows) else ():
            results = moment.evaluate(self._cache.table, rows)
            self.far |= bool(results.cache_keys)
            feasible = results.feasible()
            if feasible is not None:
                passes &= feasible
        found = np.flatnonzero(passes)
        return int(found[0]) if len(found) else None

    def _settle_gathered(self, wanted: Wanted, how: GangNetwork) -> str | None:
        while self._clear():
            pass
        scores = np.zeros(len(self._cache.table), np.int64)
        for name, cost in self._costs.items():
            if name in self._cache:
                scores[self._cache.table.index(name)] = -cost
        planner = Planner(self._cache, self._host.filters)
        found = planner.plan(wanted.pods, how, self._host.now(), scores, wanted.near)
        if found is None or isinstance(found, NoPlan):
            return "without all who may go, " + (NO_NETWORK if found is None else found.reason)
        for view in wanted.pods:
            self._put(view, found.nodes[view.pod.key])
        return None

    def _put(self, view: PodView, node: str) -> None:
        self._cache.place(view, node, self._host.now())
        self.places[view.pod.key] = node

    def _clear(self) -> bool:
        """Take all who may go off more nodes, and count those in that these are promised to; False when all are cleared already."""
        cache, now = self._cache, self._host.now()
        some = self._order[self._cleared : self._cleared + max(_FIRST, self._cleared)]
        for name in some:
            for party in self._parties.on.get(name, ()):
                if id(party) not in self._gone:
                    self._gone[id(party)] = party
                    cache.displace(*party.keys)
        asks = next(iter(self._runs.values()))
        for name in some:
            for view in asks.nominated(name):
                if view.pod.key not in self._own and cache.node_of(view.pod.key) is None:
                    cache.place(view, name, now)
        self._cleared += len(some)
        return bool(some)

    # --- who can stay -------------------------------------------------------------------------------

    def reprieve(self, *, spares: bool) -> tuple[list[Party], int]:
        """Let those stay who can: those who have to go, and how many of them a disruption budget would have kept."""
        cache, mine = self._cache, frozenset(self.places.values())
        near = []
        for party in self._gone.values():
            if self.far or not mine.isdisjoint(party.nodes):
                near.append(party)
            else:
                self._back(party)
        near.sort(key=lambda one: (one.importance, one.keys))
        views = [view for party in near for view, *_ in party.pods]
        broken = dict(
            zip((view.pod.key for view in views), cache.state.budgets.broken(views) or (), strict=False)
        )
        breaks = [any(broken.get(key, False) for key in party.keys) for party in near]
        places = list(range(len(near)))
        found = reprieve(places, breaks if spares else [False] * len(near), lambda at: self._stays(near[at]))
        return [near[at] for at in found.keys], sum(breaks[at] for at in found.keys)

    def _back(self, party: Party) -> None:
        for view, node, since in party.pods:
            self._cache.place(view, node, since)

    def _stays(self, party: Party) -> bool:
        self._back(party)
        if self.holds(None if self.far else party.nodes):
            return True
        self._cache.displace(*party.keys)
        return False

    def holds(self, nodes: Collection[str] | None = None) -> bool:
        """Whether the pods of the gang that were placed on these nodes (None: on any) pass all filters there."""
        cache = self._cache
        for key, node in self._examples(nodes):
            run = self._runs[key]
            since = cache.since(key)
            cache.displace(key)
            fits = self._first(run, np.array([cache.table.index(node)], np.int64)) is not None
            cache.place(run.view, node, since)
            if not fits:
                return False
        return True

    def _examples(self, nodes: Collection[str] | None) -> Iterator[tuple[PodKey, str]]:
        """Of pods on one node of which filters say the same, one."""
        seen: set[tuple[str, Hashable]] = set()
        for key, node in self.places.items():
            if nodes is None or node in nodes:
                alike = (node, self._runs[key].likeness)
                if alike not in seen:
                    seen.add(alike)
                    yield key, node


def _request(view: PodView) -> list[tuple[str, int]]:
    return sorted(request_of(view).items())
