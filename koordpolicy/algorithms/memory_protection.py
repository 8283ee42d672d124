"""What the kernel keeps for a group of its memory, and where it slows the group down, by requests and limits.

Amounts are bytes, percentages of 100 and may be None: then the file is left alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

UNLIMITED_MEMORY: Final = 2**63 - 1
"""What cgroup v1 reads and writes for no limit."""
_PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """What is never reclaimed (`minimum`) and reclaimed last (`low`), of requests; where between request and limit a
    container is slowed down (`throttling`, 0 for nowhere).
    """

    minimum: float | None = None
    low: float | None = None
    throttling: float | None = None


@dataclass(frozen=True, slots=True)
class ProtectedMemory:
    """Numbers for memory.min, memory.low and memory.high; None leaves the kernel's alone."""

    minimum: int | None = None
    low: int | None = None
    high: int | None = None


def protected(request: int, shares: MemoryShares) -> ProtectedMemory:
    """What is kept for a group with that request; `low` is never less than `minimum`, unless it is 0."""
    asked = asked_for(request, shares)
    return ProtectedMemory(asked.minimum, _at_least(asked.low, asked.minimum))


def asked_for(request: int, shares: MemoryShares) -> ProtectedMemory:
    """The plain shares of a request."""
    return ProtectedMemory(_share(request, shares.minimum), _share(request, shares.low))


def throttled_from(request: int, limit: int, there: int, shares: MemoryShares) -> int | None:
    """Where a container is slowed down, on whole pages; without a limit (0) all that is `there` on the node is its limit."""
    if shares.throttling is None:
        return None
    if shares.throttling <= 0:
        return UNLIMITED_MEMORY
    top = limit if limit > 0 else there
    high = request + int(Fraction(top - request) * Fraction(shares.throttling) / 100)
    return _at_least(high // _PAGE * _PAGE, _share(request, shares.minimum))


def container_protection(request: int, limit: int, there: int, shares: MemoryShares) -> ProtectedMemory:
    """All three numbers of a container."""
    kept = protected(request, shares)
    return ProtectedMemory(kept.minimum, kept.low, throttled_from(request, limit, there, shares))


def together(parts: Iterable[ProtectedMemory]) -> ProtectedMemory:
    """What a group must keep for the groups in it to keep theirs: sums, None where none of them says anything."""
    listed = list(parts)
    return ProtectedMemory(_sum(one.minimum for one in listed), _sum(one.low for one in listed))


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """The most page cache of a pod: `size` in bytes, or a percentage of its limit."""

    percent: float | None = None
    size: int | None = None


def page_cache_limit(limit: int, limits: CacheLimits) -> int | None:
    """The most page cache of a pod with that memory limit (0 for none); None where nothing is said."""
    if limits.size is not None:
        return min(limits.size, limit) if limit > 0 else limits.size
    return None if limits.percent is None else _share(limit, limits.percent)


def _share(amount: int, percent: float | None) -> int | None:
    return None if percent is None else int(Fraction(amount) * Fraction(percent) / 100)


def _at_least(value: int | None, least: int | None) -> int | None:
    """The value, raised where it is less than the least; neither says anything by 0."""
    if value and least and value < least:
        return least
    return value


def _sum(amounts: Iterable[int | None]) -> int | None:
    said = [amount for amount in amounts if amount is not None]
    return sum(said) if said else None
