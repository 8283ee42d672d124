"""Preemption within a scheduler: who waits for whom, what is left to be done, and the search itself."""

from collections.abc import Callable, Collection

from koordpolicy.algorithms.eviction import Victims
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.pods import PodView
from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import CONDITION_DISRUPTION_TARGET, REASON_PREEMPTION
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import Preemption
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.preemption.no_candidate import NoCandidate
from koordpolicy.scheduler.preemption.nominations import Nominations
from koordpolicy.scheduler.preemption.policy import PreemptionPolicy
from koordpolicy.scheduler.preemption.search import Search

_TRUE = "True"

NEVER = NoCandidate({}, "not eligible due to preemptionPolicy=Never")
WAITING = NoCandidate({}, "not eligible due to a terminating pod on the nominated node")


class PreemptionEvaluator:
    """The preemption of one profile over one cache.

    `leaving` are the pods that were chosen to go and have not gone, with their uids.
    """

    def __init__(
        self,
        graph: RuleGraph,
        profile: str,
        cache: ClusterCache,
        leaving: dict[PodKey, str],
        draw: Callable[[int], int],
    ) -> None:
        self._policy = PreemptionPolicy(graph, profile)
        self._cache = cache
        self._leaving = leaving
        self.nominations = Nominations(cache, self._policy)
        self._search = Search(cache, self._policy, self.nominations, draw)

    def counted(self, cycle: Cycle, evaluation: Evaluation) -> Evaluation:
        """The answers about all nodes, with those who wait for a node counted on it."""
        return self.nominations.counted(cycle, evaluation) if len(self.nominations) else evaluation

    def passes_beside(self, cycle: Cycle, node: str) -> bool:
        """Whether a node that passes by itself does so with those who wait for it.

        Only filters that look beyond a node make a difference here: `counted` has asked the others. Raises
        CycleProblem.
        """
        if not self.nominations.on(node) or all(
            step.plugin is None or step.plugin.row_only for step in cycle.profile.filters
        ):
            return True
        return self.nominations.passes_beside(cycle, node)

    def may_displace(self, cycle: Cycle) -> bool:
        """Whether policy lets the pod displace others at all."""
        return self._policy.wanted(cycle.records)

    def find(self, cycle: Cycle, evaluation: Evaluation) -> Preemption | NoCandidate | None:
        """Who goes for a pod that no node took, or why nobody does; None where the profile makes no room.

        From then on the pod waits for the node, and those it displaces there do not any more. Raises
        CycleProblem.
        """
        if not self._policy.enabled:
            return None
        if not self.may_displace(cycle):
            return NEVER
        if self._waits(cycle, evaluation):
            return WAITING
        found = self._search.find(cycle, evaluation)
        if isinstance(found, NoCandidate):
            self.nominations.remove(cycle.view.pod.key)
            return found
        for key in found.cleared:
            self.nominations.remove(key)
        self.nominations.set(cycle.view, found.node)
        self._leaving.update((victim.pod, victim.uid) for victim in found.victims)
        return found

    def could(self, cycle: Cycle, evaluation: Evaluation) -> str | None:
        """The node on which room could be made for a pod, if any; nothing follows from it. Raises CycleProblem."""
        if not self._policy.enabled or not self.may_displace(cycle):
            return None
        found = self._search.find(cycle, evaluation)
        return None if isinstance(found, NoCandidate) else found.node

    def beside(self, cycle: Cycle, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        """Who goes from a node for a pod when some go in any case; None if all were in vain. Raises CycleProblem.

        Nothing follows from the answer here: others decide on it.
        """
        return self._search.beside(cycle, node, going)

    def _waits(self, cycle: Cycle, evaluation: Evaluation) -> bool:
        """Whether pods are still leaving the node that the pod waits for, so that there is hope yet."""
        node = self.nominations.node_of(cycle.view.pod.key)
        if node is None or node not in self._cache:
            return False
        row = self._cache.table.index(node)
        if any(
            one.verdicts is not None and bool(one.verdicts.unresolvable[row]) for one in evaluation.filters
        ):
            return False
        eligible = self._policy.eligible_for(cycle.records)
        return any(
            eligible(view) and self._is_leaving(view.pod) for view in self._cache.pods_on(node).values()
        )

    def _is_leaving(self, pod: Pod) -> bool:
        if self._leaving.get(pod.key) == pod.uid:
            return True
        found = pod.condition(CONDITION_DISRUPTION_TARGET)
        return (
            pod.terminating
            and found is not None
            and found.status == _TRUE
            and found.reason == REASON_PREEMPTION
        )

    def heard(self, view: PodView) -> None:
        """News of a pod without a node: the node that the cluster says it waits for, if any."""
        key, node = view.pod.key, view.pod.nominated_node
        known = self.nominations.node_of(key)
        if node or known:
            # What we decided ourselves and the cluster does not show yet stays.
            self.nominations.set(view, node or str(known))

    def gone(self, key: PodKey) -> str | None:
        """A pod is gone, or has its node; the node that it waited for, if any."""
        node = self.nominations.node_of(key)
        self.nominations.remove(key)
        return node
