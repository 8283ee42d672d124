"""The plan of a gang: a node for each of its pods, all of them within one place of the network."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.gathering import (
    GangNetwork,
    Gathering,
    Offers,
    Scattered,
    assigned,
    must_gather,
    with_members,
)
from koordpolicy.algorithms.member_order import member_key
from koordpolicy.algorithms.network_tree import NetworkTree
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.network_topology import CLUSTER_LAYER
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import GANG_TOPOLOGY_INDEX
from koordpolicy.scheduler.plugins.base import FilterRun, request_of
from koordpolicy.scheduler.plugins.topology.domains import (
    DomainOffer,
    SharedDomains,
    gather_shared,
    why_scattered,
)
from koordpolicy.scheduler.plugins.topology.offers import offered, tried

NO_NETWORK: Final = "no cluster network topology"

_TRIES: Final = 64
"""Plans that are tried for one gang in one go: each that fails tells of one node more how many pods it takes."""
_BOLD: Final = 8
"""So many of them count room for pods in the order in which these come. Where pods differ and none of these plans holds, room is
counted for the largest ones from then on, so that it does not matter which pods go where.
"""
_NAMED: Final = 5
"""Places that are named where none takes a gang."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """The node of each pod, within one place of a layer; the whole cluster has no name."""

    layer: str
    place: str
    nodes: Mapping[PodKey, str]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is none, as is told; where pods have to share labels, what each of the domains offers that were tried."""

    reason: str
    domains: tuple[DomainOffer, ...] = ()


class Planner:
    """Plans gangs over the nodes of a cache. `run_of` gives the filters of a pod's cycle."""

    __slots__ = ("_cache", "_run_of")

    def __init__(self, cache: ClusterCache, run_of: Callable[[PodView], FilterRun]) -> None:
        self._cache = cache
        self._run_of = run_of

    def plan(
        self,
        members: Sequence[PodView],
        how: GangNetwork,
        now: int,
        scores: Column | None = None,
        beside: Collection[str] = (),
        *,
        told: bool = False,
    ) -> GangPlan | NoPlan | None:
        """Where these pods go, one at least; `now` is the time in nanoseconds, `scores` are those of nodes (None: 0), `beside` the
        nodes of those of the gang that have one. None where only a wish is not fulfilled, so that nothing is to be planned. `told`
        has it said what refuses nodes in domains without room, which takes a look at each. Nothing is changed. Raises CycleProblem.
        """
        pods = sorted(members, key=_turn)
        runs = {view.pod.key: self._run_of(view) for view in pods}
        if how.wishes:
            both = replace(how, shares=tuple(dict.fromkeys((*how.shares, *how.wishes))))
            found = self._plan(pods, runs, both, now, scores, beside, told=False)
            if isinstance(found, GangPlan):
                return found
        required = how.required
        return None if required is None else self._plan(pods, runs, required, now, scores, beside, told=told)

    def _plan(
        self,
        pods: Sequence[PodView],
        runs: Mapping[PodKey, FilterRun],
        how: GangNetwork,
        now: int,
        scores: Column | None,
        beside: Collection[str],
        *,
        told: bool,
    ) -> GangPlan | NoPlan:
        network, table = self._cache.state.network, self._cache.table
        tree = network.tree if how.in_network else network.nodes
        if tree is None:
            return NoPlan(NO_NETWORK)
        shared = None
        if how.shares:
            shared = SharedDomains.of(network.domains(how.shares), tree, [table.index(one) for one in beside])
            if not len(shared.open):
                return NoPlan(shared.why_none)
        found = offered(list(runs.values()), table)
        slots = found.slots[tree.rows]
        liked = None if scores is None else scores[tree.rows]
        group = pods[0].network_group
        existing = network.existing(group, tree)
        if how.counts_members and group:
            existing = with_members(existing, slots, len(pods))
        multiples = {rule.layer: rule.multiple for rule in how.rules if rule.multiple > 1}
        order = replace(how.order, layer=must_gather(tree, how.rules), multiples=multiples)
        by_name = sorted(runs, key=lambda key: (key[1], key[0]))
        for attempt in range(_TRIES):
            if attempt == _BOLD and len({run.likeness for run in runs.values()}) > 1:
                largest = sorted(runs.values(), key=_request, reverse=True)
                slots = offered(largest, table).slots[tree.rows]
            offers = Offers.of(slots, existing, liked)
            place = gather_shared(tree, offers, len(pods), order, shared)
            if isinstance(place, Scattered):
                if shared is None:
                    return NoPlan(_why(tree, place, len(pods), order))
                domains = shared.offers(slots, len(pods))
                if told:
                    first = next(iter(runs.values()))
                    domains = [
                        replace(one, refused=self._refused(first, shared, one.name)) for one in domains
                    ]
                why = (
                    None
                    if shared.takes(slots, len(pods)) < len(pods)
                    else _why(tree, place, len(pods), order)
                )
                return NoPlan(why_scattered(shared, domains, len(pods), why), tuple(domains))
            leaves = assigned(by_name, place.leaves)
            short = {} if found.exact else self._short(tree, leaves, runs, now)
            if not short:
                names = tree.levels[-1].names
                return GangPlan(place.layer, place.name, {key: names[leaf] for key, leaf in leaves.items()})
            slots = slots.copy()
            slots[list(short)] = list(short.values())
        return NoPlan(
            f"none of {_TRIES} plans for {len(pods)} pods holds: filters refuse them beside each other"
        )

    def _refused(self, run: FilterRun, shared: SharedDomains, name: str) -> tuple[tuple[str, int], ...]:
        """How many nodes of a domain refuse a pod for which reason, by reason."""
        table, rows = self._cache.table, shared.rows(name)
        counts, _ = run.why_refused(run.evaluate(table, rows), table, rows)
        return tuple(sorted(counts.items()))

    def _short(
        self, tree: NetworkTree, leaves: Mapping[PodKey, int], runs: Mapping[PodKey, FilterRun], now: int
    ) -> dict[int, int]:
        """The leaves that take fewer pods than planned, with how many."""
        names = tree.levels[-1].names
        by_leaf: dict[int, list[FilterRun]] = {}
        for key, leaf in leaves.items():
            by_leaf.setdefault(leaf, []).append(runs[key])
        short = tried(self._cache, {names[leaf]: going for leaf, going in by_leaf.items()}, now)
        return {leaf: short[names[leaf]] for leaf in by_leaf if names[leaf] in short}


def _turn(view: PodView) -> tuple[object, ...]:
    pod = view.pod
    return *member_key(pod.name, pod.annotations.get(GANG_TOPOLOGY_INDEX, "")), pod.namespace


def _request(run: FilterRun) -> list[tuple[str, int]]:
    return sorted(request_of(run.view).items())


def _why(tree: NetworkTree, place: Scattered, wanted: int, how: Gathering) -> str:
    """Why no place takes so many pods: how many find no node in the one that takes most, and what each takes."""
    if tree.depth(place.layer) is None:
        return f"the network has no layer {place.layer}"
    steps = [f"{layer} takes {step} at a time" for layer, step in sorted(how.multiples.items())]
    if place.most >= wanted:
        return f"{wanted} pods cannot be divided so: {', '.join(steps)}"
    whole = place.layer == CLUSTER_LAYER
    found = f"{wanted - place.most} of {wanted} pods find no node in {'the network' if whole else f'one {place.layer}'}"
    if not whole and place.roots:
        ordered = sorted(place.roots.items(), key=lambda one: (-one[1], one[0]))
        named = ", ".join(f"{name} takes {count}" for name, count in ordered[:_NAMED])
        more = len(ordered) - _NAMED
        found += f": {named}" + (f", {more} more take no more than that" if more > 0 else "")
    return "; ".join((found, *steps))
