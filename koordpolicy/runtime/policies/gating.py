"""What may hold a candidate back: a gate, which says stage by stage where it decides already, and what comes of it.

Calls run one way. Live policies ask the gate and are alone in swapping graphs; a gate knows nothing of them.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from koordpolicy.graph import RuleGraph
from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.policy_revision import InstanceState
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision, Reason

GoesAhead: TypeAlias = Callable[[str, Mapping[str, str]], bool]
"""Whether a candidate decides about a node, by the node's name and labels; places a pod, by `NAMESPACE/NAME` and labels."""

Observe: TypeAlias = Callable[[RuleGraph, RuleGraph], tuple[RuleGraph, RuleGraph]]
"""The active graph and the candidate's, equal in all their answers, which tell somebody what they are asked.

Called with both whenever either is another one, as when exceptions begin or end.
"""


@dataclass(frozen=True, slots=True)
class DecisionComparison:
    """One decision by both revisions: answers as texts, nanoseconds that each took, and the facts to look at.

    `failed` says that only the candidate came to no answer.
    """

    decision: str
    active: str
    candidate: str
    agree: bool
    failed: bool
    active_time: int
    candidate_time: int
    facts: Mapping[str, Any]


class DecisionObserver(Protocol):
    """Is told of decisions that are made of more than one question, by who can make them by the candidate too."""

    def wants(self, decision: str) -> bool:
        """Whether the next decision of this name is to be made by both revisions."""
        ...

    def note(self, comparison: DecisionComparison) -> None:
        """Both have decided."""
        ...

    def drop(self) -> None:
        """It was wanted, and could not be made by both."""
        ...


@dataclass(frozen=True, slots=True)
class NodePart:
    """Nodes that go ahead: those that `nodes` selects, as far as their place is below `share` percent points. All without either."""

    nodes: LabelSelector | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class RolloutReach:
    """How far a step lets a candidate go, as data for other processes.

    `parts` are of nodes that go ahead, by this step or one before it. Of `sample` percent points of the decisions both revisions
    are asked, and `keep` differing answers are kept.
    """

    step: str
    parts: tuple[NodePart, ...] = ()
    sample: float = 0.0
    keep: int = 0


@dataclass(frozen=True, slots=True)
class RolloutStage:
    """How far a candidate is let go, for now.

    `reach` is that as data. `nodes` says which nodes it decides about, None where there are none. `here` says whether it decides where nobody asks
    about a certain node, as in the process of a node that goes ahead. `pods` says which pods it places, None where there are
    none; whoever places pods asks both graphs. `observe` is for decisions that graphs are asked,
    `observer` for those that are made of many. `state` and `message` are how people see it.
    """

    nodes: GoesAhead | None = None
    here: bool = False
    observe: Observe | None = None
    observer: DecisionObserver | None = None
    pods: GoesAhead | None = None
    state: InstanceState = InstanceState.SHADOW
    message: str = "the revision is being rolled out"
    reach: RolloutReach | None = None

    def decides_like(self, other: "RolloutStage") -> bool:
        """Whether the two differ for people only."""
        return (self.nodes, self.here, self.observe) == (other.nodes, other.here, other.observe)


@dataclass(frozen=True, slots=True)
class Admission:
    """The last word of a gate on a candidate: it takes over, or is turned back; `message` is one phrase on why, `reason` its word."""

    accepted: bool
    message: str = ""
    reason: Reason = Reason.GUARD_REFUSED


class Gate(Protocol):
    """Decides whether, when and by which stages a candidate takes over."""

    def admit(
        self, candidate: CandidateRevision, active: ActiveRevision
    ) -> AsyncGenerator[RolloutStage | Admission, None]:
        """The stages as they come, however long that takes, and last an Admission.

        Closed, or cancelled, when a newer revision compiles, the policies go back, or the process stops.
        """
        ...

    async def reverted(self) -> None:
        """The policies went back to what decides: what was held back before this is over.

        Cancelled when a newer revision compiles, or the process stops.
        """
        ...
