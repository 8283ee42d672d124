"""From requests and limits to the kernel's numbers: shares, weight, quota.

Amounts are millicores and bytes; quotas are microseconds in a period of 100 ms. -1 means unlimited.
"""

import math
from typing import Final

PERIOD: Final = 100_000
"""The kernel's default period in microseconds; nothing here changes it."""

UNLIMITED: Final = -1
LEAST_SHARES: Final = 2
MOST_SHARES: Final = 262_144
LEAST_WEIGHT: Final = 1
MOST_WEIGHT: Final = 10_000
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


def weight_of_shares(shares: int) -> int:
    """cpu.weight (cgroup v2) of cpu.shares. Raises ValueError outside 2 to 262144."""
    if not LEAST_SHARES <= shares <= MOST_SHARES:
        raise ValueError(f"cpu.shares {shares} is outside {LEAST_SHARES} to {MOST_SHARES}")
    return 1 + (shares - 2) * 9999 // 262_142


def shares_of_weight(weight: int) -> int:
    """cpu.shares of cpu.weight; not the exact inverse. Raises ValueError outside 1 to 10000."""
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise ValueError(f"cpu.weight {weight} is outside {LEAST_WEIGHT} to {MOST_WEIGHT}")
    return (weight - 1) * 262_142 // 9999 + 2


def quota_text(quota: int) -> str:
    """The quota as cgroup v2 writes it in cpu.max."""
    return "max" if quota == UNLIMITED else str(quota)


def normalized_quota(quota: int, ratio: float | None) -> int:
    """A quota on a CPU that is `ratio` times as fast as the one limits are meant for.

    Only ratios above 1 and limited quotas change; the result is rounded up and not raised to the
    kernel's least again.
    """
    if ratio is None or ratio <= 1 or quota <= 0:
        return quota
    return math.ceil(float(quota) / ratio)
