"""The pods that are to leave their nodes in one round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from koordpolicy.algorithms.descheduling.eviction_limiter import EvictionLimiter
from koordpolicy.descheduler.rules import ProfileRules, Stays, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.model.pod import Pod, PodKey


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is to leave its node. `target`: a node that has room for it, empty where that was not asked.

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
    found: list[Move] = field(default_factory=list)
    _going: set[PodKey] = field(default_factory=set)
    _stays: dict[PodKey, Stays | None] = field(default_factory=dict)
    _limiter: EvictionLimiter = field(init=False)

    def __post_init__(self) -> None:
        self._limiter = EvictionLimiter(self.rules.limits)

    def why_not(self, pod: SeenPod, node: SeenNode) -> Stays | None:
        """Why a pod stays; None where it may go now."""
        key = pod.pod.key
        if key in self._going:
            return Stays("going", "it is to go already")
        if key not in self._stays:
            self._stays[key] = self.rules.stays(pod.facts, node.facts, self.now)
        found = self._stays[key]
        if found is not None:
            return found
        limit = self._limiter.refusal(node.name, pod.pod.namespace)
        if limit is not None:
            return Stays(f"limits.{limit}", "enough pods go in this round")
        return self.allowed([one.pod for one in self.found], pod)

    def add(
        self, pod: SeenPod, node: SeenNode, strategy: StrategyRules, reason: str, target: SeenNode | None
    ) -> None:
        """The pod goes."""
        self._going.add(pod.pod.key)
        self._limiter.charge(node.name, pod.pod.namespace)
        dry = self.rules.dry_run or strategy.dry_run
        self.found.append(
            Move(pod.pod, node.name, strategy.name, reason, "" if target is None else target.name, dry)
        )
