"""Parameters of a case, laid over the graph."""

from collections.abc import Iterable
from sys import maxsize

from koordpolicy.diagnostics import Diagnostics, Note, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.notation import flow
from koordpolicy.graph.passes.parameters import PREFIX
from koordpolicy.graph.rules import Decision, DecisionKey, Rank, RuleMatch
from koordpolicy.graph.rules import Rule as GraphRule
from koordpolicy.graph.state import Unit
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.values import NONE, Optional
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import BadLiteral, Expression, Parameter, literal_value, type_name

TEST_LAYER = "test"
"""The layer of the rules that a test's parameters make."""

_ABOVE_ALL = Rank(maxsize, maxsize, 0)


def overlay(
    graph: RuleGraph,
    unit: Unit,
    path: Path,
    parameters: dict[str, Parameter],
    decisions: Iterable[DecisionKey],
    found: Diagnostics,
) -> RuleGraph:
    """The graph in which the parameters have the case's values, whatever documents say.

    A parameter holds for every target (`Kind/subject`) of the decisions that the case expects, as far as
    the target has a parameter of that name. One that none of them has is KP305, a value of another type
    KP306, both at their place below `path`.
    """
    targets = sorted({(key.kind, key.subject) for key in decisions})
    rules: list[GraphRule] = []
    for name, parameter in parameters.items():
        span = unit.document.positions.key((*path, name))
        keys = [DecisionKey(kind, subject, PREFIX + name) for kind, subject in targets]
        known = [graph.decisions[key] for key in keys if key in graph.decisions]
        if not known and targets:
            _report_unknown(graph, targets, name, span, found)
        here = (*path, name, *(("value",) if parameter.typed else ()))
        for decision in known:
            rule = _rule(unit, decision, parameter, here, found)
            if rule is not None:
                rules.append(rule)
    return graph.with_rules(rules) if rules else graph


def _rule(
    unit: Unit, decision: Decision, parameter: Parameter, path: Path, found: Diagnostics
) -> GraphRule | None:
    """The rule by which the parameter has the case's value; None after KP306."""
    positions = unit.document.positions
    name = decision.key.field.removeprefix(PREFIX)
    optional = decision.type.name == "optional_type"
    inner = decision.type.params[0] if optional else decision.type
    if isinstance(parameter.value, Expression) or (parameter.value is None and not optional):
        problem = f"a test gives `{name}` a plain value, not an expression"
        found.add("KP306", positions.value(path), problem, help=f"write a `{type_name(inner)}`")
        return None
    try:
        value = None if parameter.value is None else literal_value(inner, parameter.value)
    except BadLiteral as bad:
        declared = tuple(Note("declared here", rule.span) for rule in decision.rules[-1:])
        problem = f"`{name}` is a `{type_name(inner)}`: {bad.problem.message}"
        place = positions.value((*path, *bad.problem.path))
        found.add("KP306", place, problem, help=bad.problem.help, notes=declared)
        return None
    held = (NONE if value is None else Optional(value)) if optional else value
    return GraphRule(
        key=decision.key,
        rank=_ABOVE_ALL,
        document=unit.id,
        layer=TEST_LAYER,
        span=positions.value(path),
        match=RuleMatch(),
        value=constant(decision.type, held),
        text="" if parameter.value is None else flow(parameter.value),
    )


def _report_unknown(
    graph: RuleGraph, targets: list[tuple[str, str]], name: str, span: Span, found: Diagnostics
) -> None:
    names = sorted(
        key.field.removeprefix(PREFIX)
        for key in graph.decisions
        if (key.kind, key.subject) in targets and key.field.startswith(PREFIX)
    )
    close = nearest(name, names)
    shown = " or ".join(f"`{DecisionKey(kind, subject, '').target}`" for kind, subject in targets)
    if close:
        help = f"did you mean `{close}`?"
    else:
        help = "its parameters are " + ", ".join(f"`{n}`" for n in names) if names else "it has no parameters"
    found.add("KP305", span, f"{shown} has no parameter `{name}`", help=help)
