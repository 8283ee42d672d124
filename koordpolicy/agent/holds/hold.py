"""One thing that may hold a pod back, as policy says it, and what is known of the pod and its node."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from koordpolicy.diagnostics import Span
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod


class HoldState(StrEnum):
    """What a strategy means for the pod."""

    HOLDS = "holds"
    """It is held to what is said."""
    MAY = "may"
    """It is held back in a case that only the node's agent sees."""
    SPARES = "spares"
    """Policy speaks of it, and leaves this pod alone or gives it more."""
    OFF = "off"
    """No policy asks for it."""
    UNKNOWN = "unknown"
    """Policy cannot say it by what is known here."""


@dataclass(frozen=True, slots=True)
class AskedDecision:
    """A decision and the records that it is asked about, by root."""

    decision: str
    roots: Mapping[str, Any]


class Setting(NamedTuple):
    """A part of a document that no expression decides on, and where it stands."""

    name: str
    document: str
    span: Span


@dataclass(frozen=True, slots=True)
class Hold:
    """What one strategy means for a pod: `says` it in words, `asked` are the decisions behind it.

    `own` is the pod's annotation that says it over policy, empty without one. `unseen` says what only the node knows.
    `settings` are parts of documents behind it that are no decisions.
    """

    title: str
    kind: str
    state: HoldState
    says: str
    asked: tuple[AskedDecision, ...] = ()
    own: str = ""
    unseen: str = ""
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldPod:
    """A pod on its node: the object, its record among those of the node, the node's record as the agent has it, and the moment."""

    graph: RuleGraph
    pod: Pod
    facts: Facts
    node: Record
    now: int
    """Nanoseconds since 1970."""
    roots: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        said = {"node": self.node, "pod": self.facts, "now": TIMES.timestamp(self.now)}
        object.__setattr__(self, "roots", said)

    @property
    def best_effort(self) -> bool:
        """Whether its group stands among those of best-effort pods, which are held back as one."""
        return str(self.facts["kubernetesQoS"]) == "BestEffort"

    def asked(self, *decisions: str) -> tuple[AskedDecision, ...]:
        """Those of the decisions that any policy speaks of."""
        return tuple(AskedDecision(one, self.roots) for one in decisions if one in self.graph)

    def own(self, annotation: str) -> str:
        """The annotation where the pod has it, else nothing."""
        return annotation if self.facts["annotations"].get(annotation) else ""


def cores(millicores: float) -> str:
    """`1.5 cores`."""
    number = f"{millicores / 1000:.4g}"
    return f"{number} core{'' if number == '1' else 's'}"
