"""What follows when no node takes a pod: a profile's post-filters are asked in turn, and somebody waits for a node."""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from koordpolicy.algorithms.eviction import Victims
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.events import Event
from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import NoCandidate, PostFilterResult
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.filter_run import CycleFilters
from koordpolicy.scheduler.kept_room import way_made
from koordpolicy.scheduler.ledger import Ledger
from koordpolicy.scheduler.nominations import Nominations
from koordpolicy.scheduler.plugins.base import PostFilter
from koordpolicy.scheduler.profile import Profile


@dataclass(frozen=True, slots=True)
class _Host:
    """What post-filters know of their scheduler."""

    graph: RuleGraph
    profile: str
    cache: ClusterCache
    promises: Ledger
    draw: Callable[[int], int]


class PostFilters:
    """Those of one profile over one cache. A profile that has none makes no room, and heeds no promises."""

    def __init__(
        self,
        graph: RuleGraph,
        profile: Profile,
        cache: ClusterCache,
        ledger: Ledger,
        draw: Callable[[int], int],
    ) -> None:
        host = _Host(graph, profile.name, cache, ledger, draw)
        self._cache = cache
        self._ledger = ledger
        self._nominations = Nominations(graph, profile.name, cache, ledger)
        self._plugins: list[PostFilter] = [
            plugin.post_filter(host) for plugin in profile.post_filters if plugin.post_filter is not None
        ]
        self._helped_by = frozenset[Event]().union(*(plugin.helped_by for plugin in self._plugins))

    def counted(self, cycle: Cycle, evaluation: Evaluation) -> Evaluation:
        """The answers about all nodes, with those who wait for a node counted on it."""
        if not (self._plugins and self._ledger.promises):
            return evaluation
        return self._nominations.counted(cycle, evaluation)

    def passes_beside(self, cycle: Cycle, node: str) -> bool:
        """Whether a node that passes by itself does so with those who wait for it.

        Only filters that look beyond a node make a difference here: `counted` has asked the others. Raises
        CycleProblem.
        """
        if (
            not self._plugins
            or not self._ledger.promised_on(node)
            or not any(step.looks_beyond for step in cycle.profile.filters)
        ):
            return True
        return self._nominations.passes_beside(cycle, node)

    def run(self, cycle: Cycle) -> CycleFilters:
        """The filters of a cycle, to be asked of nodes as they are in a trial."""
        return CycleFilters(cycle, self._nominations)

    def find(self, cycle: Cycle, evaluation: Evaluation) -> PostFilterResult | NoCandidate | None:
        """The room that the first of them makes which makes any for a pod that no node took; or why none does, as the
        first says; None where there are none. Nothing follows from it yet: `follow` does. Raises CycleProblem.
        """
        first: NoCandidate | None = None
        with way_made(cycle, self._cache):
            for plugin, run in self._asked(cycle):
                found = plugin.find(run, evaluation)
                if not isinstance(found, NoCandidate):
                    return found
                first = first or found
        return first

    def follow(self, cycle: Cycle, found: PostFilterResult | NoCandidate) -> None:
        """From now on the node is promised to the pod, and not to those it displaces; or no node is any more."""
        if isinstance(found, PostFilterResult):
            self._ledger.made_room(cycle.view, found)
        elif not found.ineligible:
            self._ledger.retract(cycle.view.pod.key)

    @property
    def helped_by(self) -> frozenset[Event]:
        """The events, beside the end of a pod, after which room may be made where none was."""
        return self._helped_by

    def may_help(
        self, pod: PodKey, node: str, records: Mapping[str, Any], lacking: Mapping[str, int]
    ) -> bool:
        """Whether room might be made for a pod on a node where somebody went, or may go now. A hint.

        Who waits for a node is helped by nothing elsewhere, and there once nobody leaves it any more.
        """
        promised = self._ledger.promised_to(pod)
        if promised is not None:
            return promised == node and not any(
                self._ledger.leaves(view.pod) for view in self._cache.pods_on(node).values()
            )
        return any(plugin.may_free(records, node, lacking) for plugin in self._plugins)

    def alike(self, pod: PodKey, records: Mapping[str, Any]) -> Hashable | None:
        """The same for pods of which `may_help` says the same of every node; None for one that waits for a node of its own."""
        if self._ledger.promised_to(pod) is not None:
            return None
        return tuple([plugin.alike(records) for plugin in self._plugins])

    def could(self, cycle: Cycle, evaluation: Evaluation) -> str | None:
        """The node on which room could be made for a pod, if any; nothing follows from it. Raises CycleProblem."""
        with way_made(cycle, self._cache):
            found = (plugin.could(run, evaluation) for plugin, run in self._asked(cycle))
            return next((node for node in found if node is not None), None)

    def beside(self, cycle: Cycle, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Who goes from a node for a pod when some go in any case; None if all were in vain. Raises CycleProblem.

        Nothing follows from the answer here: others decide on it.
        """
        for plugin, run in self._asked(cycle):
            found = plugin.beside(run, node, going)
            if found is not None:
                return found
        return None if self._plugins else self._enough(cycle, node, going)

    def _enough(self, cycle: Cycle, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Those who go in any case if the node passes without them, where nobody else may go."""
        run, table = CycleFilters(cycle, self._nominations), self._cache.table
        with self._cache.trial():
            self._cache.displace(*going)
            rows = np.array([table.index(node)])
            passes = all(moment.evaluate(table, rows).feasible() is None for moment in run.moments)
        return Victims(tuple(going), 0) if passes else None

    def _asked(self, cycle: Cycle) -> "list[tuple[PostFilter, CycleFilters]]":
        if not self._plugins:
            return []
        run = CycleFilters(cycle, self._nominations)
        return [(plugin, run) for plugin in self._plugins]
