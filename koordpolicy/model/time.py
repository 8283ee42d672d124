"""Points in time and durations as integers: nanoseconds since 1970 UTC, and nanoseconds.

Integers compare and subtract exactly; they convert to text only at the rim. No clock here.
"""

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Final

NANOSECONDS: Final = 10**9

_RFC3339: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
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


@lru_cache(maxsize=4096)
def parse_time(source: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time such as `2026-07-01T08:00:00Z`. Raises ValueError."""
    match = _RFC3339.fullmatch(source) if len(source) <= _LONGEST else None
    if match is None:
        raise ValueError(f"`{source[:_LONGEST]}` is not a time; write it as `2026-07-01T08:00:00Z`")
    day, clock, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds) * NANOSECONDS + int((fraction or "").ljust(9, "0"))


def time_text(nanoseconds: int) -> str:
    """The time as Kubernetes writes it in `metav1.Time`: whole seconds, `Z`."""
    moment = _EPOCH + timedelta(seconds=nanoseconds // NANOSECONDS)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def parse_duration(source: str) -> int:
    """Nanoseconds of a Go duration such as `5m`, `1h30m`, `1.5s`, `-10ms`, `0`. Raises ValueError."""
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
    return -int(total) if source[0] == "-" else int(total)
