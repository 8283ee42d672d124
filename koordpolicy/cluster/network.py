"""The network of the cluster: its topology, where nodes are in it, and which pods on them are to be near each other."""

from collections.abc import Mapping

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.network_tree import NetworkTree, network_tree
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.model.network_topology import USED, NetworkTopology
from koordpolicy.model.pod import PodKey


class ClusterNetwork:
    """Kept from events. The tree is made when it is asked for, and anew once a label changed that says where nodes are."""

    __slots__ = ("_groups", "_keys", "_labels", "_made", "_names", "_topology", "_tree", "planned", "version")

    def __init__(self) -> None:
        self._topology: NetworkTopology | None = None
        self._keys: tuple[str, ...] = ()
        self._names: list[str] = []
        self._labels: list[Mapping[str, str]] = []
        self._groups: dict[str, RowCounts] = {}
        self._tree: NetworkTree | None = None
        self._made = True
        self.planned: dict[PodKey, str] = {}
        """The nodes that pods of gangs are planned on, which go to no other."""
        self.version = 0
        """What stays the same while the tree does."""

    def again(self) -> "ClusterNetwork":
        """The same topology and plans, no nodes and no pods."""
        found = ClusterNetwork()
        found.planned = self.planned
        if self._topology is not None:
            found.set_topology(self._topology)
        return found

    # --- events ---------------------------------------------------------------------------------

    def set_topology(self, topology: NetworkTopology) -> bool:
        """A topology is new or has changed; whether that makes a difference."""
        if topology.name != USED:
            return False
        before, self._topology = self._topology, topology
        if topology == before:
            return False
        self._keys = tuple({key: None for layer in topology.layers for key in layer.label_keys})
        self._outdated()
        return True

    def remove_topology(self, name: str) -> bool:
        """A topology is gone; whether it was the one that is used."""
        if name != USED or self._topology is None:
            return False
        self._topology, self._keys = None, ()
        self._outdated()
        return True

    def put(self, row: int, name: str, labels: Mapping[str, str]) -> None:
        """A node is new (its row is the next one), or has changed."""
        if row == len(self._labels):
            self._names.append(name)
            self._labels.append(labels)
            self._outdated()
            return
        before, self._labels[row] = self._labels[row], labels
        if before is not labels and any(before.get(key) != labels.get(key) for key in self._keys):
            self._outdated()

    def drop(self, row: int, last: int) -> None:
        """A node is gone (its pods have been removed), and the last one has taken its number."""
        self._names[row], self._labels[row] = self._names[last], self._labels[last]
        self._names.pop()
        self._labels.pop()
        for counts in self._groups.values():
            counts.drop(row, last)
        self._outdated()

    def count(self, group: str, row: int, by: int) -> None:
        """So many pods of a group more are on a node."""
        counts = self._groups.setdefault(group, RowCounts())
        counts.add(row, by)
        if not counts:
            del self._groups[group]

    # --- answers --------------------------------------------------------------------------------

    @property
    def topology(self) -> NetworkTopology | None:
        """The one that is used."""
        return self._topology

    @property
    def tree(self) -> NetworkTree | None:
        """The tree of all nodes, whose rows are those of the node table; None without a topology, or where its layers are no chain."""
        if not self._made:
            layers = () if self._topology is None else self._topology.layers
            self._tree, self._made = network_tree(layers, self._names, self._labels), True
        return self._tree

    def names(self, rows: Column) -> list[str]:
        """The names of the nodes of some rows."""
        return [self._names[row] for row in rows.tolist()]

    def existing(self, group: str, tree: NetworkTree) -> Column:
        """How many pods of a group are on each leaf; none of the group without a name."""
        counts = self._groups.get(group) if group else None
        if counts is None:
            return np.zeros(tree.leaves, np.int64)
        return counts.array(len(self._names))[tree.rows]

    def _outdated(self) -> None:
        if self._topology is not None or self._tree is not None:
            self._made = False
            self.version += 1
