"""Which branches of a bundle's expressions its cases take."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from koordpolicy.graph.testing.branches import Branch


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    reached: int
    all: int

    @property
    def percent(self) -> float:
        """0 to 100; nothing to reach counts as all of it."""
        return 100.0 * self.reached / self.all if self.all else 100.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The branches of one layer, and how many cases took each.

    What counts are the arms of conditionals, what is true or false (operands of `&&` and `||`, what macros ask of
    elements, selectors, conditions and other expressions that give true or false), optionals with a default that have
    a value or none, and expressions without any of these, which are evaluated or not. Literals do not count.
    """

    cases: Mapping[Branch, int]

    @property
    def branches(self) -> Share:
        """All of them."""
        return Share(sum(count > 0 for count in self.cases.values()), len(self.cases))

    @property
    def kinds(self) -> Mapping[str, Share]:
        """By the kind of the document, sorted."""
        kinds: dict[str, list[int]] = {}
        for branch, count in self.cases.items():
            kinds.setdefault(branch.document.partition("/")[0], []).append(count)
        return {
            kind: Share(sum(count > 0 for count in counts), len(counts))
            for kind, counts in sorted(kinds.items())
        }

    @property
    def missed(self) -> tuple[Branch, ...]:
        """The branches that no case took, by place."""
        return tuple(branch for branch, count in self.cases.items() if not count)


def coverage_of(branches: Collection[Branch], taken: Collection[frozenset[Branch]]) -> Coverage:
    """The coverage of all branches, which come by place, by those that each case took."""
    counts = dict.fromkeys(branches, 0)
    for one in taken:
        for branch in one:
            counts[branch] += 1
    return Coverage(counts)
