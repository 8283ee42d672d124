"""How strict operators and functions of numbers become NumPy operations: one table by overload id.

A rule writes code through the emitter and gives the result's symbol. int64 operations carry bounds,
so that a check for overflow runs only where the bounds of the operands permit one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from koordpolicy.language.cel.lower.columns.symbols import (
    BOOL,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    WIDEST,
    Bounds,
    Vec,
)
from koordpolicy.language.cel.values import INT_MAX, INT_MIN

if TYPE_CHECKING:
    from koordpolicy.language.cel.lower.columns.emitter import Emitter

Rule: TypeAlias = "Callable[[Emitter, Sequence[Vec]], Vec]"
_LOW, _HIGH = WIDEST


# --- helpers ---------------------------------------------------------------------------------------


def _result(
    emitter: "Emitter", kind: str, args: Sequence[Vec], text: str, errors: str | None,
    bounds: Callable[[], Bounds] | None = None,
) -> Vec:  # fmt: skip
    """A fresh array of the operands' space."""
    name = emitter.writer.let("v", text)
    return Vec(kind, name, emitter.space_of(args), errors, bounds, fresh=True)


def _operands(emitter: "Emitter", args: Sequence[Vec]) -> tuple[list[str], str | None]:
    """Texts of the operands' values in their common space, and of their joined errors."""
    space = emitter.space_of(args)
    return [emitter.values_in(arg, space) for arg in args], emitter.join_errors(args, space)


def _hull(emitter: "Emitter", args: Sequence[Vec]) -> Bounds:
    """Bounds that hold all operands."""
    pairs = [emitter.bounds_of(arg) for arg in args]
    lows, highs = zip(*pairs, strict=True)
    return (
        emitter.writer.let("l", f"min({', '.join(lows)})"),
        emitter.writer.let("h", f"max({', '.join(highs)})"),
    )


# --- int64 -----------------------------------------------------------------------------------------


def _checked(operator: str, kernel: str, kind: str) -> Rule:
    """`+ - *` of int64: unchecked where the bounds rule an overflow out."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        writer = emitter.writer
        (a, b), errors = _operands(emitter, args)
        (la, ha), (lb, hb) = emitter.bounds_of(args[0]), emitter.bounds_of(args[1])
        if operator == "*":
            products = writer.let("p", f"({la} * {lb}, {la} * {hb}, {ha} * {lb}, {ha} * {hb})")
            low, high = writer.let("l", f"min({products})"), writer.let("h", f"max({products})")
        else:
            first, last = (lb, hb) if operator == "+" else (hb, lb)
            low = writer.let("l", f"{la} {operator} {first}")
            high = writer.let("h", f"{ha} {operator} {last}")
        name, failed = writer.name("v"), writer.name("e")
        writer.line(f"if {_LOW} <= {low} and {high} <= {_HIGH}:")
        writer.line(f" {name} = {a} {operator} {b}; {failed} = {errors}")
        writer.line("else:")
        writer.line(f" {name}, {failed} = {kernel}({a}, {b}, {errors}); {low} = {_LOW}; {high} = {_HIGH}")
        return Vec(kind, name, emitter.space_of(args), failed, lambda: (low, high), fresh=True)

    return rule


def _shifted(operator: str) -> Rule:
    """A point in time and a duration. What leaves int64 nanoseconds no column can hold."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        kernel = "add_instants" if operator == "+" else "subtract_instants"
        return _checked(operator, kernel, TIMESTAMP)(emitter, args)

    return rule


def _divided(kernel: str) -> Rule:
    """`/` and `%` of int64."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        writer = emitter.writer
        (a, b), errors = _operands(emitter, args)
        (la, _), (lb, _) = emitter.bounds_of(args[0]), emitter.bounds_of(args[1])
        space = emitter.space_of(args)
        name, failed = writer.name("v"), writer.name("e")
        operator = "//" if kernel == "divide" else "%"
        writer.line(f"if {la} >= 0 and {lb} > 0:")
        writer.line(f" {name} = {a} {operator} {b}; {failed} = {errors}")
        writer.line("else:")
        writer.line(f" {name}, {failed} = {kernel}({a}, {b}, {errors}, {emitter.count_of(space)})")
        return Vec(INT, name, space, failed, None, fresh=True)

    return rule


def _least_excluded(text: str, kernel: str, low: str, high: str) -> Rule:
    """A function of one int64 that only the least of them overflows."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        writer = emitter.writer
        (a,), errors = _operands(emitter, args)
        least, most = emitter.bounds_of(args[0])
        name, failed = writer.name("v"), writer.name("e")
        lower, upper = writer.let("l", low.format(least, most)), writer.let("h", high.format(least, most))
        writer.line(f"if {least} > {_LOW}:")
        writer.line(f" {name} = {text.format(a)}; {failed} = {errors}")
        writer.line("else:")
        writer.line(f" {name}, {failed} = {kernel}({a}, {errors}); {lower} = {_LOW}; {upper} = {_HIGH}")
        return Vec(INT, name, args[0].space, failed, lambda: (lower, upper), fresh=True)

    return rule


def _int_sign(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    (a,), errors = _operands(emitter, args)
    return _result(emitter, INT, args, f"np.sign({a})", errors, lambda: ("-1", "1"))


# --- quantities and conversions --------------------------------------------------------------------


def _whole(formula: str) -> Rule:
    """Quantity arithmetic by way of doubles, cut toward zero; `q` and `r` stand for the operands.

    The bounds of the operands, sent through the same formula, show whether all results fit: each
    formula is monotonic in each operand.
    """

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        writer = emitter.writer
        texts, errors = _operands(emitter, args)
        space = emitter.space_of(args)
        corners = [emitter.bounds_of(arg) for arg in args]
        name, failed = writer.name("v"), writer.name("e")
        double = writer.let("d", formula.format(*texts))
        images = [
            formula.format(*corner)
            for corner in ([(b,) for b in corners[0]] if len(args) == 1 else _pairs(corners[0], corners[1]))
        ]
        image = writer.let("p", f"({', '.join(images)})")
        low, high = writer.let("l", f"min({image})"), writer.let("h", f"max({image})")
        # Written so that a NaN among the corners means no.
        writer.line(f"if -9e18 < {low} and {high} < 9e18 and {image} == {image}:")
        writer.line(
            f" {name} = {double}.astype(int64); {failed} = {errors}; {low} = int({low}); {high} = int({high})"
        )
        writer.line("else:")
        writer.line(f" {name}, {failed} = whole({double}, {errors}); {low} = {_LOW}; {high} = {_HIGH}")
        return Vec(INT, name, space, failed, lambda: (low, high), fresh=True)

    return rule


def _pairs(one: Bounds, other: Bounds) -> Iterator[tuple[str, str]]:
    for a in one:
        for b in other:
            yield f"float({a})", f"{b}"


def _divide_by_ratio(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    """`divide(int,double)`: the quantity over a ratio, which is an error of zero."""
    writer = emitter.writer
    (a, b), errors = _operands(emitter, args)
    space = emitter.space_of(args)
    zeros = writer.let("e", f"zero_divisors({b}, {errors}, {emitter.count_of(space)})")
    name, failed = writer.name("v"), writer.name("e")
    writer.line(f"{name}, {failed} = whole({a} / {b}, {zeros})")
    return Vec(INT, name, space, failed, None, fresh=True)


def _quotient(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    """Equal units: a ratio, and an error of a zero divisor."""
    writer = emitter.writer
    (a, b), errors = _operands(emitter, args)
    space = emitter.space_of(args)
    low, high = emitter.bounds_of(args[1])
    failed = writer.let("e", str(errors))
    writer.line(f"if {low} <= 0 <= {high}:")
    writer.line(f" {failed} = zero_divisors({b}, {errors}, {emitter.count_of(space)})")
    return _result(
        emitter, DOUBLE, args, f"{emitter.as_double(args[0], a)} / {emitter.as_double(args[1], b)}", failed
    )


def _to_double(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    (a,), errors = _operands(emitter, args)
    low, high = emitter.bounds_of(args[0])
    return _result(
        emitter, DOUBLE, args, emitter.as_double(args[0], a), errors,
        lambda: (f"float({low})", f"float({high})"),
    )  # fmt: skip


def _same(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    return args[0]


def _seconds(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    (a,), errors = _operands(emitter, args)
    return _result(emitter, INT, args, f"{a} // 1000000000", errors)


# --- doubles ---------------------------------------------------------------------------------------


def _doubles(text: str) -> Rule:
    """A function of doubles that cannot fail."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        texts, errors = _operands(emitter, args)
        return _result(emitter, DOUBLE, args, text.format(*texts), errors)

    return rule


def _by_corners(operator: str) -> Rule:
    """`+ - *` of doubles, with the bounds that `_whole` may ask for."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        (a, b), errors = _operands(emitter, args)

        def bounds() -> Bounds:
            writer = emitter.writer
            one, other = emitter.bounds_of(args[0]), emitter.bounds_of(args[1])
            corners = ", ".join(f"{x} {operator} {y}" for x in one for y in other)
            image = writer.let("p", f"({corners})")
            hull = f"if {image} == {image} else"  # inf - inf: nothing is known
            return (
                writer.let("l", f"min({image}) {hull} -inf"),
                writer.let("h", f"max({image}) {hull} inf"),
            )

        return _result(emitter, DOUBLE, args, f"{a} {operator} {b}", errors, bounds)

    return rule


def _share(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
    """`ratio(percent)`."""
    (a,), errors = _operands(emitter, args)

    def bounds() -> Bounds:
        low, high = emitter.bounds_of(args[0])
        return f"({low} / 100.0)", f"({high} / 100.0)"

    return _result(emitter, DOUBLE, args, f"{a} / 100.0", errors, bounds)


def _tests(text: str) -> Rule:
    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        texts, errors = _operands(emitter, args)
        return _result(emitter, BOOL, args, text.format(*texts), errors)

    return rule


# --- extremes --------------------------------------------------------------------------------------


def extremes(sign: str) -> Rule:
    """`min` and `max` of one or more values: the first of those that no later one beats."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        space = emitter.space_of(args)
        texts, errors = _operands(emitter, args)
        function = "np.minimum" if sign == "<" else "np.maximum"
        best, scalar = texts[0], args[0].space is None
        for arg, text in zip(args[1:], texts[1:], strict=True):
            both = scalar and arg.space is None
            if both or args[0].kind == DOUBLE:
                # NaN and -0.0 make NumPy's own functions differ from the definition.
                pick = (
                    f"({text} if {text} {sign} {best} else {best})"
                    if both
                    else f"np.where({text} {sign} {best}, {text}, {best})"
                )
                best = emitter.writer.let("v", pick)
            else:
                best = emitter.writer.let("v", f"{function}({best}, {text})")
            scalar = both
        if len(args) == 1:
            return args[0]
        return Vec(
            args[0].kind, best, space, errors,
            lambda: _hull(emitter, args), fresh=True,
        )  # fmt: skip

    return rule


# --- comparisons -----------------------------------------------------------------------------------


def _comparison(operator: str) -> Rule:
    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        texts, errors = _operands(emitter, args)
        return _result(emitter, BOOL, args, f"{texts[0]} {operator} {texts[1]}", errors)

    return rule


def equality(operator: str) -> Rule:
    """`==` and `!=` of two values of comparable kinds; strings compare by number."""

    def rule(emitter: "Emitter", args: Sequence[Vec]) -> Vec:
        space = emitter.space_of(args)
        texts = [
            emitter.code_of(arg)
            if arg.kind == STRING and arg.space is None
            else emitter.values_in(arg, space)
            for arg in args
        ]
        errors = emitter.join_errors(args, space)
        return _result(emitter, BOOL, args, f"{texts[0]} {operator} {texts[1]}", errors)

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
    yield "_/_(int,int)", _divided("divide")
    yield "_%_(int,int)", _divided("remainder")
    yield "_/_(double,double)", _doubles("{0} / {1}")
    yield "-_(int)", _least_excluded("-{0}", "negate_checked", "-{1}", "-{0}")
    yield "-_(double)", _doubles("-{0}")
    yield "!_(bool)", _tests("~{0}")
    yield "scale(int,double)", _whole("{0} * {1}")
    yield "percent_of(int,double)", _whole("{0} * {1} / 100.0")
    for name in ("int", "millicores", "bytesOf"):
        yield f"{name}(double)", _whole("{0}")
    yield "divide(int,double)", _divide_by_ratio
    yield "quotient(int,int)", _quotient
    yield "quotient(double,double)", _quotient
    yield "double(int)", _to_double
    yield "percent(int)", _to_double
    yield "ratio(percent)", _share
    yield f"int({timestamp})", _seconds
    for same in (
        "int(int)", "double(double)", "percent(double)", "bool(bool)", "string(string)", "number(int)", "number(double)", "amount(int)",
        "millicores(int)", "bytesOf(int)", f"duration({duration})", f"timestamp({timestamp})", "dyn(dyn)", "dyn(A)",
    ):  # fmt: skip
        yield same, _same
    for name, function in (("ceil", "np.ceil({0})"), ("floor", "np.floor({0})"), ("trunc", "np.trunc({0})"),
                           ("round", "round_half_away({0})"), ("abs", "np.abs({0})"), ("sign", "sign_of({0})"),
                           ("sqrt", "np.sqrt({0})")):  # fmt: skip
        yield f"math.{name}(double)", _doubles(function)
    yield "math.sqrt(int)", _doubles("np.sqrt({0})")
    yield "math.abs(int)", _least_excluded("np.abs({0})", "magnitude_checked", "0", "max(-{0}, {1})")
    yield "math.sign(int)", _int_sign
    for name, function in (("isNaN", "np.isnan"), ("isInf", "np.isinf"), ("isFinite", "np.isfinite")):
        yield f"math.{name}(double)", _tests(f"{function}({{0}})")
    for operator in ("<", "<=", ">", ">="):
        for kind in ("bool", timestamp, duration):
            yield f"_{operator}_({kind},{kind})", _comparison(operator)
        for a in ("int", "double"):
            for b in ("int", "double"):
                yield f"_{operator}_({a},{b})", _comparison(operator)


RULES: Mapping[str, Rule] = MappingProxyType(dict(_rows()))
"""Overload id to rule. `==`, `in`, `min`, `max` and functions of strings are the emitter's own."""

assert str(INT_MIN) == _LOW and str(INT_MAX) == _HIGH
