"""What waits for labels, found by the labels it waits for."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from koordpolicy.model.labels import LabelSelector, Operator

T = TypeVar("T")

_MOST_VALUES = 8
"""Requirements with more values than these are no good to find something by."""


class LabelIndex(Generic[T]):
    """Things with a selector. `near` gives those that labels may match: all that do, and a few more."""

    __slots__ = ("_by_label", "_others")

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        self._others: dict[T, None] = {}

    def add(self, selector: LabelSelector, item: T) -> None:
        """Add a thing under what its selector needs."""
        places = _places(selector)
        if not places:
            self._others[item] = None
        for place in places:
            self._by_label.setdefault(place, {})[item] = None

    def discard(self, selector: LabelSelector, item: T) -> None:
        """Take a thing out again."""
        self._others.pop(item, None)
        for place in _places(selector):
            filed = self._by_label.get(place)
            if filed is not None:
                filed.pop(item, None)
                if not filed:
                    del self._by_label[place]

    def near(self, labels: Mapping[str, str]) -> Iterator[T]:
        """What labels may match, each once."""
        yield from self._others
        if self._by_label:
            for place in labels.items():
                yield from self._by_label.get(place, ())


def _places(selector: LabelSelector) -> list[tuple[str, str]]:
    """Where a thing is filed: under the values of one requirement, so that no labels find it twice."""
    best: list[tuple[str, str]] = []
    for one in selector.requirements:
        if one.operator is Operator.IN and len(one.values) <= _MOST_VALUES:
            found = [(one.key, value) for value in one.values]
            if not best or len(found) < len(best):
                best = found
    return best
