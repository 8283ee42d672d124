"""Which of several selectors can be the first that matches a node, whatever labels there are."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from koordpolicy.model.labels import LabelSelector

_MOST: Final = 20_000
"""Combinations of labels that are tried."""


def first_matches(selectors: Sequence[LabelSelector]) -> frozenset[int | None]:
    """The positions that can be the first to match, and None where none may match.

    Of too many combinations of labels only the first are tried, and what they do not show is taken for possible.
    """
    values: dict[str, set[str | None]] = {}
    for selector in selectors:
        for one in selector.requirements:
            values.setdefault(one.key, {None, _other(selectors, one.key)}).update(one.values)
    choices = [sorted(found, key=str) for found in values.values()]
    if prod(map(len, choices)) > _MOST:
        return frozenset((None, *range(len(selectors))))
    found: set[int | None] = set()
    for chosen in product(*choices):
        labels = {key: value for key, value in zip(values, chosen, strict=True) if value is not None}
        found.add(next((at for at, one in enumerate(selectors) if one.matches(labels)), None))
    return frozenset(found)


def _other(selectors: Sequence[LabelSelector], key: str) -> str:
    """A value that no selector names."""
    named = {
        value for one in selectors for line in one.requirements if line.key == key for value in line.values
    }
    other = "other"
    while other in named:
        other += "-"
    return other
