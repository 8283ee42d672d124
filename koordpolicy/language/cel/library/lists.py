"""The lists and sets libraries, and Kubernetes' list helpers."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from koordpolicy.language.cel.errors import InvalidArgument, LimitExceeded, Overflow
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.limits import MAX_STEPS, check_list
from koordpolicy.language.cel.library.math import greatest_of, least_of
from koordpolicy.language.cel.library.row import crosses, function, method, plain, signature, walks
from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    optional_of,
    param,
)
from koordpolicy.language.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    Duration,
    Optional,
    UInt,
    Value,
)
from koordpolicy.language.cel.values_equality import equal, order
from koordpolicy.language.cel.values_time import make_duration

_LIB = "lists"
_KUBERNETES = "kubernetes"
_T = param("T")
_LIST = list_of(_T)
List = Sequence[Value]


def _slice(values: List, start: int, end: int) -> List:
    if not 0 <= start <= end <= len(values):
        raise InvalidArgument(f"a slice from {start} to {end} of a list of {len(values)}")
    return values[start:end]


def _flatten(values: List, depth: int = 1) -> list[Value]:
    if depth < 0:
        raise InvalidArgument("a negative depth")
    result = list(values)
    while depth and any(isinstance(value, (list, tuple)) for value in result):
        wider: list[Value] = []
        for value in result:
            if isinstance(value, (list, tuple)):
                wider.extend(value)
            else:
                wider.append(value)
            check_list(len(wider))
        result = wider
        depth -= 1
    return result


def _hashed(values: List) -> bool:
    """Whether Python's hashes and CEL's equality agree on these values: all texts, all integers."""
    kinds = set(map(type, values))
    return kinds <= {str} or kinds <= {int, UInt}


def _check_product(a: int, b: int) -> None:
    if a * b > MAX_STEPS:
        raise LimitExceeded(f"a comparison of {a} with {b} elements")


def _distinct(values: List) -> list[Value]:
    if _hashed(values):
        return list(dict.fromkeys(values))
    _check_product(len(values), len(values))
    result: list[Value] = []
    for value in values:
        if not any(equal(value, other) for other in result):
            result.append(value)
    return result


_PLAINLY_ORDERED = frozenset((bool, int, float, str, bytes, UInt))
"""Classes that Python orders as CEL does, NaN apart."""


def _compare(a: Value, b: Value) -> int:
    return order(a, b, "sort") or 0


def _sort(values: List) -> list[Value]:
    return sort_by(values, values)


def sort_by(values: List, keys: List) -> list[Value]:
    """The values in the order of their keys, stable. Raises NoSuchOverload for unlike keys."""
    kinds = set(map(type, keys))
    by_key: Any  # what `sorted` takes: the key itself, or one that compares by CEL's order
    if len(kinds) == 1 and kinds <= _PLAINLY_ORDERED and all(key == key for key in keys):
        by_key = keys.__getitem__
    else:
        for key in keys:
            _compare(keys[0], key)
        by_key = cmp_to_key(lambda a, b: _compare(keys[a], keys[b]))
    return [values[at] for at in sorted(range(len(values)), key=by_key)]


def _reverse(values: List) -> List:
    return values[::-1]


def _range(count: int) -> list[Value]:
    if count < 0:
        raise InvalidArgument(f"a range of {count} numbers")
    check_list(count)
    return list(range(count))


def _first(values: List) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: List) -> Optional:
    return Optional(values[-1]) if values else NONE


def _is_sorted(values: List) -> bool:
    return all((order(a, b, "isSorted") or 0) <= 0 for a, b in pairwise(values))


def _sum_int(values: Sequence[int]) -> int:
    total = 0
    for value in values:
        total += value
        if not INT_MIN <= total <= INT_MAX:
            raise Overflow("the sum does not fit int")
    return total


def _sum_uint(values: Sequence[int]) -> UInt:
    total = sum(values)
    if total > UINT_MAX:
        raise Overflow("the sum does not fit uint")
    return UInt(total)


def _sum_double(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total += value  # left to right: `sum` may compensate, which no other engine does
    return total


def _sum_duration(values: Sequence[Duration]) -> Duration:
    total = Duration(0)
    for value in values:
        total = make_duration(total.ns + value.ns)
    return total


def percentile_of(values: List, points: float) -> Value:
    """The element at place trunc(n x points / 100), at least the first, in ascending order.

    This is the rank that node agents report percentiles by. Raises InvalidArgument for an empty list, a NaN
    among the elements, and points outside of 0 to 100.
    """
    if not 0 <= points <= 100:
        raise InvalidArgument(f"a percentile of {points}: it lies between 0 and 100")
    if not values:
        raise InvalidArgument("a percentile of an empty list")
    if any(value != value for value in values):
        raise InvalidArgument("a percentile of a list with NaN")
    return sort_by(values, values)[max(int(len(values) * points / 100) - 1, 0)]


def _index_of(values: List, wanted: Value) -> int:
    return next((at for at, value in enumerate(values) if equal(value, wanted)), -1)


def _last_index_of(values: List, wanted: Value) -> int:
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted)), -1)


def _holds(values: List, wanted: List) -> bool:
    """Whether every wanted element is among the values."""
    if _hashed(values) and _hashed(wanted):
        return set(values).issuperset(wanted)
    _check_product(len(values), len(wanted))
    return all(any(equal(value, other) for value in values) for other in wanted)


def _equivalent(a: List, b: List) -> bool:
    return _holds(a, b) and _holds(b, a)


def _intersects(a: List, b: List) -> bool:
    if _hashed(a) and _hashed(b):
        return not set(a).isdisjoint(b)
    _check_product(len(a), len(b))
    return any(equal(value, other) for value in a for other in b)


_SORTABLE = (INT, UINT, DOUBLE, BOOL, STRING, BYTES_VALUE, DURATION, TIMESTAMP)
_SUMS: tuple[tuple[Type, Callable[..., object]], ...] = (
    (INT, _sum_int), (UINT, _sum_uint), (DOUBLE, _sum_double), (DURATION, _sum_duration),
)  # fmt: skip

LIBRARY: tuple[Function, ...] = (
    method(
        "slice", _LIB, "the elements from a position up to another", "[1, 2, 3].slice(0, 2) == [1, 2]",
        (_LIST, INT, INT), _LIST, _slice, walks(0),
    ),
    function(
        "flatten", _LIB, "lists within a list taken apart, one level or as many as said",
        "[[1], [2, 3]].flatten() == [1, 2, 3]",
        signature("flatten", (list_of(_LIST),), _LIST, _flatten, receiver=True, cost=walks(0)),
        signature("flatten", (list_of(DYN),), list_of(DYN), _flatten, receiver=True, cost=walks(0)),
        signature("flatten", (list_of(DYN), INT), list_of(DYN), _flatten, receiver=True, cost=walks(0)),
    ),
    method(
        "distinct", _LIB, "each element once, in the order of first appearance", "[1, 2, 1].distinct() == [1, 2]",
        (_LIST,), _LIST, _distinct, crosses(0, 0),
    ),
    function(
        "sort", _LIB, "the elements in ascending order", "[3, 1, 2].sort() == [1, 2, 3]",
        *(
            signature("sort", (list_of(kind),), list_of(kind), _sort, receiver=True, cost=walks(0))
            for kind in _SORTABLE
        ),
    ),
    method(
        "reverse", _LIB, "the elements in reverse order", "[1, 2].reverse() == [2, 1]",
        (_LIST,), _LIST, _reverse, walks(0),
    ),
    plain(
        "lists.range", _LIB, "the numbers from 0 up to n - 1", "lists.range(3) == [0, 1, 2]",
        (INT,), list_of(INT), _range,
    ),
    method(
        "first", _LIB, "the first element as an optional", "[1, 2].first().orValue(0) == 1",
        (_LIST,), optional_of(_T), _first,
    ),
    method(
        "last", _LIB, "the last element as an optional", "[1, 2].last().orValue(0) == 2",
        (_LIST,), optional_of(_T), _last,
    ),
    function(
        "isSorted", _KUBERNETES, "whether the elements are in ascending order", "[1, 2].isSorted()",
        *(
            signature("isSorted", (list_of(kind),), BOOL, _is_sorted, receiver=True, cost=walks(0))
            for kind in _SORTABLE
        ),
    ),
    function(
        "sum", _KUBERNETES, "the sum of the elements, 0 of none", "[1, 2].sum() == 3",
        *(
            signature("sum", (list_of(kind),), kind, add, receiver=True, cost=walks(0))
            for kind, add in _SUMS
        ),
    ),
    function(
        "min", _KUBERNETES, "the least element; an error of an empty list", "[2, 1].min() == 1",
        *(
            signature("min", (list_of(kind),), kind, least_of, receiver=True, cost=walks(0))
            for kind in _SORTABLE
        ),
    ),
    function(
        "max", _KUBERNETES, "the greatest element; an error of an empty list", "[2, 1].max() == 2",
        *(
            signature("max", (list_of(kind),), kind, greatest_of, receiver=True, cost=walks(0))
            for kind in _SORTABLE
        ),
    ),
    function(
        "percentile", _KUBERNETES, "the element at place trunc(n * points / 100) in ascending order, at least the first",
        "[3, 1, 2].percentile(90) == 2",
        *(
            signature("percentile", (list_of(kind), points), kind, percentile_of, receiver=True, cost=walks(0))
            for kind in (INT, UINT, DOUBLE, DURATION)
            for points in (INT, DOUBLE)
        ),
    ),
    method(
        "indexOf", _KUBERNETES, "the first position of an element, -1 for none", "[5, 6].indexOf(6) == 1",
        (_LIST, _T), INT, _index_of, walks(0),
    ),
    method(
        "lastIndexOf", _KUBERNETES, "the last position of an element, -1 for none", "[5, 5].lastIndexOf(5) == 1",
        (_LIST, _T), INT, _last_index_of, walks(0),
    ),
    plain(
        "sets.contains", "sets", "whether the first list holds every element of the second",
        "sets.contains([1, 2, 3], [2, 3])", (_LIST, _LIST), BOOL, _holds, crosses(0, 1),
    ),
    plain(
        "sets.equivalent", "sets", "whether each list holds every element of the other",
        "sets.equivalent([1, 2, 1], [2, 1])", (_LIST, _LIST), BOOL, _equivalent, crosses(0, 1),
    ),
    plain(
        "sets.intersects", "sets", "whether the lists have an element in common",
        "sets.intersects([1, 2], [2, 3])", (_LIST, _LIST), BOOL, _intersects, crosses(0, 1),
    ),
)  # fmt: skip
