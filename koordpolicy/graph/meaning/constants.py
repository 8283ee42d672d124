"""Values that a decision may have, as far as they are known before anything is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from koordpolicy.diagnostics import Span
from koordpolicy.graph.analysis.possible import PossibleValue, PossibleValues, RuleValues
from koordpolicy.graph.expressions import Path
from koordpolicy.graph.references import walk
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State, Unit, texts_of
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import refs_of
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.documents import Document
from koordpolicy.language.facts import FACTS


@dataclass(frozen=True, slots=True)
class Said:
    """A value that a decision may have, and the rule that says so."""

    rule: Rule
    value: object
    _state: State = field(repr=False)
    _one: PossibleValue = field(repr=False)

    @property
    def span(self) -> Span:
        """The place of the value: looked for when asked for, since few values are wrong."""
        return place_of(self._state, self._one).span


def constants_of(state: State, decision: Decision) -> Iterator[tuple[Rule, object]]:
    """The constants that rules have whatever the input, each with the rule that says it; nothing for other rules.

    A parameter that a rule only passes on counts as the rules of the parameter.
    """
    for rule in decision.rules:
        found = possible_of(state, rule)
        if _is_passed_on(rule.value) or len(found) == 1:
            yield from ((one.rule, one.value) for one in found if one.known and _is_passed_on(one.rule.value))


def reached_constants(state: State, decision: Decision) -> list[tuple[Rule, object]]:
    """The constants that can hold: not those of rules below one that holds everywhere."""
    everywhere = (at for at, rule in enumerate(decision.rules) if rule.match.test is None)
    last = next(everywhere, len(decision.rules))
    return list(constants_of(state, replace(decision, rules=decision.rules[: last + 1])))


def _is_passed_on(node: ir.Node) -> bool:
    """Whether an expression is a constant or a parameter, converted perhaps."""
    while isinstance(node, ir.Cast) or (isinstance(node, ir.Call) and len(node.args) == 1):
        node = node.operand if isinstance(node, ir.Cast) else node.args[0]
    return isinstance(node, ir.Const | ir.Ref)


def values_of(state: State, decision: Decision) -> Iterator[Said]:
    """All constants that a decision may have, in whichever arm of its expressions; of lists their elements."""
    for rule in decision.rules:
        for one in elements_of(state, rule):
            if one.known:
                yield Said(one.rule, one.value, state, one)


def elements_of(state: State, rule: Rule) -> tuple[PossibleValue, ...]:
    """What a rule's value can be; of lists the elements, each once."""
    return _found(state, rule).elements


def possible_of(state: State, rule: Rule) -> tuple[PossibleValue, ...]:
    """What a rule's value can be."""
    return _found(state, rule).values


def _found(state: State, rule: Rule) -> RuleValues:
    """Looked for once a revision, and by all checks together; of what refers to nothing else, once."""
    found = state.cache.get(("possible", rule), partial(_by_itself, rule))
    if found is None:
        found = state.possible.get(rule)
    if found is None:
        found = state.possible[rule] = PossibleValues(state.decisions, state.constants).all_of(rule)
    return found


def _by_itself(rule: Rule) -> RuleValues | None:
    """The values of a rule that refers to nothing; None where other rules and constants have a say."""
    return None if refs_of(rule.value) else PossibleValues({}, {}).all_of(rule)


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a value stands. `path` leads to its text where that is an expression, and `start` and `end` are offsets in it."""

    span: Span
    document: Document
    path: Path | None = None
    start: int = 0
    end: int = 0


def place_of(state: State, one: PossibleValue) -> TextPlace:
    """Where a value stands in an expression of the document that says it; else where the rule stands.

    Offsets of a node are those of its own text, which may be that of a variable: the text tells which one it is.
    """
    unit, own = unit_of(state, one.rule), one.rule.span
    places = []
    for path, text in texts_of(unit):
        found = _stretch(text, one)
        if found is not None:
            span = unit.document.positions.text_span(path, *found)
            places.append(TextPlace(span, unit.document, path, *found))
    inside = [place for place in places if own.start <= place.span.start and place.span.end <= own.end]
    return next(iter(inside or (places if one.known else ())), TextPlace(own, unit.document))


def key_place(state: State, rule: Rule, name: str) -> Span:
    """Where a name stands in the mapping that a rule's document writes down; the rule's place where an expression makes it."""
    found = _entry(state, rule, name)
    return rule.span if found is None else found[0].positions.key(found[1])


def entry_place(state: State, rule: Rule, name: str) -> Span | None:
    """The same of what the name stands for; None where an expression makes it."""
    found = _entry(state, rule, name)
    return None if found is None else found[0].positions.value(found[1])


def _entry(state: State, rule: Rule, name: str) -> tuple[Document, Path] | None:
    unit = unit_of(state, rule)
    document = unit.document
    paths = ((*draft.path, name) for draft in state.drafts if draft.unit is unit and draft.key == rule.key)
    path = next((path for path in paths if document.positions.has(path)), None)
    return None if path is None else (document, path)


def unit_of(state: State, rule: Rule) -> Unit:
    """The document that a rule stands in."""
    return next(unit for unit in state.units if unit.layer_name == rule.layer and unit.id == rule.document)


def _stretch(text: str, one: PossibleValue) -> tuple[int, int] | None:
    """Where in a text the literal or computation stands that a value comes from; None where that is another text."""
    start, piece = one.node.start, text[one.node.start : one.node.end]
    try:
        tree = parse(piece) if piece.strip() else None
    except SyntaxProblem:
        return None
    if tree is None:
        return None
    for part in walk(tree):
        if isinstance(part, ast.Literal) and part.value == one.value:
            return start + part.start, start + part.end
    problems: list[Problem] = []
    node = fold(check(tree, _PLAIN, problems, piece))
    computed = isinstance(node, ir.Const) and not problems
    if computed == isinstance(one.node, ir.Const):
        return one.node.start, one.node.end
    return None


_PLAIN = Environment(functions=FUNCTIONS, facts=FACTS)
