"""The ports that pods take on their nodes."""

from collections.abc import Iterable

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.model.pod_ports import HostPort


class UsedPorts:
    """How many pods have each port on each node."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[HostPort, RowCounts]] = {}

    def add(self, ports: Iterable[HostPort], row: int) -> None:
        """A pod with these ports is on a node."""
        for port in ports:
            same = self._used.setdefault((port.protocol, port.port), {})
            same.setdefault(port, RowCounts()).add(row, 1)

    def remove(self, ports: Iterable[HostPort], row: int) -> None:
        """A pod with these ports is not on a node any more."""
        for port in ports:
            same = self._used[port.protocol, port.port]
            same[port].add(row, -1)
            if not same[port]:
                del same[port]
                if not same:
                    del self._used[port.protocol, port.port]

    def drop(self, row: int, last: int) -> None:
        """A node is gone, and the last one has taken its number."""
        for same in self._used.values():
            for counts in same.values():
                counts.drop(row, last)

    def taken(self, ports: Iterable[HostPort], count: int) -> Mask:
        """Which of so many nodes lack one of the ports."""
        found = np.zeros(count, np.bool_)
        for port in ports:
            for used, counts in self._used.get((port.protocol, port.port), {}).items():
                if port.conflicts(used):
                    found |= counts.array(count) > 0
        return found
