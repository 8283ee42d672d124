"""Placements by a revision that is on its way, beside those that are carried out: they count for its rollout.

Both revisions are asked about the same pod and the same rows: classes, estimates and loads are those of the revision that
decides. That costs two evaluations of all nodes for each placement that the rollout's sample takes, on the scheduler's own time.
"""

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from koordpolicy.graph import RuleGraph
from koordpolicy.model.table import NodeTable
from koordpolicy.runtime.policies.gating import DecisionComparison, DecisionObserver
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.evaluation import Evaluation, evaluate
from koordpolicy.scheduler.profile import KIND, Profile, ProfileError
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.select_host import best_of

LOG: Final = logging.getLogger(__name__)

_SHOWN: Final = 5
"""Nodes that a difference names, of those that were as good."""
NOWHERE: Final = "no node"


Observed: TypeAlias = tuple[DecisionObserver, RuleGraph]


class PlacementShadow:
    """Makes placements of one profile by the candidate too, while a stage of its rollout wants that; and by the revision that decides
    those that the candidate carries out.

    `observed` gives who wants that and the candidate's graph, None where nobody does. `keep` is told which facts of nodes the
    candidate reads, before it is asked; `kept` says which there are. `deciding` gives the profile that decides. `clock` gives nanoseconds, for spans.
    """

    def __init__(
        self,
        observed: Callable[[], Observed | None],
        profile: str,
        role: Role,
        *,
        keep: Callable[[frozenset[str]], None],
        kept: Callable[[], frozenset[str]],
        deciding: Callable[[], Profile],
        clock: Callable[[], int],
    ) -> None:
        self._observed = observed
        self._name = f"{KIND}/{profile}"
        self._subject = profile
        self._role = role
        self._keep = keep
        self._kept = kept
        self._deciding = deciding
        self._clock = clock
        self._made: tuple[RuleGraph, Profile | None] | None = None

    def begun(self) -> None:
        """Another stage has begun: have the facts that its candidate reads. Not while a decision is made."""
        observed = self._observed()
        profile = None if observed is None else self._profile(observed[1])
        if profile is not None:
            self._keep(profile.node_facts)

    def decided(
        self, cycle: Cycle, evaluation: Evaluation | None, table: NodeTable, decision: PodDecision
    ) -> None:
        """A decision has fallen: see `Scheduler.on_decided`. Whatever goes wrong here, the decision stands."""
        observed = self._observed()
        if observed is None:
            return
        observer, graph = observed
        if evaluation is None:
            if decision.ahead and decision.problem:
                self._note_failure(observer, cycle, table, decision)
            return
        if not observer.wants(self._name):
            return
        try:
            other = self._deciding() if decision.ahead else self._profile(graph)
            self._compare(observer, other, cycle, evaluation, table, decision)
        except Exception:
            LOG.exception("a placement of %s cannot be compared", "/".join(decision.pod))
            observer.drop()

    def _compare(
        self,
        observer: DecisionObserver,
        profile: Profile | None,
        cycle: Cycle,
        evaluation: Evaluation,
        table: NodeTable,
        decision: PodDecision,
    ) -> None:
        if (
            profile is None
            or not profile.node_facts <= self._kept()
            or (profile.reads_cluster and not cycle.profile.reads_cluster)
        ):
            observer.drop()
            return
        started = self._clock()
        best_of(cycle, evaluate(cycle, table), table, evaluation.barred)
        between = self._clock()
        other = Cycle(profile, cycle.view, cycle.records, cycle.state)
        error = ""
        best = rows = np.array([], np.int64)
        try:
            best, rows = best_of(other, evaluate(other, table), table, evaluation.barred)
        except CycleProblem as problem:
            error = str(problem)
        ended = self._clock()
        if cycle.profile.share_seen(cycle.records) is not None:
            best = rows  # which of them were seen is chance
        agree = not error and (table.index(decision.node) in best if decision.placed else not len(best))
        names = sorted(table.name(int(row)) for row in best)[:_SHOWN]
        ours, others = decision.node or NOWHERE, error or ", ".join(names) or NOWHERE
        took, would_take = between - started, ended - between
        if decision.ahead:  # the other one is the revision that decides
            ours, others, took, would_take = others, ours, would_take, took
        failed = bool(error) and not decision.ahead
        observer.note(
            DecisionComparison(self._name, ours, others, agree, failed, took, would_take, _facts(decision))
        )

    def _note_failure(
        self, observer: DecisionObserver, cycle: Cycle, table: NodeTable, decision: PodDecision
    ) -> None:
        """The candidate was to place a pod and could not decide: it counts, unless the revision that decides cannot either."""
        try:
            evaluate(Cycle(self._deciding(), cycle.view, cycle.records, cycle.state), table)
        except Exception as problem:  # noqa: BLE001  # whatever it is, both fail
            LOG.debug("both revisions fail on %s: %s", "/".join(decision.pod), problem)
            return
        observer.note(
            DecisionComparison(self._name, "", decision.problem, False, True, 0, 0, _facts(decision))
        )

    def _profile(self, graph: RuleGraph) -> Profile | None:
        """The profile by the candidate, made once; None where it has no such profile."""
        if self._made is None or self._made[0] is not graph:
            try:
                self._made = graph, self._role.profile(graph, self._subject)
            except ProfileError:
                self._made = graph, None
        return self._made[1]


def _facts(decision: PodDecision) -> dict[str, str]:
    return {"pod": "/".join(decision.pod)}
