"""Which rules and decisions the cases reached."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from koordpolicy.graph.answer import RuleRef
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Rule


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
    """Rules and decisions of one layer, and those of them that cases reached.

    A rule is reached when it decided in a case, itself or as a parameter of another rule that did. `kinds` has
    both shares by kind, `missed` the rules that no case reached, by place.
    """

    rules: Share
    decisions: Share
    kinds: Mapping[str, tuple[Share, Share]]
    missed: tuple[Rule, ...]


def coverage_of(graph: RuleGraph, layer: str, reached: Iterable[RuleRef]) -> Coverage:
    """The coverage of a layer's rules by those that decided."""
    hit = frozenset((ref.layer, ref.document, ref.decision) for ref in reached)
    known = [rule for decision in graph.decisions.values() for rule in decision.rules if rule.layer == layer]
    kinds = sorted({rule.key.kind for rule in known})
    by_kind = {kind: _shares([rule for rule in known if rule.key.kind == kind], hit) for kind in kinds}
    rules, decisions = _shares(known, hit)
    missed = sorted((rule for rule in known if _name(rule) not in hit), key=lambda rule: (rule.span, rule.id))
    return Coverage(rules, decisions, by_kind, tuple(missed))


def _name(rule: Rule) -> tuple[str, str, str]:
    return rule.layer, rule.document, str(rule.key)


def _shares(rules: list[Rule], hit: frozenset[tuple[str, str, str]]) -> tuple[Share, Share]:
    decided = {rule.key for rule in rules if _name(rule) in hit}
    return (
        Share(sum(_name(rule) in hit for rule in rules), len(rules)),
        Share(len(decided), len({rule.key for rule in rules})),
    )
