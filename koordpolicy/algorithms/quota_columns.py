"""The split of `quota_split` for many quotas, in columns: the same to the last unit.

A change of one quota costs what it says of itself; what all get then costs a few passes over arrays, a hundred times less than
quota by quota. Numbers so large that int64 or doubles could not tell units apart are not for columns: `split` says so.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.int64]
"""One amount a quota, in the resource's whole units."""

_WIDEST: Final = 2**58
"""Sums below it leave room for the error of a quotient of doubles, eight weights, within int64."""
_MOST_LEFT: Final = 2**54
"""A quotient below it, by doubles, is wrong by less than eight units."""


class QuotaPart(NamedTuple):
    """What a quota brings to the split of one resource; `min` as its spec says, `guaranteed` what counts above it."""

    request: int
    min: int
    guaranteed: int
    weight: int
    lends: bool
    scales: bool


class QuotaColumns:
    """The quotas below one parent, in the order in which they came."""

    def __init__(self, parts: Mapping[str, QuotaPart]) -> None:
        room = 2 * len(parts)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._amounts: Column = np.zeros((4, room), np.int64)
        """Requests, mins, guarantees, weights."""
        self._flags: NDArray[np.bool_] = np.zeros((2, room), np.bool_)
        """Who lends, whose min shrinks."""
        self._sums = [0, 0, 0, 0]
        self._wide: dict[str, QuotaPart] = {}
        """The quotas with amounts that do not fit."""
        self._ranks: Column | None = None
        """The place of each quota among the names, sorted."""
        self._kept: tuple[int, bool, Column | None] | None = None
        for name, part in parts.items():
            self.put(name, None, part)

    def put(self, name: str, before: QuotaPart | None, now: QuotaPart | None) -> None:
        """A quota brings this from now on, and not what it brought `before`; None for nothing."""
        self._kept = None
        if before is not None and self._wide.pop(name, None) is None:
            self._sums = [total - number for total, number in zip(self._sums, before[:4], strict=True)]
        if now is None:
            at = self._rows.pop(name)
            self._free.append(at)
            self._amounts[:, at] = 0  # which takes no part in anything
            self._flags[:, at] = False
            self._ranks = None
            return
        known = self._rows.get(name)
        at = self._row(name) if known is None else known
        if all(0 <= number < _WIDEST for number in now[:4]):
            self._sums = [total + number for total, number in zip(self._sums, now[:4], strict=True)]
            self._amounts[:, at] = now[:4]
            self._flags[:, at] = now.lends, now.scales
        else:
            self._wide[name] = now

    def _row(self, name: str) -> int:
        self._ranks = None
        if self._free:
            at = self._free.pop()
        else:
            at = len(self._rows)
            if at == self._amounts.shape[1]:
                self._amounts = np.concatenate([self._amounts, np.zeros_like(self._amounts)], axis=1)
                self._flags = np.concatenate([self._flags, np.zeros_like(self._flags)], axis=1)
        self._rows[name] = at
        return at

    def runtime(self, total: int, name: str, *, scaled: bool) -> int | None:
        """What a quota gets where there is `total` to share, and mins shrink if `scaled`; None where columns cannot tell."""
        kept = self._kept
        if kept is None or kept[0] != total or kept[1] != scaled:
            kept = self._kept = total, scaled, self._split(total, scaled=scaled)
        return None if kept[2] is None else int(kept[2][self._rows[name]])

    def _split(self, total: int, *, scaled: bool) -> Column | None:
        if self._wide or max(self._sums) >= _WIDEST or not 0 <= total < _WIDEST:
            return None
        (request, least, guaranteed, weight), (lends, scales) = self._amounts, self._flags
        if scaled:
            least = np.where(scales, _shrunk(total, least, scales), least)
        floor = np.maximum(least, guaranteed)
        hungry = request > floor
        runtime: Column = np.where(hungry | ~lends, floor, request)
        left = total - int(runtime.sum())
        if left >= _MOST_LEFT:
            return None
        rows = np.flatnonzero(hungry)
        while left > 0 and rows.size:  # a round that gives anything back has one hungry quota less
            weights = weight[rows]
            whole = int(weights.sum())
            if not whole:
                break
            now = runtime[rows] + self._handed(left, whole, weights, rows)
            wanted = request[rows]
            runtime[rows] = np.minimum(now, wanted)
            left = int(np.maximum(now - wanted, 0).sum())
            rows = rows[now < wanted]
        return runtime

    def _handed(self, left: int, whole: int, weights: Column, rows: Column) -> Column:
        """Shares of `left` in proportion to weights; units that are left over go to the largest remainders, then by name."""
        handed = (weights.astype(np.float64) * float(left) / float(whole)).astype(np.int64)
        # The product may wrap around, and so does what is taken away: the difference is exact, being small.
        remainders = weights * np.int64(left) - handed * np.int64(whole)
        wrong = remainders // whole
        handed += wrong
        remainders -= wrong * whole
        more = left - int(handed.sum())
        if more:
            last = np.partition(remainders, -more)[-more]
            before = remainders > last
            handed[before] += 1
            alike = np.flatnonzero(remainders == last)
            more -= int(np.count_nonzero(before))
            if more < alike.size:
                alike = alike[np.argpartition(self._ranked()[rows[alike]], more)[:more]]
            handed[alike] += 1
        return handed

    def _ranked(self) -> Column:
        if self._ranks is None:
            self._ranks = np.zeros(self._amounts.shape[1], np.int64)
            self._ranks[[self._rows[name] for name in sorted(self._rows)]] = np.arange(len(self._rows))
        return self._ranks


def _shrunk(total: int, mins: Column, scales: NDArray[np.bool_]) -> Column:
    """The mins of those that shrink, as `quota_split.scaled_mins` has them."""
    scaled = int(mins[scales].sum())
    left = total - (int(mins.sum()) - scaled)
    if left <= 0 or scaled <= 0:
        return np.zeros_like(mins)
    return (float(left) * mins.astype(np.float64) / float(scaled)).astype(np.int64)
