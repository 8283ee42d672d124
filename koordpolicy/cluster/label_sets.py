"""The pods on nodes by their labels: how many of each kind are on each node, and how many of a selection.

Pods of one namespace with equal labels are one kind. A selection that was asked for is kept from then on:
a pod that comes or goes changes the counts of the selections that match its kind, and no others. A selection of
many terms costs them once, and as much as one of a single term whenever it is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.cluster.pods import KindKey
from koordpolicy.model.labels import Operator
from koordpolicy.model.neighbours import PodTerm, TermSum
from koordpolicy.model.reading import NO_TEXT

_MOST_TERMS: Final = 8192
"""Terms of the selections that are kept; beyond, the one that was not asked for longest is dropped."""

_MOST_COUNTED: Final = 1_000_000
"""Kinds that the selections that are kept count together, each of which takes some hundred bytes."""

LabelPlace = TypeVar("LabelPlace")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Pods that all of these terms match at once. `alive` leaves out those that are being deleted."""

    terms: tuple[PodTerm, ...]
    alive: bool = False


@dataclass(slots=True, eq=False)
class _Selection:
    parts: "list[_Part]" = field(default_factory=list)
    counts: RowCounts = field(default_factory=RowCounts)
    version: int = 0
    kinds: "dict[_Kind, None]" = field(default_factory=dict)
    """Those that count."""


@dataclass(slots=True, eq=False)
class _Part:
    """Pods of a selection that count so many times: those that all terms match. It is filed by the first one."""

    selection: _Selection
    terms: tuple[PodTerm, ...]
    alive: bool
    times: int


@dataclass(slots=True, eq=False)
class _Kind:
    key: KindKey
    labels: Mapping[str, str]
    counts: RowCounts = field(default_factory=RowCounts)
    pods: int = 0
    selections: dict[_Selection, int] = field(default_factory=dict)
    """In which of them a pod counts, and how many times."""

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def terminating(self) -> bool:
        return self.key[2]


class PodLabelSets:
    """The kinds of all pods on known nodes. Rows are those of the node table."""

    __slots__ = (
        "_by_label",
        "_by_namespace",
        "_counted",
        "_filed",
        "_kinds",
        "_labels",
        "_selections",
        "_terms",
        "namespaces",
    )

    def __init__(self) -> None:
        self._kinds: dict[KindKey, _Kind] = {}
        self._by_namespace: dict[str, dict[KindKey, _Kind]] = {}
        self._by_label: dict[tuple[str, str, str], dict[KindKey, _Kind]] = {}
        # In the order in which they were last asked for.
        self._selections: dict[Wanted | TermSum, _Selection] = {}
        self._terms = 0
        self._counted = 0
        self._filed: LabelIndex[_Part] = LabelIndex()
        self._labels: dict[str, Mapping[str, str]] = {}
        self.namespaces = 0
        """Another number after each change of the labels of a namespace."""

    def again(self) -> "PodLabelSets":
        """The same namespaces, no pods."""
        found = PodLabelSets()
        found._labels = dict(self._labels)
        return found

    # --- events ---------------------------------------------------------------------------------

    def add(self, key: KindKey, labels: Mapping[str, str], row: int) -> None:
        """A pod of a kind is on a node."""
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._enter(key, labels)
        kind.pods += 1
        kind.counts.add(row, 1)
        for selection, times in kind.selections.items():
            selection.counts.add(row, times)
            selection.version += 1

    def remove(self, key: KindKey, row: int) -> None:
        """A pod of a kind is not on a node any more."""
        kind = self._kinds[key]
        kind.pods -= 1
        kind.counts.add(row, -1)
        for selection, times in kind.selections.items():
            selection.counts.add(row, -times)
            selection.version += 1
        if not kind.pods:
            self._leave(kind)

    def drop(self, row: int, last: int) -> None:
        """A node is gone (its pods have been removed), and the last one has taken its number."""
        for kind in self._kinds.values():
            kind.counts.drop(row, last)
        for selection in self._selections.values():
            selection.counts.drop(row, last)

    def name_space(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """A namespace has these labels now (None: it is gone); whether that changes anything."""
        before, now = self._labels.get(name, NO_TEXT), NO_TEXT if labels is None else labels
        if labels is None:
            self._labels.pop(name, None)
        else:
            self._labels[name] = labels
        if before == now:
            return False
        self.namespaces += 1
        for wanted in [one for one, found in self._selections.items() if _by_labels(found)]:
            self._forget(wanted)
        return True

    # --- answers --------------------------------------------------------------------------------

    def counts(self, wanted: Wanted | TermSum) -> RowCounts:
        """How many of the pods are on each node, or what they weigh together."""
        return self._selection(wanted).counts

    def version(self, wanted: Wanted | TermSum) -> tuple[int, int]:
        """What stays the same while the counts do."""
        found = self._selection(wanted)
        return id(found), found.version

    def in_namespace(self, term: PodTerm, namespace: str) -> bool:
        """Whether a term speaks of pods in a namespace."""
        if namespace in term.namespaces:
            return True
        by_labels = term.namespace_selector
        return by_labels is not None and by_labels.matches(self._labels.get(namespace, NO_TEXT))

    def matches(self, term: PodTerm, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a term speaks of pods with these labels."""
        return (
            term.selector is not None and self.in_namespace(term, namespace) and term.selector.matches(labels)
        )

    # --- inner workings -------------------------------------------------------------------------

    def _selection(self, wanted: Wanted | TermSum) -> _Selection:
        found = self._selections.pop(wanted, None)
        if found is None:
            found = self._begin(wanted)
        self._selections[wanted] = found
        return found

    def _begin(self, wanted: Wanted | TermSum) -> _Selection:
        found = _Selection()
        found.parts += _parts(found, wanted)
        numbers: dict[int, int] = {}
        for part in found.parts:
            for kind in self._held(part):
                for row, pods in kind.counts.items():
                    numbers[row] = numbers.get(row, 0) + part.times * pods
                _count(kind, part)
            selector = part.terms[0].selector
            if selector is not None:
                self._filed.add(selector, part)
        for row, number in numbers.items():
            found.counts.add(row, number)
        self._terms += len(found.parts)
        self._counted += len(found.kinds)
        while (self._terms > _MOST_TERMS or self._counted > _MOST_COUNTED) and self._selections:
            self._forget(next(iter(self._selections)))
        return found

    def _forget(self, wanted: Wanted | TermSum) -> None:
        gone = self._selections.pop(wanted)
        self._terms -= len(gone.parts)
        self._counted -= len(gone.kinds)
        for part in gone.parts:
            selector = part.terms[0].selector
            if selector is not None:
                self._filed.discard(selector, part)
        for kind in gone.kinds:
            del kind.selections[gone]

    def _held(self, part: _Part) -> Iterator[_Kind]:
        """The kinds that count in a part. What the first term says of namespaces is asked once for each of them."""
        first, *others = part.terms
        if first.selector is None:
            return
        inside: dict[str, bool] = {}
        matches = first.selector.matches
        for kind in self._candidates(first):
            namespace = kind.namespace
            is_inside = inside.get(namespace)
            if is_inside is None:
                is_inside = inside[namespace] = self.in_namespace(first, namespace)
            if not is_inside or (part.alive and kind.terminating) or not matches(kind.labels):
                continue
            if all(self.matches(term, namespace, kind.labels) for term in others):
                yield kind

    def _holds(self, part: _Part, kind: _Kind) -> bool:
        if part.alive and kind.terminating:
            return False
        return all(self.matches(term, kind.namespace, kind.labels) for term in part.terms)

    def _candidates(self, term: PodTerm) -> Iterator[_Kind]:
        """The kinds that a term may match, and a few more. Namespaces by labels may be any."""
        if term.selector is None:
            return iter(())
        if term.namespace_selector is not None:
            return iter(self._kinds.values())
        return self._in_namespaces(term)

    def _in_namespaces(self, term: PodTerm) -> Iterator[_Kind]:
        assert term.selector is not None
        needed = next((one for one in term.selector.requirements if one.operator is Operator.IN), None)
        for namespace in term.namespaces:
            if needed is None:
                yield from self._by_namespace.get(namespace, {}).values()
                continue
            for value in needed.values:
                yield from self._by_label.get((namespace, needed.key, value), {}).values()

    def _enter(self, key: KindKey, labels: Mapping[str, str]) -> _Kind:
        kind = self._kinds[key] = _Kind(key, labels)
        self._by_namespace.setdefault(kind.namespace, {})[key] = kind
        for place in _places(kind):
            self._by_label.setdefault(place, {})[key] = kind
        for part in self._filed.near(labels):
            if self._holds(part, kind):
                _count(kind, part)
        self._counted += len(kind.selections)
        return kind

    def _leave(self, kind: _Kind) -> None:
        del self._kinds[kind.key]
        for selection in kind.selections:
            del selection.kinds[kind]
        self._counted -= len(kind.selections)
        _discard(self._by_namespace, kind.namespace, kind.key)
        for place in _places(kind):
            _discard(self._by_label, place, kind.key)


def _parts(selection: _Selection, wanted: Wanted | TermSum) -> list[_Part]:
    if isinstance(wanted, TermSum):
        return [_Part(selection, (term,), alive=False, times=times) for term, times in wanted.terms]
    return [_Part(selection, wanted.terms, wanted.alive, times=1)]


def _count(kind: _Kind, part: _Part) -> None:
    """Let pods of a kind count in a selection, for one of its parts."""
    selection = part.selection
    kind.selections[selection] = kind.selections.get(selection, 0) + part.times
    selection.kinds[kind] = None


def _by_labels(selection: _Selection) -> bool:
    return any(term.namespace_selector is not None for part in selection.parts for term in part.terms)


def _places(kind: _Kind) -> Iterable[tuple[str, str, str]]:
    return ((kind.namespace, key, value) for key, value in kind.labels.items())


def _discard(index: dict[LabelPlace, dict[KindKey, _Kind]], place: LabelPlace, key: KindKey) -> None:
    filed = index[place]
    del filed[key]
    if not filed:
        del index[place]
