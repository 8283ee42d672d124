"""How many volumes of each driver are attached to each node, or will be for the pods there."""

from typing import Final

from koordpolicy.algorithms.columns import Column
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.model.quantity import INT64_MAX

Handle = tuple[str, str]
"""A volume as its driver knows it: the driver and its name for the volume."""


class Attached:
    """The users of each volume on each node; a volume with several counts once."""

    __slots__ = ("_limits", "_unique", "_users")

    def __init__(self) -> None:
        self._users: dict[Handle, RowCounts] = {}
        self._unique: dict[str, RowCounts] = {}
        # One more than the limit, so that 0 is none.
        self._limits: dict[str, RowCounts] = {}

    def add(self, handle: Handle, row: int, users: int = 1) -> None:
        """A volume has so many more users on a node; fewer when below 0."""
        counts = self._users.setdefault(handle, RowCounts())
        before = counts.get(row)
        after = counts.add(row, users)
        unique = self._unique.setdefault(handle[0], RowCounts())
        unique.add(row, bool(after) - bool(before))
        if not after and not counts:
            del self._users[handle]

    def limit(self, driver: str, row: int, limit: int | None) -> None:
        """A node takes so many volumes of a driver; None for any number. The largest int64 counts as one less."""
        held = 0 if limit is None else min(limit, INT64_MAX - 1) + 1
        self._limits.setdefault(driver, RowCounts()).put(row, held)

    def drop(self, row: int, last: int) -> None:
        """A node is gone, and the last one has taken its number."""
        for index in (self._users, self._unique, self._limits):
            for counts in index.values():
                counts.drop(row, last)

    def limits(self, driver: str, count: int) -> Column | None:
        """One more than the limit of each of so many nodes, 0 for none; None when no node has one."""
        found = self._limits.get(driver)
        return found.array(count) if found else None

    def attached(self, driver: str, count: int) -> Column:
        """How many volumes of a driver each of so many nodes has."""
        return self._unique.get(driver, _NONE).array(count)

    def has(self, handle: Handle, count: int) -> Column:
        """How many users a volume has on each of so many nodes."""
        return self._users.get(handle, _NONE).array(count)


_NONE: Final = RowCounts()
"""Nobody writes to it."""
