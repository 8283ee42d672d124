"""The smallest change of a value that makes a difference."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from koordpolicy.algorithms.work import Work
from koordpolicy.language.cel.types import DURATION, Type, Unit
from koordpolicy.language.cel.values import Duration
from koordpolicy.scheduler.plugins.base import PAUSE

Works = Callable[[Any], bool]
"""Whether nodes would pass with this value. It is asked a few dozen times at most, with a pause after each."""

_DOUBLINGS: Final = 40
_PERCENT: Final = 100
_SECOND: Final = 10**9
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_DURATIONS: Final = (
    *(1, 2, 5, 10, 15, 20, 30, 45),
    *(one * _MINUTE for one in (1, 2, 3, 5, 10, 15, 20, 30, 45)),
    *(one * _HOUR for one in (1, 2, 3, 6, 12)),
    *(one * _DAY for one in (1, 2, 3, 7, 14, 30, 90, 365)),
)
"""In seconds."""


def nearest_value(type: Type, now: Any, works: Works) -> Work[Any]:
    """The value next to the present one with which it works, in either direction; None for none.

    Where it works from a value on, that value is found: percentages to the percent, amounts to the hundredth, durations among
    those that people set, for what is compared with an age is another one a second later. Of two directions the larger value
    comes first, and 0, which often stands for "no limit", only when nothing else works.
    """
    if type.name == "bool":
        other = works(not now)
        yield PAUSE
        return (not now) if other else None
    if type == DURATION:
        for seconds in _settings(_number(type, now)):
            works_then = works(_value(type, seconds))
            yield PAUSE
            if works_then:
                return _value(type, seconds)
        return None
    for low, high in _ranges(type, now):
        found = yield from _between(low, high, lambda number: works(_value(type, number)))
        if found is not None:
            return _value(type, found)
    return None


def _settings(now: int) -> Iterator[int]:
    """Durations in seconds worth a thought, the next ones first: longer ones, shorter ones, and none at all."""
    yield from (one for one in _DURATIONS if one > now)
    yield from (one for one in reversed(_DURATIONS) if one < now)
    if now > 0:
        yield 0


def _ranges(type: Type, now: Any) -> Iterator[tuple[int, int]]:
    """Where to look: from the present value, which does not work, to the farthest worth a thought."""
    number = _number(type, now)
    if type.unit is Unit.PERCENT:
        if number < _PERCENT:
            yield number, _PERCENT
        if number > 0:
            yield number, 0
        return
    yield number, max(1, number) << _DOUBLINGS if number < 1 << 20 else number * 1024
    if number > 0:
        yield number, 0


def _between(fails: int, end: int, works: Callable[[int], bool]) -> Work[int | None]:
    """The first number from `fails` on towards `end` that works, by doubling the step and then halving it."""
    sign = 1 if end > fails else -1
    step, reached = 1, fails
    while True:
        next_one = fails + sign * min(step, abs(end - fails))
        found = works(next_one)
        yield PAUSE
        if found:
            break
        if next_one == end:
            return None
        reached, step = next_one, step * 2
    while abs(next_one - reached) > max(1, abs(next_one) // 200):
        middle = (next_one + reached) // 2
        if works(middle):
            next_one = middle
        else:
            reached = middle
        yield PAUSE
    return next_one


def _number(type: Type, value: Any) -> int:
    """The value counted in the smallest steps worth looking at."""
    return value.ns // _SECOND if isinstance(value, Duration) else int(value)


def _value(type: Type, number: int) -> Any:
    if type == DURATION:
        return Duration(number * _SECOND)
    return float(number) if type.name == "double" else number
