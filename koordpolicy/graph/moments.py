"""The rules of exceptions, kept apart from all others until somebody names a moment.

**Why the graph has no clock.** An exception begins and ends at moments that no commit marks. Three ways to
honour that were open. *A condition on `now` in each of its rules*: every decision would have to be handed the
time, those that are constants today (weights, plugins, intervals) would be none any more, and a result kept for
equal facts could be kept past its end. *The time of compilation as an input of the compiler*: one commit would be
right today and wrong tomorrow, and an exception that begins next week would be checked for the first time then.
Taken is the third: the compiler reads no time and judges every exception, those of the future too, by types,
units, conflicts and cost. The graph that comes out holds none of them. `RuleGraph.at(moment)` is the graph in
which those of that moment stand above all other rules, and `RuleGraph.changes_after(moment)` says when to ask
anew; a process then swaps one reference and pays nothing in between. Who never asks never runs an exception, above
all none past its end.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.facts import Component

Decisions = Mapping[DecisionKey, Decision]


@dataclass(frozen=True)
class Exceptional:
    """The decisions that exceptions override, with the rules of exceptions alone; and which of these are in force."""

    decisions: Decisions
    in_force: frozenset[Terms] = frozenset()

    @cached_property
    def terms(self) -> tuple[Terms, ...]:
        """The terms of all exceptions, by their ends."""
        every = {rule.terms for decision in self.decisions.values() for rule in decision.rules}
        return tuple(
            sorted((one for one in every if one is not None), key=lambda one: (one.ends.ns, one.document))
        )

    def at(self, in_force: frozenset[Terms]) -> "Exceptional":
        """The same exceptions, others in force."""
        return Exceptional(self.decisions, in_force)

    def for_component(self, component: Component) -> "Exceptional":
        """What one component can ever ask."""
        kept = {key: d for key, d in self.decisions.items() if component in d.components}
        return Exceptional(kept, self.in_force)

    def joined_to(self, ordinary: Decisions) -> dict[DecisionKey, Decision]:
        """The decisions in which the rules in force stand above all others."""
        whole = dict(ordinary)
        for key, decision in self.decisions.items():
            special = tuple(rule for rule in decision.rules if rule.terms in self.in_force)
            if special:
                usual = ordinary[key].rules if key in ordinary else ()
                whole[key] = replace(decision, rules=special + usual)
        return whole


NONE = Exceptional(MappingProxyType({}))


def parted(decisions: Decisions) -> tuple[dict[DecisionKey, Decision], Exceptional]:
    """Every decision without the rules of exceptions, and the latter apart, none in force.

    What only exceptions set is no decision of the first: without them nobody has said anything there.
    """
    ordinary: dict[DecisionKey, Decision] = {}
    exceptional: dict[DecisionKey, Decision] = {}
    for key, decision in decisions.items():
        special = tuple(rule for rule in decision.rules if rule.terms is not None)
        if not special:
            ordinary[key] = decision
            continue
        exceptional[key] = replace(decision, rules=special)
        usual = tuple(rule for rule in decision.rules if rule.terms is None)
        if usual:
            ordinary[key] = replace(decision, rules=usual)
    return ordinary, Exceptional(exceptional)


def next_change(terms: Iterable[Terms], moment: Timestamp) -> Timestamp | None:
    """The first moment after this one at which an exception begins or ends."""
    edges = (edge for one in terms for edge in (one.begins, one.ends) if edge is not None and moment < edge)
    return min(edges, key=lambda edge: edge.ns, default=None)


def digest_with(digest: str, terms: Iterable[Terms]) -> str:
    """The digest of the graph in which these exceptions hold: it decides otherwise, so it is another graph."""
    names = sorted(f"{one.layer}/{one.document}" for one in terms)
    return hashlib.sha256("\n".join((digest, *names)).encode()).hexdigest() if names else digest
