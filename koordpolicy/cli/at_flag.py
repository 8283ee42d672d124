"""The moment a command speaks of: now, or the one that the user names."""

import time

from koordpolicy.cli.command import CannotRunError
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import parse_timestamp


def moment_of(written: str | None) -> Timestamp:
    """The moment; the present one where none is named. Raises `CannotRunError`."""
    if written is None:
        return Timestamp(time.time_ns())
    try:
        return parse_timestamp(written if "T" in written else f"{written}T00:00:00Z")
    except CelError:
        raise CannotRunError(
            f"`{written}` is no time; write `2026-07-01T18:00:00Z` or `2026-07-01`"
        ) from None
