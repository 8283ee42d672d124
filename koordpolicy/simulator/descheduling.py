"""The descheduler of a simulated cluster: its rounds, its migrations and the upkeep of Reservations, on virtual time.

    reports → rounds → PodMigrationJobs → looks: arbitration, Reservation, eviction → the pod comes anew → looks … → over

Everything is decided by the descheduler's own parts; whether a pod ends better elsewhere is the scheduler's rehearsal. What is
simplified: rounds begin with reports, and where policy wants several between two of them, there are more only while
nothing moves and a node has been too full for too short a time. Evictions of one look all happen at its
moment, whatever their pace. A pod that is asked to go by an annotation (`SoftEviction`) stays.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from koordpolicy.algorithms.descheduling.relief_round import ReliefStop
from koordpolicy.algorithms.work import finished
from koordpolicy.descheduler.evictor import EvictionResult, Evictor
from koordpolicy.descheduler.migration.driver import MigrationDriver, MigrationSite
from koordpolicy.descheduler.moves import Move
from koordpolicy.descheduler.round import Memories, RoundReport, run_round
from koordpolicy.descheduler.rules import ProfileRules
from koordpolicy.descheduler.snapshot import movable_pod_records, snapshot_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.memory.store import finish
from koordpolicy.kube.mirror import ObjectChange
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS, Resource
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import PodKey
from koordpolicy.runtime.counting import Unscraped
from koordpolicy.scheduler.relocation import SchedulerRelocations
from koordpolicy.scheduler.reservation_upkeep import ReservationUpkeep
from koordpolicy.simulator.balance import at_work
from koordpolicy.simulator.clock import SECOND, Agenda
from koordpolicy.simulator.cluster import SimulatedCluster

LOG: Final = logging.getLogger(__name__)

_LOOK: Final = 5 * SECOND
"""Between two looks at migrations that are under way. On a real cluster they come more often, and mostly find nothing."""
_ROUNDS: Final = 16
"""Rounds between two reports at most."""


@dataclass(slots=True)
class DeschedulingCounts:
    """What came of it. `moves` are the pods that strategies would have go, by strategy; `results` what came of each; `evicted` the pods that went."""

    rounds: int = 0
    moves: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    evicted: int = 0


class SimulatedDescheduler:
    """`reports` gives what agents reported last; `ask_to_stop` hears of pods that were let go, and says whether that is news;
    `wake` hears that pods may wait.
    """

    def __init__(
        self,
        graph: RuleGraph,
        cluster: SimulatedCluster,
        agenda: Agenda,
        reports: Callable[[], Iterable[NodeMetric]],
        ask_to_stop: Callable[[PodKey], bool],
        wake: Callable[[], None],
    ) -> None:
        self.counts = DeschedulingCounts()
        self._graph = graph
        self._cluster = cluster
        self._agenda = agenda
        self._reports = reports
        self._ask_to_stop = ask_to_stop
        self._wake = wake
        self._profiles = at_work(graph)
        self._due = {rules.name: agenda.now for rules in self._profiles}
        site = MigrationSite(
            cluster.client,
            cluster.objects,
            UnreadableObjects(lambda resource, obj, why: None),
            lambda: graph,
            cluster.events,
            Unscraped(),
            lambda of, error: LOG.warning("no pod is migrated: %s", error),
            lambda: agenda.now,
            lambda: agenda.seconds,
            _at_once,
        )
        self.migrations = MigrationDriver(site, lambda: None)
        self._evictor = Evictor(
            cluster.client,
            cluster.objects,
            lambda: agenda.seconds,
            self._told,
            self.migrations,
            _at_once,
        )
        self._memories = Memories()
        self._records = movable_pod_records()
        self._relocations: SchedulerRelocations | None = None
        self._upkeep = ReservationUpkeep(
            lambda: cluster.schedulers.first.cache, cluster.client, lambda: agenda.now, together=False
        )
        self._looks_at: int | None = None
        self._rounds_left = 0
        self._gone: list[PodKey] = []
        self._phases: dict[str, str] = {}
        for resource, mirror in self.migrations.jobs.mirrors.items():
            cluster.mirror(resource, mirror)
        cluster.follow(self._heard)

    # --- rounds -----------------------------------------------------------------------------------

    def reported(self) -> None:
        """All agents have reported."""
        self._rounds_left = _ROUNDS
        self._round_all()

    def _round_all(self) -> None:
        """A round of each profile whose time has come; more before the next reports where something goes on."""
        now = self._agenda.now
        due = [rules for rules in self._profiles if self._due[rules.name] <= now]
        if not due:
            return
        self._rounds_left -= 1
        self._hear_reports()
        goes_on = [rules for rules in due if self._round(rules)]
        for rules in due:
            self._due[rules.name] = now + max(int(rules.interval * SECOND), SECOND)
        finish(self._upkeep.remove_once())
        self._cluster.deliver()
        self._look_soon()
        if goes_on and self._rounds_left > 0:
            self._agenda.at(min(self._due[one.name] for one in goes_on), self._round_all)

    def _round(self, rules: ProfileRules) -> bool:
        """Whether another one may find something else, though nobody reports meanwhile."""
        graph, now = self._graph, self._agenda.now
        relocations = self._asked(rules)
        snapshot = finished(snapshot_of(self._cluster.objects, graph.catalogue, now, self._records))
        report = finished(
            run_round(rules, snapshot, graph.catalogue, self._memories, self._evictor.allowed, relocations)
        )
        self.counts.rounds += 1
        self.counts.moves.update(move.strategy for move in report.moves)
        finish(self._evictor.carry_out(report.moves, rules, dry=False))
        self._settle()
        return not report.moves and _counts_on(report)

    def _asked(self, rules: ProfileRules) -> SchedulerRelocations | None:
        if not any(one.may_ask_scheduler for one in rules.strategies):
            return None
        if self._relocations is None:
            found = SchedulerRelocations(self._graph, lambda: self._agenda.now)
            self._cluster.listen(found)
            self._relocations = found
            self._hear_reports()
        return self._relocations

    def _hear_reports(self) -> None:
        """What agents measured last holds until they report again, so it is as fresh as theirs are on a real cluster."""
        now = self._agenda.now
        for metric in self._reports():
            fresh = metric if metric.updated_at == now else replace(metric, updated_at=now)
            self._cluster.objects.set_metric(fresh)
            if self._relocations is not None:
                self._relocations.set_metric(fresh)

    # --- migrations -------------------------------------------------------------------------------

    def _look_soon(self) -> None:
        """Look at migrations again and again while there are any."""
        if self._looks_at is None and any(not one.done for one in self.migrations.jobs.every()):
            self._looks_at = self._agenda.now + _LOOK
            self._agenda.at(self._looks_at, self._look)

    def _look(self) -> None:
        self._looks_at = None
        finish(self._upkeep.look())
        self._cluster.deliver()
        rules = self.migrations.rules_of(self._graph)
        if rules is not None:
            finish(self.migrations.look(rules, self._graph))
        self._settle()
        self._look_soon()

    def _settle(self) -> None:
        """Let everybody hear of what was written, and pods that were let go stop."""
        self._gone.clear()
        self._cluster.deliver()
        gone, self._gone = self._gone, []
        for key in gone:
            self.counts.evicted += self._ask_to_stop(key)
        self._note_phases()
        self._wake()

    @property
    def migrations_by_phase(self) -> Counter[str]:
        """All PodMigrationJobs that there have been, by their last phase."""
        return Counter(self._phases.values())

    def _note_phases(self) -> None:
        for job in self.migrations.jobs.every():
            self._phases[job.name] = job.phase or "Pending"

    def _heard(self, resource: Resource, change: ObjectChange) -> None:
        self.migrations.pods.changed(resource, change)
        if resource is not PODS or change.old is None or _going(change.old):
            return
        if change.new is None or _going(change.new):
            self._gone.append(change.key)

    def _told(self, move: Move, result: EvictionResult, said: str) -> None:
        self.counts.results[str(result)] += 1


def _going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _counts_on(report: RoundReport) -> bool:
    return any(pool.stop is ReliefStop.NO_ANOMALY for pools in report.pools.values() for pool in pools)


async def _at_once(_seconds: float) -> None:
    """No virtual time goes by within a look."""
