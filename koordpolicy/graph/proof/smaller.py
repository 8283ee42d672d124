"""Examples made small: whatever need not be out of the ordinary is made ordinary again."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from koordpolicy.graph.analysis.facts import fact_at
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.language.cel.types import Unit
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.cel.values_time import NANOS
from koordpolicy.language.kinds.forms import MOST_UNITS

_MOST_ROUNDS: Final = 3
_FEW: Final = 4
_LONG: Final = 8
"""Characters of a text of which half may do; shorter ones are words as they are."""
_MOST_PLACES: Final = 12
"""Facts that differ from those of a situation, of which one or two are tried alone."""
_DAY: Final = 86_400 * NANOS
_PLENTY: Final = 10**15
"""Stands for numbers that nobody can write into a test."""


def smaller(records: Records, base: Records, keeps: Callable[[Records], bool]) -> Records:
    """The records as near to `base` and as plain as `keeps` permits; `keeps` holds of what is given back."""
    records = _few_changed(records, base, keeps)
    for _ in range(_MOST_ROUNDS):
        before = records
        for changed in _steps(records, base):
            candidate = changed(records)
            if candidate is not None and keeps(candidate):
                records = candidate
        for root, record in list(records.items()):
            for path, value in record.items() if isinstance(record, Mapping) else ():
                if isinstance(value, list | dict) and len(value) > _FEW:
                    records = _cut(records, root, path, keeps)
        if records is before:
            break
    return records


def _few_changed(records: Records, base: Records, keeps: Callable[[Records], bool]) -> Records:
    """The records with one or two facts of theirs over `base`, where that will do."""
    places = [
        (root, path)
        for root, record in records.items()
        for path in (record if isinstance(record, Mapping) else ("",))
        if _held(records, root, path) != _held(base, root, path)
    ]
    for count in (1, 2) if len(places) <= _MOST_PLACES else ():
        for chosen in combinations(places, count):
            made = dict(base)
            for root, path in chosen:
                record = made.get(root) or {}
                value = _held(records, root, path)
                made[root] = {**record, path: value} if path else value
            if keeps(made):
                return made
    return records


def _held(records: Records, root: str, path: str) -> Any:
    record = records.get(root)
    return record.get(path) if path and isinstance(record, Mapping) else record


def _cut(records: Records, root: str, path: str, keeps: Callable[[Records], bool]) -> Records:
    """The records with a long list or map as short as can be, taken from its end."""
    size = len(records[root][path]) // 2
    while size:
        held = records[root][path]
        left = held[:-size] if isinstance(held, list) else dict(list(held.items())[:-size])
        candidate = {**records, root: {**records[root], path: left}}
        if size < len(held) and keeps(candidate):
            records = candidate
        else:
            size //= 2
    return records


_Step = Callable[[Records], Records | None]


def _steps(records: Records, base: Records) -> Iterator[_Step]:
    for root, value in list(records.items()):
        usual = base.get(root)
        if isinstance(value, Mapping) and isinstance(usual, Mapping):
            yield _whole(root, usual)
            for path in dict.fromkeys((*value, *usual)):
                yield _as_usual(root, path, usual)
                for plain in _plainer(value.get(path)):
                    yield _given(root, path, plain, usual)
                for everyday in _everyday(root, path, value.get(path)):
                    yield _given(root, path, everyday, usual)
        elif not isinstance(value, Mapping):
            yield _whole(root, usual)
            if isinstance(value, Timestamp) and isinstance(usual, Timestamp):
                yield _whole(root, Timestamp(usual.ns - usual.ns % _DAY + value.ns % _DAY))
            for plain in _plainer(value):
                yield _whole(root, plain)


def _whole(root: str, value: Any) -> _Step:
    def step(records: Records) -> Records | None:
        if value is None or records.get(root) is value:
            return None
        return {**records, root: value}

    return step


def _as_usual(root: str, path: str, usual: Mapping[str, Any]) -> _Step:
    def step(records: Records) -> Records | None:
        record = records[root]
        if path in usual:
            if path in record and record[path] == usual[path]:
                return None
            return {**records, root: {**record, path: usual[path]}}
        if path not in record:
            return None
        return {**records, root: {key: held for key, held in record.items() if key != path}}

    return step


def _given(root: str, path: str, value: Any, usual: Mapping[str, Any]) -> _Step:
    def step(records: Records) -> Records | None:
        record = records[root]
        known = record.get(path)
        if path not in record or (path in usual and known is usual[path]) or not _is_plainer(value, known):
            return None  # what is as usual is as plain as can be
        return {**records, root: {**record, path: value}}

    return step


def _everyday(root: str, path: str, value: Any) -> Iterator[Any]:
    """Amounts that clusters have in place of one that is none of them, the likeliest first."""
    fact = fact_at(root, path)
    known = _EVERYDAY.get(fact.type.unit) if fact is not None and fact.type.unit is not None else None
    if known is not None and type(value) is int and value not in known:
        yield from known


_EVERYDAY: Final[Mapping[Unit, tuple[int, ...]]] = {
    Unit.CPU: (16_000, 8_000, 4_000, 32_000, 2_000, 1_000, 96_000),
    Unit.BYTES: (64 << 30, 32 << 30, 16 << 30, 8 << 30, 4 << 30, 1 << 30, 512 << 30),
}


def _is_plainer(value: Any, known: Any) -> bool:
    """Whether a value says less than the one there is."""
    if isinstance(value, list | dict) and isinstance(known, list | dict):
        return len(value) < len(known) or (len(value) == len(known) and value != known)
    return bool(value != known)


def _plainer(value: Any) -> Iterator[Any]:
    """Values that are simpler than this one, the simplest first."""
    match value:
        case bool() | None:
            return
        case int():
            if abs(value) > MOST_UNITS:
                yield _readable(value)
            for size in (10**12, 10**9, 10**6, 10**3, 10**2, 10):
                if abs(value) >= size and value % size:
                    yield value - value % size
                    yield value - value % size + size
        case float():
            if value != round(value):
                yield float(round(value))
        case Duration(ns=ns):
            if ns % NANOS:
                yield Duration(ns - ns % NANOS)
        case Timestamp(ns=ns):
            yield from (
                Timestamp(ns - ns % (span * NANOS)) for span in (86_400, 3_600, 60, 1) if ns % (span * NANOS)
            )
        case str() if len(value) > _LONG:
            yield from (value[: len(value) // 2], value[len(value) // 2 :])
        case list() | dict():
            yield from _shorter(value)
            readable = _readable(value)
            if readable != value:
                yield readable


def _readable(value: Any) -> Any:
    """The same with numbers, in lists and maps too, that a test can give."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if type(value) is int and abs(value) > MOST_UNITS:
        return _PLENTY if value > 0 else -_PLENTY
    return value


def _shorter(value: list[Any] | dict[Any, Any]) -> Iterator[Any]:
    """A list or map with less in it."""
    if isinstance(value, dict):
        for key in list(value)[:20]:
            yield {other: held for other, held in value.items() if other != key}
    elif value:
        yield []
        yield value[:1]
        yield value[-1:]
        for at in range(min(len(value), 4)):
            yield value[:at] + value[at + 1 :]
