"""Preemption within a scheduler: who waits for whom, what is left to be done, and the search itself."""

from collections.abc import Callable, Collection

from koordpolicy.algorithms.eviction import Victims
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.protocol import CONDITION_DISRUPTION_TARGET, REASON_PREEMPTION
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import Preemption
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.ledger import Ledger
from koordpolicy.scheduler.preemption.no_candidate import NoCandidate
from koordpolicy.scheduler.preemption.nominations import Nominations
from koordpolicy.scheduler.preemption.policy import PreemptionPolicy
from koordpolicy.scheduler.preemption.search import Search

_TRUE = "True"

NEVER = NoCandidate({}, "not eligible due to preemptionPolicy=Never")
WAITING = NoCandidate({}, "not eligible due to a terminating pod on the nominated node")


class PreemptionEvaluator:
    """The preemption of one profile over one cache.

    The `ledger` knows which node is promised to whom, and who was chosen to go.
    """

    def __init__(
        self,
        graph: RuleGraph,
        profile: str,
        cache: ClusterCache,
        ledger: Ledger,
        draw: Callable[[int], int],
    ) -> None:
        self._policy = PreemptionPolicy(graph, profile)
        self._cache = cache
        self._ledger = ledger
        self._nominations = Nominations(cache, self._policy, ledger)
        self._search = Search(cache, self._policy, self._nominations, ledger, draw)

    def counted(self, cycle: Cycle, evaluation: Evaluation) -> Evaluation:
        """The answers about all nodes, with those who wait for a node counted on it."""
        return self._nominations.counted(cycle, evaluation) if self._ledger.promises else evaluation

    def passes_beside(self, cycle: Cycle, node: str) -> bool:
        """Whether a node that passes by itself does so with those who wait for it.

        Only filters that look beyond a node make a difference here: `counted` has asked the others. Raises
        CycleProblem.
        """
        if not self._ledger.promised_on(node) or all(
            step.plugin is None or step.plugin.row_only for step in cycle.profile.filters
        ):
            return True
        return self._nominations.passes_beside(cycle, node)

    def may_displace(self, cycle: Cycle) -> bool:
        """Whether policy lets the pod displace others at all."""
        return self._policy.wanted(cycle.records)

    def find(self, cycle: Cycle, evaluation: Evaluation) -> Preemption | NoCandidate | None:
        """Who goes for a pod that no node took, or why nobody does; None where the profile makes no room.

        Nothing follows from it yet: `follow` does. Raises CycleProblem.
        """
        if not self._policy.enabled:
            return None
        if not self.may_displace(cycle):
            return NEVER
        if self._waits(cycle, evaluation):
            return WAITING
        return self._search.find(cycle, evaluation)

    def follow(self, cycle: Cycle, found: Preemption | NoCandidate) -> None:
        """From now on the node is promised to the pod, and not to those it displaces; or no node is any more."""
        if isinstance(found, Preemption):
            self._ledger.made_room(cycle.view, found)
        elif found is not NEVER and found is not WAITING:
            self._ledger.retract(cycle.view.pod.key)

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
        node = self._ledger.promised_to(cycle.view.pod.key)
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
        if self._ledger.leaves(pod):
            return True
        found = pod.condition(CONDITION_DISRUPTION_TARGET)
        return (
            pod.terminating
            and found is not None
            and found.status == _TRUE
            and found.reason == REASON_PREEMPTION
        )
