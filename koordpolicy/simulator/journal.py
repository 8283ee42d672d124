"""What a simulation notes along the way: samples of the whole cluster, and what became of every pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordpolicy.agent.strategies.suppression import Suppression
from koordpolicy.manager.webhooks.rules import Violation
from koordpolicy.model.facts import Record
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.profile import Profile
from koordpolicy.simulator.answering import NONE, Answers
from koordpolicy.simulator.balance import EVEN, Balance
from koordpolicy.simulator.machines import Machine, PodKey


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at one moment, standing for the `seconds` that follow. CPU in millicores, memory in bytes.

    `best_effort` is what the groups of best-effort pods use, `withheld` what suppression kept from them;
    `hosting` nodes have such pods, on `suppressed` of them something was withheld. `offered` and `allocated`
    are the overcommitted CPU and memory. On `short` nodes pods outside those groups get less CPU than they wish; `finished` are
    all pods that were done by then. `answers` are those of services, `balance` is that of nodes.
    """

    time: int
    seconds: float
    used: int
    requested: int
    best_effort: int
    withheld: int
    hosting: int
    suppressed: int
    short: int
    finished: int
    offered: Mapping[str, int]
    allocated: Mapping[str, int]
    used_memory: int
    running: int
    pending: int
    answers: Answers = NONE
    balance: Balance = EVEN


@dataclass(frozen=True, slots=True)
class Held:
    """A node where suppression withheld something: when, what, by which facts and figures."""

    time: int
    node: str
    capacity: int
    withheld: int
    pods: int
    decision: Suppression
    record: Record


@dataclass(frozen=True, slots=True)
class Explained:
    """A placement that somebody wants to understand: the decision by a profile, and the facts of the chosen node then."""

    time: int
    decision: PodDecision
    node: Record
    pod: Record
    profile: Profile


@dataclass(frozen=True, slots=True)
class Untried:
    """A pod that somebody wants to understand and that no scheduler of ours has tried: why, and the rules it breaks."""

    time: int
    why: str
    violations: tuple[Violation, ...]


@dataclass(slots=True)
class Journal:
    """Everything noted. `waits` are the seconds between creation and binding, pod by pod, `placed_with_reports` how many of them that are
    more than 0 ended with a report of agents; `scheduled` are those
    that have a node, or had one to their end, `placed` is how many these are, equal names counted apart.

    `others` are the pods of schedulers that no profile is for, by scheduler; `kept` are those that were over and that
    an admission rule did not let go. `late` are the nanoseconds that finished pods ran longer than they needed at full speed.
    """

    samples: list[Sample] = field(default_factory=list)
    arrived: int = 0
    attempts: int = 0
    waits: list[float] = field(default_factory=list)
    placed_with_reports: int = 0
    scheduled: set[PodKey] = field(default_factory=set)
    refused: dict[str, list[str]] = field(default_factory=dict)
    others: dict[str, list[str]] = field(default_factory=dict)
    kept: int = 0
    finished: int = 0
    placed: int = 0
    preempted: int = 0
    anew: dict[PodKey, bool] = field(default_factory=dict)
    """Pods that were on a node before the simulation began and got one anew: whether it is another."""
    evicted: dict[str, int] = field(default_factory=dict)
    """Pods that agents let go, by reason."""
    late: list[float] = field(default_factory=list)
    batch_work: float = 0.0
    lowest: Held | None = None
    """Where suppression aimed lowest, as a share of the node."""
    worst: Held | None = None
    """Where suppression withheld most."""
    explained: dict[PodKey, Explained] = field(default_factory=dict)
    untried: dict[str, Untried] = field(default_factory=dict)

    def refuse(self, reason: str, pod: str) -> None:
        """Note a pod that the cluster did not take."""
        self.refused.setdefault(reason, []).append(pod)

    def leave(self, scheduler: str, pod: str) -> None:
        """Note a pod that a scheduler places that is not ours."""
        self.others.setdefault(scheduler, []).append(pod)

    def would_hold(self, withheld: int, capacity: int, target: int) -> bool:
        """Whether suppression on a node is the most so far, or aims lowest."""
        return (
            self.worst is None
            or self.lowest is None
            or withheld > self.worst.withheld
            or target * self.lowest.capacity < self.lowest.decision.target * capacity
        )

    def held(self, now: int, machine: Machine, withheld: int, decision: Suppression, record: Record) -> None:
        """Note what suppression does on a node now, as far as it is the most so far."""
        pods = sum(pod.best_effort for pod in machine.pods.values())
        held = Held(now, machine.name, machine.cpu, withheld, pods, decision, record)
        if self.worst is None or withheld > self.worst.withheld:
            self.worst = held
        if (
            self.lowest is None
            or decision.target * self.lowest.capacity < self.lowest.decision.target * machine.cpu
        ):
            self.lowest = held
