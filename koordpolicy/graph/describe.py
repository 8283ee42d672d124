"""A decision in words: what it is, how it is combined, and which rules it has, the winning one first."""

import textwrap

from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.selectors import as_cel
from koordpolicy.language.kinds import type_name


def describe(graph: RuleGraph, name: str, width: int = 80) -> str:
    """Text for a terminal. Raises `UnknownDecision`."""
    decision = graph.decision(name)
    owners = ", ".join(sorted(decision.components))
    lines = [
        f"{decision.key}: {type_name(decision.type)}, {decision.combine}, asked by {owners or 'the compiler'}",
        *textwrap.wrap(decision.meaning, width, initial_indent="  ", subsequent_indent="  "),
    ]
    if decision.roots:
        lines.append("  reads " + ", ".join(decision.roots))
    for place, rule in enumerate(decision.rules, start=1):
        lines += ["", *_rule(place, rule, width)]
    lines += _default(decision)
    return "\n".join(lines) + "\n"


def _rule(place: int, rule: Rule, width: int) -> list[str]:
    span = rule.span
    lines = [f"  {place}. {rule.document} ({rule.layer}) {span.file}:{span.start.line}:{span.start.column}"]
    when = as_cel(rule.match.requirements)
    if when is not None:
        lines.append(f"     where {when}")
    if rule.match.condition_span is not None:
        lines.append("     if its condition holds")
    lines += textwrap.wrap(
        " ".join(rule.text.split()), width, initial_indent="     = ", subsequent_indent="       "
    )
    return lines


def _default(decision: Decision) -> list[str]:
    value = getattr(decision.default, "value", None)
    if any(rule.match.test is None for rule in decision.rules):
        return []
    return ["", f"  otherwise {value!r}" if value is not None else "  otherwise nothing is decided"]
