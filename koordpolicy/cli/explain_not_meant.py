"""Which of a strategy's rules excludes a pod: its namespace, its labels, whatever `candidates` asks."""

from collections.abc import Iterator

from koordpolicy.descheduler.rules import KIND, ProfileRules, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.reads import fact_type, shown_value
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.facts import TIMES


def not_meant(
    graph: RuleGraph, rules: ProfileRules, strategy: StrategyRules, pod: SeenPod, node: SeenNode, now: int
) -> str:
    """The first rule of `candidates` that is not true of a pod, with its place and the facts of the pod that it reads, behind a colon.

    Empty where none is found.
    """
    decision = graph.decision(f"{KIND}/{rules.name}.strategies[{strategy.name}].candidates")
    if not decision.rules:
        return ": no `candidates` says which pods may go"
    expressions = Expressions(graph.decisions, {})
    roots = {"pod": pod.facts, "node": node.facts, "now": TIMES.timestamp(now)}
    for rule in decision.rules:
        value = expressions.resolved(rule.value, rule.key)
        try:
            test, _ = expressions.test(rule)
            asked = [value] if test is None else [test, value]
            held = [
                compile_row(decision.roots, one).call(*(roots[root] for root in decision.roots))
                for one in asked
            ]
        except (CelError, ValueError):
            continue  # where that cannot be told, another one may be false
        if held[-1] is False and False not in held[:-1]:
            found = "; ".join(_facts(value, pod))
            text = " ".join(rule.text.split())
            place = f"{rule.span.file}:{rule.span.start.line}"
            return f": its `candidates` asks for `{text}` ({place})" + (f", and {found}" if found else "")
    return ""


def _facts(value: ir.Node, pod: SeenPod) -> Iterator[str]:
    for root, path in sorted(facts_of(value)):
        if root == "pod" and path in pod.facts:
            yield f"`pod.{path}` is `{shown_value(fact_type(f'pod.{path}'), pod.facts[path])}`"
