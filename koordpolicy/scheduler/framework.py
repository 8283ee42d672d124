"""One profile of one revision at work: what it makes of a pod, asked and answered. Nothing follows from it here but
who waits for which node.

It owns what is made anew with each revision: the profile's programs, the table of nodes as this policy sees it, what
is remembered of evaluations, the post-filters and who advises. What outlives revisions is the scheduler's.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from koordpolicy.algorithms.columns import total
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView, view_of
from koordpolicy.cluster.state import ClusterState
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import COUNTED, Record
from koordpolicy.model.facts.node import cluster_facts
from koordpolicy.model.pod import Pod
from koordpolicy.scheduler.advice import Advice, Adviser
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import CycleFailure, NoCandidate, PodDecision, Refusals
from koordpolicy.scheduler.diagnosis import Limits
from koordpolicy.scheduler.evaluation import Evaluation, EvaluationCache
from koordpolicy.scheduler.evaluation.failed_scores import failed_scores
from koordpolicy.scheduler.filter_run import CycleFilters
from koordpolicy.scheduler.kept_room import with_room_kept
from koordpolicy.scheduler.ledger import Ledger
from koordpolicy.scheduler.post_filters import PostFilters
from koordpolicy.scheduler.profile import place_of, records_for
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.select_host import HostSelection, select_host
from koordpolicy.scheduler.unsupported import unsupported


class Framework:
    """The profile `name` of a graph `over` the cluster's state, whose nodes and pods are to come; or over the framework of another
    revision: then it works on that one's nodes and pods, and classes, estimates and loads are that one's, too. `clock` gives
    nanoseconds since 1970, `more` are facts of nodes that are kept whether the profile reads them or not.

    Raises ProfileError when the graph has no such profile.
    """

    def __init__(
        self,
        graph: RuleGraph,
        name: str,
        role: Role,
        over: "ClusterState | Framework",
        ledger: Ledger,
        selection: HostSelection,
        clock: Callable[[], int],
        more: frozenset[str] = frozenset(),
    ) -> None:
        self.profile = role.profile(graph, name)
        self.graph = graph
        self.limits: Final = Limits.of(graph, name)
        self.load: LoadPolicy
        self.cache: ClusterCache
        if isinstance(over, Framework):
            self.load, self.cache, self._catalogue = over.load, over.cache, over.graph.catalogue
        else:
            self.load, self._catalogue = LoadPolicy(graph, name), graph.catalogue
            self.cache = ClusterCache(self.load, self._catalogue, self.profile.node_facts | more, over)
        self.post_filters: Final = PostFilters(graph, self.profile, self.cache, ledger, selection.draw)
        self.adviser: Final = Adviser(graph, name, self.limits.evaluations)
        self._groups = any(
            step.ever and step.plugin is not None and step.plugin.jobs is not None
            for step in self.profile.filters
        )
        self._shard = role.shard
        self._ledger = ledger
        self._selection = selection
        self._clock = clock
        self._evaluations = EvaluationCache()

    def rename(self, graph: RuleGraph) -> None:
        """Name another revision from now on, which says the same to a scheduler."""
        self.graph, self.profile = graph, replace(self.profile, digest=graph.digest)

    # --- a pod and its facts --------------------------------------------------------------------

    def view(self, pod: Pod) -> PodView:
        """A pod as decisions look at it."""
        cpus = self.cache.state.cpus.policy
        return view_of(
            pod, self._catalogue, self.load.estimate, cpus.owns if cpus is not None and cpus.guards else None
        )

    def cycle(self, pod: Pod | PodView) -> Cycle:
        """A pod with all the facts that the profile may ask for now, its estimate among them.

        `now` is in whole seconds, so that equal pods of one second are equal cycles.
        """
        view = self.view(pod) if isinstance(pod, Pod) else pod
        return Cycle(self.profile, view, self.records(view.facts, view.pod.namespace), self.cache.state)

    def records(self, facts: Record, namespace: str) -> dict[str, Any]:
        """The records of a decision about a pod with these facts in this namespace."""
        named = self.cache.state.namespaces.get(namespace, {})
        return records_for(facts, named, self._cluster(), self._clock())

    def _cluster(self) -> Record:
        if not self.profile.reads_cluster:
            return {}
        nodes = NodeView(self.cache.table)
        sums = [
            {resource: total(nodes.amount(path, resource)) for resource in COUNTED.values()}
            for path in ("resources.allocatable", "resources.requested")
        ]
        return cluster_facts("", len(self.cache), self.cache.pod_count, *sums)

    # --- decisions ------------------------------------------------------------------------------

    def evaluation(self, cycle: Cycle) -> Evaluation:
        """What the profile says of all nodes about a pod. Raises CycleProblem."""
        return self._evaluations.get(cycle, self.cache.table)

    def filters(self, view: PodView) -> CycleFilters:
        """The filters as they are asked about a pod now, of nodes as they are in a trial."""
        return self.post_filters.run(self.cycle(view))

    def forget_answers(self) -> None:
        """Evaluate every node anew next time, even about pods that were asked for before."""
        self._evaluations = EvaluationCache()

    def decided(
        self, cycle: Cycle, evaluations: EvaluationCache | None = None
    ) -> tuple[Evaluation | None, PodDecision]:
        """A decision, and what it was made of; None where the cycle itself failed."""
        pod, table, evaluations = cycle.view.pod, self.cache.table, evaluations or self._evaluations
        try:
            need = unsupported(pod.raw, groups=self._groups)
            if need:
                refused = Refusals("", need, len(table), resolvable=False)
                digest = self.profile.digest
                return None, PodDecision(pod.key, pod.uid, "", len(table), 0, (refused,), digest=digest)
            evaluation = evaluations.get(cycle, table)
            if self.cache.state.reservations.make_way:
                evaluation = with_room_kept(cycle, evaluation, self.cache)
            evaluation = self.post_filters.counted(cycle, evaluation)
            promised = self._ledger.promised_to(pod.key)
            decision = select_host(cycle, evaluation, table, self._selection, promised)
            while decision.placed and not self.post_filters.passes_beside(cycle, decision.node):
                evaluation = evaluation.refusing(table.index(decision.node))
                decision = select_host(cycle, evaluation, table, self._selection)
            if evaluation.scores_fail:
                decision = replace(decision, failed_scores=failed_scores(cycle, evaluation, table))
        except Exception as problem:  # noqa: BLE001  # one decision is the most that this may cost
            return None, self.problem(pod, problem)
        return evaluation, decision

    def kept_back(self, view: PodView, refused: Refusals) -> tuple[None, PodDecision]:
        """A decision on a pod that is not tried now: no node was looked at."""
        pod, nodes = view.pod, len(self.cache)
        return None, PodDecision(pod.key, pod.uid, "", nodes, 0, (refused,), digest=self.profile.digest)

    def without_node(self, cycle: Cycle, evaluation: Evaluation, decision: PodDecision) -> PodDecision:
        """A decision on a pod that found no node: who goes for it, or what would help, or who else is to decide."""
        shard = self._shard
        if shard is None:
            return self._with_room_made(cycle, evaluation, decision)
        pod, table = cycle.view.pod, self.cache.table
        everywhere = shard.lifted(cycle, evaluation)
        try:
            fits = select_host(*everywhere, table, self._selection).node
            if (route := shard.route_to(pod, fits, table)) is not None:
                return replace(decision, route=route)
            decision = self._with_room_made(cycle, evaluation, decision)
            if decision.preemption is not None or decision.problem:
                return decision
            if (route := shard.route_to(pod, self.post_filters.could(*everywhere), table)) is not None:
                return replace(decision, route=route)
        except CycleProblem as problem:
            return self.problem(cycle.view.pod, problem)
        return replace(decision, route=shard.way_home(pod))

    def _with_room_made(
        self, cycle: Cycle, evaluation: Evaluation, decision: PodDecision, *, following: bool = True
    ) -> PodDecision:
        """A decision on a pod that found no node, with who goes for it, or why nobody does.

        Without `following` nothing follows from it.
        """
        try:
            found = self.post_filters.find(cycle, evaluation)
        except CycleProblem as problem:
            return self.problem(cycle.view.pod, problem)
        if found is None:
            return decision
        if following:
            self.post_filters.follow(cycle, found)
        if isinstance(found, NoCandidate):
            return replace(decision, remark=found.message(decision.nodes))
        return replace(decision, preemption=found)

    def problem(self, pod: Pod, problem: Exception) -> PodDecision:
        """A decision that could not be made, with why; after an error of ours nothing remembered is trusted."""
        found = CycleProblem.of(problem)
        place = place_of(self.graph, self.profile.name, found.step)
        failure = CycleFailure(str(found), found.step, place, found.cause, found.of_object)
        if found.cause is not None:
            self.forget_answers()
        return PodDecision(
            pod.key, pod.uid, "", len(self.cache), 0, failure=failure, digest=self.profile.digest
        )

    # --- for those who only ask -----------------------------------------------------------------

    def decide(self, pod: Pod | PodView) -> PodDecision:
        """Where a pod would go now, and why. Changes nothing."""
        return self.decided(self.cycle(pod))[1]

    def advise(self, pod: Pod | PodView) -> tuple[Advice, ...]:
        """What would help a pod that finds no node, filter by filter. Changes nothing."""
        cycle = self.cycle(pod)
        evaluation, decision = self.decided(cycle)
        if evaluation is None or decision.placed:
            return ()
        return self.adviser.advise(cycle, evaluation, self.cache.table)

    def rehearse(self, pod: Pod | PodView, *, alone: bool = True) -> PodDecision:
        """A decision with all that would follow: who would have to go, and what would help. Nothing is kept.

        For one that is not `alone`, but goes with others or not at all, nobody goes here.
        """
        cycle = self.cycle(pod)
        evaluation, decision = self.decided(cycle)
        if evaluation is None or decision.placed:
            return decision
        if alone:
            decision = self._with_room_made(cycle, evaluation, decision, following=False)
        advice = self.adviser.advise(cycle, evaluation, self.cache.table)
        return replace(decision, advice=tuple(one.text for one in advice))
