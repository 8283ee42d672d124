"""Topology: which nodes have the same value of a label, for the labels that somebody asked for."""

from collections.abc import Iterable, Mapping

import numpy as np

from koordpolicy.algorithms.columns import Column, Mask


class Domains:
    """The nodes by the value of one label: a small number for each value, 0 for nodes without the label.

    Numbers of values that no node has any more are given to others.
    """

    __slots__ = ("_free", "_ids", "_numbers", "_users", "_values", "size")

    def __init__(self) -> None:
        self._ids = np.zeros(16, np.int64)
        self._numbers: dict[str, int] = {}
        self._values: list[str] = [""]
        self._users: list[int] = [0]
        self._free: list[int] = []
        self.size = 1

    def put(self, row: int, value: str | None) -> None:
        """A node has this value now; None for no such label."""
        if row >= len(self._ids):
            grown = np.zeros(max(row + 1, 2 * len(self._ids)), np.int64)
            grown[: len(self._ids)] = self._ids
            self._ids = grown
        before = int(self._ids[row])
        if before and value is not None and self._values[before] == value:
            return
        self._leave(before)
        self._ids[row] = 0 if value is None else self._enter(value)

    def drop(self, row: int, last: int) -> None:
        """A node is gone, and the last one has taken its number."""
        self._leave(int(self._ids[row]) if row < len(self._ids) else 0)
        if last < len(self._ids):
            self._ids[row] = self._ids[last]
            self._ids[last] = 0

    def ids(self, count: int) -> Column:
        """The number of the value that each of so many nodes has. Valid until the next change."""
        if len(self._ids) < count:
            self._ids = np.concatenate([self._ids, np.zeros(count - len(self._ids), np.int64)])
        return self._ids[:count]

    def _enter(self, value: str) -> int:
        number = self._numbers.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._values[number] = value
            else:
                number = len(self._values)
                self._values.append(value)
                self._users.append(0)
                self.size = len(self._values)
            self._numbers[value] = number
        self._users[number] += 1
        return number

    def _leave(self, number: int) -> None:
        if number:
            self._users[number] -= 1
            if not self._users[number]:
                del self._numbers[self._values[number]]
                self._free.append(number)


class Topology:
    """The domains of all labels that somebody asked for, kept from then on."""

    __slots__ = ("_by_key", "_labels")

    def __init__(self) -> None:
        self._labels: list[Mapping[str, str]] = []
        self._by_key: dict[str, Domains] = {}

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """A node is new (its row is the next one), or has changed."""
        if row == len(self._labels):
            self._labels.append(labels)
        elif self._labels[row] == labels:
            return
        else:
            self._labels[row] = labels
        for key, domains in self._by_key.items():
            domains.put(row, labels.get(key))

    def drop(self, row: int) -> None:
        """A node is gone, and the last one has taken its number."""
        last = len(self._labels) - 1
        self._labels[row] = self._labels[last]
        self._labels.pop()
        for domains in self._by_key.values():
            domains.drop(row, last)

    def of(self, key: str) -> Domains:
        """The domains of a label."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = Domains()
            for row, labels in enumerate(self._labels):
                found.put(row, labels.get(key))
        return found

    def holders(self, keys: Iterable[str]) -> Mask:
        """The nodes that have all of these labels, as a mask."""
        count = len(self._labels)
        found = np.ones(count, np.bool_)
        for key in keys:
            found &= self.of(key).ids(count) > 0
        return found
