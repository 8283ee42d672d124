"""Nodes by the values that they have for some labels: a domain is those that have the same for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Column

IN_NONE: Final = -1
"""The domain of a node that lacks a label."""


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of some labels by name. `of_rows` is each node's place among them, `IN_NONE` for one that lacks a label.

    A name is the values in the order of the labels, joined by `/`, which no value of a label contains.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]
    of_rows: Column

    @property
    def text(self) -> str:
        """The labels as people are told of them."""
        return " and ".join(self.keys)

    def sums(self, of_values: Column, values: Column) -> Column:
        """What all have together in each domain, of whom `of_values` says in which one they are."""
        inside = of_values != IN_NONE
        found = np.zeros(len(self.names), np.int64)
        np.add.at(found, of_values[inside], values[inside])
        return found


def label_domains(keys: Sequence[str], labels: Sequence[Mapping[str, str]]) -> Domains:
    """The domains of nodes with these labels, row by row; `keys` are one at least, each once."""
    values = [tuple(map(one.get, keys)) for one in labels]
    known = sorted({one for one in values if all(one)})
    places = {one: place for place, one in enumerate(known)}
    of_rows = np.fromiter((places.get(one, IN_NONE) for one in values), np.int64, len(values))
    return Domains(tuple(keys), tuple("/".join(map(str, one)) for one in known), of_rows)
