"""What the scheduler decided on one pod, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from koordpolicy.model.pod import PodKey


@dataclass(frozen=True, slots=True)
class Refusals:
    """How many nodes one filter refused for one reason.

    `resolvable` says that fewer pods there might help; a node that is refused for several reasons of
    the filter counts for each. `error` is what went wrong where the filter's expression could not be evaluated,
    which refuses as well.
    """

    filter: str
    reason: str
    nodes: int
    resolvable: bool = True
    error: str = ""


@dataclass(frozen=True, slots=True)
class FailedScore:
    """On how many feasible nodes the expression of a score could not be evaluated, so that it counts 0 there, with one error."""

    score: str
    nodes: int
    error: str


@dataclass(frozen=True, slots=True)
class CycleFailure:
    """Why a pod could not be decided on, so that no node is taken.

    `step` is the filter or score (`filter:NAME`), `place` where policy speaks of it (`FILE:LINE:COLUMN`), each
    empty where that is not known. `cause` is an error of ours, which nobody foresaw; None for one of policy. `of_object` says
    that an object cannot be read, the pod or one that it names: that is the pod's own trouble, and no policy's.
    """

    text: str
    step: str = ""
    place: str = ""
    cause: Exception | None = field(default=None, compare=False)
    of_object: bool = False

    def __str__(self) -> str:
        kind, _, name = self.step.partition(":")
        where = ", ".join(part for part in (f"{kind} `{name}`" if name else "", self.place) if part)
        if self.cause is None:
            return f"{self.text} ({where})" if where else self.text
        error = f"{type(self.cause).__name__}: {self.text}"
        return f"internal error{f' in {where}' if where else ''}, please report: {error}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that was feasible, with its total, and the part of each of these scores in it, weights applied.

    Names and parts are apart, since the names are the same for all nodes and pods, and decisions are kept.
    """

    node: str
    total: float
    scores: tuple[str, ...]
    numbers: tuple[float, ...]

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Score by score."""
        return tuple(zip(self.scores, self.numbers, strict=True))


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that has to go. `leaving` says that the cluster shows it on its way already, `waits` that it has not been bound
    yet: then it only gives its node back. `node` is where it is, empty where that is the node that room is made on.
    """

    pod: PodKey
    uid: str
    leaving: bool = False
    waits: bool = False
    node: str = ""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """Who goes from which node, so that a pod fits there.

    `violations` is how many of the victims a disruption budget would have kept; `cleared` are pods of
    lower priority that waited for the node, and have to look elsewhere. `beside` are the pods that room is made for together
    with the pod, each with its node.
    """

    node: str
    victims: tuple[Victim, ...]
    violations: int = 0
    cleared: tuple[PodKey, ...] = ()
    beside: tuple[tuple[PodKey, str], ...] = ()

    @property
    def sent_away(self) -> tuple[Victim, ...]:
        """The victims that are not on their way already, and are bound: these alone are deleted, and told of."""
        return tuple(victim for victim in self.victims if not (victim.leaving or victim.waits))


@dataclass(frozen=True, slots=True)
class NoCandidate:
    """Why nobody goes: how many nodes for which reason; or one text where no node was looked at."""

    counts: Mapping[str, int]
    ineligible: str = ""

    def message(self, nodes: int) -> str:
        """As Kubernetes' scheduler says it, after the reasons of the filters."""
        if self.ineligible:
            return f"preemption: {self.ineligible}"
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items() if count))
        return f"preemption: 0/{nodes} nodes are available: {listed}" if listed else ""


NO_CLAIMS: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(slots=True)
class PodDecision:
    """Where a pod goes, or why it goes nowhere.

    `node` is empty when none fits. Of `nodes` there are, `feasible` passed all filters; `refusals` say what
    kept the others, in the order of filters; `best` are the best nodes, the chosen one first. `failure` says
    what went wrong where the cycle itself failed, `problem` the same as text. `digest` is the graph's. `preemption` is who goes for
    a pod that found no node; `remark` is why nobody does, `promised` the node that it
    waits for others to leave, `advice` what would help it. `claims` is what plugins took for it, by filter. `route` is the way on which another shard gets
    it, empty when it goes home, None when it stays where it is. `ahead` says that a revision decided that is on its way.
    `failed_scores` are those that could not be evaluated on feasible nodes.
    """

    pod: PodKey
    uid: str
    node: str
    nodes: int
    feasible: int
    refusals: tuple[Refusals, ...] = ()
    best: tuple[Candidate, ...] = ()
    failure: CycleFailure | None = None
    preemption: PostFilterResult | None = None
    remark: str = ""
    promised: str = ""
    advice: tuple[str, ...] = ()
    route: tuple[int, ...] | None = None
    digest: str = field(default="", compare=False)
    claims: Mapping[str, object] = field(default_factory=lambda: NO_CLAIMS)
    ahead: bool = False
    failed_scores: tuple[FailedScore, ...] = ()

    @property
    def problem(self) -> str:
        """What went wrong where the cycle itself failed; empty where it did not."""
        return "" if self.failure is None else str(self.failure)

    @property
    def placed(self) -> bool:
        """Whether a node was found."""
        return bool(self.node)

    @property
    def passed_on(self) -> bool:
        """Whether another shard is to decide."""
        return bool(self.route)

    @property
    def message(self) -> str:
        """What Kubernetes writes into the condition of a pod that found no node; empty for others.

        What would help stands below, a line each.
        """
        if self.node:
            return ""
        head = f"0/{self.nodes} nodes are available"
        if self.problem:
            return f"{head}: {self.problem}."
        counted: dict[str, int] = {}
        for refusals in self.refusals:
            counted[refusals.reason] = counted.get(refusals.reason, 0) + refusals.nodes
        reasons = ", ".join(sorted(_of_nodes(count, text) for text, count in counted.items()))
        text = f"{head}: {reasons}." if reasons else f"{head}."
        first = f"{text} {self.remark}." if self.remark else text
        return "\n".join((first, *(f"{line}." for line in self.advice)))


def _of_nodes(count: int, reason: str) -> str:
    """`3 node(s) had ...`; a reason that counts something itself, as of a job's pods, is told apart from the count."""
    return f"{count} node(s) where {reason}" if reason[:1].isdigit() else f"{count} {reason}"
