"""CEL's standard functions: sizes, conversions, text tests, calendar."""

from collections.abc import Callable

from koordpolicy.language.cel.functions import Cost, Function, Overload
from koordpolicy.language.cel.library import convert
from koordpolicy.language.cel.library.row import CALL, function, method, reads, signature, takes
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
    map_of,
    param,
    type_of,
)
from koordpolicy.language.cel.values import Duration, Timestamp, TypeValue, Value, type_name
from koordpolicy.language.cel.values_time import (
    NANOS,
    calendar,
    format_duration,
    format_timestamp,
    local_seconds,
    parse_duration,
    parse_timestamp,
    weekday,
)

_LIB = "standard"


def same(value: Value) -> Value:
    """The value itself: the conversion of a type to itself, and `dyn`."""
    return value


def value_type(value: Value) -> TypeValue:
    """The type of a value, as a value."""
    return TypeValue(type_name(value))


def _size(kind: Type) -> tuple[Overload, Overload]:
    return (
        signature("size", (kind,), INT, len, receiver=True, dotted=True),
        signature("size", (kind,), INT, len),
    )


_PARSING = 90
"""Units of reading a short text, or of writing a number or a point in time as text."""


def _convert(name: str, result: Type, *rows: tuple[Type, Callable[..., object]]) -> tuple[Overload, ...]:
    texts = (STRING, BYTES_VALUE)
    return tuple(
        signature(
            name, (kind,), result, implementation, cost=_price_of_conversion(kind in texts, implementation)
        )
        for kind, implementation in rows
    )


def _price_of_conversion(text: bool, implementation: Callable[..., object]) -> Cost | None:
    if implementation is same:
        return None
    if text:
        return reads(0, base=_PARSING)
    return takes(_PARSING) if implementation in _WRITERS else None


_WRITERS = (convert.string_from_double, format_timestamp, format_duration)


_CALENDAR = 40
"""Units of finding the day of a point in time."""

_ZONED = 1_500
"""Units of finding a time zone by its name, which may be read from disk."""


def _getter(name: str, summary: str, read: Callable[[int], int], total: int | None = None) -> Function:
    """A calendar row: `read` takes local epoch seconds; `total` is the unit on durations, in ns."""

    def of_timestamp(value: Timestamp, zone: str | None = None) -> int:
        return read(local_seconds(value, zone))

    overloads = [
        signature(name, (TIMESTAMP,), INT, of_timestamp, receiver=True, cost=takes(_CALENDAR)),
        signature(name, (TIMESTAMP, STRING), INT, of_timestamp, receiver=True, cost=takes(_ZONED)),
    ]
    if total is not None:
        unit = total

        def of_duration(value: Duration) -> int:
            return value.ns // unit if value.ns >= 0 else -(-value.ns // unit)

        overloads.append(signature(name, (DURATION,), INT, of_duration, receiver=True))
    return function(name, _LIB, summary, f"now.{name}()", *overloads)


def _milliseconds(value: Timestamp, zone: str | None = None) -> int:
    local_seconds(value, zone)  # refuses an unknown zone
    return value.ns % NANOS // 1_000_000


def _duration_milliseconds(value: Duration) -> int:
    part = abs(value.ns) % NANOS // 1_000_000
    return part if value.ns >= 0 else -part


LIBRARY: tuple[Function, ...] = (
    function(
        "size", _LIB, "characters of a string, octets of bytes, elements of a list, keys of a map",
        "size(pod.labels) > 0",
        *_size(STRING), *_size(BYTES_VALUE), *_size(list_of(param("A"))), *_size(map_of(param("A"), param("B"))),
    ),
    method(
        "startsWith", _LIB, "whether a string begins with another", "'koord-batch'.startsWith('koord-')",
        (STRING, STRING), BOOL, str.startswith, reads(1, base=CALL),
    ),
    method(
        "endsWith", _LIB, "whether a string ends with another", "'batch-cpu'.endsWith('-cpu')",
        (STRING, STRING), BOOL, str.endswith, reads(1, base=CALL),
    ),
    method(
        "contains", _LIB, "whether a string holds another", "'batch-cpu'.contains('ch-c')",
        (STRING, STRING), BOOL, str.__contains__, reads(0, 1, base=CALL),
    ),
    function(
        "int", _LIB, "convert to int: doubles are cut toward zero, timestamps give Unix seconds",
        "int('42') == 42",
        *_convert(
            "int", INT, (INT, same), (UINT, convert.int_from_uint), (DOUBLE, convert.int_from_double),
            (STRING, convert.int_from_string), (TIMESTAMP, convert.int_from_timestamp),
        ),
    ),
    function(
        "uint", _LIB, "convert to uint: doubles are cut toward zero", "uint(42) == 42u",
        *_convert(
            "uint", UINT, (UINT, same), (INT, convert.uint_from_int), (DOUBLE, convert.uint_from_double),
            (STRING, convert.uint_from_string),
        ),
    ),
    function(
        "double", _LIB, "convert to double; a percentage gives its points", "double(1) == 1.0",
        *_convert(
            "double", DOUBLE, (DOUBLE, same), (INT, float), (UINT, float),
            (STRING, convert.double_from_string),
        ),
    ),
    function(
        "string", _LIB, "convert to a string", "string(1.5) == '1.5'",
        *_convert(
            "string", STRING, (STRING, same), (BOOL, convert.string_from_bool), (INT, convert.string_from_int),
            (UINT, convert.string_from_int), (DOUBLE, convert.string_from_double),
            (BYTES_VALUE, convert.string_from_bytes), (TIMESTAMP, format_timestamp), (DURATION, format_duration),
        ),
    ),
    function(
        "bytes", _LIB, "convert to bytes: a string to its UTF-8", "bytes('a') == b'a'",
        *_convert("bytes", BYTES_VALUE, (BYTES_VALUE, same), (STRING, convert.bytes_from_string)),
    ),
    function(
        "bool", _LIB, "convert to bool", "bool('true')",
        *_convert("bool", BOOL, (BOOL, same), (STRING, convert.bool_from_string)),
    ),
    function(
        "duration", _LIB, "a duration from text: h, m, s, ms, us, ns with fractions",
        "duration('1h30m') > duration('90s')",
        *_convert("duration", DURATION, (DURATION, same), (STRING, parse_duration)),
    ),
    function(
        "timestamp", _LIB, "a point in time from RFC 3339 text or Unix seconds",
        "now > timestamp('2026-01-01T00:00:00Z')",
        *_convert(
            "timestamp", TIMESTAMP, (TIMESTAMP, same), (STRING, parse_timestamp),
            (INT, convert.timestamp_from_int),
        ),
    ),
    function(
        "type", _LIB, "the type of a value", "type(1) == int",
        signature("type", (param("A"),), type_of(param("A")), value_type),
    ),
    function(
        "dyn", _LIB, "the value itself, its type left to run time", "dyn([1, 'a'])",
        signature("dyn", (param("A"),), DYN, same),
    ),
    _getter("getFullYear", "the year", lambda s: calendar(s)[0]),
    _getter("getMonth", "the month, 0 for January", lambda s: calendar(s)[1] - 1),
    _getter("getDate", "the day of the month from 1", lambda s: calendar(s)[2]),
    _getter("getDayOfMonth", "the day of the month from 0", lambda s: calendar(s)[2] - 1),
    _getter("getDayOfWeek", "the day of the week, 0 for Sunday", weekday),
    _getter("getDayOfYear", "the day of the year from 0", lambda s: calendar(s)[3] - 1),
    _getter("getHours", "hours of the day; whole hours of a duration", lambda s: s // 3600 % 24, 3600 * NANOS),
    _getter("getMinutes", "minutes of the hour; whole minutes of a duration", lambda s: s // 60 % 60, 60 * NANOS),
    _getter("getSeconds", "seconds of the minute; whole seconds of a duration", lambda s: s % 60, NANOS),
    function(
        "getMilliseconds", _LIB, "the milliseconds within the second", "now.getMilliseconds()",
        signature("getMilliseconds", (TIMESTAMP,), INT, _milliseconds, receiver=True, cost=takes(_CALENDAR)),
        signature("getMilliseconds", (TIMESTAMP, STRING), INT, _milliseconds, receiver=True, cost=takes(_ZONED)),
        signature("getMilliseconds", (DURATION,), INT, _duration_milliseconds, receiver=True),
    ),
)  # fmt: skip
