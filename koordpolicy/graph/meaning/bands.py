"""Priority bands: no overlap, no gap that nobody meant, defaults inside."""

from dataclasses import dataclass
from itertools import pairwise

from koordpolicy.diagnostics import Note, Span
from koordpolicy.graph.catalogue import PRIORITY_BAND
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import State


@dataclass(frozen=True, slots=True)
class _Band:
    name: str
    low: int
    high: int


def bands(state: State) -> None:
    """KP401 for an overlap, KP402 for a gap, KP403 for a default outside, KP407 for a reversed range."""
    known: list[_Band] = []
    for name, said in state.classes.bands.items():
        low, high = said.get("range.from"), said.get("range.to")
        if low is None or high is None:
            _missing(state, name, "range.from" if low is None else "range.to")
            continue
        if low > high:
            state.found.add(
                "KP407",
                place(state, name, "range.to"),
                f"the range of the band `{name}` ends before it begins: {low} to {high}",
                help="`from` is the lowest priority of the band, `to` the highest",
            )
            continue
        known.append(_Band(name, low, high))
        default = said.get("default")
        if default is not None and not low <= default <= high:
            state.found.add(
                "KP403",
                place(state, name, "default"),
                f"the default {default} of the band `{name}` lies outside {low} to {high}",
                help="choose a priority within the band",
            )
    known.sort(key=lambda band: (band.low, band.high, band.name))
    for lower, upper in pairwise(known):
        _neighbours(state, lower, upper)


def _neighbours(state: State, lower: _Band, upper: _Band) -> None:
    note = (Note(f"`{lower.name}` reaches up to {lower.high}", place(state, lower.name, "range.to")),)
    if upper.low <= lower.high:
        shared = f"{upper.low} to {min(lower.high, upper.high)}"
        where = place(state, upper.name, "range.from")
        if layer_of(state, lower.name, "range.to") > layer_of(state, upper.name, "range.from"):
            note = (Note(f"`{upper.name}` begins at {upper.low}", where),)
            where = place(state, lower.name, "range.to")
        state.found.add(
            "KP401",
            where,
            f"the bands `{lower.name}` and `{upper.name}` overlap: {shared} belongs to both",
            notes=note,
            help="a priority belongs to one band; move one of the limits",
        )
    elif upper.low > lower.high + 1 and state.classes.bands[upper.name].get("gapBelow") != "Permitted":
        # What a bundle says over its pack is what made the gap.
        fields = [(upper.name, "gapBelow"), (lower.name, "range.to"), (upper.name, "range.from")]
        name, field = max(fields, key=lambda one: layer_of(state, *one))
        state.found.add(
            "KP402",
            place(state, name, field),
            f"{lower.high + 1} to {upper.low - 1} belongs to no band",
            notes=note,
            help=f"extend `{lower.name}` or `{upper.name}`, or say `gapBelow: Permitted` if that is meant",
        )


def _missing(state: State, name: str, field: str) -> None:
    state.found.add(
        "KP311",
        place(state, name, field),
        f"the band `{name}` has no `{field}`",
        help="a band needs both ends of its range",
    )


def layer_of(state: State, subject: str, field: str, kind: str = PRIORITY_BAND) -> int:
    """The layer that says a field of a class or band; -1 where nobody does."""
    decision = state.decisions.get(DecisionKey(kind, subject, field))
    names = [layer.name for layer in state.layers]
    return names.index(decision.rules[0].layer) if decision is not None and decision.rules else -1


def place(state: State, subject: str, field: str, kind: str = PRIORITY_BAND) -> Span:
    """Where a class or band says a field, or where it is named when it does not."""
    decision = state.decisions.get(DecisionKey(kind, subject, field))
    if decision is not None and decision.rules:
        return decision.rules[0].span
    unit = next(unit for unit in reversed(state.units) if unit.kind.name == kind and unit.subject == subject)
    return unit.document.span
