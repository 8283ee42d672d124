"""Which facts may be missing where a decision is made, as the table of facts says."""

from collections.abc import Collection
from dataclasses import dataclass

from koordpolicy.graph.analysis.facts import bounds_of
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.facts.together import ALWAYS, ROOTS_THERE, TOGETHER


@dataclass(frozen=True, slots=True)
class DeclaredPresence:
    """What the declarations of facts and roots say, less what is `supplied` in any case, as (record, path)."""

    supplied: frozenset[tuple[str, str]] = frozenset()

    def fact(self, root: str | None, record: str, path: str) -> bool:
        """Whether a fact of a record may be missing; `root` where the record is one itself."""
        found = FACTS.resolve(record, path)
        if not isinstance(found, Fact) or not found.may_be_missing:
            return False
        return (record, path) not in self.supplied and (root, path) not in ALWAYS

    def root(self, name: str) -> bool:
        """Whether a root may be absent."""
        return name in ROOTS and ROOTS[name].may_be_missing

    def with_fact(self, record: str, path: str) -> Collection[str]:
        """The facts of the record that are there wherever this one is."""
        return TOGETHER.get((record, path), ())

    def roots_of(self, root: str, texts: Collection[str]) -> Collection[str]:
        """The roots that are there where another one is one of these texts."""
        found = [frozenset(ROOTS_THERE.get((root, text), ())) for text in texts]
        return frozenset.intersection(*found) if found else ()

    def never_negative(self, record: str, path: str) -> bool:
        """Whether a number of a record is never below zero."""
        fact = FACTS.resolve(record, path)
        return isinstance(fact, Fact) and bounds_of(record, path, fact.type)[0] >= 0


PRESENCE = DeclaredPresence()
"""What the declarations say, and no more."""
