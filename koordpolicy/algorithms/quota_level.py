"""The quotas right below one parent: what they bring to each resource, in sums that a change of one of them keeps up to date."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.algorithms.quota_columns import QuotaColumns, QuotaPart
from koordpolicy.algorithms.quota_split import QuotaShare, QuotaSplit, scaled_mins, shrunk, split

MANY: Final = 64
"""So many quotas are split quicker in columns than one by one."""


@dataclass(frozen=True, slots=True)
class ResourceSplit:
    """How a resource is shared below a parent that has `total` of it (None: nothing is known of it, which counts as 0)."""

    total: int | None
    mins: Mapping[str, int]
    shares: tuple[QuotaShare, ...]
    split: QuotaSplit


@dataclass(slots=True)
class _Resource:
    """One resource: the parts by quota; sums of mins, of those that do not shrink, of what all would get if there were enough."""

    parts: dict[str, QuotaPart] = field(default_factory=dict)
    min: int = 0
    fixed: int = 0
    most: int = 0
    scaling: int = 0
    odd: int = 0
    """Parts that may get more or less than they ask for though there is enough for all: by their mins, which may shrink."""
    kept: ResourceSplit | None = None
    columns: QuotaColumns | None = None


class QuotaLevel:
    """All quotas below one parent.

    Where there is enough for all, what one of them gets follows from its own part and two sums. Only where there is not,
    all parts are looked at, once for each state in which somebody asks; in columns, where they are many.
    """

    __slots__ = ("_odd", "_resources")

    def __init__(self) -> None:
        self._resources: dict[str, _Resource] = {}
        self._odd = 0

    @property
    def even(self) -> bool:
        """Whether each gets what it asks for where there is enough for all, whatever the mins."""
        return not self._odd

    def enough(self, totals: Mapping[str, int]) -> bool:
        """Whether there is enough for all, of all resources."""
        for key, resource in self._resources.items():  # noqa: SIM110  # asked of every pod, and a generator takes longer
            if resource.most > totals.get(key, 0):
                return False
        return True

    def put(self, name: str, parts: Mapping[str, QuotaPart], before: Mapping[str, QuotaPart]) -> None:
        """A quota brings these parts from now on, by resource, and not those that it brought before."""
        if before.keys() != parts.keys():
            for key in before.keys() - parts.keys():
                self._change(key, name, before[key], None)
        for key, part in parts.items():
            old = before.get(key)
            if old != part:
                self._change(key, name, old, part)

    def _change(self, key: str, name: str, old: QuotaPart | None, new: QuotaPart | None) -> None:
        resource = self._resources.get(key)
        if resource is None:
            resource = self._resources[key] = _Resource()
        resource.kept = None
        for part, sign in ((old, -1), (new, 1)):
            if part is not None:
                resource.min += sign * part.min
                resource.fixed += sign * (0 if part.scales else part.min)
                resource.most += sign * _most(part)
                resource.scaling += sign * part.scales
                odd = sign * (not part.lends or part.weight <= 0)
                resource.odd += odd
                self._odd += odd
        if resource.columns is not None:
            resource.columns.put(name, old, new)
        if new is None:
            del resource.parts[name]
            if not resource.parts:
                del self._resources[key]
        else:
            resource.parts[name] = new

    def runtime(self, key: str, total: int | None, name: str) -> int:
        """What one quota may use of a resource of which its parent has `total`; 0 for one that brings nothing."""
        resource = self._resources.get(key)
        part = None if resource is None else resource.parts.get(name)
        if resource is None or part is None:
            return 0
        # All that is left goes to the hungry until none is: with enough for all, whoever lends gets what it asks for, whatever its min.
        if resource.most <= (total or 0) and not (resource.odd and self._scales(resource, total)):
            return _most(part)
        found = self._in_columns(resource, total, name)
        return self._split(resource, total).split.runtime[name] if found is None else found

    def _in_columns(self, resource: _Resource, total: int | None, name: str) -> int | None:
        """The runtime of one of many; None where they are few, or beyond what columns can tell apart."""
        if len(resource.parts) < MANY:
            resource.columns = None
            return None
        if resource.columns is None:
            resource.columns = QuotaColumns(resource.parts)
        return resource.columns.runtime(total or 0, name, scaled=self._scales(resource, total))

    def least(self, key: str, total: int | None, name: str) -> int:
        """The min of one quota that can be kept where its parent has `total`."""
        resource = self._resources.get(key)
        part = None if resource is None else resource.parts.get(name)
        if resource is None or part is None:
            return 0
        if total is None or not self._scales(resource, total) or not part.scales:
            return part.min
        return shrunk(part.min, total - resource.fixed, resource.min - resource.fixed)

    def shared(self, key: str, total: int | None) -> ResourceSplit:
        """How a resource is shared, with all that led there."""
        return self._split(self._resources.get(key) or _Resource(), total)

    @staticmethod
    def _scales(resource: _Resource, total: int | None) -> bool:
        return total is not None and total < resource.min and resource.scaling > 0

    def _split(self, resource: _Resource, total: int | None) -> ResourceSplit:
        kept = resource.kept
        if kept is None or kept.total != total:
            mins = {name: part.min for name, part in resource.parts.items()}
            if total is not None and self._scales(resource, total):
                fixed = {name for name, part in resource.parts.items() if not part.scales}
                mins = scaled_mins(total, mins, fixed)
            shares = tuple(_share(name, part, mins[name]) for name, part in resource.parts.items())
            kept = resource.kept = ResourceSplit(total, mins, shares, split(total or 0, shares))
        return kept


def _share(name: str, part: QuotaPart, least: int) -> QuotaShare:
    """What a quota brings, with the min that can be kept."""
    return QuotaShare(name, part.request, max(least, part.guaranteed), part.weight, part.lends)


def _most(part: QuotaPart) -> int:
    """The `most` of a share with its min as its spec says, asked for at each change."""
    floor = max(part.min, part.guaranteed)
    if part.request > floor:
        return part.request if part.weight > 0 else floor
    return part.request if part.lends else floor
