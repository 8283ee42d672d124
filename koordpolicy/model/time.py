"""Points in time and durations as integers: nanoseconds since 1970 UTC, and nanoseconds.

Integers compare and subtract exactly; they convert to text only at the rim. No clock here.
"""

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Final

NANOSECONDS: Final = 10**9

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:[Zz]|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_DURATION: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 64
_CYCLE: Final = 146_097
"""Days after which the calendar repeats itself."""

EARLIEST: Final = -62_135_596_800 * NANOSECONDS
"""The beginning of the year 1, before which no time is told apart."""

LATEST: Final = 253_402_300_800 * NANOSECONDS - 1
"""The end of the year 9999, after which none is. Both lie far outside of int64."""

_LONGEST_DURATION: Final = 2**63 - 1


@lru_cache(maxsize=4096)
def parse_time(source: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time such as `2026-07-01T08:00:00Z`. Raises ValueError.

    All that RFC 3339 allows is a time: a leap second is the second after it, digits beyond nanoseconds are cut
    off, and what lies outside of the years 1 to 9999 in UTC counts as their first or last moment.
    """
    match = _RFC3339.fullmatch(source) if len(source) <= _LONGEST else None
    if match is None:
        raise ValueError(f"`{source[:_LONGEST]}` is not a time; write it as `2026-07-01T08:00:00Z`")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, ahead_hours, ahead_minutes = match.groups()[6:]
    ahead = 0 if sign is None else int(ahead_hours) * 60 + int(ahead_minutes)
    if (
        hour > 23
        or minute > 59
        or second > 60
        or (sign is not None and int(ahead_minutes) > 59)
        or ahead >= 1440
    ):
        raise ValueError(f"`{source}` is not a time: there is no such time of day")
    days = _days(year, month, day, source)
    minutes = (days * 24 + hour) * 60 + minute - (-ahead if sign == "-" else ahead)
    since = (minutes * 60 + second) * NANOSECONDS + int((fraction or "").ljust(9, "0")[:9])
    return max(EARLIEST, min(LATEST, since))


def _days(year: int, month: int, day: int, source: str) -> int:
    """Days since 1970."""
    try:
        # The calendar repeats itself after 400 years, and Python's begins with the year 1.
        ordinal = date(year or 400, month, day).toordinal()
    except ValueError as error:
        raise ValueError(f"`{source}` is not a time: {error}") from None
    return ordinal - _EPOCH.toordinal() - (0 if year else _CYCLE)


def time_text(nanoseconds: int) -> str:
    """The time as Kubernetes writes it in `metav1.Time`: whole seconds, `Z`. Years 1 to 9999 have texts."""
    moment = _EPOCH + timedelta(seconds=max(EARLIEST, min(LATEST, nanoseconds)) // NANOSECONDS)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def whole_seconds_text(nanoseconds: int) -> str:
    """A duration in whole seconds as Go writes it: `5m0s`, `1h0m0s`, `30s`. What is less than a second is cut off."""
    seconds = nanoseconds // NANOSECONDS
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours}h{minutes % 60}m{seconds % 60}s"
    return f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"


def parse_duration(source: str) -> int:
    """Nanoseconds of a Go duration such as `5m`, `1h30m`, `1.5s`, `-10ms`, `0`.

    Raises ValueError for anything else, and, as Go does, beyond int64, which are 292 years.
    """
    body = source[1:] if source[:1] in ("+", "-") else source
    if body == "0":
        return 0
    total, position = Fraction(0), 0
    while position < len(body) <= _LONGEST:
        match = _DURATION.match(body, position)
        if match is None or not (match[1] or match[2]):
            break
        places = match[2] or ""
        total += Fraction(int((match[1] or "0") + places), 10 ** len(places)) * _UNITS[match[3]]
        position = match.end()
    if not body or position != len(body):
        raise ValueError(f"`{source[:_LONGEST]}` is not a duration; write it as `90s`, `5m` or `1h30m`")
    if total > _LONGEST_DURATION:
        raise ValueError(f"`{source}` is a longer duration than there is; 292 years are the most")
    return -int(total) if source[0] == "-" else int(total)
