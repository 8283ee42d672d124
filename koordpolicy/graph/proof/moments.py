"""Moments worth trying where expressions read a clock or a calendar: one for each way in which what they ask of it turns out."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from koordpolicy.graph.proof.reads import Reads, reads_of
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import inline_binds, number, walk
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import NANOS, local_seconds, make_timestamp

MOST_MOMENTS: Final = 150
"""Moments that are tried for one decision."""

_ASKED: Final = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_", "@in"))
_MOST_ASKED: Final = 40
_MOST_DAYS: Final = 40
_MOST_MINUTES: Final = 8
_SECOND: Final = NANOS
_MINUTE: Final = 60 * NANOS
_HOUR: Final = 3_600 * NANOS
_DAY: Final = 86_400 * NANOS
_YEARS: Final = 1_461
"""Days of four years, in which every day of the calendar comes, the 29th of February too."""

_MONTH: Final = 30 * _DAY
_MONTHS: Final = 700
"""Of these 57 years; before that zones were other ones."""

_MOST_ZONES: Final = 6
_MOST_APART: Final = 6

_FIRST_YEAR, _LAST_YEAR = 1971, 2400
_NOW: Final = "now"


def moments_of(expressions: Iterable[ir.Node], base: int) -> tuple[int, ...]:
    """Moments in nanoseconds since 1970, the first ones from the day of `base` on; none where no clock is read.

    Of moments on which the same is answered to all that is asked of the clock alone only the first is there.
    """
    trees = [inline_binds(one) for one in expressions]
    asked = list(_of_the_clock(trees))
    if not asked:
        return ()
    try:
        program = compile_row((_NOW,), {f"{at}": node for at, node in enumerate(asked)})
    except ValueError:
        return ()
    reads = reads_of(asked)
    start = base - base % _DAY
    known: dict[tuple[object, ...], int] = {}
    days: list[int] = []
    for day in _days(reads, start):
        if _is_new(program, day, known):
            days.append(day)
        if len(days) >= _MOST_DAYS:
            break
    for beside in reads.moments:
        for step in (_SECOND, -_SECOND):
            _is_new(program, beside + step, known)
    apart = list(islice(_days_apart(_zones(asked), start), _MOST_APART))
    for hour in range(24):
        for minute in _minutes(reads, asked):
            for day in (start, *days, *apart):
                if len(known) < MOST_MOMENTS:
                    _is_new(program, day + hour * _HOUR + minute * _MINUTE, known)
    return tuple(known.values())


def _is_new(program: RowProgram, moment: int, known: dict[tuple[object, ...], int]) -> bool:
    """Whether the answers at a moment are none of those before; it is kept then."""
    try:
        answers = program.call(make_timestamp(moment))
    except CelError:
        return False
    told = tuple("failed" if isinstance(one, CelError) else _key(one) for one in answers.values())
    if told in known:
        return False
    known[told] = moment
    return True


def _key(answer: Any) -> object:
    return answer.ns if isinstance(answer, Timestamp) else answer


def _of_the_clock(trees: list[ir.Node]) -> Iterator[ir.Node]:
    """What is asked of the clock and of nothing else: comparisons, and parts of a moment that stand in none of these."""
    table = number(trees)
    reads_now: list[bool] = []
    alone: list[bool] = []
    for node, below in zip(table.nodes, table.operands, strict=True):
        name = node.name if isinstance(node, ir.Var) and not node.local else ""
        is_now = name == _NOW
        reads_now.append(is_now or any(reads_now[child] for child in below))
        alone.append(name in ("", _NOW) and all(alone[child] for child in below))
    within: set[int] = set()
    found = 0
    # Comparisons are looked at before what they compare: operands have lower numbers.
    for at in reversed(range(len(table.nodes))):
        node = table.nodes[at]
        if not (isinstance(node, ir.Call) and reads_now[at] and alone[at]) or table.free[at]:
            continue
        is_asked = node.overload.partition("(")[0] in _ASKED
        is_part = node.overload.startswith("get") and node.type.name == "int" and at not in within
        if (is_asked or is_part) and found < _MOST_ASKED:
            found += 1
            within |= {table.of(part) for part in walk(node)}
            yield node


def _days(reads: Reads, start: int) -> Iterator[int]:
    """Midnights: of the coming four years, of the moments that are named, and of years that are."""
    yield from (start + day * _DAY for day in range(_YEARS))
    for moment in reads.moments:
        yield from (moment, moment - _DAY, moment + _DAY)
    for year in reads.integers:
        if _FIRST_YEAR <= year <= _LAST_YEAR:
            # Days are counted from 1970, a leap day for every fourth year; one more or less is no matter.
            first = ((year - 1970) * 365 + (year - 1969) // 4) * _DAY
            yield from (first + day * _DAY for day in range(-1, 367))


def _zones(asked: list[ir.Node]) -> list[str]:
    """The time zones that a clock is read in."""
    named = {
        node.args[1].value: None
        for node in walk(*asked)
        if isinstance(node, ir.Call)
        and node.overload.startswith("get")
        and len(node.args) > 1
        and isinstance(node.args[1], ir.Const)
    }
    return [name for name in named if isinstance(name, str)][:_MOST_ZONES]


def _days_apart(zones: list[str], start: int) -> Iterator[int]:
    """Days on which zones lie apart in another way than they do today: months of half a century, the latest first."""
    known: set[tuple[int, ...]] = set()
    for month in range(_MONTHS) if len(zones) > 1 else ():
        day = start - month * _MONTH
        try:
            clocks = [local_seconds(Timestamp(day), zone) for zone in zones]
        except CelError:
            return
        apart = tuple(clock - clocks[0] for clock in clocks)
        if apart not in known:
            known.add(apart)
            yield day


def _minutes(reads: Reads, asked: list[ir.Node]) -> list[int]:
    """Minutes of an hour: the first, and where minutes are asked for those that are named, with the ones beside them."""
    if not any(isinstance(node, ir.Call) and "getMinutes" in node.overload for node in walk(*asked)):
        return [0]
    named = dict.fromkeys(abs(one) % 60 for one in reads.integers)
    beside = dict.fromkeys((minute + step) % 60 for step in (0, 1, -1) for minute in named)
    return list(dict.fromkeys((0, *beside)))[:_MOST_MINUTES]
