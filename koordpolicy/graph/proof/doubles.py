"""Arithmetic of doubles over reals, rounding being a function of which only what is true of every rounding is said.

The result of an operation on finite doubles is the exact result, rounded. So equal exact results have equal roundings;
a rounding keeps order and sign, is off by one part in 2**53 at most, and leaves whole numbers up to 2**53 as they are.
A proof from these facts holds of IEEE 754; an example from them is only a guess, which the engine has to confirm.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import Final

import z3

from koordpolicy.graph.proof.terms import FALSE, Bool, Double, Formula, Whole, both, either, no, pick

_EXACT: Final = 2**53
_GREATEST: Final = Fraction(2**1024 - 2**970)
_HALF_STEP: Final = Fraction(1, 2**53)
_LEAST: Final = Fraction(1, 2**1074)
_MOST_ORDERED: Final = 14
"""Roundings whose order is said pair by pair."""

_INFINITE: Final = 1
_MINUS_INFINITE: Final = 2
_NAN: Final = 3


class Doubles:
    """Operations on doubles; `say` takes what is true of their results."""

    def __init__(self, say: Callable[[Formula], None]) -> None:
        self._say = say
        self._round = z3.Function("rounded", z3.RealSort(), z3.RealSort())
        self._known: dict[int, tuple[Formula, Formula, Fraction, Fraction]] = {}
        self._strange = 0

    def constant(self, value: float) -> Double:
        """A constant."""
        if isfinite(value):
            exact = Fraction(value)
            return Double(z3.RealVal(str(exact)), None, exact, exact, exact.denominator == 1)
        tag = _NAN if value != value else _INFINITE if value > 0 else _MINUS_INFINITE
        return Double(z3.RealVal(0), z3.IntVal(tag), Fraction(0), Fraction(0))

    def of_whole(self, value: Whole) -> Double:
        """An integer as the nearest double."""
        return self._rounded(z3.ToReal(value.term), Fraction(value.low), Fraction(value.high), whole=True)

    def add(self, one: Double, other: Double) -> Double:
        """The sum."""
        return self._result(
            one,
            other,
            one.term + other.term,
            one.low + other.low,
            one.high + other.high,
            one.whole and other.whole,
        )

    def subtract(self, one: Double, other: Double) -> Double:
        """The difference."""
        return self._result(
            one,
            other,
            one.term - other.term,
            one.low - other.high,
            one.high - other.low,
            one.whole and other.whole,
        )

    def multiply(self, one: Double, other: Double) -> Double:
        """The product; once is exact."""
        for factor, value in ((one, other), (other, one)):
            if factor.tag is None and factor.low == factor.high == 1:
                return value
        ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
        return self._result(
            one, other, one.term * other.term, min(ends), max(ends), one.whole and other.whole
        )

    def divide(self, one: Double, other: Double) -> Double:
        """The quotient; by zero it is infinite, of a sign that nothing is known of, or no number."""
        if other.low <= 0 <= other.high:
            made = self._rounded(one.term / pick(other.term == 0, z3.RealVal(1), other.term), None, None)
            strange = self._anything()
            odd = either(self._odd(one), self._odd(other))
            zero = either(other.term == 0, odd)
            assert strange.tag is not None
            infinite = pick(strange.tag == _INFINITE, z3.IntVal(_INFINITE), z3.IntVal(_MINUS_INFINITE))
            by_zero = pick(one.term == 0, z3.IntVal(_NAN), infinite)
            tag = z3.IntVal(0) if made.tag is None else made.tag
            tag = pick(odd, strange.tag, pick(other.term == 0, by_zero, tag))
            return Double(
                pick(zero, strange.term, made.term),
                tag,
                min(made.low, strange.low),
                max(made.high, strange.high),
            )
        ends = [a / b for a in (one.low, one.high) for b in (other.low, other.high)]
        return self._result(one, other, one.term / other.term, min(ends), max(ends))

    def negate(self, one: Double) -> Double:
        """The negative, which is exact."""
        tag = one.tag
        if tag is not None:
            plus, minus = z3.IntVal(_INFINITE), z3.IntVal(_MINUS_INFINITE)
            tag = pick(tag == _INFINITE, minus, pick(tag == _MINUS_INFINITE, plus, tag))
        return Double(-one.term, tag, -one.high, -one.low, one.whole)

    def less(self, one: Double, other: Double, *, or_equal: bool = False) -> Bool:
        """The order of two; what is no number is in none."""
        plain = one.term <= other.term if or_equal else one.term < other.term
        if one.tag is None and other.tag is None:
            return Bool(plain)
        rank, above = self._rank(one), self._rank(other)
        alike = (
            both(rank == above, either(plain, rank != 0))
            if or_equal
            else both(rank == above, plain, rank == 0)
        )
        return Bool(both(self._are_numbers(one, other), either(rank < above, alike)))

    def equal(self, one: Double, other: Double) -> Bool:
        """Equality of two; what is no number is equal to none."""
        plain = one.term == other.term
        if one.tag is None and other.tag is None:
            return Bool(plain)
        rank, above = self._rank(one), self._rank(other)
        return Bool(both(self._are_numbers(one, other), rank == above, either(plain, rank != 0)))

    def cut(self, value: Double) -> tuple[Formula, Whole]:
        """Whether a double does not fit int, and as an int, cut toward zero."""
        cut = trunc(value.term)
        low, high = max(int(value.low), -(2**63)), min(int(value.high), 2**63)
        outside = FALSE
        if value.low <= -(2**63) or value.high >= 2**63:
            outside = no(both(value.term > -(2**63), value.term < 2**63))
        return either(outside, self._odd(value)), Whole(cut, low, high)

    def whole_part(self, value: Double, cut: Callable[[Formula], Formula]) -> Double:
        """A whole number made of a double by cutting or rounding, which is exact."""
        return Double(z3.ToReal(cut(value.term)), value.tag, value.low - 1, value.high + 1, True)

    def is_infinite(self, value: Double) -> Bool:
        """Whether a double is infinite."""
        tag = value.tag
        return Bool(FALSE if tag is None else either(tag == _INFINITE, tag == _MINUS_INFINITE))

    def is_nan(self, value: Double) -> Bool:
        """Whether a double is no number."""
        return Bool(FALSE if value.tag is None else value.tag == _NAN)

    def _odd(self, value: Double) -> Formula:
        return FALSE if value.tag is None else value.tag != 0

    def _are_numbers(self, *values: Double) -> Formula:
        return both(*(value.tag != _NAN for value in values if value.tag is not None))

    def _rank(self, value: Double) -> Formula:
        """0 for what is finite, 1 and -1 for what is infinite."""
        plain = z3.IntVal(0)
        if value.tag is None:
            return plain
        minus = pick(value.tag == _MINUS_INFINITE, z3.IntVal(-1), plain)
        return pick(value.tag == _INFINITE, z3.IntVal(1), minus)

    def any_tag(self, name: str) -> Formula:
        """A symbol for the nature of a double: finite, infinite, or no number."""
        tag = z3.Int(name)
        self._say(both(tag >= 0, tag <= _NAN))
        return tag

    def _anything(self) -> Double:
        self._strange += 1
        term = z3.Real(f"strange!{self._strange}")
        return Double(term, self.any_tag(f"strange tag!{self._strange}"), -_GREATEST, _GREATEST)

    def _result(
        self,
        one: Double,
        other: Double,
        exact: Formula,
        low: Fraction,
        high: Fraction,
        whole: bool = False,
    ) -> Double:
        made = self._rounded(exact, low, high, whole=whole)
        odd = either(self._odd(one), self._odd(other))
        if odd.eq(FALSE):
            return made
        strange = self._anything()
        tag = z3.IntVal(0) if made.tag is None else made.tag
        return Double(pick(odd, strange.term, made.term), pick(odd, strange.tag, tag), -_GREATEST, _GREATEST)

    def _rounded(
        self, exact: Formula, low: Fraction | None, high: Fraction | None, *, whole: bool = False
    ) -> Double:
        """The nearest double of an exact result within these bounds."""
        least = -_GREATEST * 2 if low is None else low
        most = _GREATEST * 2 if high is None else high
        exact = z3.simplify(exact, som=True)
        if z3.is_rational_value(exact):
            value = Fraction(exact.numerator_as_long(), exact.denominator_as_long())
            if abs(value) <= _GREATEST:
                return self.constant(value.numerator / value.denominator)
        if whole and least >= -_EXACT and most <= _EXACT:
            return Double(exact, None, least, most, True)
        rounded = self._round(exact)
        self._describe(exact, rounded, least, most, whole)
        slack = (abs(least) + abs(most)) * _HALF_STEP * 2 + _LEAST
        # Rounding never crosses zero, nor any double.
        low_end = Fraction(0) if least >= 0 else least - slack
        high_end = Fraction(0) if most <= 0 else most + slack
        tag = None
        if low_end < -_GREATEST or high_end > _GREATEST:
            below = pick(exact <= z3.RealVal(str(-_GREATEST)), z3.IntVal(_MINUS_INFINITE), z3.IntVal(0))
            tag = pick(exact >= z3.RealVal(str(_GREATEST)), z3.IntVal(_INFINITE), below)
        return Double(rounded, tag, low_end, high_end, whole)

    def _describe(self, exact: Formula, rounded: Formula, low: Fraction, high: Fraction, whole: bool) -> None:
        key = exact.get_id()
        if key in self._known:
            return
        least = z3.RealVal(str(_LEAST))
        step = z3.RealVal(str(_HALF_STEP))
        off = rounded - exact
        if low >= 0:
            self._say(both(off <= exact * step + least, -off <= exact * step + least, rounded >= 0))
        elif high <= 0:
            self._say(both(off <= -exact * step + least, -off <= -exact * step + least, rounded <= 0))
        else:
            size = pick(exact >= 0, exact, -exact)
            self._say(both(off <= size * step + least, -off <= size * step + least))
            self._say(both(z3.Implies(exact >= 0, rounded >= 0), z3.Implies(exact <= 0, rounded <= 0)))
        self._say((exact == 0) == (rounded == 0) if whole else z3.Implies(exact == 0, rounded == 0))
        if whole:
            self._say(z3.Implies(both(exact <= _EXACT, exact >= -_EXACT), rounded == exact))
        for other, known, _, _ in list(self._known.values())[:_MOST_ORDERED]:
            self._say(z3.Implies(exact <= other, rounded <= known))
            self._say(z3.Implies(exact >= other, rounded >= known))
        self._known[key] = (exact, rounded, low, high)


def trunc(term: Formula) -> Formula:
    """A real cut toward zero."""
    return pick(term >= 0, z3.ToInt(term), -z3.ToInt(-term))
