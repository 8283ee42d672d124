"""The loop: pods arrive, are scheduled, use what they get; agents report, policy decides, jobs get done.

    arrival → webhooks → queue → placement → work → end
    every interval: usage → reports → suppression → overcommitment → placement of those that wait

Events are taken in order of time, and everything that is decided is decided by the components that do so
in production. What is simplified: the agents of all nodes report together, once an interval, although
they decide each second. Between reports nothing changes in them, so the scheduler is told that they are
fresh; how old a report may be stays policy. A round of suppression takes as many of the agent's rounds
as the interval has, until nothing changes; `agents.py` has whole agents in place of it. Pods that wait are tried
again when something happens, and when the scheduler's driver says so (see `rim.py`). Who has to go for another pod,
or is evicted, works on until its time to stop is over; then its owner makes it anew, under its name.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from koordpolicy.agent.strategies.suppression import SuppressionAction
from koordpolicy.algorithms.pod_request import effective_requests
from koordpolicy.algorithms.records import pod_record
from koordpolicy.cluster.pods import scheduler_of
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.rules import Violation
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CPU, MEMORY, PRIORITY_CLASS, QOS_BEST_EFFORT, QOS_CLASS
from koordpolicy.model.reading import mapping
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Binding, Preempt
from koordpolicy.scheduler.driver import Action, Driver
from koordpolicy.scheduler.role import ALONE, Role
from koordpolicy.simulator.answering import Answering
from koordpolicy.simulator.balance import Balancing, deschedules
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.clock import SECOND, Agenda
from koordpolicy.simulator.cluster import Refusal, SimulatedCluster
from koordpolicy.simulator.contention import Contention, read_contention
from koordpolicy.simulator.fault_plan import FaultPlan
from koordpolicy.simulator.faults import Faults, FaultSite
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.journal import Explained, Journal, Untried
from koordpolicy.simulator.machines import Machine, PodKey, RunningPod, Stopping, machine_of
from koordpolicy.simulator.owners import owned
from koordpolicy.simulator.rim import VirtualRim
from koordpolicy.simulator.rounds import Rounds
from koordpolicy.simulator.sampling import Sampler
from koordpolicy.simulator.schedulers import SimulatedScheduler
from koordpolicy.simulator.usage import SHAPE, Population, UsageShape
from koordpolicy.simulator.workload import Arrival, Json, Wave, Workload, WorkloadError

if TYPE_CHECKING:
    from koordpolicy.simulator.agents import SimulatedAgents
    from koordpolicy.simulator.descheduling import SimulatedDescheduler

EPOCH = 1_577_836_800 * SECOND
"""When simulations begin: midnight of 1 January 2020, UTC."""

FINE_INTERVAL = 120 * SECOND
FINE_SPAN = 2 * 86_400 * SECOND
COARSE_TICKS = 300
MAX_TICKS = 1_000_000
"""Reports of one simulation; a finer interval over so long a time is refused."""

_FRESH = 60 * SECOND
"""How often agents report in reality."""

Progress = Callable[[int, int, Journal], None]
"""Told at every report: nanoseconds that passed, nanoseconds there are, what was noted so far."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How to simulate: nanoseconds between reports and to the end (None: what suits the workload).

    `start` is the moment at which it begins, in nanoseconds since 1970. `explain` names pods, `name` or `namespace/name`, whose placement is to be explained. `role` is the scheduler's,
    with the plugins that policy may name. With `agents` the agents of nodes run with all their strategies that the model of
    a kernel knows (see `agents.py`). Without `descheduling` nobody moves pods; `balance_by` are the policies that say which nodes are
    too full, where others than those that are simulated do, for a comparison. `contention` are the parameters of what services suffer from others; None for those that ship. `faults`
    are what goes wrong, None for nothing.
    """

    interval: int | None = None
    until: int | None = None
    colocation: bool = True
    explain: tuple[str, ...] = ()
    start: int = EPOCH
    shape: UsageShape = SHAPE
    role: Role = ALONE
    agents: bool = False
    descheduling: bool = True
    balance_by: RuleGraph | None = None
    contention: Contention | None = None
    faults: FaultPlan | None = None


def interval_for(span: int) -> int:
    """Nanoseconds between reports that suit a simulation of that length, in whole minutes."""
    if span <= FINE_SPAN:
        return FINE_INTERVAL
    minute = 60 * SECOND
    return max(-(-span // (COARSE_TICKS * minute)) * minute, FINE_INTERVAL)


class Simulation:
    """One run over one workload by one revision of policies. `run` once.

    Raises WorkloadError when the workload and the settings do not fit each other, ProfileError when the
    policies have no scheduling profile.
    """

    def __init__(
        self,
        graph: RuleGraph,
        workload: Workload,
        settings: SimulationSettings,
        chance: Chance,
        progress: Progress = lambda passed, whole, journal: None,
    ) -> None:
        balance_by = settings.balance_by or graph
        moves = deschedules(balance_by)
        self.workload = workload = owned(workload) if moves else workload
        self.settings = settings
        self.graph = graph
        self.start = settings.start
        self.span = workload.horizon() if settings.until is None else settings.until
        self.interval = settings.interval or interval_for(self.span)
        if self.span // self.interval > MAX_TICKS:
            raise WorkloadError(
                f"an interval of {self.interval // SECOND} s makes more than {MAX_TICKS:,} reports;"
                " choose a longer one with `--interval`, or an earlier end with `--until`"
            )
        self.journal = Journal()
        self.agenda = Agenda(self.start)
        self.cluster = SimulatedCluster(
            graph, workload, self.agenda, chance,
            colocation=settings.colocation, role=settings.role, explained=bool(settings.explain),
        )  # fmt: skip
        self.machines: dict[str, Machine] = {
            name: machine_of(node, settings.shape) for name, node in self.cluster.objects.nodes.items()
        }
        self._population = Population(settings.shape, chance)
        self.fleet = Fleet(self.machines.values())
        self._rounds = Rounds(graph, self.cluster, self.fleet, self.journal, self.start)
        self._answering = Answering(settings.contention or read_contention())
        balancing = Balancing(balance_by if moves else None, self.cluster.objects, self.fleet, self.start)
        self._sampler = Sampler(graph, self.cluster, self.fleet, balancing)
        self.faults = self._faults(settings.faults) if settings.faults is not None else None
        """What goes wrong, where something is to."""
        self._progress = progress
        self._cpu_names = (CPU, *_band_names(graph, CPU))
        self._memory_names = (MEMORY, *_band_names(graph, MEMORY))
        self._arrivals: dict[PodKey, Arrival] = {}
        self._pods: dict[PodKey, Pod] = {}
        self._running: dict[PodKey, RunningPod] = {}
        self._rims = [self._rim(one) for one in self.cluster.schedulers]
        self._reported_at = -1
        self._reporting = False
        """Whether pods are placed because agents have just reported."""
        self._late: dict[str, int] = {}
        """When agents act that are late, by their nodes."""
        self._next_tick = self.start
        self.interrupted: int | None = None
        """How far it came, in nanoseconds from its beginning, where somebody interrupted it."""
        self.agents = self._agents(chance) if settings.agents else None
        """The agents of nodes that have had pods, where they run."""

        self.descheduler = self._descheduler() if deschedules(graph) else None
        """The descheduler, where policies have a strategy switched on."""

    def _faults(self, plan: FaultPlan) -> Faults:
        site = FaultSite(
            self.cluster,
            self.machines,
            self.agenda,
            self.interval,
            self.span,
            self._said_by,
            self._bring_up,
            lambda key: self._arrivals[key].pod,
            self._stop,
            self._plan_end,
            self._wake,
        )
        found = Faults(plan, site)
        self.cluster.refusal = found.refusal
        return found

    def _descheduler(self) -> "SimulatedDescheduler | None":
        if not (self.settings.descheduling and self.settings.colocation):
            return None
        from koordpolicy.simulator.descheduling import SimulatedDescheduler  # noqa: PLC0415  # large; most simulations have none

        return SimulatedDescheduler(
            self.graph, self.cluster, self.agenda, self._reported, self._let_move, self._wake
        )

    def _reported(self) -> Iterator[NodeMetric]:
        """What every agent reported last."""
        for name, machine in self.machines.items():
            if name in self._late or (self.faults is not None and self.faults.is_silent(name)):
                continue
            metric = self._said_by(machine)
            if metric is not None:
                yield metric

    def _said_by(self, machine: Machine) -> NodeMetric | None:
        """What the agent of a machine reported last."""
        own = self.agents is not None and machine.name in self.agents
        return machine.metric if own else self.fleet.report(machine)

    def _bring_up(self, machine: Machine) -> None:
        """Something of a machine is about to change: a kernel that has an agent goes on up to now as it was."""
        if self.agents is None or self.faults is None or machine.name not in self.agents:
            return
        agent = self.agents[machine.name]
        if self.faults.is_lost(machine.name):
            agent.stand_still(self.agenda.now)
        else:
            agent.pass_by(self.agenda.now)

    def _agents(self, chance: Chance) -> "SimulatedAgents":
        from koordpolicy.simulator.agents import AgentSite, SimulatedAgents  # noqa: PLC0415  # large; most simulations have none

        cluster = self.cluster
        return SimulatedAgents(
            AgentSite(
                self.graph,
                cluster.client,
                cluster.objects.sight,
                cluster.events,
                cluster.failures.decided,
                lambda: float(chance.random()),
            )
        )

    def _rim(self, one: SimulatedScheduler) -> VirtualRim:
        rim = VirtualRim(
            self.agenda, one.driver, lambda action: self._carry_out(one.driver, action), self._freshen
        )
        one.scheduler.on_news(rim.wake)
        return rim

    def run(self) -> Journal:
        """Simulate to the end, or to an interrupt; what was noted."""
        end = self.start + self.span
        self._tick()
        if self.faults is not None:
            self.faults.begin(end)
        self.agenda.every(self.interval, end, self._tick)
        for arrival in self.workload.arrivals:
            if arrival.time <= self.span:
                self.agenda.at(self.start + arrival.time, lambda arrival=arrival: self._arrive(arrival))  # type: ignore[misc]
        try:
            self.agenda.run(end)
        except KeyboardInterrupt:
            self.interrupted = self.agenda.now - self.start
        if self.faults is not None:
            self.faults.ended()
        for key, decision in self.waiting.items():
            if decision is not None and self._is_to_be_explained(self._pods[key]):
                self._note(decision, self._pods[key], {})
        if self.interrupted is None:
            self._progress(self.span, self.span, self.journal)
        return self.journal

    @property
    def running(self) -> int:
        """Pods that run now."""
        return len(self._running)

    @property
    def waiting(self) -> dict[PodKey, PodDecision | None]:
        """The pods that have no node, with the last attempt to find one."""
        last = self.cluster.schedulers.last_decision
        return {key: last(pod) for key, pod in self._pods.items() if key not in self.journal.scheduled}

    # --- pods -------------------------------------------------------------------------------------

    def _arrive(self, arrival: Arrival, *, again: bool = False) -> None:
        self.journal.arrived += not again
        name = f"{arrival.pod['metadata'].get('namespace') or 'default'}/{arrival.pod['metadata'].get('name', '')}"
        pod = readable(self._submitted, arrival.pod)
        if isinstance(pod, Refusal | Unreadable):
            reason = pod.reason if isinstance(pod, Unreadable) else str(pod)
            self.journal.refuse(_first_line(reason), name)
            self._explain_untried(
                name, reason, () if isinstance(pod, Unreadable) else self.cluster.violations
            )
            return
        if self.cluster.schedulers.of(pod) is None:
            self.journal.leave(scheduler_of(pod), name)
            self._explain_untried(name, f"no SchedulingProfile is for its scheduler `{scheduler_of(pod)}`")
            return
        self._arrivals[pod.key] = arrival
        self._pods[pod.key] = pod
        self.journal.scheduled.discard(pod.key)  # one of that name may have come and gone
        self._wake()  # everybody who arrives at this moment queues up first, then the best comes first

    def _submitted(self, pod: Json) -> Pod | Refusal:
        try:
            return self.cluster.submit(pod)
        except Refusal as refusal:
            return refusal

    def _wake(self) -> None:
        """Something happened that may help pods that wait."""
        for rim in self._rims:
            rim.wake()

    def _carry_out(self, driver: Driver, action: Action) -> None:
        """Write what a decision asks for, and let follow from it what does."""
        self.journal.attempts += 1
        decision = action.decision
        following: Action | None = action
        while following is not None and following.plan is not None:
            planned = following.plan
            binds = (
                isinstance(planned, Binding) and not planned.reservation
            )  # a Reservation has nothing to start
            if binds:
                self._explain(decision, self._pods[decision.pod])
            outcome = self.cluster.carry_out(planned)
            if outcome.error is None and binds:
                self._place(decision)
            elif outcome.error is None and isinstance(planned, Preempt):
                for victim in planned.victims:
                    self.journal.preempted += self._ask_to_stop(victim.pod, Stopping.PREEMPTED)
            if self.faults is not None and outcome.error is not None and not isinstance(planned, Preempt):
                self.faults.failed(decision.pod, outcome.error)
            following = driver.done(following, outcome)

    def _place(self, decision: PodDecision) -> None:
        key, now = decision.pod, self.agenda.now
        pod = self._pods[key] = self.cluster.start(key)
        arrival, machine = self._arrivals[key], self.machines[decision.node]
        self.journal.scheduled.add(key)
        self.journal.placed += 1
        before = mapping(arrival.pod, "spec").get("nodeName")
        if before:
            self.journal.anew[key] = before != decision.node
        waited = now - self.start - arrival.time
        self.journal.waits.append(waited / SECOND)
        self.journal.placed_with_reports += self._reporting and waited > 0
        found = self.graph.catalogue.resolve(
            pod.labels.get(QOS_CLASS), pod.labels.get(PRIORITY_CLASS), pod.priority, pod.kubernetes_qos
        )
        requests = effective_requests(pod)
        asked = sum(requests.get(name, 0) for name in self._cpu_names)
        memory = sum(requests.get(name, 0) for name in self._memory_names)
        running = RunningPod(
            key,
            machine,
            self._population.add(asked, arrival.wave or self._wave(found.qos)),
            pod.kubernetes_qos == QOS_BEST_EFFORT,
            int(memory * self.settings.shape.memory),
            self.graph.catalogue.class_name(found.band),
            found.qos,
            now,
            None if arrival.duration is None else float(arrival.duration),
            request=asked,
        )
        machine.pods[key] = self._running[key] = running
        self.fleet.add(running, found.band)
        if self.agents is not None:
            self.agents.start(machine, pod, running.memory, arrival.growth, now)
        self._plan_end(running)
        if self.faults is not None:
            self.faults.placed(running)

    def _wave(self, qos: str) -> Wave:
        return self.settings.shape.best_effort if qos == "BE" else self.settings.shape.service

    def _plan_end(self, running: RunningPod) -> None:
        running.ticket += 1
        ticket, end = running.ticket, running.end()
        if end is not None:
            self.agenda.at(end, lambda: self._end(running, ticket))

    def _end(self, running: RunningPod, ticket: int) -> None:
        if running.ticket != ticket:
            return  # its speed has changed since this end was planned
        key = running.key
        del self._arrivals[key]
        self._leave(running)
        self.journal.finished += 1
        if not self.cluster.delete(key):
            self.journal.kept += 1
        self._wake()

    def _leave(self, running: RunningPod) -> None:
        """A pod is on its node no more."""
        key = running.key
        del self._running[key], running.machine.pods[key]
        self._population.remove(running.slot)
        self.fleet.remove(running.slot)
        if self.agents is not None:
            self.agents.stop(running.machine, key)

    def _let_move(self, key: PodKey) -> bool:
        return self._ask_to_stop(key, Stopping.MOVED)

    def _ask_to_stop(self, key: PodKey, what: Stopping) -> bool:
        """A pod was deleted for another one, or evicted; whether it was not asked before.

        It is gone when its time to stop is over, at once where it has none.
        """
        running = self._running.get(key)
        if running is not None and running.stopping:
            return False
        if running is None:  # it had not been bound yet
            self._submit_anew(key)
            return True
        running.stopping = what
        going = self.cluster.objects.pods.get(key)
        if going is None or going.deleted_at is None:
            self._stop(running)
        else:
            self.agenda.at(going.deleted_at, lambda: self._stop(running))
        return True

    def _stop(self, running: RunningPod) -> None:
        """A pod's kubelet has stopped it, unless it has come to its end meanwhile."""
        key = running.key
        if self._running.get(key) is not running:
            return
        self._leave(running)
        running.ticket += 1
        self.journal.placed -= 1
        if key in self.cluster.objects.pods and not self.cluster.delete(key):
            self.journal.kept += 1
            del self._arrivals[key]
            return
        self._submit_anew(key)

    def _submit_anew(self, key: PodKey) -> None:
        """The owner of a pod that is gone makes a new one, which begins from the beginning, after what is going on now."""
        arrival = replace(self._arrivals.pop(key), time=self.agenda.now - self.start)
        self.agenda.at(self.agenda.now, lambda: self._arrive(arrival, again=True))
        self._wake()

    def _explain(self, decision: PodDecision, pod: Pod) -> None:
        if self._is_to_be_explained(pod):
            table = self.cluster.schedulers.first.cache.table
            self._note(decision, pod, dict(table.row(table.index(decision.node))))

    def _is_to_be_explained(self, pod: Pod) -> bool:
        return self._is_named(f"{pod.namespace}/{pod.name}")

    def _is_named(self, name: str) -> bool:
        return name in self.settings.explain or name.partition("/")[2] in self.settings.explain

    def _explain_untried(self, name: str, why: str, violations: Sequence[Violation] = ()) -> None:
        """Note why a pod did not get as far as a scheduler of ours."""
        if self._is_named(name):
            self.journal.untried[name] = Untried(self.agenda.now - self.start, why, tuple(violations))

    def _note(self, decision: PodDecision, pod: Pod, node: Record) -> None:
        record = pod_record(pod, self.graph.catalogue, TIMES)
        scheduler = self.cluster.schedulers.of(pod)
        if scheduler is not None:
            self.journal.explained[pod.key] = Explained(
                self.agenda.now - self.start, decision, node, record, scheduler.profile
            )

    # --- nodes ------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """All agents report, and everybody draws conclusions."""
        now = self.agenda.now
        self._progress(now - self.start, self.span, self.journal)
        self._next_tick = now + self.interval
        wishes = self._population.wishes(now / SECOND)
        faults = self.faults
        self.fleet.share(wishes if faults is None else faults.served(wishes))
        self._late = {} if faults is None else {name: now + by for name, by in faults.late().items()}
        for moment in sorted({*self._late.values()}):
            self.agenda.at(moment, lambda moment=moment: self._act_late(moment, wishes))  # type: ignore[misc]
        self._look_at_agents(self.machines, wishes)
        self.fleet.measure(now)
        if faults is not None and self.settings.colocation:
            faults.settle()
        self._act([one for one in self.machines.values() if one.name not in self._late], wishes)

    def _act_late(self, moment: int, wishes: NDArray[np.float64]) -> None:
        """Agents come to it now; those that nobody hears of any more do not."""
        whose = [name for name, at in self._late.items() if at == moment]
        for name in whose:
            del self._late[name]
            self.cluster.objects.note_changed(name)
        wishes = self.fleet.reported(wishes)
        self._look_at_agents(whose, wishes)
        self.fleet.measure(moment)
        self._act([self.machines[name] for name in whose], wishes)

    def _act(self, machines: Iterable[Machine], wishes: NDArray[np.float64]) -> None:
        """The agents of some machines report, and everybody draws conclusions."""
        now, faults = self.agenda.now, self.faults
        own = frozenset() if self.agents is None else self.agents.names
        heard = [
            one
            for one in machines
            if one.name not in own and (faults is None or not faults.is_silent(one.name))
        ]
        self._rounds.look(wishes if faults is None else faults.served(wishes), heard, now)
        for pod, rate in self.fleet.turned():
            if faults is not None and faults.is_lost(pod.machine.name):
                continue
            if pod.machine.name not in own and pod.advance(now, rate):
                self._plan_end(pod)
        answers = self._answering.answers(self.fleet, wishes)
        if self.descheduler is not None:
            self.descheduler.reported()
        self._reporting = True
        for rim in self._rims:
            rim.decide(2 * self.cluster.schedulers.unplaced + 1)
        self._reporting = False
        self.journal.samples.append(
            self._sampler.sample(now - self.start, self._seconds(now), self.journal, answers)
        )

    def _seconds(self, now: int) -> float:
        """How long what is so now stays so: until somebody acts, or the end."""
        until = min([self.start + self.span, self._next_tick, *self._late.values()])
        return max(until - now, 0) / SECOND

    def _look_at_agents(self, names: Iterable[str], wishes: NDArray[np.float64]) -> None:
        """Look at those nodes that have an agent of their own."""
        agents, faults = self.agents, self.faults
        if agents is None:
            return
        for name in [one for one in names if one in agents]:
            if faults is not None and faults.is_lost(name):
                agents[name].stand_still(self.agenda.now)
            else:
                self._look_at_agent(agents, self.machines[name], wishes, self.agenda.now)

    def _look_at_agent(
        self, agents: "SimulatedAgents", machine: Machine, wishes: NDArray[np.float64], now: int
    ) -> None:
        """The node's agent has worked since it was looked at: what it reports, whom it let go, how fast work is."""
        agent = agents[machine.name]
        silent = self.faults is not None and self.faults.is_silent(machine.name)
        acts = not silent and machine.name not in self._late
        wished = {key: float(wishes[pod.slot]) for key, pod in machine.pods.items()}
        agent.look(wished, now, watches=not silent, acts=acts)
        self.cluster.deliver()
        if machine.metric is not None and acts:
            self.cluster.hear(machine.metric)
        for key in agent.take_killed():
            self._begin_anew(self._running[key], now)
        self.cluster.settle(machine.name)
        for key, pod in machine.pods.items():
            if pod.advance(now, agent.rate(key)):
                self._plan_end(pod)
        for key, reason in agent.take_evicted():
            if self._ask_to_stop(key, Stopping.EVICTED):
                self.journal.evicted[reason] = self.journal.evicted.get(reason, 0) + 1
        self.fleet.note(machine, machine.shares)
        if machine.shares.withheld:
            decision = agent.decision()
            self.cluster.failures.suppressed(machine.name, agent.record, decision.reason, now)
            if decision.outcome is SuppressionAction.SUPPRESS:
                self.journal.held(now - self.start, machine, machine.shares.withheld, decision, agent.record)

    def _begin_anew(self, running: RunningPod, now: int) -> None:
        """The OOM killer has ended a container of a pod: its work begins from the beginning."""
        duration = self._arrivals[running.key].duration
        if duration is not None:
            running.remaining, running.since = float(duration), now
            self._plan_end(running)

    def _freshen(self) -> None:
        """Let the scheduler know that the agents have reported in the meantime, and nothing else."""
        now = self.agenda.now
        if now - max(self._reported_at, 0) < _FRESH or not self.cluster.schedulers.unplaced:
            return
        self._reported_at = now
        for scheduler in self.cluster.schedulers.all:
            scheduler.cache.renew_metrics(now)
            for metric in () if self.faults is None else self.faults.last.values():
                scheduler.set_metric(metric)


def _band_names(graph: RuleGraph, resource: str) -> tuple[str, ...]:
    """What the bands call a resource."""
    names = (band_resources(graph, band).get(resource) for band in graph.classes.bands)
    return tuple(name for name in names if name)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
