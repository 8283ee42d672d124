"""What is known where a node is evaluated: facts and keys that are there, and ranges of numbers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

Atom = tuple[object, ...]
"""One thing known: `("fact", record, path)`, `("key", map, key)`, `("some", optional)`, `("nonzero", number)`,
`("inside", list, index)`, `("taken", overload, arguments)`, `("record", root)`; expressions by their numbers (see `keys`).
"""

Range = tuple[float, float]
"""The least and the greatest that a number may be, both within."""

EVERYTHING: Range = (-inf, inf)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A set of atoms, ranges by the numbers of expressions, and the few constants that a text may be."""

    atoms: frozenset[Atom] = frozenset()
    ranges: Mapping[int, Range] = field(default_factory=lambda: MappingProxyType({}))
    texts: Mapping[int, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    impossible: bool = False
    """Whether nothing can be evaluated here: the conditions on the way exclude each other."""

    def __contains__(self, atom: Atom) -> bool:
        return self.impossible or atom in self.atoms

    def with_atoms(self, atoms: Iterable[Atom]) -> "Known":
        """The same and these."""
        more = self.atoms.union(atoms)
        return self if len(more) == len(self.atoms) else Known(more, self.ranges, self.texts, self.impossible)

    def within(self, key: int, low: float, high: float) -> "Known":
        """The same, with a number between these."""
        least, most = self.ranges.get(key, EVERYTHING)
        found = max(low, least), min(high, most)
        if found == (least, most):
            return self
        return Known(
            self.atoms, {**self.ranges, key: found}, self.texts, self.impossible or found[0] > found[1]
        )

    def among(self, key: int, texts: frozenset[str]) -> "Known":
        """The same, with a text one of these."""
        left = texts & self.texts[key] if key in self.texts else texts
        return Known(self.atoms, self.ranges, {**self.texts, key: left}, self.impossible or not left)

    def or_else(self, other: "Known") -> "Known":
        """What is known whichever of the two holds."""
        if self.impossible or other is self:
            return other
        if other.impossible:
            return self
        ranges = {
            key: (min(low, other.ranges[key][0]), max(high, other.ranges[key][1]))
            for key, (low, high) in self.ranges.items()
            if key in other.ranges
        }
        texts = {key: found | other.texts[key] for key, found in self.texts.items() if key in other.texts}
        return Known(self.atoms & other.atoms, ranges, texts)


NOTHING = Known()
