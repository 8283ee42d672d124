"""Under which conditions a rule's value is asked for, and which facts are there then."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.operations import operations_of, within_operations
from koordpolicy.graph.presence import PRESENCE, DeclaredPresence
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing.analysis import Given
from koordpolicy.language.cel.ir_walk import refs_of, substitute
from koordpolicy.language.cel.types import BOOL

_TELLING: Final = ("reason", "message")
"""Fields that say why a requirement beside them is not met: asked where it is not."""

_ESTIMATES: Final = frozenset(
    (("pod", "resources.estimate"), ("pod", "estimate.cpu"), ("pod", "estimate.memory"))
)

AWAITED: Final[frozenset[tuple[str, str]]] = frozenset(
    (("Overcommit", ""), ("CPUSuppress", ""), ("Rollout", "guards["))
)
"""Kinds, and how their fields begin, that have an answer of their own for facts that are missing: `onMissing`, a guard
that waits. A value that reads such a fact is meant to have none without it."""


def awaits_facts(key: DecisionKey) -> bool:
    """Whether a value that fails for want of a fact is what its kind foresees."""
    return any(key.kind == kind and key.field.startswith(field) for kind, field in AWAITED)


@dataclass(frozen=True, slots=True)
class RevisionContext:
    """The decisions of a revision, as far as they tell what is known elsewhere."""

    decisions: Mapping[DecisionKey, Decision]
    constants: Mapping[tuple[str, str], ir.Node]

    def known(self, rule: Rule) -> tuple[Rule | None, DeclaredPresence]:
        """What the answer about a rule depends on beside the rule: the requirement beside it, the facts supplied."""
        return self._requirement(rule), self._presence(rule.key)

    def operations(self, rule: Rule) -> tuple[str, ...]:
        """The operations that an AdmissionRule is asked of; none for rules of other kinds."""
        is_asked = rule.key.kind == "AdmissionRule"
        return tuple(sorted(operations_of(self.decisions, rule.key))) if is_asked else ()

    def given(self, rule: Rule, placed: Callable[[ir.Node], ir.Node], *, matched: bool) -> list[Given]:
        """The tests that have come out when a rule's value is asked for; with `matched`, its match among them."""
        found: list[Given] = []
        if rule.key.kind == "AdmissionRule":
            found.append((within_operations(self.decisions, rule.key), True))
        if matched and rule.match.test is not None:
            found.append((self.resolved(placed(rule.match.test), rule), True))
        requirement = self._requirement(rule)
        if matched and requirement is not None:
            found.append((self.resolved(requirement.value, requirement), False))
        return found

    def resolved(self, node: ir.Node, rule: Rule) -> ir.Node:
        """The expression with constants, and parameters that only have literals, in the place of references."""
        refs = refs_of(node)
        values = {ref: self.constants[ref] for ref in refs if ref in self.constants}
        for space, name in refs:
            literal = self._literal(parameter_key(rule.key, name)) if space == "parameters" else None
            if literal is not None:
                values[space, name] = literal
        return substitute(node, values) if values else node

    def _literal(self, key: DecisionKey) -> ir.Node | None:
        """The value of a parameter that has only literals: one of them, whichever."""
        decision = self.decisions.get(key)
        if decision is None:
            return None
        values: list[ir.Node] = []
        for rule in decision.rules:
            values.append(rule.value)
            if rule.match.test is None:
                break
        else:
            values.append(decision.default)
        if any(not isinstance(value, ir.Const) or value.value is None for value in values):
            return None
        *others, found = values
        for value in reversed(others):
            found = ir.Cond(value.type, ir.Ref(BOOL, "parameters", f"{key.field} applies"), value, found)
        return found

    def _presence(self, key: DecisionKey) -> DeclaredPresence:
        if key.kind != "SchedulingProfile":
            return PRESENCE
        estimator = self.decisions.get(DecisionKey(key.kind, key.subject, "estimator.request"))
        return DeclaredPresence(_ESTIMATES if estimator is not None and estimator.rules else frozenset())

    def _requirement(self, rule: Rule) -> Rule | None:
        """The requirement that a reason or message beside it explains, where one rule alone says what it is."""
        head, _, field = rule.key.field.rpartition(".")
        if field not in _TELLING:
            return None
        key = DecisionKey(rule.key.kind, rule.key.subject, f"{head}.require" if head else "require")
        decision = self.decisions.get(key)
        own = [] if decision is None else [one for one in decision.rules if one.document == rule.document]
        rules = own or (() if decision is None else decision.rules)
        return rules[0] if len(rules) == 1 else None
