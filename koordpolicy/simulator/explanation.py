"""Why something happened, with the rules behind it: one placement, one suppression."""

from typing import Any

from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.diagnostics import Span
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.language.facts import TIMES
from koordpolicy.scheduler.profile import KIND as PROFILE
from koordpolicy.scheduler.profile import Profile
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.journal import Explained, Held

_FILTER_FIELDS = ("require", "plugin")
_SCORE_FIELDS = ("weight", "value")


def placement(graph: RuleGraph, profile: Profile, explained: Explained) -> dict[str, Any]:
    """A placement: how many nodes each filter refused, the best nodes score by score, where the rules stand."""
    decision = explained.decision
    filters = [step.name for step in profile.filters]
    scores = [name for name, _ in decision.best[0].parts] if decision.best else []
    return {
        "pod": "/".join(decision.pod),
        "atSeconds": explained.time / SECOND,
        "node": decision.node,
        "nodes": decision.nodes,
        "feasible": decision.feasible,
        "refusals": [
            {
                "filter": name,
                "reason": reason,
                "nodes": nodes,
                "rule": _place(graph, f"{PROFILE}/{profile.name}.filters[{name}]", _FILTER_FIELDS),
            }
            for (name, reason), nodes in _refused(explained).items()
        ],
        "filters": filters,
        "best": [{"node": one.node, "total": one.total, "scores": dict(one.parts)} for one in decision.best],
        "scores": [
            {
                "name": name,
                "rule": _place(graph, f"{PROFILE}/{profile.name}.scores[{name}]", _SCORE_FIELDS),
            }
            for name in scores
        ],
        "podFacts": {
            name: explained.pod.get(name) for name in ("qos", "band", "priority") if name in explained.pod
        },
    }


def suppression(graph: RuleGraph, held: Held) -> dict[str, Any]:
    """What suppression did on a node at one moment, with the rules that its target came from."""
    answer = graph.ask(f"{SUPPRESS}.target", node=held.record, now=TIMES.timestamp(0))
    return {
        "atSeconds": held.time / SECOND,
        "node": held.node,
        "capacity": held.capacity / 1000,
        "target": held.decision.target / 1000,
        "withheld": held.withheld / 1000,
        "pods": held.pods,
        "figures": {name: value / 1000 for name, value in held.decision.figures.items()},
        "rules": [
            {"decision": rule.decision, "place": _at(rule.span), "text": rule.text}
            for rule in answer.provenance.rules
        ],
    }


def _refused(explained: Explained) -> dict[tuple[str, str], int]:
    """Nodes by filter and reason, whether fewer pods there would help or not."""
    counted: dict[tuple[str, str], int] = {}
    for one in explained.decision.refusals:
        counted[one.filter, one.reason] = counted.get((one.filter, one.reason), 0) + one.nodes
    return counted


def _place(graph: RuleGraph, entry: str, fields: tuple[str, ...]) -> str:
    """Where the winning rule of a list's entry stands, as `file:line:column`; empty when nothing says it."""
    for field in fields:
        try:
            rules = graph.decision(f"{entry}.{field}").rules
        except UnknownDecision:
            continue
        if rules:
            return _at(rules[0].span)
    return ""


def _at(span: Span) -> str:
    return f"{span.file}:{span.start.line}:{span.start.column}"
