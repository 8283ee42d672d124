"""Gangs whose pods are gathered: planned as a whole, or as many as are needed, or one by one beside those that are placed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from koordpolicy.algorithms.gang import Gang
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.algorithms.gathering import GangNetwork, GatherKey
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.plugins.base import Host
from koordpolicy.scheduler.plugins.topology.plan import GangPlan, NoPlan, Planner

WAITS = ""
"""In place of its node where a pod is not in the plan of the others, and waits until these are placed."""


def gathering_of(book: GangBook, gang: Gang) -> GangNetwork | None:
    """How a gang is gathered: in the network as is said of it, and by all labels that it or one placed together with it names."""
    said = gang.parameters
    own = None if said is None else said.network
    if own is None and (said is None or len(said.group) == 1):
        return None  # as for nearly all
    others = [one.parameters.network for one in book.together(gang) if one.parameters is not None]
    shares = tuple(dict.fromkeys(key for one in others if one is not None for key in one.shares))
    wishes = tuple(dict.fromkeys(key for one in others if one is not None for key in one.wishes))
    if own is not None:
        return replace(own, shares=shares, wishes=wishes)
    if not (shares or wishes):
        return None
    named = next(one for one in others if one is not None and (one.shares or one.wishes))
    return GangNetwork((), named.order, named.counts_members, shares, wishes, in_network=False)


def nodes_beside(cache: ClusterCache, book: GangBook, gang: Gang) -> list[str]:
    """The nodes of all pods of a gang, and of those placed together with it, that have one."""
    placed = [pod for one in book.together(gang) for pod in (*one.bound, *one.waiting)]
    found = dict.fromkeys(node for pod in placed if (node := cache.node_of(pod)))
    return [node for node in found if node in cache]


class GatheredGang:
    """Plans the pods of one gang."""

    __slots__ = ("_book", "_host", "_how", "_planner")

    def __init__(self, host: Host, book: GangBook, how: GangNetwork) -> None:
        self._host = host
        self._book = book
        self._how = how
        self._planner = Planner(host.cache, host.filters)

    def plan(
        self, gang: Gang, view: PodView, views: Mapping[PodKey, PodView], *, alone: bool, told: bool
    ) -> Mapping[PodKey, str] | NoPlan | None:
        """Where the pods of a gang go now that this one has its turn: the node of each, `WAITS` for who is not in the plan; None
        where they go anywhere. `views` are the pods without a node; `alone` says that it goes by itself, `told` as of
        `Planner.plan`. Raises CycleProblem.
        """
        how = self._how
        labelled = bool(how.shares or how.wishes)
        beside = nodes_beside(self._host.cache, self._book, gang) if labelled else []
        turn = [view, *(views[one] for one in self._book.pending_with(gang) if one in views)]
        pods = list({one.pod.key: one for one in turn}.values())
        if alone:
            return self._plan_one(view, pods, beside) if labelled else None
        found = self._ask(pods, how, beside, told=told)
        if isinstance(found, NoPlan) and how.shares:
            fewer = self._plan_enough(gang, pods, found, beside)
            return found if fewer is None else fewer
        return found if found is None or isinstance(found, NoPlan) else found.nodes

    def _ask(
        self, pods: Sequence[PodView], how: GangNetwork, beside: Sequence[str], *, told: bool = False
    ) -> GangPlan | NoPlan | None:
        return self._planner.plan(pods, how, self._host.now(), None, beside, told=told)

    def _plan_one(
        self, view: PodView, pods: Sequence[PodView], beside: Sequence[str]
    ) -> Mapping[PodKey, str] | NoPlan | None:
        """A pod that goes by itself: where those like it are, or to where all would go, or else where there is most room."""
        how = replace(self._how, in_network=False, rules=())
        found = None if beside else self._ask(pods, how, beside)
        if not isinstance(found, GangPlan):
            roomy = (GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM)
            found = self._ask([view], replace(how, order=replace(how.order, candidates=roomy)), beside)
        return {view.pod.key: found.nodes[view.pod.key]} if isinstance(found, GangPlan) else found

    def _plan_enough(
        self, gang: Gang, pods: Sequence[PodView], before: NoPlan, beside: Sequence[str]
    ) -> Mapping[PodKey, str] | None:
        """As many as one domain takes, if they are enough for the gang; the others wait until these are placed. Not for gangs that
        are placed together, whose pods are tried gang by gang. None where that is not to be had.
        """
        said = gang.parameters
        if said is None or len(said.group) > 1:
            return None
        placed = len(gang.waiting) + (0 if said.match_policy == "only-waiting" else len(gang.bound))
        needed = max(said.minimum - placed, 1)
        most = max((one.takes for one in before.domains), default=0)
        for count in dict.fromkeys((most, needed)):
            if needed <= count < len(pods):
                found = self._ask(pods[:count], self._how, beside)
                if isinstance(found, GangPlan):
                    return {**dict.fromkeys((one.pod.key for one in pods), WAITS), **found.nodes}
        return None
