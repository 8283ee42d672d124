"""Availability: a rule may only ask for facts that its decision point has."""

from collections.abc import Iterator
from functools import partial

from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.facts.table import Components


def availability(state: State) -> None:
    """Report KP206 once for each fact of each rule, naming the decision point and the suppliers."""
    for decision in state.decisions.values():
        for rule in decision.rules:
            for read in state.cache.get(("unavailable", rule), partial(_unavailable, decision, rule)):
                state.found.add(
                    "KP206",
                    rule.span,
                    f"`{read}` is not available where `{decision.key}` is decided",
                    help=_advice(read, decision),
                )


def _unavailable(decision: Decision, rule: Rule) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_each_unavailable(decision, rule)))


def _each_unavailable(decision: Decision, rule: Rule) -> Iterator[str]:
    nodes = [rule.value] if rule.match.test is None else [rule.value, rule.match.test]
    for node in walk(*nodes):
        match node:
            case ir.Var(name=name, local=False) if name in ROOTS and name not in decision.roots:
                yield name
            case ir.Field(base=base, path=path) | ir.OptField(base=base, path=path):
                yield from _unsupplied(decision.components, base, (path,))
            case ir.HasField(base=base, paths=paths):
                yield from _unsupplied(decision.components, base, paths)


def _unsupplied(components: Components, base: ir.Node, paths: tuple[str, ...]) -> Iterator[str]:
    record = base.type.params[0] if base.type.name == "optional_type" else base.type
    for path in paths:
        fact = FACTS.resolve(record.record or "", path)
        if isinstance(fact, Fact) and not components <= fact.suppliers:
            yield f"{base.name if isinstance(base, ir.Var) and not base.local else record.record}.{path}"


def _advice(read: str, decision: Decision) -> str:
    """Who has it, and what there is instead."""
    root, _, path = read.partition(".")
    here = " and ".join(sorted(decision.components))
    declared = ROOTS[root].type.record if root in ROOTS else root
    fact = FACTS.resolve(declared or "", path) if path else None
    if isinstance(fact, Fact):
        owners = ", ".join(f"`{component}`" for component in sorted(fact.suppliers))
        return f"it is supplied by {owners}, this is decided by the `{here}`"
    known = ", ".join(f"`{name}`" for name in decision.roots) or "no facts at all"
    return f"this decision may read {known}"
