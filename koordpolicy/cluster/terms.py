"""What the pods on nodes say of others: their terms, by the labels of the pods that they speak of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.cluster.label_sets import PodLabelSets
from koordpolicy.model.neighbours import TopologyTerm


@dataclass(slots=True, eq=False)
class _Held:
    """A term that pods on nodes have. `counts` says for each node how many, or what they weigh together."""

    term: TopologyTerm
    counts: RowCounts = field(default_factory=RowCounts)
    pods: int = 0


@dataclass(slots=True, eq=False)
class _Asked:
    """What speaks of pods with certain labels, kept from change to change: a pod is asked about again and again."""

    kinds: PodLabelSets
    namespaces: int
    namespace: str
    labels: Mapping[str, str]
    held: dict[_Held, None] = field(default_factory=dict)
    by_key: dict[str, RowCounts] = field(default_factory=dict)

    def begin(self, held: _Held) -> bool:
        """Another term is held; whether it speaks of them."""
        if not self.kinds.matches(held.term.pods, self.namespace, self.labels):
            return False
        self.held[held] = None
        if held.term.key not in self.by_key:
            self.by_key[held.term.key] = RowCounts()
        return True

    def add(self, held: _Held, row: int, weight: int) -> None:
        """One that speaks of them weighs more on a node, or less."""
        self.by_key[held.term.key].add(row, weight)

    def is_about(self, kinds: PodLabelSets, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether this is of pods in a namespace, as that is labelled now, and with these labels."""
        return (
            self.kinds is kinds
            and self.namespaces == kinds.namespaces
            and self.namespace == namespace
            and (self.labels is labels or self.labels == labels)
        )


class TermBook:
    """Terms of one sort, those of all pods on nodes. Equal terms are one."""

    __slots__ = ("_asked", "_filed", "_held")

    def __init__(self) -> None:
        self._held: dict[TopologyTerm, _Held] = {}
        self._filed: LabelIndex[_Held] = LabelIndex()
        self._asked: _Asked | None = None

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, term: TopologyTerm, row: int, weight: int = 1) -> None:
        """A pod with this term is on a node."""
        selector = term.pods.selector
        if selector is None:
            return  # speaks of no pods
        held, asked = self._held.get(term), self._asked
        if held is None:
            held = self._held[term] = _Held(term)
            self._filed.add(selector, held)
            if asked is not None:
                asked.begin(held)
        held.counts.add(row, weight)
        held.pods += 1
        if asked is not None and held in asked.held:
            asked.add(held, row, weight)

    def remove(self, term: TopologyTerm, row: int, weight: int = 1) -> None:
        """A pod with this term is not on a node any more."""
        selector = term.pods.selector
        if selector is None:
            return
        held, asked = self._held[term], self._asked
        held.counts.add(row, -weight)
        held.pods -= 1
        if asked is not None and held in asked.held:
            asked.add(held, row, -weight)
        if not held.pods:
            del self._held[term]
            self._filed.discard(selector, held)
            if asked is not None:
                asked.held.pop(held, None)

    def drop(self, row: int, last: int) -> None:
        """A node is gone, and the last one has taken its number."""
        for held in self._held.values():
            held.counts.drop(row, last)
        self._asked = None

    def speaks(self, kinds: PodLabelSets, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether any term speaks of a pod with these labels."""
        return bool(self._held) and bool(self._about(kinds, namespace, labels).held)

    def about(
        self, kinds: PodLabelSets, namespace: str, labels: Mapping[str, str]
    ) -> Iterator[tuple[str, RowCounts]]:
        """By label, the pods on each node that speak of a pod with these labels, or what that weighs together."""
        if self._held:
            yield from self._about(kinds, namespace, labels).by_key.items()

    def _about(self, kinds: PodLabelSets, namespace: str, labels: Mapping[str, str]) -> _Asked:
        found = self._asked
        if found is None or not found.is_about(kinds, namespace, labels):
            found = self._asked = _Asked(kinds, kinds.namespaces, namespace, labels)
            for held in self._filed.near(labels):
                if found.begin(held):
                    found.by_key[held.term.key].add_all(held.counts)
        return found
