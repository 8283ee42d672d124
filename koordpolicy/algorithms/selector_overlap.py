"""Selectors that meet on the same labels: found by what they ask for, within a limit of comparisons."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import lcm
from typing import Any, Final

from koordpolicy.model.labels import LabelSelector, Operator

MOST_COMPARISONS: Final = 1_000_000
"""Labels looked up and requirements tried for one review: about a second of work."""


class ComparisonLimitError(Exception):
    """Selectors stand for more than is compared."""


class Comparisons:
    """What may still be compared."""

    def __init__(self, most: int = MOST_COMPARISONS) -> None:
        self._left = most

    def spend(self, count: int) -> None:
        """Raises `ComparisonLimitError` when nothing is left."""
        self._left -= count
        if self._left < 0:
            raise ComparisonLimitError


class SelectorIndex:
    """Selectors by one label that each of them needs, so that few are tried for a set of labels.

    One that needs no label (`NotIn` and `DoesNotExist` alone, or nothing at all) is tried for every set.
    """

    def __init__(self, selectors: Sequence[LabelSelector | None]) -> None:
        self._selectors = selectors
        self._by_value: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for number, selector in enumerate(selectors):
            if selector is not None:
                self._file(number, selector)
        self.keys = frozenset(line.key for one in selectors if one is not None for line in one.requirements)
        """The labels that any of them speaks of."""

    def _file(self, number: int, selector: LabelSelector) -> None:
        values = [one for one in selector.requirements if one.operator is Operator.IN]
        keys = [one.key for one in selector.requirements if one.operator is Operator.EXISTS]
        if values:
            needed = min(values, key=lambda one: len(one.values))
            for value in needed.values:
                self._by_value[needed.key, value].append(number)
        elif keys:
            self._by_key[keys[0]].append(number)
        else:
            self._others.append(number)

    def matching(self, labels: Mapping[str, str], comparisons: Comparisons) -> list[int]:
        """The selectors that match labels, by their place, in order. Raises `ComparisonLimitError`."""
        comparisons.spend(1 + 2 * len(labels))
        near = [*self._others]
        for label in labels.items():
            near += self._by_value.get(label, ())
            near += self._by_key.get(label[0], ())
        found = []
        for number in near:
            selector = self._selectors[number]
            if selector is not None:
                comparisons.spend(len(selector.requirements))
                if selector.matches(labels):
                    found.append(number)
        return sorted(found)


def label_sets(selector: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Labels that a selector in its JSON form speaks of, whatever it says of them: one value of each expression at a time.

    The values of all expressions advance together, as in Koordinator, so that they repeat after the least common
    multiple of their counts.
    """
    base = dict(selector.get("matchLabels") or {})
    expressions = [one for one in selector.get("matchExpressions") or () if one.get("values")]
    named = [one["key"] for one in selector.get("matchExpressions") or () if one.get("operator") == "Exists"]
    for number in range(lcm(*(len(one["values"]) for one in expressions))):
        chosen = {one["key"]: one["values"][number % len(one["values"])] for one in expressions}
        yield {**base, **dict.fromkeys(named, ""), **chosen}
