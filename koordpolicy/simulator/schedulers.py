"""The schedulers of a simulated cluster: one a profile, as on a real one each has a process of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from koordpolicy.cluster.column_reports import ColumnReports
from koordpolicy.cluster.listeners import Listeners
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.cluster.pods import PodView, scheduler_of
from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.scheduler import PodDecision, Scheduler
from koordpolicy.scheduler.decision_reporter import DecisionReporter
from koordpolicy.scheduler.driver import Driver, Settled
from koordpolicy.scheduler.profile import KIND, ProfileError
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.events import SimulatedReports
from koordpolicy.simulator.failures import SimulatedFailures

_EXPLAINED: Final = 5
"""The best nodes of a decision that are told of."""


@dataclass(frozen=True, slots=True)
class SimulatedScheduler:
    """A scheduler with the driver that asks it for actions."""

    scheduler: Scheduler
    driver: Driver


class Schedulers:
    """All of them, by profile; with `explained` they say of each node why it was taken. Raises ProfileError where the policies have no
    profile.
    """

    def __init__(
        self,
        graph: RuleGraph,
        now: Callable[[], int],
        chance: Chance,
        role: Role,
        reports: SimulatedReports,
        failures: SimulatedFailures,
        *,
        explained: bool = True,
    ) -> None:
        names = tuple(graph.subjects(KIND))
        if not names:
            raise ProfileError("the policies have no SchedulingProfile, so nothing places pods")
        self.default = DEFAULT_PROFILE if DEFAULT_PROFILE in names else names[0]
        """The profile of pods that name no scheduler but Kubernetes' own."""
        self._by_profile: dict[str, SimulatedScheduler] = {}
        for name in names:
            scheduler = Scheduler(
                graph,
                now,
                profile=name,
                draw=lambda n: int(chance.integers(0, n)),
                explained=_EXPLAINED if explained else 0,
                refusals=explained,
                failing=True,
                role=role,
            )
            unheeded = scheduler.cache.state.pod_groups.unheeded
            reporter = reports.reporter_of(name, keeps_gangs=scheduler.gangs is not None, unheeded=unheeded)
            driver = Driver(scheduler, on_settled=_settling(scheduler, reporter, failures))
            self._by_profile[name] = SimulatedScheduler(scheduler, driver)

    def __iter__(self) -> Iterator[SimulatedScheduler]:
        return iter(self._by_profile.values())

    def __contains__(self, profile: str) -> bool:
        return profile in self._by_profile

    def of(self, pod: Pod) -> Scheduler | None:
        """The scheduler that places a pod; None where no profile is for it."""
        found = self._by_profile.get(scheduler_of(pod))
        return None if found is None else found.scheduler

    @property
    def first(self) -> Scheduler:
        """Any of them, for what all know alike: the nodes, and the pods on them."""
        return self._by_profile[self.default].scheduler

    @property
    def all(self) -> Iterable[Scheduler]:
        """Each of them."""
        return [one.scheduler for one in self]

    @property
    def unplaced(self) -> int:
        """How many pods wait for a node, or for being permitted there."""
        return sum(len(tuple(one.pending)) + len(one.ledger.waiting) for one in self.all)

    @property
    def held_up(self) -> Mapping[PodKey, str]:
        """Why pods that got a node are not permitted there yet."""
        return {
            key: "; ".join(account.waits_for.values())
            for one in self.all
            for key, account in one.ledger.waiting.items()
        }

    def last_decision(self, pod: Pod) -> PodDecision | None:
        """Why a pod that waits found no node when it was last looked at."""
        scheduler = self.of(pod)
        return None if scheduler is None else scheduler.last_decision(pod.key)


def _settling(
    scheduler: Scheduler, reporter: DecisionReporter, failures: SimulatedFailures
) -> Callable[[Settled], None]:
    def settled(found: Settled) -> None:
        reporter.settled(found)
        failures.tried(found, scheduler)

    return settled


class SimulatedListeners(Listeners):
    """The objects of the cluster and all schedulers as one listener."""

    def __init__(self, objects: ClusterObjects, schedulers: Schedulers) -> None:
        super().__init__(objects, *schedulers.all)
        self._schedulers = schedulers

    def assumed(self, key: PodKey) -> tuple[PodView, str] | None:
        """A pod on a node that its scheduler assumes it on; what one made of it, others with other policies do not share."""
        only = tuple(self._schedulers.all)
        return only[0].assumed(key) if len(only) == 1 else None

    def set_reports(self, reports: ColumnReports) -> None:
        """Reports of many nodes, for the schedulers alone."""
        for one in self._schedulers.all:
            one.cache.set_reports(reports)
            one.reported(reports.names)
