"""Pairs of values as people read them: `32 -> 28 cores (-4, -12.5 %)`."""

from typing import Any

from koordpolicy.graph.diff.changes import Moves, Told
from koordpolicy.graph.notation import plain_number, show
from koordpolicy.language.cel.types import Type, Unit

ARROW = "->"
AMOUNTS = frozenset((Unit.CPU, Unit.BYTES, Unit.BANDWIDTH, Unit.AMOUNT))
"""Units of which it says something how far a value moved."""

_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_DECIMAL = (("G", 10**9), ("M", 10**6), ("k", 10**3))


def told_text(told: Told) -> str:
    """One value with its unit: `28 cores`, `76.8Gi`, `65%`, `nothing`, `no answer: no such key`."""
    return f"no answer: {told.error}" if told.error is not None else value_text(told.type, told.value)


def value_text(type: Type, value: Any) -> str:
    """A value with its unit. Amounts of bytes are rounded to a tenth of the unit they are shown in."""
    number = _number(type, value)
    if number is None:
        return show(type, value)
    text, unit = number
    return f"{text} {unit}" if unit == "cores" else text + unit


def pair_text(old: Told, new: Told) -> str:
    """Both values, a common unit said once, and for amounts how far they are apart."""
    before, after = told_text(old), told_text(new)
    if before.endswith(" cores") and after.endswith(" cores"):
        before = before.removesuffix(" cores")
    text = f"{before} {ARROW} {after}"
    apart = distance(new.type, old.value, new.value) if old.error is None and new.error is None else ""
    return f"{text} ({apart})" if apart else text


def distance(type: Type, old: Any, new: Any) -> str:
    """How far an amount moved, absolutely and in percent; "" where that says nothing."""
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new)):
        return ""
    if type.unit not in AMOUNTS:
        return ""
    sign = "+" if new >= old else "-"
    amount = value_text(type, abs(new - old)).removesuffix(" cores")
    if old == 0 or new == 0 or (old < 0) != (new < 0):
        return f"{sign}{amount}"
    percent = _percent((new - old) / abs(old) * 100)
    return f"{sign}{amount}, {'' if percent.startswith('-') else '+'}{percent} %"


def moves_text(moves: Moves) -> str:
    """How far an amount moves: `falls by 3.1 to 6.4 cores (19 to 39 %) on everyday nodes`."""
    low, high = moves.steps
    falls, rises = high < 0, low > 0
    if falls or rises:
        least, most = sorted((abs(low), abs(high)))
        steps = _range(value_text(moves.type, least), value_text(moves.type, most))
        shares = () if moves.shares is None else sorted(map(abs, moves.shares))
        percents = [_percent(share) for share in shares]
        text = f"{'falls' if falls else 'rises'} by {steps}"
    else:
        text = f"moves by {_range(value_text(moves.type, low), f'+{value_text(moves.type, high)}')}"
        percents = (
            [] if moves.shares is None else [_percent(moves.shares[0]), f"+{_percent(moves.shares[1])}"]
        )
    share = f" ({_range(*(f'{percent} %' for percent in percents))})" if percents else ""
    return f"{text}{share} {moves.on}"


def _range(low: str, high: str) -> str:
    """Two texts with one unit, which is said once: `3.1 to 6.4 cores`."""
    if low == high:
        return low
    unit = high.lstrip("0123456789.,+-")
    return f"{low.removesuffix(unit) if unit and low.endswith(unit) else low} to {high}"


def _percent(share: float) -> str:
    return plain_number(round(share, 1 if abs(share) < 10 else 0))


def _number(type: Type, value: Any) -> tuple[str, str] | None:
    """An amount as digits and unit; None for what is no amount of a unit."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if type.unit is Unit.CPU:
        return _digits(value / 1000, 3), "cores"
    if type.unit is Unit.BYTES:
        return _scaled(value, _BINARY)
    if type.unit is Unit.BANDWIDTH:
        return _scaled(value, _DECIMAL)
    return None


def _scaled(value: float, steps: tuple[tuple[str, int], ...]) -> tuple[str, str]:
    for suffix, size in steps:
        if abs(value) >= size:
            return _digits(value / size, 1), suffix
    return _digits(value, 0), ""


def _digits(value: float, places: int) -> str:
    """A number with thousands set apart and no idle zeros."""
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
