"""Quotas that use more than they may: for how long, and whose pods go."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from koordpolicy.algorithms.quota_limits import exceeded, masked
from koordpolicy.model.amounts import add_to
from koordpolicy.model.reading import NOTHING, Amounts

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class OveruseTimer:
    """Since when a quota has been within its limit last; times in nanoseconds."""

    since: int

    def over(self, now: int, used: Amounts, limit: Amounts, after: int) -> bool:
        """Whether it has been over its limit for longer than `after`; then the time begins anew."""
        if not exceeded(used, NOTHING, limit):
            self.since = now
            return False
        if now - self.since <= after:
            return False
        self.since = now
        return True


@dataclass(frozen=True, slots=True)
class QuotaMember(Generic[K]):
    """A pod of a quota, with all that it requests. One that is `spared` does not go."""

    key: K
    request: Amounts
    spared: bool = False


def revoked(used: Amounts, limit: Amounts, members: Sequence[QuotaMember[K]]) -> list[K]:
    """Who goes so that a quota is within its limit, in the order in which they go.

    `members` come with the least important first. They are taken until the rest is within the limit. Is it never, all of them
    go. Else each of them, the most important first, stays if there is room for it after all. A resource that the
    pod at hand does not request is not looked at from then on: it was not that pod that is to blame.
    """
    left, taken = dict(used), list[QuotaMember[K]]()
    for one in members:
        if not exceeded(left, NOTHING, limit):
            break
        if not one.spared:
            left = _changed(left, one.request, -1)
            taken.append(one)
    if exceeded(left, NOTHING, limit):
        return [one.key for one in taken]
    gone = []
    for one in reversed(taken):
        left = _changed(left, one.request, 1)
        if exceeded(left, NOTHING, limit):
            left = _changed(left, one.request, -1)
            gone.append(one.key)
    return gone


def total_of(members: Iterable[QuotaMember[K]]) -> dict[str, int]:
    """What pods request together."""
    total: dict[str, int] = {}
    for one in members:
        add_to(total, one.request)
    return total


def _changed(amounts: dict[str, int], request: Amounts, sign: int) -> dict[str, int]:
    changed = dict(amounts)
    add_to(changed, {name: sign * number for name, number in request.items()})
    return dict(masked(changed, request.keys()))
