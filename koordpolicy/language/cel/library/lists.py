"""The lists and sets libraries, and Kubernetes' list helpers."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from koordpolicy.language.cel.errors import InvalidArgument, Overflow
from koordpolicy.language.cel.functions import METERED_CALL, Cost, Function, Size
from koordpolicy.language.cel.library.limits import check_list
from koordpolicy.language.cel.library.math import greatest_of, least_of, price_of_extreme
from koordpolicy.language.cel.library.row import (
    function,
    method,
    plain,
    signature,
    takes,
    tenths,
    walks,
)
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
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
from koordpolicy.language.cel.values_equality import ELEMENT, equal, in_list, order
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


def _flatten(values: List, depth: int = 1, meter: Meter = UNMETERED) -> list[Value]:
    if depth < 0:
        raise InvalidArgument("a negative depth")
    charge(meter, _STEP * len(values))
    result = list(values)
    while depth and any(isinstance(value, (list, tuple)) for value in result):
        wider: list[Value] = []
        for value in result:
            if isinstance(value, (list, tuple)):
                check_list(len(wider) + len(value))
                wider.extend(value)
            else:
                wider.append(value)
        charge(meter, _STEP * (len(result) + len(wider)))
        result = wider
        depth -= 1
    return result


_STEP = 4
"""Units of what is done with an element of a list, such as looking up its type or hash."""


def _hashed(values: List, meter: Meter) -> bool:
    """Whether Python's hashes and CEL's equality agree on these values: all texts, all integers. Charges for both."""
    charge(meter, _STEP * len(values))
    kinds = set(map(type, values))
    if kinds <= {str}:
        charge(meter, tenths(sum(map(len, values))))  # type: ignore[arg-type]
        return True
    return kinds <= {int, UInt}


def _distinct(values: List, meter: Meter = UNMETERED) -> list[Value]:
    if _hashed(values, meter):
        return list(dict.fromkeys(values))
    result: list[Value] = []
    for value in values:
        if not in_list(value, result, meter):
            result.append(value)
    return result


_PLAINLY_ORDERED = frozenset((bool, int, float, str, bytes, UInt))
"""Classes that Python orders as CEL does, NaN apart."""


def _compare(a: Value, b: Value, meter: Meter = UNMETERED) -> int:
    return order(a, b, "sort", meter) or 0


def _sort(values: List, meter: Meter = UNMETERED) -> list[Value]:
    return sort_by(values, values, meter)


def sort_by(values: List, keys: List, meter: Meter = UNMETERED) -> list[Value]:
    """The values in the order of their keys, stable. Raises NoSuchOverload for unlike keys."""
    charge(meter, _STEP * len(keys))
    kinds = set(map(type, keys))
    by_key: Any  # what `sorted` takes: the key itself, or one that compares by CEL's order
    if len(kinds) == 1 and kinds <= _PLAINLY_ORDERED and all(key == key for key in keys):
        long = sum(map(len, keys)) if kinds <= {str, bytes} else 0  # type: ignore[arg-type]
        charge(meter, price_of_sorting(len(keys), long))
        by_key = keys.__getitem__
    else:
        charge(meter, _SLOWLY * price_of_sorting(len(keys), 0))
        for key in keys:
            _compare(keys[0], key)
        by_key = cmp_to_key(lambda a, b: _compare(keys[a], keys[b], meter))
    return [values[at] for at in sorted(range(len(values)), key=by_key)]


_SLOWLY = 16
"""How much longer it takes where every two keys are compared by `order`."""


def price_of_sorting(count: int, characters: int) -> int:
    """Units of sorting keys that Python compares, which are texts of so many characters altogether."""
    depth = count.bit_length()
    return count * (_STEP + depth) + characters * depth // 256


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


def price_of_sorting_by(count: int) -> int:
    """Units of each element of so many that are sorted by any keys."""
    return (1 + _SLOWLY) * (_STEP + count.bit_length())


def _is_sorted(values: List, meter: Meter = UNMETERED) -> bool:
    charge(meter, 2 * ELEMENT * len(values))
    return all((order(a, b, "isSorted", meter) or 0) <= 0 for a, b in pairwise(values))


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


def percentile_of(values: List, points: float, meter: Meter = UNMETERED) -> Value:
    """The element at place trunc(n x points / 100), at least the first, in ascending order.

    This is the rank that node agents report percentiles by. Raises InvalidArgument for an empty list, a NaN
    among the elements, and points outside of 0 to 100.
    """
    if not 0 <= points <= 100:
        raise InvalidArgument(f"a percentile of {points}: it lies between 0 and 100")
    if not values:
        raise InvalidArgument("a percentile of an empty list")
    charge(meter, _STEP * len(values))
    if any(value != value for value in values):
        raise InvalidArgument("a percentile of a list with NaN")
    return sort_by(values, values, meter)[max(int(len(values) * points / 100) - 1, 0)]


def _index_of(values: List, wanted: Value, meter: Meter = UNMETERED) -> int:
    charge(meter, ELEMENT * len(values))
    return next((at for at, value in enumerate(values) if equal(value, wanted, meter)), -1)


def _last_index_of(values: List, wanted: Value, meter: Meter = UNMETERED) -> int:
    charge(meter, ELEMENT * len(values))
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted, meter)), -1)


def _holds(values: List, wanted: List, meter: Meter = UNMETERED) -> bool:
    """Whether every wanted element is among the values."""
    if _hashed(values, meter) and _hashed(wanted, meter):
        return set(values).issuperset(wanted)
    return all(in_list(other, values, meter) for other in wanted)


def _equivalent(a: List, b: List, meter: Meter = UNMETERED) -> bool:
    return _holds(a, b, meter) and _holds(b, a, meter)


def _intersects(a: List, b: List, meter: Meter = UNMETERED) -> bool:
    if _hashed(a, meter) and _hashed(b, meter):
        return not set(a).isdisjoint(b)
    return any(in_list(value, b, meter) for value in a)


def _comparing(a: int, b: int) -> Cost:
    """Each element of one list compared with each of another, and all that is in them."""

    def cost(sizes: tuple[Size, ...]) -> int:
        one, other = sizes[a], sizes[b]
        pairs = max(1, one.length) * (ELEMENT + tenths(other.extent)) + ELEMENT * one.length * other.length
        return (
            METERED_CALL
            + 2 * pairs
            + (_STEP + 1) * (one.extent + other.extent)
            + max(one.length * other.extent, other.length * one.extent)
        )

    return cost


def _searching(sizes: tuple[Size, ...]) -> int:
    """Each element of the first list compared with the second argument."""
    return METERED_CALL + 2 * ELEMENT * sizes[0].length + ELEMENT * sizes[0].extent


def _flattening(sizes: tuple[Size, ...]) -> int:
    return METERED_CALL + 4 * _STEP * sizes[0].extent


def _sorting(sizes: tuple[Size, ...]) -> int:
    count, extent = sizes[0]
    return METERED_CALL + (2 + _SLOWLY) * price_of_sorting(count, 0) + extent * count.bit_length()


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
        signature("flatten", (list_of(_LIST),), _LIST, _flatten, receiver=True, cost=_flattening),
        signature("flatten", (list_of(DYN),), list_of(DYN), _flatten, receiver=True, cost=_flattening),
        signature("flatten", (list_of(DYN), INT), list_of(DYN), _flatten, receiver=True, cost=_flattening),
    ),
    method(
        "distinct", _LIB, "each element once, in the order of first appearance", "[1, 2, 1].distinct() == [1, 2]",
        (_LIST,), _LIST, _distinct, _comparing(0, 0),
    ),
    function(
        "sort", _LIB, "the elements in ascending order", "[3, 1, 2].sort() == [1, 2, 3]",
        *(
            signature("sort", (list_of(kind),), list_of(kind), _sort, receiver=True, cost=_sorting)
            for kind in _SORTABLE
        ),
    ),
    method(
        "reverse", _LIB, "the elements in reverse order", "[1, 2].reverse() == [2, 1]",
        (_LIST,), _LIST, _reverse, walks(0),
    ),
    plain(
        "lists.range", _LIB, "the numbers from 0 up to n - 1", "lists.range(3) == [0, 1, 2]",
        (INT,), list_of(INT), _range, takes(METERED_CALL),
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
            signature("isSorted", (list_of(kind),), BOOL, _is_sorted, receiver=True, cost=_searching)
            for kind in _SORTABLE
        ),
    ),
    function(
        "sum", _KUBERNETES, "the sum of the elements, 0 of none", "[1, 2].sum() == 3",
        *(
            signature("sum", (list_of(kind),), kind, add, receiver=True, cost=walks(0, step=6))
            for kind, add in _SUMS
        ),
    ),
    function(
        "min", _KUBERNETES, "the least element; an error of an empty list", "[2, 1].min() == 1",
        *(
            signature("min", (list_of(kind),), kind, least_of, receiver=True, cost=price_of_extreme)
            for kind in _SORTABLE
        ),
    ),
    function(
        "max", _KUBERNETES, "the greatest element; an error of an empty list", "[2, 1].max() == 2",
        *(
            signature("max", (list_of(kind),), kind, greatest_of, receiver=True, cost=price_of_extreme)
            for kind in _SORTABLE
        ),
    ),
    function(
        "percentile", _KUBERNETES, "the element at place trunc(n * points / 100) in ascending order, at least the first",
        "[3, 1, 2].percentile(90) == 2",
        *(
            signature("percentile", (list_of(kind), points), kind, percentile_of, receiver=True, cost=_sorting)
            for kind in (INT, UINT, DOUBLE, DURATION)
            for points in (INT, DOUBLE)
        ),
    ),
    method(
        "indexOf", _KUBERNETES, "the first position of an element, -1 for none", "[5, 6].indexOf(6) == 1",
        (_LIST, _T), INT, _index_of, _searching,
    ),
    method(
        "lastIndexOf", _KUBERNETES, "the last position of an element, -1 for none", "[5, 5].lastIndexOf(5) == 1",
        (_LIST, _T), INT, _last_index_of, _searching,
    ),
    plain(
        "sets.contains", "sets", "whether the first list holds every element of the second",
        "sets.contains([1, 2, 3], [2, 3])", (_LIST, _LIST), BOOL, _holds, _comparing(0, 1),
    ),
    plain(
        "sets.equivalent", "sets", "whether each list holds every element of the other",
        "sets.equivalent([1, 2, 1], [2, 1])", (_LIST, _LIST), BOOL, _equivalent, _comparing(0, 1),
    ),
    plain(
        "sets.intersects", "sets", "whether the lists have an element in common",
        "sets.intersects([1, 2], [2, 3])", (_LIST, _LIST), BOOL, _intersects, _comparing(0, 1),
    ),
)  # fmt: skip
