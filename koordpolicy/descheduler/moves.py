"""The pods that are to leave their nodes in one round."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from koordpolicy.algorithms.descheduling.eviction_limiter import EvictionLimiter
from koordpolicy.cluster.relocation import Relocation, Relocations
from koordpolicy.descheduler.rules import ProfileRules, Stays, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.model.pod import Pod, PodKey


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is to leave its node. `target`: where the scheduler would put it, or, where that was not asked, a node that has room
    for it; empty where neither was.

    `dry`: it is only said.
    """

    pod: Pod
    node: str
    strategy: str
    reason: str
    target: str = ""
    dry: bool = False


Allowed = Callable[[Sequence[Pod], SeenPod], Stays | None]
"""Why a pod may not go beside others that go: a disruption budget, or that it was refused before."""


@dataclass(slots=True)
class Moves:
    """What goes, against conditions and limits of the profile."""

    rules: ProfileRules
    now: int
    allowed: Allowed
    relocations: Relocations | None = None
    found: list[Move] = field(default_factory=list)
    kept: dict[PodKey, Stays] = field(default_factory=dict)
    """The pods that a strategy would have go, and that would end no better, or not where the strategy means them to."""
    _going: set[PodKey] = field(default_factory=set)
    _by_strategy: Counter[str] = field(default_factory=Counter)
    _stays: dict[PodKey, Stays | None] = field(default_factory=dict)
    _limiter: EvictionLimiter = field(init=False)

    def __post_init__(self) -> None:
        self._limiter = EvictionLimiter(self.rules.limits)

    def why_not(self, pod: SeenPod, node: SeenNode) -> Stays | None:
        """Why a pod stays; None where it may go now."""
        key = pod.pod.key
        if key in self._going:
            return Stays("going", "it is to go already")
        limit = self._limiter.refusal(node.name, pod.pod.namespace)
        if limit is not None:
            return Stays(f"limits.{limit}", "enough pods go in this round")
        if key not in self._stays:
            self._stays[key] = self.rules.stays(pod.facts, node.facts, self.now)
        found = self._stays[key]
        if found is not None:
            return found
        return self.allowed([one.pod for one in self.found], pod)

    def going_by(self, strategy: str) -> int:
        """How many pods go for the reason of a strategy."""
        return self._by_strategy[strategy]

    def relocation(self, pod: SeenPod, node: SeenNode, strategy: StrategyRules) -> str | Stays:
        """Where the scheduler would put a pod, empty where it is not asked; or why that is no better than where it is."""
        least = None if self.relocations is None else strategy.better_by(pod.facts, node.facts, self.now)
        if self.relocations is None or least is None:
            return ""
        found = self.relocations.of(pod.pod)
        why = _no_better(found, node.name, least)
        return self.keep(pod, strategy, "relocating", why) if why else found.node

    def keep(self, pod: SeenPod, strategy: StrategyRules, field: str, why: str) -> Stays:
        """A pod stays that a strategy would have go."""
        stays = self.kept[pod.pod.key] = Stays(f"strategies[{strategy.name}].{field}", why)
        return stays

    def add(
        self, pod: SeenPod, node: SeenNode, strategy: StrategyRules, reason: str, target: str = ""
    ) -> None:
        """The pod goes."""
        self._going.add(pod.pod.key)
        self._by_strategy[strategy.name] += 1
        self.kept.pop(pod.pod.key, None)
        self._limiter.charge(node.name, pod.pod.namespace)
        if self.relocations is not None and target:
            self.relocations.goes(pod.pod, target)
        dry = self.rules.dry_run or strategy.dry_run
        self.found.append(Move(pod.pod, node.name, strategy.name, reason, target, dry))


def _no_better(found: Relocation, own: str, least: float) -> str:
    """Why a pod would end no better; empty where it would."""
    if not found.node:
        return f"the scheduler would find no node for it: {found.why}"
    if found.node == own:
        return "the scheduler would put it on its node again"
    if found.gain is not None and not found.gain > least:
        more = f", and has to by more than {least:g}" if least else ""
        return f"the scheduler would put it on {found.node}, which counts for {found.gain:g} more than its node{more}"
    return ""
