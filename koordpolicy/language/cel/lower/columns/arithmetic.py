"""How strict operators and functions of numbers become NumPy operations: one table by overload id.

A rule writes code through the emitter and gives the result's symbol. int64 operations carry bounds,
so that a check for overflow runs only where the bounds of the operands permit one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel.lower.columns.emitter import Emitter, Rule
from koordpolicy.language.cel.lower.columns.operands import FUNCTIONS, Operands
from koordpolicy.language.cel.lower.columns.parts import SAME
from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    WHOLE,
    WIDEST,
    Bounds,
    Vec,
)
from koordpolicy.language.cel.lower.operators import EITHER

_LOW, _HIGH = WIDEST
_EXACT = str(2**53)
BELOW_HALF: Final = "0.49999999999999994"
"""The greatest double less than a half."""


# --- int64 -----------------------------------------------------------------------------------------


def reach(operator: str, operands: Operands) -> tuple[str, str]:
    """Names of the least and the greatest result that `+ - *` can have."""
    writer, (la, ha), (lb, hb) = operands.writer, operands.bounds(0), operands.bounds(1)
    if operator == "*":
        products = writer.let("p", f"({la} * {lb}, {la} * {hb}, {ha} * {lb}, {ha} * {hb})")
        return writer.let("l", f"min({products})"), writer.let("h", f"max({products})")
    first, last = (lb, hb) if operator == "+" else (hb, lb)
    return writer.let("l", f"{la} {operator} {first}"), writer.let("h", f"{ha} {operator} {last}")


def _checked(operator: str, kernel: str, kind: str) -> Rule:
    """`+ - *` of int64: unchecked where the bounds rule an overflow out."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        writer, (a, b), errors = operands.writer, operands.texts, operands.errors
        low, high = reach(operator, operands)
        name, failed = writer.name("v"), writer.name("e")
        with writer.block(f"if {_LOW} <= {low} and {high} <= {_HIGH}:"):
            operands.result(kind, FUNCTIONS[operator], a, b, name=name)
            writer.line(f"{failed} = {errors}")
        with writer.block("else:"):
            writer.line(f"{name}, {failed} = {kernel}({a}, {b}, {errors})", (failed, errors))
            writer.line(f"{low} = {_LOW}; {high} = {_HIGH}")
        return Vec(kind, name, operands.space, failed, lambda: (low, high), fresh=True)

    return rule


def _shifted(operator: str) -> Rule:
    """A point in time and a duration. What leaves int64 nanoseconds no column can hold."""
    return _checked(operator, "add_instants" if operator == "+" else "subtract_instants", TIMESTAMP)


def _quotient_of_ints(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`/` of int64, toward zero. Of numbers up to 2**53 the cut quotient of doubles is exact, and quicker."""
    operands = Operands(emitter, args)
    writer, (a, b), errors, space = operands.writer, operands.texts, operands.errors, operands.space
    (la, ha), (lb, hb) = operands.bounds(0), operands.bounds(1)
    name, failed = writer.name("v"), writer.name("e")
    high = writer.let("h", f"max(abs({la}), abs({ha}))")
    low = writer.let("l", f"0 if {la} >= 0 and {lb} > 0 else -{high}")
    with writer.block(f"if {high} <= {_EXACT} and -{_EXACT} <= {lb} and {hb} <= {_EXACT}:"):
        double = operands.result(
            DOUBLE, "np.divide", emitter.as_double(args[0], a, space), emitter.as_double(args[1], b, space)
        )
        operands.result(INT, "truncate", double.values, name=name)
        zeros = f"zero_divisors({b}, {errors}, {space.count}) if {lb} <= 0 <= {hb} else {errors}"
        writer.line(f"{failed} = {zeros}", (failed, errors))
    with writer.block("else:"):
        writer.line(f"{name}, {failed} = divide({a}, {b}, {errors}, {space.count})", (failed, errors))
        writer.line(f"{low} = {_LOW}; {high} = {_HIGH}")
    return Vec(INT, name, space, failed, lambda: (low, high), fresh=True)


def _remainder(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`%` of int64, with the sign of the dividend."""
    operands = Operands(emitter, args)
    writer, (a, b), errors, space = operands.writer, operands.texts, operands.errors, operands.space
    (la, ha), (lb, _) = operands.bounds(0), operands.bounds(1)
    name, failed = writer.name("v"), writer.name("e")
    with writer.block(f"if {la} >= 0 and {lb} > 0:"):
        operands.result(INT, "np.remainder", a, b, name=name)
        writer.line(f"{failed} = {errors}")
    with writer.block("else:"):
        writer.line(f"{name}, {failed} = remainder({a}, {b}, {errors}, {space.count})", (failed, errors))
    return Vec(INT, name, space, failed, lambda: (f"min({la}, 0)", f"max({ha}, 0)"), fresh=True)


def _least_excluded(function: str, kernel: str, low: str, high: str) -> Rule:
    """A function of one int64 that only the least of them overflows."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        writer, (a,), errors = operands.writer, operands.texts, operands.errors
        least, most = operands.bounds(0)
        name, failed = writer.name("v"), writer.name("e")
        lower, upper = writer.let("l", low.format(least, most)), writer.let("h", high.format(least, most))
        with writer.block(f"if {least} > {_LOW}:"):
            operands.result(INT, function, a, name=name)
            writer.line(f"{failed} = {errors}")
        with writer.block("else:"):
            writer.line(f"{name}, {failed} = {kernel}({a}, {errors})", (failed, errors))
            writer.line(f"{lower} = {_LOW}; {upper} = {_HIGH}")
        return Vec(INT, name, operands.space, failed, lambda: (lower, upper), fresh=True)

    return rule


def _int_sign(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    operands = Operands(emitter, args)
    return operands.result(INT, "np.sign", *operands.texts, bounds=lambda: ("-1", "1"))


# --- quantities and conversions --------------------------------------------------------------------


def _whole(*steps: tuple[str, str]) -> Rule:
    """Quantity arithmetic by way of doubles, cut toward zero.

    Each step is an operator and its right operand. The bounds of the operands, sent through the same
    steps, show whether all results fit: each step is monotonic in each operand.
    """

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        writer, errors = operands.writer, operands.errors
        double = operands.texts[0]
        formula = "{0}"
        for operator, right in steps:
            text = right.format(*operands.texts)
            double = operands.result(DOUBLE, FUNCTIONS[operator], double, text).values
            formula = f"{formula} {operator} {right}"
        corners = [operands.bounds(at) for at in range(len(args))]
        first = [f"float({bound})" for bound in corners[0]]
        images = [
            formula.format(*corner)
            for corner in (itertools.product(first, *corners[1:]) if steps else ((one,) for one in first))
        ]
        image = writer.let("p", f"({', '.join(images)})")
        low, high = writer.let("l", f"min({image})"), writer.let("h", f"max({image})")
        name, failed = writer.name("v"), writer.name("e")
        # Written so that a NaN among the corners means no.
        with writer.block(f"if -9e18 < {low} and {high} < 9e18 and no_nan({image}):"):
            operands.result(INT, "truncate", double, name=name)
            writer.line(f"{failed} = {errors}")
            writer.line(f"{low} = int({low}); {high} = int({high})")
        with writer.block("else:"):
            writer.line(f"{name}, {failed} = whole({double}, {errors})", (failed, errors))
            writer.line(f"{low} = {_LOW}; {high} = {_HIGH}")
        return Vec(INT, name, operands.space, failed, lambda: (low, high), fresh=True)

    return rule


def _divide_by_ratio(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`divide(int,double)`: the quantity over a ratio, which is an error of zero."""
    operands = Operands(emitter, args)
    writer, (a, b), space = operands.writer, operands.texts, operands.space
    zeros = writer.name("e")
    writer.line(f"{zeros} = zero_divisors({b}, {operands.errors}, {space.count})", (zeros, operands.errors))
    double = operands.result(DOUBLE, "np.divide", a, b).values
    name, failed = writer.name("v"), writer.name("e")
    writer.line(f"{name}, {failed} = whole({double}, {zeros})", (failed, zeros))
    return Vec(INT, name, space, failed, None, fresh=True)


def _quotient(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """Equal units: a ratio, and an error of a zero divisor."""
    operands = Operands(emitter, args)
    writer, (a, b), space = operands.writer, operands.texts, operands.space
    low, high = operands.bounds(1)
    failed = writer.let("e", str(operands.errors))
    with writer.block(f"if {low} <= 0 <= {high}:"):
        text = f"{failed} = zero_divisors({b}, {operands.errors}, {space.count})"
        writer.line(text, (failed, operands.errors))
    one, other = emitter.as_double(args[0], a, space), emitter.as_double(args[1], b, space)
    first = operands.bounds(0)[0]
    bounds = (f"(0.0 if {first} >= 0 and {low} >= 0 else -inf)", "inf")
    made = operands.result(DOUBLE, "np.divide", one, other, errors=failed, bounds=lambda: bounds)
    return replace(made, unsigned=all(arg.kind in (INT, WHOLE) for arg in args))


def _to_double(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    operands = Operands(emitter, args)
    low, high = operands.bounds(0)
    value = emitter.as_double(args[0], operands.texts[0], operands.space)
    return Vec(DOUBLE, value, operands.space, operands.errors, lambda: (f"float({low})", f"float({high})"))


def _same(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    return args[0]


def _seconds(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    operands = Operands(emitter, args)
    return operands.result(INT, "np.floor_divide", *operands.texts, "1000000000")


# --- doubles ---------------------------------------------------------------------------------------


def _doubles(function: str) -> Rule:
    """A NumPy function of doubles that cannot fail."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        return operands.result(DOUBLE, function, *operands.texts)

    return rule


def _kernel_of_doubles(kernel: str) -> Rule:
    """A function of ours of one column of doubles."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        name = operands.writer.let("v", f"{kernel}({operands.texts[0]})")
        return Vec(DOUBLE, name, operands.space, operands.errors, fresh=True)

    return rule


def _rounded(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`math.round`: halves away from zero, by way of cutting what is almost a half further from zero.

    A half itself would send 0.49999999999999994 to 1. Numbers of more than 2**52 are whole and stay.
    """
    operands = Operands(emitter, args)
    (value,) = operands.texts
    low, _ = operands.bounds(0)
    moved = operands.writer.name("v")
    # Only -0.0 tells zeros apart, whose sign stays.
    known = f"{low} >= 0" if args[0].unsigned else f"{low} > 0"
    with operands.writer.block(f"if {known}:"):
        operands.result(DOUBLE, "np.add", value, BELOW_HALF, name=moved)
    with operands.writer.block("else:"):
        step = operands.result(DOUBLE, "np.copysign", BELOW_HALF, value).values
        operands.result(DOUBLE, "np.add", step, value, name=moved)
    return operands.result(DOUBLE, "np.trunc", moved)


def _by_corners(operator: str) -> Rule:
    """`+ - *` of doubles, with the bounds that `_whole` may ask for."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        constants = [arg.values for arg in args if arg.space is None and arg.unsigned]
        scaled = operator == "*" and len(constants) == 1

        def bounds() -> Bounds:
            if scaled:
                low, high = operands.bounds(0 if args[1].space is None else 1)
                return f"({low} * {constants[0]})", f"({high} * {constants[0]})"
            one, other = operands.bounds(0), operands.bounds(1)
            corners = ", ".join(f"{x} {operator} {y}" for x in one for y in other)
            image = emitter.writer.let("p", f"({corners})")
            known = f"if no_nan({image}) else"  # inf - inf: nothing is known
            return (
                emitter.writer.let("l", f"min({image}) {known} -inf"),
                emitter.writer.let("h", f"max({image}) {known} inf"),
            )

        made = operands.result(DOUBLE, FUNCTIONS[operator], *operands.texts, bounds=bounds)
        return replace(made, unsigned=scaled and all(arg.unsigned for arg in args))

    return rule


def _share(emitter: Emitter, args: Sequence[Vec]) -> Vec:
    """`ratio(percent)`."""
    operands = Operands(emitter, args)

    def bounds() -> Bounds:
        low, high = operands.bounds(0)
        return f"({low} / 100.0)", f"({high} / 100.0)"

    return operands.result(DOUBLE, "np.divide", *operands.texts, "100.0", bounds=bounds)


def _tests(function: str) -> Rule:
    """A NumPy function that gives bools."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        return operands.result(BOOL, function, *operands.texts)

    return rule


# --- extremes --------------------------------------------------------------------------------------


def extremes(sign: str) -> Rule:
    """`min` and `max` of one or more values: the first of those that no later one beats."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        if len(args) == 1:
            return args[0]
        operands = Operands(emitter, args)
        kind, space = args[0].kind, operands.space
        best, scalar = operands.texts[0], args[0].space is None
        for arg, text in zip(args[1:], operands.texts[1:], strict=True):
            scalar = scalar and arg.space is None
            if scalar:
                best = operands.writer.let("u", f"{text} if {text} {sign} {best} else {best}")
            elif kind == DOUBLE:
                # NaN and -0.0 make NumPy's own functions differ from the definition.
                better = operands.result(BOOL, FUNCTIONS[sign], text, best).values
                best = emitter.choose(better, text, best, DOUBLE, space)
            else:
                function = "np.minimum" if sign == "<" else "np.maximum"
                best = operands.result(kind, function, best, text).values

        def bounds() -> Bounds:
            lows, highs = zip(*(operands.bounds(at) for at in range(len(args))), strict=True)
            return (
                emitter.writer.let("l", f"min({', '.join(lows)})"),
                emitter.writer.let("h", f"max({', '.join(highs)})"),
            )

        unsigned = kind == WHOLE and all(arg.unsigned for arg in args)
        return Vec(kind, best, space, operands.errors, bounds, fresh=True, unsigned=unsigned)

    return rule


# --- comparisons -----------------------------------------------------------------------------------


def equality(operator: str) -> Rule:
    """`==` and `!=` of two values of comparable kinds; strings compare by number."""

    def rule(emitter: Emitter, args: Sequence[Vec]) -> Vec:
        operands = Operands(emitter, args)
        texts = [
            emitter.code_of(arg) if arg.kind == STRING and arg.space is None else text
            for arg, text in zip(args, operands.texts, strict=True)
        ]
        return operands.result(BOOL, FUNCTIONS[operator], *texts)

    return rule


def _rows() -> Iterator[tuple[str, Rule]]:
    timestamp, duration = "google.protobuf.Timestamp", "google.protobuf.Duration"
    for operator, kernel in (("+", "add_checked"), ("-", "subtract_checked"), ("*", "multiply_checked")):
        yield f"_{operator}_(int,int)", _checked(operator, kernel, INT)
        yield f"_{operator}_(double,double)", _by_corners(operator)
    yield f"_+_({duration},{duration})", _checked("+", "add_checked", DURATION)
    yield f"_-_({duration},{duration})", _checked("-", "subtract_checked", DURATION)
    yield f"_-_({timestamp},{timestamp})", _checked("-", "subtract_checked", DURATION)
    yield f"_+_({timestamp},{duration})", _shifted("+")
    yield f"_+_({duration},{timestamp})", _shifted("+")
    yield f"_-_({timestamp},{duration})", _shifted("-")
    yield "_/_(int,int)", _quotient_of_ints
    yield "_%_(int,int)", _remainder
    yield "_/_(double,double)", _doubles("np.divide")
    yield "-_(int)", _least_excluded("np.negative", "negate_checked", "-{1}", "-{0}")
    yield "-_(double)", _doubles("np.negative")
    yield "!_(bool)", _tests("np.logical_not")
    yield EITHER, _tests("np.bitwise_or")
    yield "scale(int,double)", _whole(("*", "{1}"))
    yield "percent_of(int,double)", _whole(("*", "{1}"), ("/", "100.0"))
    for name in ("int", "millicores", "bytesOf"):
        yield f"{name}(double)", _whole()
    yield "divide(int,double)", _divide_by_ratio
    yield "quotient(int,int)", _quotient
    yield "quotient(double,double)", _quotient
    yield "double(int)", _to_double
    yield "percent(int)", _to_double
    yield "ratio(percent)", _share
    yield f"int({timestamp})", _seconds
    for same in SAME:
        yield same, _same
    for name in ("ceil", "floor", "trunc", "abs", "sqrt"):
        yield f"math.{name}(double)", _doubles(f"np.{name}")
    yield "math.sqrt(int)", _doubles("np.sqrt")
    yield "math.round(double)", _rounded
    yield "math.sign(double)", _kernel_of_doubles("sign_of")
    yield "math.abs(int)", _least_excluded("np.abs", "magnitude_checked", "0", "max(-{0}, {1})")
    yield "math.sign(int)", _int_sign
    for name, function in (("isNaN", "np.isnan"), ("isInf", "np.isinf"), ("isFinite", "np.isfinite")):
        yield f"math.{name}(double)", _tests(function)
    for operator in ("<", "<=", ">", ">="):
        for kind in ("bool", timestamp, duration):
            yield f"_{operator}_({kind},{kind})", _tests(FUNCTIONS[operator])
        for a in ("int", "double"):
            for b in ("int", "double"):
                yield f"_{operator}_({a},{b})", _tests(FUNCTIONS[operator])


RULES: Mapping[str, Rule] = MappingProxyType(dict(_rows()))
"""Overload id to rule. `==`, `in`, `min`, `max` and functions of strings are the emitter's own."""
