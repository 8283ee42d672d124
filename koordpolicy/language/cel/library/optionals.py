"""The optional library. `or` and `orValue` evaluate their argument only when it is needed."""

from collections.abc import Sequence

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.row import function, method, plain, signature, walks
from koordpolicy.language.cel.types import BOOL, list_of, optional_of, param
from koordpolicy.language.cel.values import NONE, Duration, Optional, Timestamp, Value
from koordpolicy.language.cel.values_time import parse_timestamp

_LIB = "optional"
_T = param("T")
_OPTIONAL = optional_of(_T)
_ZERO_TIME = parse_timestamp("0001-01-01T00:00:00Z")


def _none() -> Optional:
    return NONE


def _of_non_zero(value: Value) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def is_zero(value: Value) -> bool:
    """Whether a value is the zero of its type: null, false, 0, '', an empty list or map. Optionals have none."""
    match value:
        case None:
            return True
        case bool() | int() | float() | str() | bytes() | list() | tuple() | dict():
            return not value
        case Duration():
            return value.ns == 0
        case Timestamp():
            return value == _ZERO_TIME
    return False


def has_value(value: Optional) -> bool:
    """Whether an optional is not none."""
    return value is not NONE


def get_value(value: Optional) -> Value:
    """What an optional holds. Raises InvalidArgument of none."""
    if value is NONE:
        raise InvalidArgument("the optional has no value")
    return value.value


def _or(value: Optional, other: Optional) -> Optional:
    return other if value is NONE else value


def _or_value(value: Optional, other: Value) -> Value:
    return other if value is NONE else value.value


def _unwrap(values: Sequence[Optional]) -> list[Value]:
    return [value.value for value in values if value is not NONE]


_LISTS = list_of(_OPTIONAL)

LIBRARY: tuple[Function, ...] = (
    plain("optional.of", _LIB, "an optional with a value", "optional.of(1).hasValue()", (_T,), _OPTIONAL, Optional),
    plain("optional.none", _LIB, "an optional without a value", "!optional.none().hasValue()", (), _OPTIONAL, _none),
    plain(
        "optional.ofNonZeroValue", _LIB, "none of null, false, 0, '' and empty lists and maps",
        "!optional.ofNonZeroValue('').hasValue()", (_T,), _OPTIONAL, _of_non_zero,
    ),
    method("hasValue", _LIB, "whether there is a value", "optional.of(1).hasValue()", (_OPTIONAL,), BOOL, has_value),
    method("value", _LIB, "the value; an error of none", "optional.of(1).value() == 1", (_OPTIONAL,), _T, get_value),
    method(
        "or", _LIB, "the first of two optionals that has a value", "optional.none().or(optional.of(1))",
        (_OPTIONAL, _OPTIONAL), _OPTIONAL, _or,
    ),
    method(
        "orValue", _LIB, "the value, or another of none", "optional.none().orValue(1) == 1",
        (_OPTIONAL, _T), _T, _or_value,
    ),
    function(
        "optional.unwrap", _LIB, "the values of a list of optionals, without the nones",
        "optional.unwrap([optional.of(1), optional.none()]) == [1]",
        signature("optional.unwrap", (_LISTS,), list_of(_T), _unwrap, cost=walks(0)),
    ),
    method(
        "unwrapOpt", _LIB, "the values of a list of optionals, without the nones",
        "[optional.of(1), optional.none()].unwrapOpt() == [1]",
        (_LISTS,), list_of(_T), _unwrap, walks(0),
    ),
)  # fmt: skip
