"""Kernels over lists: from masks and values of elements to one answer a row.

`owners` has the row of each element; `chosen` marks the elements that count (None: all; dead ones
never do). `failed` marks rows whose list is an error already. Values at failed rows mean nothing.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.errors import EvaluationError
from koordpolicy.language.cel.lower.columns.kernels import Errors, Mask, join
from koordpolicy.language.cel.lower.runtime import iterate, iterate_pairs
from koordpolicy.language.cel.meter import Meter, charge
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Value
from koordpolicy.model.table.columns import BeyondColumnsError
from koordpolicy.model.table.lists import Segments

Array = NDArray[Any]

MAX_PASSES: Final = 4096
"""Elements of a list of the pod's that a program walks in one call; row programs walk longer ones."""


def items(container: Value, meter: Meter, units: int) -> "list[Value]":
    """What one variable of a macro walks, `units` each.

    Raises BeyondColumnsError when there is too much of it, or nothing to walk.
    """
    try:
        found = list(iterate(container, meter))
    except EvaluationError:
        raise BeyondColumnsError from None
    if len(found) > MAX_PASSES:
        raise BeyondColumnsError
    charge(meter, units * len(found))
    return found


def pairs(container: Value, meter: Meter, units: int) -> "list[tuple[Value, Value]]":
    """What two variables of a macro walk, `units` each. Raises BeyondColumnsError as `items` does."""
    try:
        found = iterate_pairs(container, meter)
    except EvaluationError:
        raise BeyondColumnsError from None
    if len(found) > MAX_PASSES:
        raise BeyondColumnsError
    charge(meter, units * len(found))
    return found


# --- which rows ------------------------------------------------------------------------------------


def _rows_with(marked: Mask, chosen: Errors, owners: Array, count: int) -> Mask:
    """Rows with at least one marked element among the chosen."""
    if chosen is not None:
        marked = marked & chosen
    result = np.zeros(count, np.bool_)
    result[owners[np.flatnonzero(marked)]] = True
    return result


def list_errors(errors: Errors, chosen: Errors, owners: Array, count: int, failed: Errors) -> Errors:
    """Rows whose list fails because a chosen element does."""
    if errors is None:
        return failed
    found = _rows_with(errors, chosen, owners, count)
    return join(failed, found) if np.count_nonzero(found) else failed


def exists_rows(
    values: Mask | bool, errors: Errors, chosen: Errors, owners: Array, count: int, failed: Errors
) -> tuple[Mask, Errors]:
    """Rows with an element for which the predicate holds; others with a failed one are errors."""
    held = np.broadcast_to(values, owners.shape)
    found = _rows_with(held if errors is None else held & ~errors, chosen, owners, count)
    if errors is not None:
        bad = _rows_with(errors, chosen, owners, count) & ~found
        failed = join(failed, bad) if np.count_nonzero(bad) else failed
    return found, failed


def all_rows(
    values: Mask | bool, errors: Errors, chosen: Errors, owners: Array, count: int, failed: Errors
) -> tuple[Mask, Errors]:
    """Rows without an element for which the predicate does not hold."""
    found, failed = exists_rows(np.logical_not(values), errors, chosen, owners, count, failed)
    return ~found, failed


def choose(
    values: Mask | bool, errors: Errors, chosen: Errors, owners: Array, count: int, failed: Errors
) -> tuple[Mask, Errors]:
    """The elements that a filter leaves, and the rows where it fails."""
    failed = list_errors(errors, chosen, owners, count, failed)
    left: Mask = np.broadcast_to(values, owners.shape)
    if chosen is not None:
        left = left & chosen
    return (left if errors is None else left & ~errors), failed


# --- one number a row ------------------------------------------------------------------------------


def positions(segments: Segments) -> Array:
    """The place of each element in its list."""
    lengths = np.diff(segments.starts, append=segments.size)
    places: Array = np.arange(segments.size) - np.repeat(segments.starts, lengths)
    return places


def count_rows(chosen: Errors, segments: Segments, count: int) -> Array:
    """How many chosen elements each row has."""
    if chosen is None:
        return segments.lengths
    return np.bincount(segments.owners[np.flatnonzero(chosen)], minlength=count)


def sum_ints(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors, low: int, high: int
) -> tuple[Array, Errors]:
    """Sums of int64. `low` and `high` bound what all elements together can come to."""
    held = values if chosen is None else np.where(chosen, values, 0)
    result = _reduce(np.add, held, segments, count, 0)
    if low >= INT_MIN and high <= INT_MAX:
        return result, failed
    # Where the magnitudes together stay well below 2**63, no partial sum can overflow.
    weights = np.abs(held.astype(np.float64))
    doubtful = np.bincount(segments.owners, weights=weights, minlength=count) > 2.0**62
    over = np.zeros(count, np.bool_)
    for row in np.flatnonzero(doubtful):
        over[row] = _overflows(held[_elements_of(segments, int(row))].tolist())
    return result, join(failed, over) if np.count_nonzero(over) else failed


def _elements_of(segments: Segments, row: int) -> Array:
    mask = segments.owners == row
    return np.flatnonzero(mask if segments.live is None else mask & segments.live)


def _overflows(values: list[int]) -> bool:
    total = 0
    for value in values:
        total += value
        if not INT_MIN <= total <= INT_MAX:
            return True
    return False


def sum_doubles(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors
) -> tuple[Array, Errors]:
    """Sums of doubles from left to right, as row programs add them."""
    owners = segments.owners
    if chosen is not None:
        hits = np.flatnonzero(chosen)
        owners, values = owners[hits], values[hits]
    if not len(owners):  # of nothing, bincount would give ints
        return np.zeros(count), failed
    return np.bincount(owners, weights=values, minlength=count), failed


def _reduce(function: np.ufunc, values: Array, segments: Segments, count: int, empty: float) -> Array:
    result = np.full(count, empty, values.dtype)
    if len(segments.starts):
        reduced = function.reduceat(values, segments.starts)
        live = np.flatnonzero(segments.rows >= 0)
        result[segments.rows[live]] = reduced[live]
    return result


def _empty(chosen: Errors, segments: Segments, count: int, failed: Errors) -> Errors:
    """Errors of the least or greatest of nothing."""
    none = count_rows(chosen, segments, count) == 0
    return join(failed, none) if np.count_nonzero(none) else failed


def least_ints(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors
) -> tuple[Array, Errors]:
    """The least int64 of each row; an empty list is an error."""
    held = values if chosen is None else np.where(chosen, values, INT_MAX)
    return _reduce(np.minimum, held, segments, count, 0), _empty(chosen, segments, count, failed)


def greatest_ints(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors
) -> tuple[Array, Errors]:
    """The greatest int64 of each row; an empty list is an error."""
    held = values if chosen is None else np.where(chosen, values, INT_MIN)
    return _reduce(np.maximum, held, segments, count, 0), _empty(chosen, segments, count, failed)


def percentiles(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors, points: float
) -> tuple[Array, Errors]:
    """The element at place trunc(n * points / 100), at least the first, of each row in ascending order.

    An empty list, a NaN among the chosen and points outside of 0 to 100 are errors.
    """
    result = np.zeros(count, values.dtype)
    if not 0 <= points <= 100:
        return result, np.ones(count, np.bool_)
    owners = segments.owners
    if chosen is not None:
        hits = np.flatnonzero(chosen)
        owners, values = owners[hits], values[hits]
    lengths = np.bincount(owners, minlength=count)
    filled = np.flatnonzero(lengths)
    places = np.cumsum(lengths) - lengths + np.maximum((lengths * points / 100).astype(np.int64) - 1, 0)
    # By row, then by value; NaN comes last in its row, where it is found.
    ordered = values[np.lexsort((values, owners))]
    result[filled] = ordered[places[filled]]
    bad = lengths == 0
    if values.dtype.kind == "f":
        bad[owners[np.isnan(values)]] = True
    return result, join(failed, bad) if np.count_nonzero(bad) else failed


def least_doubles(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors
) -> tuple[Array, Errors]:
    """The least double of each row, the first of equal ones."""
    return _first_extreme(np.fmin, np.inf, values, chosen, segments, count, failed)


def greatest_doubles(
    values: Array, chosen: Errors, segments: Segments, count: int, failed: Errors
) -> tuple[Array, Errors]:
    """The greatest double of each row, the first of equal ones."""
    return _first_extreme(np.fmax, -np.inf, values, chosen, segments, count, failed)


def _first_extreme(
    function: np.ufunc, worst: float, values: Array, chosen: Errors, segments: Segments, count: int,
    failed: Errors,
) -> tuple[Array, Errors]:  # fmt: skip
    """A NaN is passed over by what follows it, but never by what it follows: only a first NaN stays."""
    held = values if chosen is None else np.where(chosen, values, worst)
    extreme = _reduce(function, held, segments, count, 0.0)
    hits = np.arange(len(values)) if chosen is None else np.flatnonzero(chosen)
    hits = hits[::-1]  # the last to be written is the first of its row
    best = np.flatnonzero(values[hits] == extreme[segments.owners[hits]])
    at = np.full(count, -1)
    at[segments.owners[hits[best]]] = hits[best]
    first = np.full(count, -1)
    first[segments.owners[hits]] = hits
    found = np.flatnonzero(first >= 0)
    result = np.zeros(count)
    result[found] = np.where(np.isnan(values[first[found]]), np.nan, values[at[found]])
    return result, _empty(chosen, segments, count, failed)
