"""Values as the solver knows them, and logic over them that drops what is decided already.

An `Symbolic` is what an expression comes to: an error, null, or a value. Where the encoding does not know what a value
is, it is a *thing*: nothing is known of it but that equal things behave alike. That proves too little at times, never
too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import z3

Formula: TypeAlias = Any
"""A term of Z3; its Python bindings carry no types."""

TRUE: Formula = z3.BoolVal(True)
FALSE: Formula = z3.BoolVal(False)
THING: Formula = z3.DeclareSort("thing")


def both(*parts: Formula) -> Formula:
    """Conjunction."""
    return _joined(parts, FALSE, TRUE, z3.And)


def either(*parts: Formula) -> Formula:
    """Disjunction."""
    return _joined(parts, TRUE, FALSE, z3.Or)


def _joined(
    parts: Iterable[Formula], decides: Formula, idle: Formula, join: Callable[..., Formula]
) -> Formula:
    kept: dict[int, Formula] = {}
    for part in parts:
        if part.eq(decides):
            return decides
        if not part.eq(idle):
            kept[part.get_id()] = part
    if len(kept) < 2:
        return next(iter(kept.values()), idle)
    return join(*kept.values())


def no(part: Formula) -> Formula:
    """Negation."""
    if part.eq(TRUE):
        return FALSE
    if part.eq(FALSE):
        return TRUE
    return part.arg(0) if z3.is_not(part) else z3.Not(part)


def pick(condition: Formula, then: Formula, otherwise: Formula) -> Formula:
    """A choice between two terms of one sort."""
    if condition.eq(TRUE) or then.eq(otherwise):
        return then
    if condition.eq(FALSE):
        return otherwise
    if z3.is_bool(then) and then.eq(TRUE) and otherwise.eq(FALSE):
        return condition
    if z3.is_bool(then) and then.eq(FALSE) and otherwise.eq(TRUE):
        return no(condition)
    return z3.If(condition, then, otherwise)


def unlike_terms(one: Formula, other: Formula) -> Formula:
    """Whether two terms of one sort are not the same."""
    return FALSE if one.eq(other) else one != other


@dataclass(frozen=True, slots=True)
class Bool:
    """A bool."""

    term: Formula


@dataclass(frozen=True, slots=True)
class Whole:
    """An int, a uint, or the nanoseconds of a time; `low` and `high` are known bounds, `kind` is CEL's type."""

    term: Formula
    low: int
    high: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Double:
    """A double: `term` is its value as a real where `tag` is 0, or None for surely.

    Another tag stands for an infinity, for NaN, or for what nothing is known of. `whole`: surely a whole number.
    """

    term: Formula
    tag: Formula | None
    low: Fraction
    high: Fraction
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    term: Formula


@dataclass(frozen=True, slots=True)
class Null:
    """Nothing but null."""


@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """A value that nothing is known of."""

    term: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An optional: `value` counts where `has` holds."""

    has: Formula
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A list whose elements are known one by one, each there where its guard holds."""

    items: tuple[tuple[Formula, Symbolic], ...]
    thing: Formula

    @property
    def is_plain(self) -> bool:
        """Whether all elements are there in any case."""
        return all(guard.eq(TRUE) for guard, _ in self.items)


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A list of any length. `element` is any one of its elements, of which `holds` is true."""

    thing: Formula
    element: Symbolic
    holds: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """A map. `entries` are all there are, with guards; without them `find` gives presence and value for a key."""

    thing: Formula
    entries: tuple[tuple[Formula, Value, Symbolic], ...] | None
    find: Callable[[Value], tuple[Formula, Symbolic]]
    size: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A record of facts: `get` gives presence and value of a path."""

    thing: Formula
    get: Callable[[str], tuple[Formula, Value]]


Value: TypeAlias = Bool | Whole | Double | Text | Null | Thing | Maybe | Listed | Unknown | Keyed | Record


@dataclass(frozen=True, slots=True, eq=False)
class Symbolic:
    """What an expression comes to: an error where `err` holds, else null where `null` does, else the value."""

    err: Formula
    value: Value
    null: Formula = field(default_factory=lambda: FALSE)


def good(value: Value) -> Symbolic:
    """A value that is there in any case."""
    return Symbolic(FALSE, value, TRUE if isinstance(value, Null) else FALSE)


_FRESH = [0]


def fresh_name(what: str) -> str:
    """A name that no other term has."""
    _FRESH[0] += 1
    return f"{what}!{_FRESH[0]}"


def fresh_thing() -> Formula:
    """A thing of which nothing is known."""
    return z3.Const(fresh_name("thing"), THING)


def thing_of(value: Value) -> Formula | None:
    """The thing that a value is; None for plain ones."""
    return getattr(value, "thing", value.term if isinstance(value, Thing) else None)


def choose(condition: Formula, then: Symbolic, otherwise: Symbolic) -> Symbolic:
    """One outcome or the other."""
    if condition.eq(TRUE):
        return then
    if condition.eq(FALSE):
        return otherwise
    if then is otherwise:
        return then
    return Symbolic(
        pick(condition, then.err, otherwise.err),
        _either_value(condition, then.value, otherwise.value),
        pick(condition, then.null, otherwise.null),
    )


def _either_value(condition: Formula, one: Value, other: Value) -> Value:
    if one is other:
        return one
    match one, other:
        case Null(), _:
            return other
        case _, Null():
            return one
        case Bool(a), Bool(b):
            return Bool(pick(condition, a, b))
        case Whole(), Whole():
            return Whole(
                pick(condition, one.term, other.term),
                min(one.low, other.low),
                max(one.high, other.high),
                one.kind,
            )
        case Double(), Double():
            return _either_double(condition, one, other)
        case Text(a), Text(b):
            return Text(pick(condition, a, b))
        case Maybe(), Maybe():
            value = choose(condition, good(one.value), good(other.value)).value
            return Maybe(pick(condition, one.has, other.has), value)
        case Listed(), Listed():
            there = tuple((both(condition, guard), item) for guard, item in one.items)
            here = tuple((both(no(condition), guard), item) for guard, item in other.items)
            return Listed(there + here, pick(condition, one.thing, other.thing))
        case Keyed(), Keyed():
            return _either_map(condition, one, other)
        case Record(), Record():
            return _either_record(condition, one, other)
    first, second = thing_of(one), thing_of(other)
    return Thing(
        pick(
            condition, fresh_thing() if first is None else first, fresh_thing() if second is None else second
        )
    )


def _either_double(condition: Formula, one: Double, other: Double) -> Double:
    tag = None
    if one.tag is not None or other.tag is not None:
        zero = z3.IntVal(0)
        tag = pick(condition, zero if one.tag is None else one.tag, zero if other.tag is None else other.tag)
    return Double(
        pick(condition, one.term, other.term),
        tag,
        min(one.low, other.low),
        max(one.high, other.high),
        one.whole and other.whole,
    )


def _either_map(condition: Formula, one: Keyed, other: Keyed) -> Keyed:
    entries = None
    if one.entries is not None and other.entries is not None:
        entries = tuple((both(condition, g), k, v) for g, k, v in one.entries) + tuple(
            (both(no(condition), g), k, v) for g, k, v in other.entries
        )

    def find(key: Value) -> tuple[Formula, Symbolic]:
        (has, value), (had, known) = one.find(key), other.find(key)
        return pick(condition, has, had), choose(condition, value, known)

    return Keyed(
        pick(condition, one.thing, other.thing), entries, find, pick(condition, one.size, other.size)
    )


def _either_record(condition: Formula, one: Record, other: Record) -> Record:
    def get(path: str) -> tuple[Formula, Value]:
        (has, value), (had, known) = one.get(path), other.get(path)
        return pick(condition, has, had), choose(condition, good(value), good(known)).value

    return Record(pick(condition, one.thing, other.thing), get)


def unlike(one: Symbolic, other: Symbolic) -> Formula:
    """Whether two outcomes may be told apart; too often rather than too seldom. Two errors are alike."""
    values = both(no(one.null), no(other.null), unlike_values(one.value, other.value))
    return either(
        unlike_terms(one.err, other.err),
        both(no(one.err), no(other.err), either(unlike_terms(one.null, other.null), values)),
    )


def unlike_values(one: Value, other: Value) -> Formula:
    """The same of values."""
    match one, other:
        case (Null(), _) | (_, Null()):
            return FALSE  # `null` of the outcomes tells
        case (Bool(a), Bool(b)) | (Text(a), Text(b)):
            return unlike_terms(a, b)
        case Whole(), Whole():
            return unlike_terms(one.term, other.term) if one.kind == other.kind else TRUE
        case Double(), Double():
            return either(unlike_terms(one.term, other.term), unlike_tags(one, other))
        case Maybe(), Maybe():
            return either(
                unlike_terms(one.has, other.has), both(one.has, unlike_values(one.value, other.value))
            )
        case Listed(), Listed() if len(one.items) == len(other.items):
            if one.thing.eq(other.thing):
                return FALSE
            return either(
                *(
                    either(unlike_terms(g, h), both(g, unlike(a, b)))
                    for (g, a), (h, b) in zip(one.items, other.items, strict=True)
                )
            )
        case Keyed(entries=tuple() as mine), Keyed(entries=tuple() as yours):
            return _unlike_entries(one, other, mine, yours)
    first, second = thing_of(one), thing_of(other)
    if first is None or second is None:
        return TRUE
    return unlike_terms(first, second)


def unlike_tags(one: Double, other: Double) -> Formula:
    """Whether two doubles are not of one nature: finite, infinite, NaN."""
    if one.tag is None and other.tag is None:
        return FALSE
    zero = z3.IntVal(0)
    return unlike_terms(zero if one.tag is None else one.tag, zero if other.tag is None else other.tag)


def _unlike_entries(one: Keyed, other: Keyed, mine: Any, yours: Any) -> Formula:
    if one.thing.eq(other.thing):
        return FALSE
    found = []
    for guard, key, value in mine:
        has, known = other.find(key)
        found.append(both(guard, either(no(has), unlike(value, known))))
    for guard, key, _ in yours:
        has, _ = one.find(key)
        found.append(both(guard, no(has)))
    return either(*found)
