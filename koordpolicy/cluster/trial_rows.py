"""Rows of nodes as a trial finds them with other pods: a table of its own, row by row up to date.

Only what follows from a node's own row is right in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import node_schema
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import PodKey
from koordpolicy.model.table import NodeTable


@dataclass(frozen=True, slots=True)
class Change:
    """What is supposed of a node: pods that are gone, and pods that are there."""

    without: tuple[PodKey, ...] = ()
    beside: tuple[PodView, ...] = field(default=(), compare=False)
    # What tells two changes apart; views are compared by identity, which is cheap.
    _beside_ids: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_beside_ids", tuple(map(id, self.beside)))


class TrialRows:
    """A table of some nodes with changes. Ask `outdated` before each use, and `set` what is to be there."""

    __slots__ = ("_cache", "_changes", "_logged", "_settled", "_version", "table")

    def __init__(self, cache: ClusterCache) -> None:
        self.table = NodeTable(node_schema())
        self._cache = cache
        self._changes: dict[str, Change] = {}
        self._version: int | None = None
        self._settled: set[str] = set()
        self._logged = cache.log.number

    def outdated(self) -> Iterator[str]:
        """The nodes of the cluster that changed since this was last asked. Nodes that are gone are dropped."""
        real = self._cache.table
        touched = None if self._version is None else real.touched_since(self._version)
        self._version = real.version
        for name in [name for name in self._changes if name not in real]:
            self._drop(name)
        names = real.names if touched is None else real.named(touched)
        for name in names:
            self._changes.pop(name, None)
            self._settled.discard(name)
            yield name

    def set(self, name: str, change: Change | None) -> None:
        """Suppose this of a node; None leaves it out."""
        if change is None:
            self._drop(name)
        elif self._changes.get(name) != change:
            self.table.put(name, self._tried(name, change))
            self._changes[name] = change

    def _tried(self, name: str, change: Change) -> Record:
        cache = self._cache
        with cache.trial(rows_only=True):
            cache.displace(*change.without)
            for view in change.beside:
                cache.place(view, name, 0)
            return dict(cache.table.row(cache.table.index(name)))

    def unsettled(self, names: Sequence[str]) -> Sequence[str]:
        """Those of some nodes where something is to be supposed that was not `settled` since pods there changed last."""
        log = self._cache.log
        changed = log.since(self._logged)
        self._logged = log.number
        if changed is None:
            self._settled.clear()
        else:
            self._settled.difference_update(changed)
        return names if self._cache.trying else [name for name in names if name not in self._settled]

    def settle(self, names: Iterable[str]) -> None:
        """What is supposed of these nodes holds until they change. In a trial nothing is settled."""
        if not self._cache.trying:
            self._settled.update(names)

    def keep(self, names: Mapping[str, object]) -> None:
        """Drop all nodes but these."""
        for name in [name for name in self.table.names if name not in names]:
            self._drop(name)

    def change(self, name: str) -> Change | None:
        """What is supposed of a node."""
        return self._changes.get(name)

    def _drop(self, name: str) -> None:
        self._changes.pop(name, None)
        self._settled.discard(name)
        if name in self.table:
            self.table.remove(name)
