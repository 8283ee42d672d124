"""Those who may go for a gang: single pods, or gangs that go as a whole, with the nodes that they leave."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.algorithms.gang_victims import JobPart, node_costs
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.graph.sortable import SortKey
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.plugins.gang.victims import GangVictims

Company = Callable[[PodKey], Sequence[PodKey]]
"""The pods with a node that are in one gang with a pod, itself among them; none of one that is in no gang."""


@dataclass(frozen=True, slots=True)
class Party:
    """Pods that go together or not at all, the most important first: each with its node, and since when it is there."""

    pods: tuple[tuple[PodView, str, int], ...]
    importance: SortKey

    @property
    def keys(self) -> tuple[PodKey, ...]:
        """Their namespaces and names."""
        return tuple(view.pod.key for view, *_ in self.pods)

    @property
    def nodes(self) -> frozenset[str]:
        """Where they are."""
        return frozenset(node for _, node, _ in self.pods)


class Parties:
    """All who may go from some nodes, and what it costs to have them go from each."""

    def __init__(self, policy: GangVictims, cache: ClusterCache, company: Company, now: int) -> None:
        self._policy = policy
        self._cache = cache
        self._company = company
        self._now = now
        self.on: dict[str, list[Party]] = {}
        """Those on each node where there are any."""

    def find(
        self,
        nodes: Iterable[str],
        without: Collection[PodKey],
        eligible: Callable[[PodView], bool],
        whole: Callable[[PodView], bool],
    ) -> None:
        """Look for them on these nodes, but for some pods. A gang may have pods on other nodes, too."""
        seen: dict[PodKey, bool] = {}
        for node in nodes:
            for key, view in self._cache.pods_on(node).items():
                if key in seen or key in without or not eligible(view):
                    continue
                together = [key]
                if whole(view):
                    together = [*self._company(key)] or together
                views = [one for one in map(self._cache.view, together) if one is not None]
                able = all(one.pod.key not in without and eligible(one) for one in views)
                seen.update(dict.fromkeys((one.pod.key for one in views), able))
                if able:
                    self._add(views)

    def _add(self, views: Sequence[PodView]) -> None:
        ranked = sorted(
            ((self._policy.importance(view, self._now), view) for view in views), key=lambda one: one[0]
        )
        pods = tuple((view, self._where(view), self._cache.since(view.pod.key)) for _, view in ranked)
        party = Party(pods, ranked[0][0])
        for node in party.nodes:
            self.on.setdefault(node, []).append(party)

    def _where(self, view: PodView) -> str:
        node = self._cache.node_of(view.pod.key)
        assert node is not None, "it is on a node"
        return node

    def costs(self) -> Mapping[str, int]:
        """The cost of each node from which anybody may go."""
        return node_costs({node: list(self._parts(node)) for node in self.on})

    def _parts(self, node: str) -> Iterator[JobPart]:
        going = {view.pod.key for party in self.on[node] for view, where, _ in party.pods if where == node}
        for key, view in self._cache.pods_on(node).items():
            if key in going:
                yield JobPart(view.priority, self._policy.job_of(view, self._now))
