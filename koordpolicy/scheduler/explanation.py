"""Why a decision came out as it did, as plain data, with the rules behind it."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.profile import KIND, Profile

_FILTER_FIELDS: Final = ("require", "plugin")
_SCORE_FIELDS: Final = ("weight", "value")


def explanation(
    graph: RuleGraph, profile: Profile, decision: PodDecision, pod: Mapping[str, object]
) -> dict[str, Any]:
    """How many nodes each filter refused, the best nodes score by score, where the rules stand. `pod` are facts."""
    filters = [step.name for step in profile.filters]
    scores = [name for name, _ in decision.best[0].parts] if decision.best else []
    return {
        "pod": "/".join(decision.pod),
        "node": decision.node,
        "nodes": decision.nodes,
        "feasible": decision.feasible,
        "refusals": [
            {
                "filter": name,
                "reason": reason,
                "nodes": nodes,
                "rule": _place(graph, f"{KIND}/{profile.name}.filters[{name}]", _FILTER_FIELDS),
            }
            for (name, reason), nodes in _refused(decision).items()
        ],
        "filters": filters,
        "best": [{"node": one.node, "total": one.total, "scores": dict(one.parts)} for one in decision.best],
        "scores": [
            {
                "name": name,
                "rule": _place(graph, f"{KIND}/{profile.name}.scores[{name}]", _SCORE_FIELDS),
            }
            for name in scores
        ],
        "podFacts": {name: pod.get(name) for name in ("qos", "band", "priority") if name in pod},
    }


def _refused(decision: PodDecision) -> dict[tuple[str, str], int]:
    """Nodes by filter and reason, whether fewer pods there would help or not."""
    counted: dict[tuple[str, str], int] = {}
    for one in decision.refusals:
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
            return place(rules[0].span)
    return ""
