"""The network of the cluster: its topology, where nodes are in it, and which pods on them are to be near each other."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column
from koordpolicy.algorithms.domains import Domains, label_domains
from koordpolicy.algorithms.network_tree import NetworkTree, network_tree
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.model.network_topology import NODE_LAYER, USED, NetworkLayer, NetworkTopology
from koordpolicy.model.pod import PodKey

_NODES_ALONE: Final = (NetworkLayer(NODE_LAYER),)
_MOST_DOMAINS: Final = 64
"""Sets of labels by which nodes are kept at most."""


class ClusterNetwork:
    """Kept from events. The tree is made when it is asked for, and anew once a label changed that says where nodes are."""

    __slots__ = (
        "_domains", "_groups", "_keys", "_labels", "_made", "_names", "_nodes", "_topology", "_tree", "planned", "version",
    )  # fmt: skip

    def __init__(self) -> None:
        self._topology: NetworkTopology | None = None
        self._keys: tuple[str, ...] = ()
        self._names: list[str] = []
        self._labels: list[Mapping[str, str]] = []
        self._groups: dict[str, RowCounts] = {}
        self._tree: NetworkTree | None = None
        self._made = True
        self._nodes: NetworkTree | None = None
        self._domains: dict[tuple[str, ...], Domains] = {}
        """Those that have been asked for, until a node comes or goes, or another value of one of their labels."""
        self.planned: dict[PodKey, str] = {}
        """The nodes that pods of gangs are planned on, which go to no other; empty for a pod that has to wait for the others."""
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
            self._of_other_nodes()
            return
        before, self._labels[row] = self._labels[row], labels
        if before is not labels and self._domains:
            for keys in list(self._domains):
                if any(before.get(key) != labels.get(key) for key in keys):
                    del self._domains[keys]
        if before is not labels and any(before.get(key) != labels.get(key) for key in self._keys):
            self._outdated()

    def drop(self, row: int, last: int) -> None:
        """A node is gone (its pods have been removed), and the last one has taken its number."""
        self._names[row], self._labels[row] = self._names[last], self._labels[last]
        self._names.pop()
        self._labels.pop()
        for counts in self._groups.values():
            counts.drop(row, last)
        self._of_other_nodes()

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

    @property
    def nodes(self) -> NetworkTree:
        """The tree of all nodes as if there were no network: each right below the cluster."""
        if self._nodes is None:
            self._nodes = network_tree(_NODES_ALONE, self._names, self._labels)
            assert self._nodes is not None, "one layer is a chain"
        return self._nodes

    def domains(self, keys: tuple[str, ...]) -> Domains:
        """The nodes by their values of these labels, one at least; the rows are those of the node table."""
        found = self._domains.get(keys)
        if found is None:
            if len(self._domains) >= _MOST_DOMAINS:
                self._domains.clear()
            found = self._domains[keys] = label_domains(keys, self._labels)
        return found

    def names(self, rows: Column) -> list[str]:
        """The names of the nodes of some rows."""
        return [self._names[row] for row in rows.tolist()]

    def existing(self, group: str, tree: NetworkTree) -> Column:
        """How many pods of a group are on each leaf; none of the group without a name."""
        counts = self._groups.get(group) if group else None
        if counts is None:
            return np.zeros(tree.leaves, np.int64)
        return counts.array(len(self._names))[tree.rows]

    def _of_other_nodes(self) -> None:
        self._nodes = None
        self._domains.clear()
        self._outdated()

    def _outdated(self) -> None:
        if self._topology is not None or self._tree is not None:
            self._made = False
            self.version += 1
