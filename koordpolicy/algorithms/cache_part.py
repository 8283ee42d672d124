"""Parts of the last-level cache and of the bandwidth of memory, as resctrl takes them.

Percentages are of 100; a line of a schemata file stands without its end of line.
"""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

_INTEL_STEP: Final = 10
"""Intel's bandwidth is set in steps of so many percent."""
_AMD_UNLIMITED: Final = 2048
"""AMD's value for no limit; others are eighths of a gigabyte per second."""
_AMD_SCALE: Final = 160
"""What AMD counts for all that memory carries."""


class Vendor(StrEnum):
    """Who made the CPU, as /proc/cpuinfo says it."""

    INTEL = "GenuineIntel"
    AMD = "AuthenticAMD"


class CachePartError(ValueError):
    """There is no such part. The message says why."""


def cache_mask(full: int, start: float, end: float) -> int:
    """The ways from a share of the cache up to another, of the ways of a `full` mask. Raises CachePartError.

    A narrow part of few ways, or a cache without any, gives an empty mask: the kernel refuses that.
    """
    if full < 0 or full & (full + 1):
        raise CachePartError(f"`{full:x}` is not a mask of all ways of a cache")
    if not 0 <= start < end <= 100:
        raise CachePartError(f"from {start:g}% to {end:g}% is no part of the cache")
    ways = full.bit_length()
    first, behind = (math.ceil(ways * share / 100) for share in (start, end))
    return (1 << behind) - (1 << first)


def bandwidth_value(percent: float, vendor: str) -> int:
    """What the file takes for a share of the bandwidth. Raises CachePartError."""
    if not 1 <= percent <= 100:
        raise CachePartError(f"{percent:g}% is no share of the bandwidth that can be set")
    if vendor == Vendor.INTEL:
        return math.ceil(percent / _INTEL_STEP) * _INTEL_STEP
    if vendor == Vendor.AMD:
        return _AMD_UNLIMITED if percent >= 100 else int(_AMD_SCALE * percent / 100)
    raise CachePartError(f"nobody knows what CPUs of `{vendor}` take for a bandwidth")


def cache_line(masks: Mapping[int, int]) -> str:
    """The line of masks by cache."""
    return "L3:" + "".join(f"{cache}={mask:x};" for cache, mask in sorted(masks.items()))


def bandwidth_line(values: Mapping[int, int]) -> str:
    """The line of bandwidths by cache."""
    return "MB:" + "".join(f"{cache}={value};" for cache, value in sorted(values.items()))


def everywhere(caches: Iterable[int], value: int) -> dict[int, int]:
    """The same value for all caches."""
    return dict.fromkeys(caches, value)
