"""What calls come to: a rule for each function that the solver understands, others by name alone.

A rule takes the arguments' values and gives the outcome, or None where it does not know these. Errors of the arguments
are dealt with by whoever asks.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import z3

from koordpolicy.graph.proof.doubles import Doubles, trunc
from koordpolicy.graph.proof.patterns import pattern_of
from koordpolicy.graph.proof.terms import (
    FALSE,
    TRUE,
    Bool,
    Double,
    Formula,
    Keyed,
    Listed,
    Maybe,
    Null,
    Symbolic,
    Text,
    Unknown,
    Value,
    Whole,
    both,
    choose,
    either,
    fresh_thing,
    good,
    no,
    pick,
)
from koordpolicy.graph.proof.unknowns import (
    GREATEST_MOMENT,
    LEAST_MOMENT,
    limits_of,
)
from koordpolicy.graph.proof.work import Work, is_time
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values_time import NANOS

_HOUR: Final = 3_600 * NANOS


Rule = Callable[[Work, ir.Call, list[Value]], Symbolic | None]


def _whole(term: Formula, low: int, high: int, kind: str) -> Symbolic:
    """A whole number that must fit its type."""
    least, most = limits_of(kind)
    outside = FALSE
    if low < least:
        outside = either(outside, term < least)
    if high > most:
        outside = either(outside, term > most)
    return Symbolic(outside, Whole(term, max(low, least), min(high, most), kind))


def _kind_of(node: ir.Call) -> str:
    return node.type.name


def _add(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a, Whole() as b]:
            return _whole(a.term + b.term, a.low + b.low, a.high + b.high, _kind_of(node))
        case [Double() as a, Double() as b]:
            return good(work.doubles.add(a, b))
        case [Text(a), Text(b)]:
            return good(Text(z3.Concat(a, b)))
        case [Listed() as a, Listed() as b]:
            return good(Listed(a.items + b.items, fresh_thing()))
    return None


def _subtract(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a, Whole() as b]:
            return _whole(a.term - b.term, a.low - b.high, a.high - b.low, _kind_of(node))
        case [Double() as a, Double() as b]:
            return good(work.doubles.subtract(a, b))
    return None


def _multiply(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a, Whole() as b]:
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return _whole(a.term * b.term, min(ends), max(ends), _kind_of(node))
        case [Double() as a, Double() as b]:
            return good(work.doubles.multiply(a, b))
    return None


def _toward_zero(a: Whole, b: Whole) -> tuple[Formula, Formula]:
    """Quotient and remainder as CEL has them, of a divisor that is not zero."""
    if b.low > 0:
        if a.low >= 0:
            return a.term / b.term, a.term % b.term
        return (
            pick(a.term >= 0, a.term / b.term, -((-a.term) / b.term)),
            pick(a.term >= 0, a.term % b.term, -((-a.term) % b.term)),
        )
    size_a, size_b = _size(a.term), _size(b.term)
    quotient, rest = size_a / size_b, size_a % size_b
    alike = (a.term >= 0) == (b.term >= 0)
    return pick(alike, quotient, -quotient), pick(a.term >= 0, rest, -rest)


def _size(term: Formula) -> Formula:
    return pick(term >= 0, term, -term)


def _divide(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a, Whole() as b]:
            zero = FALSE if b.low > 0 or b.high < 0 else b.term == 0
            most = max(abs(a.low), abs(a.high))
            made = _whole(
                _toward_zero(a, b)[0], 0 if a.low >= 0 and b.low >= 0 else -most, most, _kind_of(node)
            )
            return Symbolic(either(zero, made.err), made.value)
        case [Double() as a, Double() as b]:
            return good(work.doubles.divide(a, b))
    return None


def _modulo(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a, Whole() as b]:
            zero = FALSE if b.low > 0 or b.high < 0 else b.term == 0
            least, _ = limits_of("int")
            quotient_outside = (
                both(a.term == least, b.term == -1) if a.low == least and b.low <= -1 else FALSE
            )
            most = max(abs(b.low), abs(b.high))
            value = Whole(_toward_zero(a, b)[1], 0 if a.low >= 0 else -most, most, a.kind)
            return Symbolic(either(zero, quotient_outside), value)
    return None


def _negate(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a]:
            return _whole(-a.term, -a.high, -a.low, a.kind)
        case [Double() as a]:
            return good(work.doubles.negate(a))
    return None


def _not(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Bool(a)]:
            return good(Bool(no(a)))
    return None


def _ordered(operator: str) -> Rule:
    swapped, or_equal = operator in (">", ">="), operator in ("<=", ">=")

    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        one, other = args
        if swapped:
            one, other = other, one
        match one, other:
            case Whole(), Whole():
                if one.kind == other.kind or not (is_time(one) or is_time(other)):
                    return good(Bool(one.term <= other.term if or_equal else one.term < other.term))
            case (Whole(), Double()) | (Double(), Whole()) | (Double(), Double()):
                return good(work.doubles.less(work.double(one), work.double(other), or_equal=or_equal))
            case Text(a), Text(b):
                return good(Bool(a <= b if or_equal else a < b))
            case Bool(a), Bool(b):
                return good(Bool(either(no(a), b) if or_equal else both(no(a), b)))
        return None

    return rule


def _equality(negative: bool) -> Rule:
    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        same = work.equal(args[0], args[1])
        return good(Bool(no(same) if negative else same))

    return rule


def _within(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [key, Listed() as held]:
            found = [both(guard, work.equal(key, item.value)) for guard, item in held.items]
            return good(Bool(either(*found)))
        case [key, Keyed() as held]:
            return good(Bool(held.find(key)[0]))
    return None


def _scale(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    quantity, ratio = work.double(args[0]), work.double(args[1])
    if not (_is_constant(quantity) or _is_constant(ratio)):
        return _scaled(work, node, args, quantity, ratio)
    outside, value = work.doubles.cut(work.doubles.multiply(quantity, ratio))
    return Symbolic(outside, value)


def _is_constant(value: Double) -> bool:
    return bool(z3.is_rational_value(z3.simplify(value.term)))


def _scaled(work: Work, node: ir.Call, args: list[Value], quantity: Double, ratio: Double) -> Symbolic:
    """A product of two unknowns, by name: equal ones are equal, and not below zero where neither is. More is beyond the solver."""
    found = work.named(node, args)
    if not isinstance(found.value, Whole) or quantity.low < 0 or ratio.low < 0:
        return found
    work.say(found.value.term >= 0)
    return Symbolic(found.err, replace(found.value, low=0))


def _percent_of(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    share = work.doubles.multiply(work.double(args[0]), work.double(args[1]))
    outside, value = work.doubles.cut(work.doubles.divide(share, work.doubles.constant(100.0)))
    return Symbolic(outside, value)


def _quotient(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    one, other = work.double(args[0]), work.double(args[1])
    return Symbolic(_is_zero(args[1]), work.doubles.divide(one, other))


def _divided(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    outside, value = work.doubles.cut(work.doubles.divide(work.double(args[0]), work.double(args[1])))
    return Symbolic(either(_is_zero(args[1]), outside), value)


def _is_zero(value: Value) -> Formula:
    assert isinstance(value, Whole | Double)
    if value.low > 0 or value.high < 0:
        return FALSE
    zero = value.term == 0
    return both(zero, value.tag == 0) if isinstance(value, Double) and value.tag is not None else zero


def _same(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    return good(args[0])


def _to_double(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    return good(work.double(args[0])) if isinstance(args[0], Whole | Double) else None


def _to_int(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Double() as a]:
            outside, value = work.doubles.cut(a)
            return Symbolic(outside, value)
        case [Whole(kind="google.protobuf.Timestamp") as a]:
            return good(Whole(a.term / NANOS, LEAST_MOMENT // NANOS, GREATEST_MOMENT // NANOS))
        case [Whole() as a]:
            return _whole(a.term, a.low, a.high, "int")
    return None


def _ratio(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    return good(work.doubles.divide(work.double(args[0]), work.doubles.constant(100.0)))


def _extreme(greatest: bool) -> Rule:
    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        if len(args) == 1 and isinstance(args[0], Listed):
            return _extreme_of(args[0], greatest)
        if all(isinstance(arg, Whole) for arg in args):
            best = args[0]
            for arg in args[1:]:
                best = _better(best, arg, greatest)
            return good(best)
        if all(isinstance(arg, Double) and arg.tag is None for arg in args):
            best = args[0]
            for arg in args[1:]:
                assert isinstance(arg, Double)
                assert isinstance(best, Double)
                better = arg.term > best.term if greatest else arg.term < best.term
                of_both = max if greatest else min
                low, high = of_both(best.low, arg.low), of_both(best.high, arg.high)
                best = choose(better, good(arg), good(best)).value
                assert isinstance(best, Double)
                best = replace(best, low=low, high=high)
            return good(best)
        return None

    return rule


def _better(best: Value, arg: Value, greatest: bool) -> Whole:
    assert isinstance(best, Whole)
    assert isinstance(arg, Whole)
    if greatest:
        return Whole(
            pick(arg.term > best.term, arg.term, best.term),
            max(arg.low, best.low),
            max(arg.high, best.high),
            best.kind,
        )
    return Whole(
        pick(arg.term < best.term, arg.term, best.term),
        min(arg.low, best.low),
        min(arg.high, best.high),
        best.kind,
    )


def _extreme_of(held: Listed, greatest: bool) -> Symbolic | None:
    """The greatest or least element of a list."""
    made: Symbolic | None = None
    there = FALSE
    for guard, item in held.items:
        value = item.value
        if not isinstance(value, Whole) and not (isinstance(value, Double) and value.tag is None):
            return None
        if made is None:
            made, there = good(value), guard
            continue
        best = made.value
        assert isinstance(best, Whole | Double)
        better = value.term > best.term if greatest else value.term < best.term
        made = choose(both(guard, either(no(there), better)), good(value), made)
        there = either(there, guard)
    return None if made is None else Symbolic(no(there), made.value)


def _sum(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Listed() as held]:
            total: Value = _zero(work, node.type)
            err = FALSE
            for guard, item in held.items:
                step = _add(work, node, [total, item.value])
                if step is None:
                    return None
                err = either(err, both(guard, step.err))
                total = choose(guard, good(step.value), good(total)).value
            return Symbolic(err, total)
        case [Unknown() as held]:
            made = work.named(node, args, told=False)
            element = held.element.value
            if (
                isinstance(element, Whole)
                and isinstance(made.value, Whole)
                and (element.low >= 0 or work.never(both(held.holds, element.term < 0)))
            ):
                work.say(made.value.term >= 0)
                return Symbolic(made.err, Whole(made.value.term, 0, made.value.high, made.value.kind))
            return made
    return None


def _zero(work: Work, kind: Type) -> Value:
    if kind.name == "double":
        return work.doubles.constant(0.0)
    return Whole(z3.IntVal(0), 0, 0, kind.name)


def _sized(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Text(a)]:
            return good(Whole(z3.Length(a), 0, 2**40))
        case [Listed() | Keyed() | Unknown() as held]:
            return good(Whole(work.size(held), 0, 2**40))
    return None


def _affix(test: Callable[[Formula, Formula], Formula]) -> Rule:
    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        match args:
            case [Text(a), Text(b)]:
                return good(Bool(test(a, b)))
        return None

    return rule


def _matches(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args, node.args:
        case [Text(a), _], (_, ir.Const(value=str() as pattern)):
            found = pattern_of(pattern)
            return None if found is None else good(Bool(z3.InRe(a, found)))
    return None


def _rounding(cut: Callable[[Formula], Formula]) -> Rule:
    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        match args:
            case [Double() as a]:
                return good(work.doubles.whole_part(a, cut))
        return None

    return rule


def _asked(ask: Callable[[Doubles, Double], Bool]) -> Rule:
    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        match args:
            case [Double() as a]:
                return good(ask(work.doubles, a))
        return None

    return rule


def _half_away(term: Formula) -> Formula:
    half = z3.RealVal("1/2")
    return pick(term >= 0, z3.ToInt(term + half), -z3.ToInt(-term + half))


def _magnitude(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole() as a]:
            return _whole(
                _size(a.term),
                0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high)),
                max(abs(a.low), abs(a.high)),
                a.kind,
            )
        case [Double() as a]:
            return good(Double(_size(a.term), a.tag, Fraction(0), max(abs(a.low), abs(a.high)), a.whole))
    return None


def _has_value(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Maybe() as a]:
            return good(Bool(a.has))
    return None


def _value(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Maybe() as a]:
            return Symbolic(no(a.has), a.value)
    return None


def _some(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    return None if isinstance(args[0], Null) else good(Maybe(TRUE, args[0]))


def _none(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    inner = node.type.params[0] if node.type.params else Type("dyn")
    return good(Maybe(FALSE, work.unknowns.some(inner)))


def _clock(unit: int, size: int) -> Rule:
    """A part of the day in UTC, or so many whole units of a duration."""

    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        match args:
            case [Whole(kind="google.protobuf.Timestamp") as a]:
                return good(Whole((a.term / unit) % size, 0, size - 1))
            case [Whole(kind="google.protobuf.Duration") as a]:
                return good(Whole(pick(a.term >= 0, a.term / unit, -((-a.term) / unit)), -(2**63), 2**63 - 1))
        return None

    return rule


def _weekday(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
    match args:
        case [Whole(kind="google.protobuf.Timestamp") as a]:
            return good(Whole((a.term / (24 * _HOUR) + 4) % 7, 0, 6))
    return None


def _between(low: int, high: int) -> Rule:
    """A function that is known by name and by the bounds of what it gives."""

    def rule(work: Work, node: ir.Call, args: list[Value]) -> Symbolic | None:
        made = work.named(node, args)
        if isinstance(made.value, Whole):
            work.say(both(made.value.term >= low, made.value.term <= high))
        return made

    return rule


CALLS: Mapping[str, Rule] = MappingProxyType(
    {
        "_+_": _add,
        "_-_": _subtract,
        "_*_": _multiply,
        "_/_": _divide,
        "_%_": _modulo,
        "-_": _negate,
        "!_": _not,
        **{f"_{operator}_": _ordered(operator) for operator in ("<", "<=", ">", ">=")},
        "_==_": _equality(False),
        "_!=_": _equality(True),
        "@in": _within,
        "scale": _scale,
        "percent_of": _percent_of,
        "quotient": _quotient,
        "divide": _divided,
        **dict.fromkeys(
            (
                "number(int)", "number(double)", "amount(int)", "millicores(int)", "bytesOf(int)", "percent(double)",
                "string(string)", "bool(bool)", "dyn(dyn)", "dyn(A)", "double(double)", "int(int)", "uint(uint)",
                "duration(google.protobuf.Duration)", "timestamp(google.protobuf.Timestamp)",
            ),
            _same,
        ),
        "double(int)": _to_double,
        "double(uint)": _to_double,
        "percent(int)": _to_double,
        "int(double)": _to_int,
        "int(uint)": _to_int,
        "int(google.protobuf.Timestamp)": _to_int,
        "millicores(double)": _to_int,
        "bytesOf(double)": _to_int,
        "ratio": _ratio,
        **dict.fromkeys(("max", "math.greatest"), _extreme(True)),
        **dict.fromkeys(("min", "math.least"), _extreme(False)),
        "sum": _sum,
        "size": _sized,
        "startsWith": _affix(lambda text, part: z3.PrefixOf(part, text)),
        "endsWith": _affix(lambda text, part: z3.SuffixOf(part, text)),
        "contains": _affix(z3.Contains),
        "matches": _matches,
        "math.round": _rounding(_half_away),
        "math.floor": _rounding(z3.ToInt),
        "math.ceil": _rounding(lambda term: -z3.ToInt(-term)),
        "math.trunc": _rounding(trunc),
        "math.abs": _magnitude,
        "math.isInf": _asked(Doubles.is_infinite),
        "math.isNaN": _asked(Doubles.is_nan),
        "hasValue": _has_value,
        "value": _value,
        "optional.of": _some,
        "optional.none": _none,
        "getHours": _clock(_HOUR, 24),
        "getMinutes": _clock(60 * NANOS, 60),
        "getSeconds": _clock(NANOS, 60),
        "getDayOfWeek": _weekday,
        "getMonth": _between(0, 11),
        "getDate": _between(1, 31),
        "getDayOfMonth": _between(0, 30),
        "getDayOfYear": _between(0, 365),
        "getFullYear": _between(1, 9_999),
    }
)  # fmt: skip
"""Rules by overload, or by name where one serves all overloads."""
