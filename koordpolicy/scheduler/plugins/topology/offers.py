"""How many of a gang's pods each node takes: counted for all nodes at once, and tried where that is not enough."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.room import room_for
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.model.amounts import add_to
from koordpolicy.model.protocol import PODS
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.plugins.base import FilterResults, FilterRun

_AMOUNTS = "resources."
_HAS = "resources.allocatable"
_USED = "resources.requested"


@dataclass(frozen=True, slots=True)
class NodeOffers:
    """How many pods each node takes at most, row by row. `exact`: no filter that was asked could refuse a pod for the sake of
    another one of them beside those that count amounts, so that each takes as many.
    """

    slots: Column
    exact: bool


def offered(members: Sequence[FilterRun], table: NodeTable) -> NodeOffers:
    """How many of these pods, from the first on, each node takes by what filters say of it now and by what is free there.

    Raises CycleProblem.
    """
    slots = np.full(len(table), len(members), np.int64)
    needs: dict[str, list[int]] = defaultdict(lambda: [0] * len(members))
    known: dict[Hashable, Mapping[str, int]] = {}
    exact = True
    for at, run in enumerate(members):
        wanted = known.get(run.likeness)
        if wanted is None:
            results = run.evaluate(table)
            feasible = results.feasible()
            if feasible is not None:
                np.minimum(slots, at, out=slots, where=~feasible)
            exact &= not _more_depends_on_pods(results)
            wanted = known[run.likeness] = _needs(run, results)
        for resource, amount in wanted.items():
            needs[resource][at] = amount
    nodes = NodeView(table)
    for resource, amounts in needs.items():
        used = nodes.numbers("requested.pods") if resource == PODS else nodes.amount(_USED, resource)
        np.minimum(slots, room_for(amounts, nodes.amount(_HAS, resource) - used), out=slots)
    if not exact:
        _crowd(members, table, slots)
    return NodeOffers(slots, exact)


def _crowd(members: Sequence[FilterRun], table: NodeTable, slots: Column) -> None:
    """Lower what nodes are counted to take to what filters say of one pod that takes as much as so many of them together. That is
    as they say of one after the other, for filters that add up what pods take; others are asked once there is a plan.
    """
    together: dict[str, object] = {}
    for at, run in enumerate(members):
        rows = np.flatnonzero(slots > at)
        if not len(rows):
            return
        for fact, amount in run.view.facts.items():
            if fact.startswith(_AMOUNTS):
                together[fact] = _sum(together.get(fact), amount)
        if at:
            asked = run.resized(together)
            feasible = asked.evaluate(table, rows, local_only=True).feasible()
            if feasible is not None:
                slots[rows[~feasible]] = at


def _sum(one: object, other: object) -> object:
    """Amounts of two pods together; what is no amount as the latter has it."""
    if isinstance(other, Mapping):
        total = dict(one) if isinstance(one, Mapping) else {}
        add_to(total, other)
        return total
    if type(other) is int:
        return other + (one if type(one) is int else 0)
    return other


def _needs(run: FilterRun, results: FilterResults) -> dict[str, int]:
    """What the filters that count amounts count for a pod."""
    found: dict[str, int] = {}
    for one in results.filters:
        plugin = None if one.verdicts is None else one.step.plugin
        if plugin is not None and plugin.requests is not None:
            for resource, amount in plugin.requests(run.view, one.step.values(run.records)).items():
                found[resource] = max(amount, found.get(resource, 0))
    return found


def _more_depends_on_pods(results: FilterResults) -> bool:
    """Whether a filter had something to say to which pods on the node matter in another way than by their amounts."""
    for one in results.filters:
        if one.accepted is not None and one.step.depends_on_pods:
            return True
        plugin = None if one.verdicts is None else one.step.plugin
        if plugin is not None and plugin.requests is None and one.step.depends_on_pods:
            return True
    return False


def tried(cache: ClusterCache, members: Mapping[str, Sequence[FilterRun]], now: int) -> dict[str, int]:
    """Of the pods that are to go to each node those that fit there, from the first on, with all others placed as is planned; only
    nodes are named that take fewer than they should. `now` is the time in nanoseconds. Raises CycleProblem.
    """
    short: dict[str, int] = {}
    with cache.trial():
        for turn in range(max(map(len, members.values()), default=0)):
            asked: dict[Hashable, list[tuple[str, FilterRun]]] = defaultdict(list)
            for node, runs in members.items():
                if node not in short and turn < len(runs):
                    asked[runs[turn].likeness].append((node, runs[turn]))
            for together in asked.values():
                for node in _refused(cache, together, now):
                    short[node] = turn
    return short


def _refused(cache: ClusterCache, together: Sequence[tuple[str, FilterRun]], now: int) -> Iterator[str]:
    """Place equal pods on their nodes; gives those that filters refuse there."""
    rows = np.array([cache.table.index(node) for node, _ in together], np.int64)
    results = together[0][1].evaluate(cache.table, rows)
    feasible = results.feasible()
    for at, (node, run) in enumerate(together):
        if results.cache_keys and at:  # it matters who is placed already, on whichever node
            feasible = run.evaluate(cache.table, rows).feasible()
        if feasible is None or feasible[at]:
            cache.place(run.view, node, now)
        else:
            yield node
