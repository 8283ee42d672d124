"""A second opinion: the expressions of a bundle in cel-python too, on the inputs of its policy tests.

Each text is put to both as it is written, `variables`, `parameters` and constants given as values, so that a
disagreement points at one expression. It is asked on the cases that expect something of its target. What uses
units or names that cel-python does not have is counted with the reason.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostics, Severity, Span
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.state import Unit, texts_of
from koordpolicy.graph.testing.celpython import FAILED, CelPython, CelPythonRefuses, outside, same
from koordpolicy.graph.testing.facts import laid_over, read_facts
from koordpolicy.graph.testing.nested import nested, unfolded
from koordpolicy.graph.testing.overlay import overlay
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import refs_of, rewrite, walk
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import Type
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.language.kinds.bundle import PolicyTestSpec

_OWN_NAMES: Final = "names that only the compiler knows"
_NO_INPUT: Final = "no test of its target gives an input"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An expression, by its place, that has another value in cel-python on a case's input; values as text."""

    span: Span
    text: str
    case: str
    ours: str
    theirs: str


@dataclass(slots=True)
class Opinion:
    """What came of it: expressions compared, evaluations, expressions skipped by reason, disagreements."""

    expressions: int = 0
    evaluations: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Input:
    """A case's records, the graph with its parameters, and the targets of which it expects something."""

    name: str
    graph: RuleGraph
    records: Mapping[str, Any]
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One text of a document in both implementations. `refs` are the names of ours that it reads."""

    unit: Unit
    span: Span
    text: str
    roots: tuple[str, ...]
    refs: tuple[tuple[str, str], ...]
    types: Mapping[tuple[str, str], Type]
    type: Type
    ours: RowProgram
    theirs: CelPython


def second_opinion(graph: RuleGraph, units: Iterable[Unit]) -> Opinion:
    """Compare every expression of the units in cel-python's subset with it, on the inputs of the highest layer's tests.

    Cases that are wrong in themselves are left out; running the tests reports them.
    """
    everything = tuple(units)
    inputs = list(_inputs(graph, everything))
    opinion = Opinion()
    for unit in everything:
        own = [one for one in inputs if unit.target in one.targets]
        for path, text in texts_of(unit):
            asked = _asked(graph, unit, text, unit.document.positions.value(path))
            if isinstance(asked, str):
                opinion.skipped[asked] += 1
            elif not own:
                opinion.skipped[_NO_INPUT] += 1
            else:
                _compare(asked, own, opinion)
    return opinion


def _inputs(graph: RuleGraph, units: tuple[Unit, ...]) -> Iterator[_Input]:
    highest = max((unit.layer for unit in units), default=0)
    for unit in units:
        if unit.layer != highest or not isinstance(unit.spec, PolicyTestSpec):
            continue
        shared = read_facts(unit.spec.given, unit.document, ("spec", "given"), Diagnostics())
        for at, case in enumerate(unit.spec.cases):
            wrong = Diagnostics()
            path = ("spec", "cases", at)
            said = laid_over(shared, read_facts(case.given, unit.document, (*path, "given"), wrong))
            keys = [graph.decision(name).key for name in case.expect if name in graph]
            supposed = overlay(graph, unit, (*path, "parameters"), case.parameters, keys, wrong)
            if not len(wrong):
                targets = frozenset(key.target for key in keys)
                yield _Input(case.name, supposed, records_of(said), targets)


def _asked(graph: RuleGraph, unit: Unit, text: str, span: Span) -> _Asked | str:
    """The text in both, or why it is not compared."""
    roots = tuple(name for name in ROOTS if name in unit.kind.roots)
    environment = Environment(
        variables={name: ROOTS[name].type for name in roots},
        functions=FUNCTIONS,
        facts=FACTS,
        refs=_types(graph, unit),
    )
    problems: list[Problem] = []
    try:
        node = check(parse(text), environment, problems, text)
    except SyntaxProblem:
        return _OWN_NAMES
    if any(problem.severity is Severity.ERROR for problem in problems):
        return _OWN_NAMES
    reason = outside(node)
    if reason:
        return reason
    try:
        theirs = CelPython(text)
    except CelPythonRefuses:
        return "not parsed"
    refs = tuple(sorted(refs_of(node)))
    types = {(part.space, part.name): part.type for part in walk(node) if isinstance(part, ir.Ref)}
    named = rewrite(
        node,
        lambda part: ir.Var(part.type, _var(part.space, part.name)) if isinstance(part, ir.Ref) else part,
    )
    program = compile_row((*roots, *(_var(*ref) for ref in refs)), fold(named))
    return _Asked(unit, span, text, roots, refs, types, node.type, program, theirs)


def _var(space: str, name: str) -> str:
    return f"{space}_{name}"


def _types(graph: RuleGraph, unit: Unit) -> dict[str, dict[str, Any]]:
    """The types of the graph's own names that a document may use, by space."""
    spaces: dict[str, dict[str, Any]] = {"variables": {}, "parameters": {}}
    for (space, name), node in graph.constants.items():
        spaces.setdefault(space, {})[name] = node.type
    for key, decision in graph.decisions.items():
        if key.target == unit.target:
            if key.field.startswith("parameters."):
                spaces["parameters"][key.field.removeprefix("parameters.")] = decision.type
            for rule in decision.rules:
                if rule.document == unit.id:
                    spaces["variables"] |= {name: node.type for name, node in rule.variables.items()}
    return spaces


def _compare(asked: _Asked, inputs: list[_Input], opinion: Opinion) -> None:
    """Ask both on every input; the first disagreement of an expression is enough."""
    opinion.expressions += 1
    for one in inputs:
        try:
            own = {ref: _value(one, asked.unit, *ref) for ref in asked.refs}
        except CelError:
            continue  # what the expression reads has no value on this input
        opinion.evaluations += 1
        records = [one.records.get(root, {}) for root in asked.roots]
        try:
            ours: Any = unfolded(asked.type, asked.ours.call(*records, *own.values()))
        except CelError:
            ours = FAILED
        theirs = asked.theirs.value(_context(asked, one, own))
        if not same(ours, theirs):
            opinion.disagreements.append(
                Disagreement(asked.span, asked.text, one.name, _shown(ours), _shown(theirs))
            )
            return


def _value(one: _Input, unit: Unit, space: str, name: str) -> Any:
    """What a name of ours stands for on an input. Raises `CelError`."""
    graph = one.graph
    if space == "parameters":
        return graph.value(f"{unit.target}.parameters.{name}", **one.records)
    if space == "variables":
        rule = next(
            rule
            for decision in graph.decisions.values()
            for rule in decision.rules
            if rule.document == unit.id and name in rule.variables
        )
        return graph.variable(rule, name, **one.records)
    return compile_row((), graph.constants[space, name]).call()


def _context(asked: _Asked, one: _Input, own: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    context: dict[str, Any] = {}
    for root in asked.roots:
        record = ROOTS[root].type.record
        if root in one.records:
            value = one.records[root]
            context[root] = value if record is None else nested(record, value)
    for (space, name), value in own.items():
        context.setdefault(space, {})[name] = unfolded(asked.types[space, name], value)
    return context


def _shown(value: Any) -> str:
    return "an error" if value is FAILED else repr(value)
