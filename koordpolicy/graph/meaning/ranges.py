"""Dangerous constants: values that are well formed, and would do harm or nothing at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.meaning.constants import constants_of
from koordpolicy.graph.notation import show
from koordpolicy.graph.passes.parameters import PREFIX
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.types import DURATION, PERCENT, Type, Unit
from koordpolicy.language.cel.values import Duration

_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a decision's value, in points for percentages and nanoseconds for durations.

    `why` completes the sentence "because ...". Without `low_fits` the lower bound itself is outside.
    """

    kind: str
    field: str
    type: Type
    why: str
    low: float = -inf
    high: float = inf
    low_fits: bool = True
    severity: Severity = Severity.ERROR

    def admits(self, value: float) -> bool:
        above = value >= self.low if self.low_fits else value > self.low
        return above and value <= self.high

    @property
    def words(self) -> str:
        """What to write."""
        low = (
            ""
            if self.low == -inf
            else f"{'at least' if self.low_fits else 'more than'} {self._shown(self.low)}"
        )
        high = "" if self.high == inf else f"at most {self._shown(self.high)}"
        return " and ".join(part for part in (low, high) if part)

    def _shown(self, bound: float) -> str:
        return show(self.type, Duration(int(bound)) if self.type == DURATION else bound)


def _share(kind: str, field: str, why: str, *, low: float = 0.0, low_fits: bool = True) -> Range:
    return Range(kind, field, PERCENT, why, low=low, high=100.0, low_fits=low_fits)


def _time(kind: str, field: str, why: str, *, low: float = 0.0, low_fits: bool = False) -> Range:
    return Range(kind, field, DURATION, why, low=low, low_fits=low_fits)


RANGES: tuple[Range, ...] = (
    _share("ColocationProfile", "probability", "it is a share of the matching pods"),
    _share("SchedulingProfile", "sampling", "it is a share of the nodes"),
    _share(
        "CPUSuppress",
        "growth.step",
        "best-effort work would never get back the CPU that was taken from it",
        low_fits=False,
    ),
    _share("CPUSuppress", "growth.deadband", "no change would ever be written"),
    _time("CPUSuppress", "interval", "the agent would do nothing else"),
    _time("CPUSuppress", "onMissing.after", "every measurement would count as missing"),
    _time(
        "CPUSuppress",
        "minimumQuota",
        "the kernel runs nothing on a smaller quota",
        low=_MILLISECOND,
        low_fits=True,
    ),
    _time("Overcommit", "onMissing.after", "every metric would count as missing"),
    _time("Overcommit", "publish.atLeastEvery", "every node would be written all the time"),
    _share("Overcommit", "publish.whenChangedBy", "no change would ever be written"),
)
"""What the values of the built-in kinds must lie between."""


def ranges(state: State) -> None:
    """KP406 for constants outside their range, and for negative percentages of parameters."""
    by_kind: dict[str, list[Range]] = {}
    for one in RANGES:
        by_kind.setdefault(one.kind, []).append(one)
    told: set[Rule] = set()
    for key, decision in state.decisions.items():
        for one in by_kind.get(key.kind, ()):
            if one.field == key.field:
                _judge(state, decision, one, told)
        if key.field.startswith(PREFIX):
            _negative(state, decision, told)


def _judge(state: State, decision: Decision, bounds: Range, told: set[Rule]) -> None:
    for rule, value in constants_of(state, decision):
        number = value.ns if isinstance(value, Duration) else value
        if not isinstance(number, int | float) or bounds.admits(number) or rule in told:
            continue
        told.add(rule)
        state.found.add(
            "KP406",
            rule.span,
            f"`{decision.key}` is {show(bounds.type, value)}: {bounds.why}",
            help=f"write {bounds.words}",
            severity=bounds.severity,
        )


def _negative(state: State, decision: Decision, told: set[Rule]) -> None:
    """A negative share of something is a slip, wherever it is used."""
    if not _is_percent(decision.type):
        return
    for rule, value in constants_of(state, decision):
        held = list(value.values()) if isinstance(value, Mapping) else value
        numbers: Iterable[object] = held if isinstance(held, list | tuple) else (held,)
        worst = min((number for number in numbers if isinstance(number, float)), default=0.0)
        if worst < 0 and rule not in told:
            told.add(rule)
            state.found.add(
                "KP406",
                rule.span,
                f"`{decision.key}` has a negative share, {show(PERCENT, worst)}",
                help=f"shares count from 0%; did you mean `{show(PERCENT, -worst)}`?",
            )


def _is_percent(type: Type) -> bool:
    return type.unit is Unit.PERCENT or any(_is_percent(inner) for inner in type.params)
