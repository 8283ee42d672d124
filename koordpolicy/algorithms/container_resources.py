"""From requests and limits to the kernel's numbers: shares, quota.

Amounts are millicores and bytes; quotas are microseconds in a period of 100 ms. -1 means unlimited.
"""

import math
from typing import Final

from koordpolicy.model.shares import LEAST_SHARES, MOST_SHARES

PERIOD: Final = 100_000
"""The kernel's default period in microseconds; nothing here changes it."""

UNLIMITED: Final = -1
LEAST_QUOTA: Final = 1000
"""The kernel refuses quotas below one millisecond."""


def shares_of(milli: int) -> int:
    """cpu.shares of a request; the least for none."""
    if milli <= 0:
        return LEAST_SHARES
    return max(LEAST_SHARES, min(milli * 1024 // 1000, MOST_SHARES))


def quota_of(milli: int) -> int:
    """The quota of a limit; unlimited for none, never below what the kernel accepts."""
    quota = milli * PERIOD // 1000
    return UNLIMITED if quota <= 0 else max(quota, LEAST_QUOTA)


def normalized_quota(quota: int, ratio: float | None) -> int:
    """A quota on a CPU that is `ratio` times as fast as the one limits are meant for.

    Only ratios above 1 and limited quotas change; the result is rounded up and not raised to the
    kernel's least again.
    """
    if ratio is None or ratio <= 1 or quota <= 0:
        return quota
    return math.ceil(float(quota) / ratio)
