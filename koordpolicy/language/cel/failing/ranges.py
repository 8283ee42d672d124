"""Ranges of numbers, as far as an expression and what is known tell them: intervals, as loose as is cheap."""

from collections.abc import Callable, Mapping
from math import inf, isfinite, isnan, nextafter
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing.keys import SAME, SIZES, Keys
from koordpolicy.language.cel.failing.known import EVERYTHING, Known, Range
from koordpolicy.language.cel.types import Type, Unit

FITS: Final = 2.0**63
"""What an int keeps below, and its negative above: at the very ends doubles tell no difference."""

INT: Final[Range] = (-FITS, FITS)
UINT: Final[Range] = (0.0, 2.0**64)

AMOUNT: Final[Range] = (-(2.0**50), 2.0**50)
"""What amounts of a cluster are taken to lie within: 1 PiB, 10¹² cores. Beyond it, overflow is not foreseen."""

_MADE: Final[Range] = (-(2.0**60), 2.0**60)
"""What is made of such amounts is taken to lie within."""

SHARE: Final[Range] = (-1e4, 1e4)
"""What percentages are taken to lie within."""

_MUCH: Final = 1e9
"""More than units are ever apart; what is multiplied by it need not be what amounts are."""

_SIZE: Final[Range] = (0.0, 2.0**31)
_ELEMENTS: Final = 256
_DEPTH: Final = 40


class Ranges:
    """Ranges of numbers. With `bounded`, facts and parameters are amounts as clusters have them."""

    def __init__(self, keys: Keys, *, bounded: bool) -> None:
        self._keys = keys
        self._bounded = bounded

    def of(self, node: ir.Node, known: Known, depth: int = 0) -> Range:
        """The range of a number; a double that may be NaN has no bounds."""
        whole = self._whole(node.type)
        if node.type.name not in ("int", "uint", "double") or depth > _DEPTH:
            return whole
        low, high = self._own(node, known, depth)
        least, most = known.ranges.get(self._keys.of(node), EVERYTHING)
        low, high = max(low, least, whole[0]), min(high, most, whole[1])
        if ("nonzero", self._keys.of(node)) in known and node.type.name != "double":
            low, high = (1.0 if low == 0.0 else low), (-1.0 if high == 0.0 else high)
        return (low, high) if low <= high else whole

    @staticmethod
    def _whole(kind: Type) -> Range:
        return {"int": INT, "uint": UINT}.get(kind.name, EVERYTHING)

    def _given(self, kind: Type) -> Range:
        """What comes from outside."""
        if not self._bounded:
            return self._whole(kind)
        return SHARE if kind.unit is Unit.PERCENT else AMOUNT if kind.name != "uint" else (0.0, AMOUNT[1])

    def _own(self, node: ir.Node, known: Known, depth: int) -> Range:
        match node:
            case ir.Const(value=int() | float() as value):
                return (
                    EVERYTHING if isinstance(value, float) and isnan(value) else (float(value), float(value))
                )
            case ir.Field() | ir.Var() | ir.Ref() | ir.Select() | ir.Index():
                return self._given(node.type)
            case ir.Cond(then=then, otherwise=otherwise):
                return _hull(self.of(then, known, depth + 1), self.of(otherwise, known, depth + 1))
            case ir.OrElse(other=other, unwrap=True):
                return _hull(self._given(node.type), self.of(other, known, depth + 1))
            case ir.Call():
                return self._call(node, known, depth)
        return self._whole(node.type)

    def _call(self, node: ir.Call, known: Known, depth: int) -> Range:
        overload, args = node.overload, node.args
        if overload in SIZES:
            return _SIZE
        if overload in SAME or overload in _AS_THEY_ARE:
            return self.of(args[0], known, depth + 1)
        if overload == "value(optional_type(T))":
            return self._given(node.type)
        name = overload.partition("(")[0]
        if name in ("sum", ".sum"):
            return self._sum(node, known, depth)
        if name in ("min", "max", "math.least", "math.greatest") and len(args) > 1:
            given = [self.of(arg, known, depth + 1) for arg in args]
            lows, highs = [low for low, _ in given], [high for _, high in given]
            return (min(lows), min(highs)) if name in ("min", "math.least") else (max(lows), max(highs))
        rule = _ARITHMETIC.get(overload)
        if rule is None:
            return self._whole(node.type) if overload in _OF_TEXTS or not self._bounded else _MADE
        operands = [self.of(arg, known, depth + 1) for arg in args]
        found = rule(*operands)
        if (
            rule is not _divide
            and self._bounded
            and not _is_by_much(node)
            and all(max(abs(low), abs(high)) <= _MADE[1] for low, high in operands)
        ):
            return max(found[0], _MADE[0]), min(found[1], _MADE[1])
        return found

    def _sum(self, node: ir.Call, known: Known, depth: int) -> Range:
        summed = node.args[0]
        if isinstance(summed, ir.Comprehension) and summed.macro == "map" and summed.transform is not None:
            low, high = self.of(summed.transform, known, depth + 1)
        else:
            low, high = self._given(node.type)
        if self._bounded:
            return min(0.0, max(low * _ELEMENTS, _MADE[0])), max(0.0, min(high * _ELEMENTS, _MADE[1]))
        return min(0.0, low * _ELEMENTS), max(0.0, high * _ELEMENTS)


def _is_by_much(node: ir.Call) -> bool:
    """Whether a double is multiplied by a constant so large that what comes out is no amount of a cluster any more."""
    return node.overload == "_*_(double,double)" and any(
        isinstance(arg, ir.Const) and isinstance(arg.value, float) and abs(arg.value) > _MUCH
        for arg in node.args
    )


def _hull(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _add(a: Range, b: Range) -> Range:
    return _sound(a[0] + b[0], a[1] + b[1])


def _subtract(a: Range, b: Range) -> Range:
    return _sound(a[0] - b[1], a[1] - b[0])


def _multiply(a: Range, b: Range) -> Range:
    if not all(map(isfinite, (*a, *b))):
        return EVERYTHING  # 0 times infinity is no number
    ends = [x * y for x in a for y in b]
    return _sound(min(ends), max(ends))


def _divide(a: Range, b: Range) -> Range:
    """By a whole number other than 0, or, as doubles, by anything: then without bounds where it may be 0."""
    if b[0] <= 0.0 <= b[1]:
        return EVERYTHING
    ends = [x / y for x in a for y in b if isfinite(y)]
    return _sound(min(ends, default=-inf), max(ends, default=inf))


def _divide_whole(a: Range, b: Range) -> Range:
    """Of ints the result is no farther from 0 than the dividend, but for the least by -1."""
    most = max(abs(a[0]), abs(a[1]))
    return (-most, most) if b[0] <= 0.0 <= b[1] else _divide(a, b)


def _remainder(a: Range, b: Range) -> Range:
    most = min(max(abs(a[0]), abs(a[1])), max(abs(b[0]), abs(b[1])))
    return (-most, most)


def _sound(low: float, high: float) -> Range:
    return (-inf if isnan(low) else low, inf if isnan(high) else high)


def _percent_of(a: Range, b: Range) -> Range:
    low, high = _multiply(a, b)
    return low / 100.0, high / 100.0


def _negate(a: Range) -> Range:
    return -a[1], -a[0]


def _absolute(a: Range) -> Range:
    most = max(abs(a[0]), abs(a[1]))
    return (0.0 if a[0] <= 0.0 <= a[1] else min(abs(a[0]), abs(a[1])), most)


def _wider(a: Range) -> Range:
    return a[0] - 1.0, a[1] + 1.0


_ARITHMETIC: Final[Mapping[str, Callable[..., Range]]] = {
    **{f"_+_({kind},{kind})": _add for kind in ("int", "uint", "double")},
    **{f"_-_({kind},{kind})": _subtract for kind in ("int", "uint", "double")},
    **{f"_*_({kind},{kind})": _multiply for kind in ("int", "uint", "double")},
    "_/_(int,int)": _divide_whole,
    "_/_(uint,uint)": _divide_whole,
    "_/_(double,double)": _divide,
    "_%_(int,int)": _remainder,
    "_%_(uint,uint)": _remainder,
    "-_(int)": _negate,
    "-_(double)": _negate,
    "scale(int,double)": _multiply,
    "percent_of(int,double)": _percent_of,
    "divide(int,double)": _divide,
    "quotient(int,int)": _divide,
    "quotient(double,double)": _divide,
    "ratio(percent)": lambda a: (a[0] / 100.0, a[1] / 100.0),
    "math.abs(int)": _absolute,
    "math.abs(double)": _absolute,
    **{f"math.{name}(double)": _wider for name in ("ceil", "floor", "round", "trunc")},
}
"""The range of a result from those of the operands, before it is cut to its type."""

_AS_THEY_ARE: Final = frozenset(
    (
        "double(int)", "double(uint)", "percent(int)", "int(double)", "int(uint)", "uint(int)", "uint(double)",
        "millicores(double)", "bytesOf(double)",
    )
)  # fmt: skip
"""Conversions of numbers: cutting a fraction brings them nearer to 0."""


_OF_TEXTS: Final = frozenset(
    (
        "int(string)", "uint(string)", "double(string)", "asInteger(kubernetes.Quantity)",
        "asApproximateFloat(kubernetes.Quantity)",
    )
)  # fmt: skip
"""What texts say, which may be any number."""


def raw(node: ir.Call, operands: tuple[Range, ...]) -> Range:
    """The range of an operation's result if its type had no bounds."""
    rule = _ARITHMETIC.get(node.overload)
    return EVERYTHING if rule is None else rule(*operands)


def above(value: float, *, whole: bool) -> float:
    """The least number greater than one."""
    return value + 1.0 if whole and abs(value) < 2.0**52 else nextafter(value, inf)


def below(value: float, *, whole: bool) -> float:
    """The greatest number less than one."""
    return value - 1.0 if whole and abs(value) < 2.0**52 else nextafter(value, -inf)
