"""The images that nodes have."""

from collections.abc import Iterable, Mapping

from koordpolicy.algorithms.columns import Column
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.model.reading import NOTHING


class NodeImages:
    """The bytes of each image on each node. `version` grows with every change."""

    __slots__ = ("_by_row", "_holders", "_sizes", "version")

    def __init__(self) -> None:
        self._by_row: list[Mapping[str, int]] = []
        self._sizes: dict[str, RowCounts] = {}
        self._holders: dict[str, int] = {}
        self.version = 0

    def put(self, row: int, images: Mapping[str, int]) -> None:
        """A node has these images; its row may be the next one."""
        if row == len(self._by_row):
            self._by_row.append(NOTHING)
            self.version += 1
        before = self._by_row[row]
        if before == images:
            return
        self.version += 1
        self._by_row[row] = images
        for name, size in images.items():
            if name not in before:
                self._holders[name] = self._holders.get(name, 0) + 1
            if before.get(name) != size:
                # An image without a size counts as being there.
                self._sizes.setdefault(name, RowCounts()).put(row, max(size, 1))
        for name in before.keys() - images.keys():
            self._clear(name, row)

    def drop(self, row: int) -> None:
        """A node is gone, and the last one has taken its number."""
        self.version += 1
        last = len(self._by_row) - 1
        for name in self._by_row[row]:
            self._clear(name, row)
        if row != last:
            moved = self._by_row[last]
            for name, size in moved.items():
                sizes = self._sizes[name]
                sizes.put(last, 0)
                sizes.put(row, max(size, 1))
            self._by_row[row] = moved
        self._by_row.pop()

    def present(self, names: Iterable[str], count: int) -> list[tuple[Column, int]]:
        """For each name that any node has, its bytes on so many nodes, 0 where it is not, and how many have it."""
        return [
            (self._sizes[name].array(count), self._holders[name]) for name in names if name in self._sizes
        ]

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def _clear(self, name: str, row: int) -> None:
        self._sizes[name].put(row, 0)
        self._holders[name] -= 1
        if not self._holders[name]:
            del self._sizes[name], self._holders[name]
