"""Durations and timestamps: text forms, ranges, calendar.

Text in: Go's durations (`1h30m`, `-1.5s`, `100ms`) and RFC 3339 timestamps. Text out: decimal
seconds (`5400s`, `0.1s`) and RFC 3339 in UTC, both with as many fraction digits as needed.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from koordpolicy.language.cel.errors import InvalidArgument, Overflow
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

NANOS = 1_000_000_000
_MIN_TIMESTAMP = -62_135_596_800 * NANOS
_MAX_TIMESTAMP = 253_402_300_799 * NANOS + NANOS - 1
_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_TEXT_LIMIT = 100

_UNITS = {"h": 3600 * NANOS, "m": 60 * NANOS, "s": NANOS, "ms": 1_000_000, "us": 1_000, "ns": 1}
_UNITS["µs"] = _UNITS["μs"] = _UNITS["us"]  # micro sign and Greek mu
_DURATION = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")


def make_duration(ns: int) -> Duration:
    """A duration of `ns` nanoseconds. Raises Overflow outside int64."""
    if not INT_MIN <= ns <= INT_MAX:
        raise Overflow("duration out of range")
    return Duration(ns)


def make_timestamp(ns: int) -> Timestamp:
    """A timestamp of `ns` nanoseconds since the epoch. Raises Overflow outside years 1 to 9999."""
    if not _MIN_TIMESTAMP <= ns <= _MAX_TIMESTAMP:
        raise Overflow("timestamp out of range: years 0001 to 9999 only")
    return Timestamp(ns)


def parse_duration(text: str) -> Duration:
    """Read a Go duration. Raises InvalidArgument when malformed, Overflow out of range."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    total = position = 0
    if len(text) > _TEXT_LIMIT:
        raise InvalidArgument("duration text too long")
    while part := _DURATION.match(rest, position):
        word = part.group()
        number = word.rstrip("hmsnuµμ")
        whole, _, fraction = number.partition(".")
        unit = _UNITS[word[len(number) :]]
        total += int(whole or "0") * unit
        if fraction:
            total += int(fraction) * unit // 10 ** len(fraction)
        position = part.end()
    if not rest or position != len(rest):
        raise InvalidArgument(f"`{text}` is no duration; write for example 1h30m, 90s, 250ms")
    return make_duration(-total if text[0] == "-" else total)


def format_duration(value: Duration) -> str:
    """Decimal seconds, such as `60.001s`."""
    seconds, nanos = divmod(abs(value.ns), NANOS)
    sign = "-" if value.ns < 0 else ""
    return f"{sign}{seconds}{_fraction(nanos)}s"


def parse_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 timestamp. Raises InvalidArgument when malformed, Overflow out of range."""
    found = _TIMESTAMP.fullmatch(text) if len(text) <= _TEXT_LIMIT else None
    if found is None:
        raise InvalidArgument(f"`{text[:_TEXT_LIMIT]}` is no RFC 3339 timestamp such as 2009-02-13T23:31:30Z")
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    if year == 0:
        raise Overflow("timestamp out of range: years 0001 to 9999 only")
    offset = 0
    if found.group(8):
        hours, minutes = int(found.group(9)), int(found.group(10))
        if hours > 23 or minutes > 59:
            raise InvalidArgument(f"`{text}` has an impossible offset")
        offset = (hours * 3600 + minutes * 60) * (-1 if found.group(8) == "-" else 1)
    try:
        days = date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise InvalidArgument(f"`{text}` has an impossible date") from None
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidArgument(f"`{text}` has an impossible time")
    seconds = days * _DAY + hour * 3600 + minute * 60 + second - offset
    nanos = int((found.group(7) or "0")[:9].ljust(9, "0"))
    return make_timestamp(seconds * NANOS + nanos)


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 in UTC, such as `2009-02-13T23:31:30.25Z`."""
    seconds, nanos = divmod(value.ns, NANOS)
    days, rest = divmod(seconds, _DAY)
    day = date.fromordinal(days + _EPOCH_ORDINAL)
    hour, minute, second = rest // 3600, rest // 60 % 60, rest % 60
    return f"{day.year:04}-{day.month:02}-{day.day:02}T{hour:02}:{minute:02}:{second:02}{_fraction(nanos)}Z"


def _fraction(nanos: int) -> str:
    return f".{nanos:09}".rstrip("0") if nanos else ""


def local_seconds(value: Timestamp, zone: str | None) -> int:
    """Seconds since the epoch as a clock in `zone` shows them. Raises InvalidArgument.

    `zone` is an IANA name, `UTC` (or nothing), or an offset `±HH:MM` (the sign may be left out).
    """
    seconds = value.ns // NANOS
    if zone in (None, "", "UTC"):
        return seconds
    if offset := _OFFSET.fullmatch(zone):
        hours, minutes = int(offset.group(2)), int(offset.group(3))
        if hours > 23 or minutes > 59:
            raise InvalidArgument(f"`{zone}` is no time zone")
        shift = hours * 3600 + minutes * 60
        return seconds - shift if offset.group(1) == "-" else seconds + shift
    # Zone data knows years 1 to 9999 only, so the very edges borrow the offset of a day inside.
    inside = min(max(seconds, _MIN_TIMESTAMP // NANOS + 2 * _DAY), _MAX_TIMESTAMP // NANOS - 2 * _DAY)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=inside)
    shifted = moment.astimezone(_zone(zone)).utcoffset()
    return seconds + int(shifted.total_seconds()) if shifted else seconds


def _zone(name: str) -> ZoneInfo:
    if name not in _zones():
        raise InvalidArgument(f"`{name[:_TEXT_LIMIT]}` is no time zone")
    return _known_zone(name)


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    """The names of all zones: looking for one that is not there would take the system long, again and again."""
    return frozenset(available_timezones())


@lru_cache(maxsize=1024)
def _known_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InvalidArgument(f"`{name}` is no time zone") from None


def calendar(seconds: int) -> tuple[int, int, int, int]:
    """Year, month from 1, day from 1, and day of the year from 1, of epoch seconds.

    Reaches one year beyond years 1 to 9999, where an offset may lead.
    """
    days = seconds // _DAY
    shift = 0
    if days + _EPOCH_ORDINAL < 1:
        shift, days = -400, days + 146_097  # the calendar repeats every 400 years
    elif days + _EPOCH_ORDINAL > date.max.toordinal():
        shift, days = 400, days - 146_097
    day = date.fromordinal(days + _EPOCH_ORDINAL)
    return day.year + shift, day.month, day.day, day.timetuple().tm_yday


def weekday(seconds: int) -> int:
    """Day of the week of epoch seconds, 0 for Sunday."""
    return (seconds // _DAY + 4) % 7
