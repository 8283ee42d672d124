"""Shares of CPU time in the numbers of both versions of cgroups."""

from typing import Final

LEAST_SHARES: Final = 2
MOST_SHARES: Final = 262_144
LEAST_WEIGHT: Final = 1
MOST_WEIGHT: Final = 10_000


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
