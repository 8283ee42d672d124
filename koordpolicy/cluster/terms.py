"""What the pods on nodes say of others: their terms, by the labels of the pods that they speak of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.cluster.label_sets import PodLabelSets
from koordpolicy.model.neighbours import TopologyTerm


@dataclass(slots=True, eq=False)
class HeldTerm:
    """A term that pods on nodes have. `counts` says for each node how many, or what they weigh together."""

    term: TopologyTerm
    counts: RowCounts = field(default_factory=RowCounts)
    pods: int = 0


class TermBook:
    """Terms of one sort, those of all pods on nodes. Equal terms are one."""

    __slots__ = ("_filed", "held", "version")

    def __init__(self) -> None:
        self.held: dict[TopologyTerm, HeldTerm] = {}
        """Those there are."""
        self._filed: LabelIndex[HeldTerm] = LabelIndex()
        self.version = 0

    def __bool__(self) -> bool:
        return bool(self.held)

    def add(self, term: TopologyTerm, row: int, weight: int = 1) -> None:
        """A pod with this term is on a node."""
        selector = term.pods.selector
        if selector is None:
            return  # speaks of no pods
        held = self.held.get(term)
        if held is None:
            held = self.held[term] = HeldTerm(term)
            self._filed.add(selector, held)
        held.counts.add(row, weight)
        held.pods += 1
        self.version += 1

    def remove(self, term: TopologyTerm, row: int, weight: int = 1) -> None:
        """A pod with this term is not on a node any more."""
        selector = term.pods.selector
        if selector is None:
            return
        held = self.held[term]
        held.counts.add(row, -weight)
        held.pods -= 1
        self.version += 1
        if not held.pods:
            del self.held[term]
            self._filed.discard(selector, held)

    def drop(self, row: int, last: int) -> None:
        """A node is gone, and the last one has taken its number."""
        for held in self.held.values():
            held.counts.drop(row, last)

    def about(self, kinds: PodLabelSets, namespace: str, labels: Mapping[str, str]) -> Iterator[HeldTerm]:
        """The terms that speak of a pod with these labels."""
        if self.held:
            for held in self._filed.near(labels):
                if kinds.matches(held.term.pods, namespace, labels):
                    yield held
