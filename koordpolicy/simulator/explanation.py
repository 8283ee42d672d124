"""Why suppression withheld what it did, with the rules behind it."""

from typing import Any

from koordpolicy.agent.strategies.suppression import KIND as SUPPRESS
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.language.facts import TIMES
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.journal import Held


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
            {"decision": rule.decision, "place": place(rule.span), "text": rule.text}
            for rule in answer.provenance.rules
        ],
    }
