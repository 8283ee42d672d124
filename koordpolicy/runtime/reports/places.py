"""Where policies stand, for whoever looks after a live process."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from koordpolicy.diagnostics import Span
from koordpolicy.graph import RuleGraph


def place_text(layer: str, span: Span) -> str:
    """As `FILE:LINE:COLUMN`; of a pack that is installed somewhere, where that is concerns nobody."""
    file = PurePath(span.file)
    shown = f"{layer}/{file.name}" if file.is_absolute() else span.file
    return f"{shown}:{span.start.line}:{span.start.column}"


class FailingRule(NamedTuple):
    """A field of a subject whose decision fails, and where the rule stands that decides; empty where neither is known."""

    field: str = ""
    place: str = ""


def failing_rule(graph: RuleGraph, target: str, roots: Mapping[str, Any]) -> FailingRule:
    """The first field of a target (`Overcommit/batch`) that has no value on these records, by root; one that reads others is not asked."""
    for key, decision in graph.decisions.items():
        if key.target == target and set(decision.roots) <= roots.keys():
            answer = graph.ask(str(key), **roots)
            if answer.error is not None:
                rules = answer.provenance.rules
                return FailingRule(key.field, place_text(rules[0].layer, rules[0].span) if rules else "")
    return FailingRule()
