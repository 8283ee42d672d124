"""What generated code calls where one NumPy operation is not enough.

`errors` are masks of failed entries, or None when nothing failed. Values at failed entries mean
nothing and are never looked at.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.unheld import SEEN
from koordpolicy.language.cel.values import INT_MAX, INT_MIN
from koordpolicy.model.table.columns import BeyondColumnsError

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Errors = Mask | None
Operand = Array | int

_TWO_63 = 2.0**63


class Beyond(Exception):
    """A whole number may be too large to be held as a double."""


def no_nan(values: Sequence[float]) -> bool:
    """Whether bounds are known: comparing the tuple with itself would not tell, for each NaN is itself."""
    return all(value == value for value in values)


def join(a: Errors, b: Errors) -> Errors:
    """Entries where either failed."""
    if a is None:
        return b
    return a if b is None else a | b


def join_found(errors: Errors, found: Mask) -> Errors:
    """The same, where `found` may turn out to mark nothing."""
    return join(errors, found) if np.count_nonzero(found) else errors


# --- logic ----------------------------------------------------------------------------------------


def all_of(values: Sequence[Mask], errors: Sequence[Errors]) -> tuple[Mask, Errors]:
    """`&&`: false wins over errors. The value is true where the result is an error."""
    result: Mask | None = None
    failed: Errors = None
    for value, error in zip(values, errors, strict=True):
        neutral = value if error is None else value | error
        result = neutral if result is None else result & neutral
        failed = join(failed, error)
    assert result is not None
    return result, _decided(failed, result)


def any_of(values: Sequence[Mask], errors: Sequence[Errors]) -> tuple[Mask, Errors]:
    """`||`: true wins over errors. The value is false where the result is an error."""
    result: Mask | None = None
    failed: Errors = None
    for value, error in zip(values, errors, strict=True):
        neutral = value if error is None else value & ~error
        result = neutral if result is None else result | neutral
        failed = join(failed, error)
    assert result is not None
    return result, None if failed is None else _decided(failed, ~result)


def _decided(failed: Errors, undecided: Mask) -> Errors:
    if failed is None:
        return None
    failed = failed & undecided
    return failed if np.count_nonzero(failed) else None


def chosen_errors(condition: Mask, failed: Errors, then: Errors, otherwise: Errors) -> Errors:
    """Errors of `condition ? then : otherwise`, each branch's where it is taken."""
    taken: Errors = None
    if then is not None:
        taken = then & condition
    if otherwise is not None:
        taken = join(taken, otherwise & ~condition)
    return join(failed, taken)


def same(value: Any, dtype: str, count: int) -> Array:
    """One value for all entries, in an array that nobody may write."""
    found = np.ndarray((count,), dtype, np.array(value, dtype), 0, (0,))
    found.flags.writeable = False
    return found


def copy_of(value: Array, out: Array | None) -> Array:
    """A copy of an array that may change later."""
    if out is None:
        return value if value.strides == (0,) else value.copy()
    np.copyto(out, value)
    return out


# --- int64 arithmetic ------------------------------------------------------------------------------


def add_checked(a: Operand, b: Operand, errors: Errors) -> tuple[Array, Errors]:
    """`a + b` where it may leave int64."""
    result = np.add(a, b, dtype=np.int64)
    return result, join_found(errors, ((a ^ result) & (b ^ result)) < 0)


def subtract_checked(a: Operand, b: Operand, errors: Errors) -> tuple[Array, Errors]:
    """`a - b` where it may leave int64."""
    result = np.subtract(a, b, dtype=np.int64)
    return result, join_found(errors, ((a ^ b) & (a ^ result)) < 0)


def multiply_checked(a: Operand, b: Operand, errors: Errors) -> tuple[Array, Errors]:
    """`a * b` where it may leave int64."""
    result = np.multiply(a, b, dtype=np.int64)
    # The double product is within a few units of 2**-52 of the true one: far from both ends of the
    # range it decides, and the few entries close to them are multiplied exactly.
    rough = np.abs(np.multiply(a, b, dtype=np.float64))
    over = rough > _TWO_63
    close = (rough > _TWO_63 * 0.999) & (rough < _TWO_63 * 1.001)
    if np.count_nonzero(close):
        wide_a, wide_b = np.broadcast_to(a, result.shape), np.broadcast_to(b, result.shape)
        for at in np.flatnonzero(close):
            over[at] = not INT_MIN <= int(wide_a[at]) * int(wide_b[at]) <= INT_MAX
    return result, join_found(errors, over)


def negate_checked(a: Array, errors: Errors) -> tuple[Array, Errors]:
    """`-a` where `a` may be the least int64."""
    return np.negative(a), join_found(errors, a == INT_MIN)


def magnitude_checked(a: Array, errors: Errors) -> tuple[Array, Errors]:
    """`abs(a)` where `a` may be the least int64."""
    return np.abs(a), join_found(errors, a == INT_MIN)


def divide(a: Operand, b: Operand, errors: Errors, count: int) -> tuple[Array, Errors]:
    """`a / b` toward zero; zero divisors and MIN / -1 are errors."""
    divisor, errors = _divisor(b, errors, count)
    quotient = np.floor_divide(a, divisor)
    rest = a - quotient * divisor
    quotient += (rest != 0) & ((rest ^ a) < 0)
    return quotient, join_found(errors, (np.equal(a, INT_MIN)) & (divisor == -1))


def remainder(a: Operand, b: Operand, errors: Errors, count: int) -> tuple[Array, Errors]:
    """`a % b` with the sign of `a`; zero divisors and MIN % -1 are errors."""
    divisor, errors = _divisor(b, errors, count)
    result = np.fmod(a, np.where(divisor == -1, 1, divisor))
    return result, join_found(errors, np.equal(a, INT_MIN) & (divisor == -1))


def _divisor(b: Operand, errors: Errors, count: int) -> tuple[Array, Errors]:
    zero = np.broadcast_to(np.equal(b, 0), (count,))
    if not np.count_nonzero(zero):
        return np.asarray(b, np.int64), errors
    return np.where(zero, 1, b), join(errors, zero)


def zero_divisors(b: "Array | float", errors: Errors, count: int) -> Errors:
    """Errors of a quotient by `b`, which is one where it is zero."""
    return join_found(errors, np.broadcast_to(np.equal(b, 0), (count,)))


def whole(value: Array, errors: Errors) -> tuple[Array, Errors]:
    """Doubles cut to int64; what does not fit, NaN included, is an error."""
    fits = (value > -_TWO_63) & (value < _TWO_63)
    if np.count_nonzero(fits) != len(fits):
        errors = join(errors, ~fits)
        value = np.where(fits, value, 0.0)
    return value.astype(np.int64), errors


def within(value: Array, errors: Errors, low: int, high: int) -> Errors:
    """Errors of values that must lie between two bounds."""
    return join_found(errors, (value < low) | (value > high))


def as_doubles(value: Array, out: Array | None) -> Array:
    """int64 as the nearest doubles."""
    if out is None:
        return value.astype(np.float64)
    np.copyto(out, value)
    return out


def truncate(value: Array, out: Array | None) -> Array:
    """Doubles that are known to fit, cut to int64."""
    if out is None:
        one_for_all = value.strides == (0,) and len(value) > 0
        return same(int(value[0]), "int64", len(value)) if one_for_all else value.astype(np.int64)
    np.copyto(out, value, casting="unsafe")
    return out


def wide_mask(chosen: Mask, out: Array | None) -> Array:
    """All bits set where chosen, none elsewhere."""
    result = as_words(chosen, out)
    return np.negative(result, result)


def as_words(chosen: Mask, out: Array | None) -> Array:
    """0 and 1 as int64."""
    if out is None:
        return chosen.astype(np.int64)
    np.copyto(out, chosen)
    return out


def select(mask: Array, then: Operand | float, otherwise: Operand | float, out: Array | None) -> Array:
    """`then` where the wide mask is set, else `otherwise`, both of int64 or both doubles.

    By bits, because a mask without pattern makes a choice by branches five times slower. `out` is
    neither operand.
    """
    if out is None:
        return np.where(mask, then, otherwise)
    words = out.view(np.int64)
    if _is_zero(otherwise):
        np.bitwise_and(_bits(then, out.dtype), mask, words)
        return out
    other = _bits(otherwise, out.dtype)
    if _is_zero(then):
        np.bitwise_and(other, mask, words)
    else:
        np.bitwise_xor(_bits(then, out.dtype), other, words)
        np.bitwise_and(words, mask, words)
    np.bitwise_xor(words, other, words)
    return out


def _is_zero(value: Operand | float) -> bool:
    """Whether a value is a zero all of whose bits are."""
    return not isinstance(value, np.ndarray) and value == 0 and math.copysign(1.0, value) > 0


def _bits(value: Operand | float, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(np.int64)
    return dtype.type(value).view(np.int64)


# --- doubles ---------------------------------------------------------------------------------------


def sign_of(value: Array) -> Array:
    """-1.0, 0.0 or 1.0; NaN of NaN."""
    return np.sign(value) + 0.0


# --- presence and optionals ------------------------------------------------------------------------


class _Settled:
    """Masks that are one for all entries: views of two arrays that nobody writes."""

    __slots__ = ("_arrays",)

    def __init__(self) -> None:
        self._arrays = self._made(0)

    def _made(self, count: int) -> tuple[Mask, Mask]:
        arrays = np.zeros(count, np.bool_), np.ones(count, np.bool_)
        for array in arrays:
            array.flags.writeable = False
        return arrays

    def __call__(self, count: int, value: bool) -> Mask:
        """So many entries of a value."""
        array = self._arrays[value]
        if len(array) < count:
            self._arrays = self._made(2 * count)
            array = self._arrays[value]
        return array[:count]


settled = _Settled()


def present_any(count: int, *absent: Errors) -> Mask:
    """Entries where at least one of several facts is there. Nobody may write the mask."""
    lacking = _absent_all(absent)
    return settled(count, True) if lacking is None else ~lacking


def absent_all(count: int, *absent: Errors) -> Mask:
    """Entries where none of several facts is there. Nobody may write the mask."""
    lacking = _absent_all(absent)
    return settled(count, False) if lacking is None else lacking


def _absent_all(absent: Sequence[Errors]) -> Errors:
    result: Errors = None
    for mask in absent:
        if mask is None:
            return None
        result = mask if result is None else result & mask
    return result


def errors_where(chosen: Mask, errors: Errors, others: Errors) -> Errors:
    """`errors` where chosen, and `others` anywhere."""
    return others if errors is None else join(others, errors & chosen)


def errors_unless(excluded: Errors, others: Errors, errors: Errors) -> Errors:
    """`errors` where not excluded, and `others` anywhere."""
    if errors is None or excluded is None:
        return join(others, errors)
    return join(others, errors & ~excluded)


def count_unheld(errors: Mask, clause: str) -> None:
    """Count the entries for which a condition failed."""
    failed = int(np.count_nonzero(errors))
    if failed and clause:
        SEEN.add(clause, failed)


def fail_undecided_all(value: Mask, errors: Errors) -> Errors:
    """Errors of `&&` with an operand that failed for all rows: wherever nothing is false."""
    return join(errors, value)


def fail_undecided_any(value: Mask, errors: Errors) -> Errors:
    """Errors of `||` with an operand that failed for all rows: wherever nothing is true."""
    return join(errors, ~value)


# --- points in time --------------------------------------------------------------------------------


def add_instants(a: Operand, b: Operand, errors: Errors) -> tuple[Array, Errors]:
    """A point in time and a duration after it. Raises BeyondColumnsError."""
    return _representable(*add_checked(a, b, None), errors)


def subtract_instants(a: Operand, b: Operand, errors: Errors) -> tuple[Array, Errors]:
    """A point in time and a duration before it. Raises BeyondColumnsError."""
    return _representable(*subtract_checked(a, b, None), errors)


def _representable(value: Array, beyond: Errors, errors: Errors) -> tuple[Array, Errors]:
    if beyond is not None and (errors is None or np.count_nonzero(beyond & ~errors)):
        raise BeyondColumnsError
    return value, errors
