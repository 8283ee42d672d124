"""Availability: a rule may only ask for facts that its decision point has."""

from collections.abc import Container, Iterator
from functools import partial

from koordpolicy.diagnostics import Note, Span
from koordpolicy.graph.decide import parameter_key, rules_behind
from koordpolicy.graph.passes.parameters import PREFIX
from koordpolicy.graph.references import walk as ast_walk
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.selectors import ROOT_OF
from koordpolicy.graph.state import State, Unit, texts_of
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.facts.table import Components


def availability(state: State) -> None:
    """Report KP206 once for each fact of each document, naming the decision point and the suppliers."""
    told: set[tuple[Span, str]] = set()
    units: dict[tuple[str, str], Unit] = {}
    for decision in state.decisions.values():
        for rule in decision.rules:
            for read in state.cache.get(("unavailable", rule), partial(_unavailable, decision, rule)):
                units = units or {(unit.layer_name, unit.id): unit for unit in state.units}
                place = mention(units[rule.layer, rule.document], rule, read)
                if (place, read) in told:
                    continue
                told.add((place, read))
                state.found.add(
                    "KP206",
                    place,
                    f"`{read}` is not available where `{decision.key}` is decided",
                    help=_advice(read, decision),
                    notes=() if _within(place, rule.span) else (Note("decided here", rule.span),),
                )

    _through_parameters(state)


def _through_parameters(state: State) -> None:
    """KP206 where a rule of a parameter reads what a decision that uses the parameter does not have.

    A parameter may read whatever its kind knows, but what uses it may know less: the setting of a filter sees no node.
    """
    read: dict[DecisionKey, dict[str, Rule]] = {}
    told: set[str] = set()
    for decision in state.decisions.values():
        if decision.key.field.startswith(PREFIX):
            continue  # a parameter of a parameter counts where the outer one is used
        for key in {parameter_key(rule.key, name) for rule in decision.rules for name in rule.parameters}:
            if key not in read:
                read[key] = _read_behind(key, state)
            for root, rule in read[key].items():
                if root not in decision.roots and rule.id not in told:
                    told.add(rule.id)
                    state.found.add(
                        "KP206",
                        rule.span,
                        f"`{root}` is not available where `{decision.key}` is decided, which uses `{key}`",
                        help=_advice(root, decision),
                    )


def _read_behind(key: DecisionKey, state: State) -> dict[str, Rule]:
    """The roots that a parameter reads, by way of others too, each with a rule that does."""
    return {root: rule for rule in rules_behind([key], state.decisions) for root in roots_read(state, rule)}


def roots_read(state: State, rule: Rule) -> frozenset[str]:
    """The roots that a rule's value or match names."""
    return state.cache.get(("roots", rule), partial(_roots_in, rule))


def _roots_in(rule: Rule) -> frozenset[str]:
    nodes = [rule.value] if rule.match.test is None else [rule.value, rule.match.test]
    return frozenset(
        node.name
        for node in walk(*nodes)
        if isinstance(node, ir.Var) and not node.local and node.name in ROOTS
    )


def mention(unit: Unit, rule: Rule, read: str) -> Span:
    """Where the document mentions the fact: in the rule's own value first, then in its match, then anywhere.

    A selector mentions what it selects. A fact that only a Library function reads is mentioned nowhere: then the rule
    as a whole.
    """
    positions = unit.document.positions
    found = [
        positions.text_span(path, node.start, node.end)
        for path, text in texts_of(unit)
        for node in _mentioned(text, read)
    ]
    for whole in (rule.span, rule.match.condition_span):
        inside = [span for span in found if whole is not None and _within(span, whole)]
        if inside:
            return inside[0]
    if found:
        return found[0]
    selector = next((field for field, root in ROOT_OF.items() if root == read), "")
    if selector in _selectors(unit) and any(one.root == read for one in rule.match.requirements):
        return positions.key(("spec", "match", selector))
    return rule.span


def _selectors(unit: Unit) -> Container[str]:
    spec = unit.document.data.get("spec")
    match = spec.get("match") if isinstance(spec, dict) else None
    return match if isinstance(match, dict) else ()


def _within(span: Span, whole: Span) -> bool:
    return span.file == whole.file and whole.start <= span.start and span.end <= whole.end


def _mentioned(text: str, read: str) -> Iterator[ast.Expr]:
    """The chains of names that stand for a fact; of an element of a list only the path is known."""
    root, _, path = read.partition(".")
    try:
        tree = parse(text)
    except SyntaxProblem:
        return
    for node in ast_walk(tree):
        name = _name(node)
        of_element = root not in ROOTS and name.endswith(f".{path}")
        if name == read or of_element:
            yield node


def _name(node: ast.Expr) -> str:
    """`a.b.c` for a chain of names, with or without `?`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.SelectExpr):
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, ast.Ident) else ""


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
