"""From requests and limits to the kernel's numbers: shares, weight, quota, memory limit.

Amounts are millicores and bytes; quotas are microseconds in a period of 100 ms. -1 means unlimited.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ContainerShare:
    """What a container asks for: requests and limits in millicores and bytes, 0 when unset."""

    cpu_request: int = 0
    cpu_limit: int = 0
    memory_limit: int = 0


@dataclass(frozen=True, slots=True)
class CgroupNumbers:
    """The numbers for one cgroup."""

    shares: int
    quota: int
    memory_limit: int


def shares_of(milli: int) -> int:
    """cpu.shares of a request; the least for none."""
    if milli <= 0:
        return LEAST_SHARES
    return max(LEAST_SHARES, min(milli * 1024 // 1000, MOST_SHARES))


def quota_of(milli: int) -> int:
    """The quota of a limit; unlimited for none, never below what the kernel accepts."""
    quota = milli * PERIOD // 1000
    return UNLIMITED if quota <= 0 else max(quota, LEAST_QUOTA)


def memory_limit_of(limit: int) -> int:
    """The memory limit in bytes; unlimited for none."""
    return limit if limit > 0 else UNLIMITED


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


def container_numbers(share: ContainerShare, *, quota_off: bool, ratio: float | None) -> CgroupNumbers:
    """The numbers for a container's cgroup."""
    return CgroupNumbers(
        shares_of(share.cpu_request),
        UNLIMITED if quota_off else normalized_quota(quota_of(share.cpu_limit), ratio),
        memory_limit_of(share.memory_limit),
    )


def pod_numbers(shares: Iterable[ContainerShare], *, quota_off: bool, ratio: float | None) -> CgroupNumbers:
    """The numbers for the cgroup of a pod with these containers: sums, unlimited when one is.

    `quota_off` lifts the quota altogether; `ratio` is the node's CPU normalisation.
    """
    parts = list(shares)
    cpu_limits = [part.cpu_limit for part in parts]
    memory_limits = [part.memory_limit for part in parts]
    quota = UNLIMITED if any(limit <= 0 for limit in cpu_limits) else quota_of(sum(cpu_limits))
    return CgroupNumbers(
        shares_of(sum(part.cpu_request for part in parts if part.cpu_request > 0)),
        UNLIMITED if quota_off else normalized_quota(quota, ratio),
        # Of no containers at all the sum is 0, as the reference writes it.
        UNLIMITED if any(limit <= 0 for limit in memory_limits) else sum(memory_limits),
    )


def numbers_by_container(
    shares: Mapping[str, ContainerShare], *, quota_off: bool, ratio: float | None
) -> dict[str, CgroupNumbers]:
    """`container_numbers` for each container by name."""
    return {
        name: container_numbers(share, quota_off=quota_off, ratio=ratio) for name, share in shares.items()
    }
