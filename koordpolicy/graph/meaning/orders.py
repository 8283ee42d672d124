"""Values that belong together, and stand the wrong way round."""

from dataclasses import dataclass
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.catalogue import PRIORITY_BAND
from koordpolicy.graph.meaning.bands import place
from koordpolicy.graph.meaning.constants import reached_constants
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State


@dataclass(frozen=True, slots=True)
class Order:
    """Of two fields of one kind `less` must stay below `more`; `why` says what happens otherwise.

    It is a warning where Koordinator takes such values, and does nothing.
    """

    kind: str
    less: str
    more: str
    why: str
    severity: Severity = Severity.ERROR


_NOTHING_EVICTED: Final = "eviction would begin where it ends, and nothing would be evicted"

ORDERS: tuple[Order, ...] = (
    Order(
        "CPUSuppress",
        "growth.deadband",
        "growth.step",
        "every step would be too small to be written, and no CPU would ever be given back",
    ),
    Order("MemoryEviction", "lower", "threshold", _NOTHING_EVICTED, Severity.WARNING),
    Order("MemoryEviction", "byRequests.lower", "byRequests.threshold", _NOTHING_EVICTED, Severity.WARNING),
    Order("CPUEviction", "byPriority.lower", "byPriority.threshold", _NOTHING_EVICTED, Severity.WARNING),
    Order("CPUEviction", "byRequests.lower", "byRequests.threshold", _NOTHING_EVICTED, Severity.WARNING),
    Order("CPUEviction", "bestEffort.threshold", "bestEffort.upper", _NOTHING_EVICTED, Severity.WARNING),
    Order(
        "Isolation",
        "cache.start",
        "cache.end",
        "the class would have no part of the cache",
        Severity.WARNING,
    ),
)
"""Pairs of the built-in kinds."""


def orders(state: State) -> None:
    """KP407 for pairs in the wrong order, KP403 for a PriorityClass outside its own band."""
    for order in ORDERS:
        for key, decision in state.decisions.items():
            if key.kind == order.kind and key.field == order.less:
                other = state.decisions.get(DecisionKey(key.kind, key.subject, order.more))
                if other is not None:
                    _compare(state, order, decision, other)
    _priority_classes(state)


def _compare(state: State, order: Order, less: Decision, more: Decision) -> None:
    """Of each document that says one of them: its value, beside the other one as it holds there."""
    lows, highs = reached_constants(state, less), reached_constants(state, more)
    pairs = [(low, _beside(low, highs)) for low in lows] + [(_beside(high, lows), high) for high in highs]
    told: set[Rule] = set()
    dangerous = {found.span for found in state.found if found.code == "KP406"}
    for low, high in pairs:
        if low is None or high is None or not _reversed(low[1], high[1]):
            continue
        if low[0].span in dangerous or high[0].span in dangerous:
            continue  # a value that is wrong by itself is in no order either
        blamed, other = (low, high) if low[0].rank >= high[0].rank else (high, low)
        if blamed[0] in told:
            continue
        told.add(blamed[0])
        state.found.add(
            "KP407",
            blamed[0].span,
            f"`{order.less}` is {show(less.type, low[1])}, not below `{order.more}`, {show(more.type, high[1])}",
            notes=(Note(f"`{other[0].key.field}` is said here", other[0].span),),
            help=order.why,
            severity=order.severity,
        )


def _beside(said: tuple[Rule, object], others: list[tuple[Rule, object]]) -> tuple[Rule, object] | None:
    """The other value of the same document, else the highest one that holds everywhere."""
    same = [
        pair for pair in others if pair[0].document == said[0].document and pair[0].layer == said[0].layer
    ]
    everywhere = [pair for pair in others if pair[0].match.test is None]
    return next(iter(same or everywhere), None)


def _reversed(low: object, high: object) -> bool:
    return isinstance(low, float) and isinstance(high, float) and low >= high


def _priority_classes(state: State) -> None:
    """The priority that a band's PriorityClass gives must be one of the band."""
    for name, said in state.classes.bands.items():
        low, high, value = said.get("range.from"), said.get("range.to"), said.get("priorityClass.value")
        if low is None or high is None or value is None or low > high or low <= value <= high:
            continue
        state.found.add(
            "KP403",
            place(state, name, "priorityClass.value", PRIORITY_BAND),
            f"the PriorityClass of the band `{name}` gives {value}, which lies outside {low} to {high}",
            help="choose a priority within the band",
        )
