"""Ranges of numbers, as far as an expression and what is known tell them: intervals, as loose as is cheap."""

from collections.abc import Callable, Mapping
from math import inf, isfinite, isnan, nextafter, sqrt
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing.keys import SAME, SIZES, Keys
from koordpolicy.language.cel.failing.known import EVERYTHING, Known, Range
from koordpolicy.language.cel.failing.times import MEASURED_TIMES as TIMES
from koordpolicy.language.cel.failing.times import USUAL_TIMES, within_usual
from koordpolicy.language.cel.types import Type, Unit
from koordpolicy.language.cel.values import Duration, Timestamp

FITS: Final = 2.0**63
"""What an int keeps below, and its negative above: at the very ends doubles tell no difference."""

INT: Final[Range] = (-FITS, FITS)
UINT: Final[Range] = (0.0, 2.0**64)

AMOUNT: Final[Range] = (-(2.0**50), 2.0**50)
"""What amounts of a cluster are taken to lie within, such as 1 PiB. Beyond it, overflow is not foreseen."""

_CORES: Final[Range] = (-(2.0**36), 2.0**36)
"""What amounts of CPU are taken to lie within, in millicores: 68 million cores."""

_MADE: Final[Range] = (-(2.0**60), 2.0**60)
"""What is made of such amounts is taken to lie within."""

SHARE: Final[Range] = (-1e4, 1e4)
"""What percentages are taken to lie within."""

_MUCH: Final = 2.0**16
"""More than what shares are ever counted in; what is multiplied by it need not be what amounts are."""

_QUOTIENT: Final[Range] = (-(2.0**32), 2.0**32)
"""What one amount divided by another is taken to lie within."""

_MOMENT: Final = "google.protobuf.Timestamp"
_SPAN: Final = "google.protobuf.Duration"
_MEASURED: Final = frozenset(("int", "uint", "double", *TIMES))
"""Types that have ranges."""

_SIZE: Final[Range] = (0.0, 2.0**31)
_ELEMENTS: Final = 256
_DEPTH: Final = 40


def _any_number(_record: str, _path: str) -> bool:
    return False


class Ranges:
    """Ranges of numbers, and of times in nanoseconds. With `bounded`, facts and parameters are as clusters have them.

    `never_negative` tells so of a fact by its record and path.
    """

    def __init__(
        self, keys: Keys, *, bounded: bool, never_negative: Callable[[str, str], bool] = _any_number
    ) -> None:
        self._keys = keys
        self._bounded = bounded
        self._never_negative = never_negative

    def of(self, node: ir.Node, known: Known, depth: int = 0) -> Range:
        """The range of a number or a time; a double that may be NaN has no bounds."""
        whole = self._whole(node.type)
        if node.type.name not in _MEASURED or depth > _DEPTH:
            return whole
        low, high = self._own(node, known, depth)
        least, most = known.ranges.get(self._keys.of(node), EVERYTHING)
        low, high = max(low, least, whole[0]), min(high, most, whole[1])
        if ("nonzero", self._keys.of(node)) in known and node.type.name != "double":
            low, high = (1.0 if low == 0.0 else low), (-1.0 if high == 0.0 else high)
        return (low, high) if low <= high else whole

    @staticmethod
    def _whole(kind: Type) -> Range:
        return {"int": INT, "uint": UINT, **TIMES}.get(kind.name, EVERYTHING)

    def _given(self, kind: Type) -> Range:
        """What comes from outside."""
        if not self._bounded:
            return self._whole(kind)
        if kind.name in TIMES:
            return USUAL_TIMES[kind.name]
        usual = {Unit.PERCENT: SHARE, Unit.CPU: _CORES}.get(kind.unit, AMOUNT) if kind.unit else AMOUNT
        return (0.0, usual[1]) if kind.name == "uint" else usual

    def _fact(self, node: ir.Field | ir.OptField) -> Range:
        """What a fact may be, of an optional what it holds."""
        kind = node.type.params[0] if node.type.name == "optional_type" and node.type.params else node.type
        low, high = self._given(kind)
        counted = self._bounded and self._never_negative(node.base.type.record or "", node.path)
        return (max(low, 0.0), high) if counted else (low, high)

    def _own(self, node: ir.Node, known: Known, depth: int) -> Range:
        match node:
            case ir.Const(value=int() | float() as value):
                return (
                    EVERYTHING if isinstance(value, float) and isnan(value) else (float(value), float(value))
                )
            case ir.Const(value=Timestamp() | Duration() as value):
                return float(value.ns), float(value.ns)
            case ir.Field():
                return self._fact(node)
            case ir.Var() | ir.Ref() | ir.Select() | ir.Index():
                return self._given(node.type)
            case ir.Cond(then=then, otherwise=otherwise):
                return _hull(self.of(then, known, depth + 1), self.of(otherwise, known, depth + 1))
            case ir.OrElse(operand=operand, other=other, unwrap=True):
                held = self._fact(operand) if isinstance(operand, ir.OptField) else self._given(node.type)
                return _hull(held, self.of(other, known, depth + 1))
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
            if node.type.name in TIMES:
                return self._given(node.type)
            return self._whole(node.type) if overload in _OF_TEXTS or not self._bounded else _MADE
        operands = [self.of(arg, known, depth + 1) for arg in args]
        found = rule(*operands)
        if node.type.name in TIMES:
            return within_usual(node.type.name, found, args, operands) if self._bounded else found
        if self._bounded and overload in _QUOTIENTS and not isinstance(args[1], ir.Const):
            return (
                found if found == EVERYTHING else (max(found[0], _QUOTIENT[0]), min(found[1], _QUOTIENT[1]))
            )
        if (
            rule not in (_divide, _root)
            and self._bounded
            and not is_by_much(node)
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


def is_by_much(node: ir.Call) -> bool:
    """Whether a number is multiplied by a constant so large that what comes out is no amount of a cluster any more."""
    return node.overload in _PRODUCTS and any(
        isinstance(arg, ir.Const) and isinstance(arg.value, int | float) and abs(arg.value) > _MUCH
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


def _root(a: Range) -> Range:
    """Of what may be below zero the root is no number."""
    return EVERYTHING if a[0] < 0.0 else (sqrt(a[0]), sqrt(a[1]) if isfinite(a[1]) else inf)


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
    **{f"math.sqrt({kind})": _root for kind in ("int", "uint", "double")},
    **{f"_{sign}_({a},{b})": rule for sign, rule, pairs in (
        ("+", _add, ((_MOMENT, _SPAN), (_SPAN, _MOMENT), (_SPAN, _SPAN))),
        ("-", _subtract, ((_MOMENT, _SPAN), (_MOMENT, _MOMENT), (_SPAN, _SPAN))),
    ) for a, b in pairs},
}  # fmt: skip
"""The range of a result from those of the operands, before it is cut to its type."""

_QUOTIENTS: Final = frozenset(("quotient(int,int)", "quotient(double,double)"))
_PRODUCTS: Final = frozenset(("_*_(double,double)", "_*_(int,int)", "scale(int,double)"))

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
