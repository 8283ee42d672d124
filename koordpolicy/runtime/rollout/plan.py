"""What a revision says of how the next one goes live."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.kinds.base import LabelSelector as WrittenSelector
from koordpolicy.model.labels import LabelSelector, read_selector

KIND: Final = "Rollout"
PAUSE: Final = "Pause"

_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One step. Times in nanoseconds, shares in percent points.

    `sample` is the share of decisions on which both revisions are asked, `keep` how many differing answers are
    kept. The new revision decides about the nodes that `nodes` selects, and places the pods that `pods` selects, as far
    as their place is below `share`. A share alone is of all nodes and of all pods.
    """

    name: str
    hold: int
    until_resumed: bool = False
    sample: float = 0.0
    keep: int = 0
    nodes: LabelSelector | None = None
    share: float | None = None
    pods: LabelSelector | None = None

    @property
    def of_nodes(self) -> bool:
        """Whether the new revision decides about some nodes."""
        return self.nodes is not None or (self.share is not None and self.pods is None)

    @property
    def of_pods(self) -> bool:
        """Whether the new revision places some pods."""
        return self.pods is not None or (self.share is not None and self.nodes is None)

    @property
    def has_canary(self) -> bool:
        """Whether the new revision decides about anything."""
        return self.of_nodes or self.of_pods


@dataclass(frozen=True, slots=True)
class RolloutGuard:
    """What is done when a guard fails for longer than `patience` nanoseconds.

    That it cannot be told counts as a failure once a step has lasted `known_within` nanoseconds; never where that is None.
    """

    name: str
    patience: int = 0
    pauses: bool = False
    known_within: int | None = None


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The steps and guards in force. `kinds` are those whose changes go step by step, all where it is empty."""

    steps: tuple[RolloutStep, ...]
    guards: tuple[RolloutGuard, ...] = ()
    every: int = 10 * _SECOND
    kinds: frozenset[str] = frozenset()

    def concerns(self, changed: frozenset[str]) -> bool:
        """Whether a change of these kinds goes step by step."""
        return bool(self.steps) and bool(changed & self.kinds if self.kinds else changed)


def plan_of(graph: RuleGraph, facts: Mapping[str, Any], now: int) -> RolloutPlan:
    """The plan by the rules of `graph`, the old revision. Raises `CelError` where it cannot be told for these facts.

    A step or guard whose document does not apply now is left out.
    """
    if not graph.subjects(KIND):
        return RolloutPlan(())
    ask = _Questions(graph.about(KIND, "", {"rollout": facts, "now": Timestamp(now)}))
    steps = (ask.step(item.name, item.fields) for item in graph.items(KIND, "", "steps"))
    guards = (ask.guard(item.name) for item in graph.items(KIND, "", "guards"))
    return RolloutPlan(
        tuple(step for step in steps if step is not None),
        tuple(guards),
        max(_SECOND, ask.duration("every", 10 * _SECOND)),
        frozenset(graph.setting(KIND, "", "kinds") or ()),
    )


@dataclass(frozen=True, slots=True)
class _Questions:
    """The old revision's answers on one state of the rollout."""

    about: About

    def duration(self, field: str, otherwise: int = 0) -> int:
        value = self.about.value(field)
        return max(0, value.ns) if isinstance(value, Duration) else otherwise

    def step(self, name: str, fields: Mapping[str, Any]) -> RolloutStep | None:
        at = f"steps[{name}]"
        hold, resumed = self.about.value(f"{at}.hold"), self.about.value(f"{at}.untilResumed")
        if hold is None and not resumed:
            return None
        shadow, canary = fields.get("shadow"), fields.get("canary")
        sample = self.about.value(f"{at}.shadow.sample") if shadow is not None else 0.0
        keep = self.about.value(f"{at}.shadow.keep") if shadow is not None else 0
        share = self.about.value(f"{at}.canary.share") if canary is not None else None
        nodes = canary.nodes if canary is not None else None
        pods = canary.pods if canary is not None else None
        return RolloutStep(
            name,
            max(0, hold.ns) if isinstance(hold, Duration) else 0,
            bool(resumed),
            _percent(sample),
            int(keep or 0),
            None if nodes is None else _selector(nodes),
            None if share is None else _percent(share),
            None if pods is None else _selector(pods),
        )

    def guard(self, name: str) -> RolloutGuard:
        at = f"guards[{name}]"
        known = self.about.value(f"{at}.knownWithin")
        return RolloutGuard(
            name,
            self.duration(f"{at}.patience"),
            self.about.value(f"{at}.action") == PAUSE,
            max(0, known.ns) if isinstance(known, Duration) else None,
        )


def _percent(value: Any) -> float:
    return min(100.0, max(0.0, float(value or 0.0)))


def _selector(written: WrittenSelector) -> LabelSelector:
    return read_selector(written.model_dump(by_alias=True))
