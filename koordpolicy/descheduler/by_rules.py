"""Strategies that policy makes of expressions alone: which nodes give pods away, which pods, in which order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.descheduling.measured_without import measured_without
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import Stays, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.language.facts import TIMES
from koordpolicy.model.pod import Pod


def release(
    nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves, catalogue: Catalogue
) -> Work[None]:
    """Let pods go from nodes that release some, each asked again after every pod that goes.

    Where a pod has to fit elsewhere, what it requests counts there from then on.
    """
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        yield
        if rules.releases(node.facts, moves.now):
            yield from _release_from(node, by_name, rules, moves, catalogue)


def _release_from(
    node: SeenNode, by_name: Mapping[str, SeenNode], rules: StrategyRules, moves: Moves, catalogue: Catalogue
) -> Work[None]:
    now, sight, facts = moves.now, node.sight, node.facts
    candidates = [
        pod
        for pod in node.pods
        if moves.why_not(pod, node) is None and rules.candidate(pod.facts, facts, now)
    ]
    candidates.sort(key=lambda pod: rules.key(pod.facts, facts, now))
    for pod in candidates:
        yield
        if moves.why_not(pod, node) is not None:
            continue
        target = None
        if rules.fits(pod.facts, facts, now):
            target = _taker(pod, by_name.values())
            if target is None:
                continue
        there = moves.relocation(pod, node, rules)
        if isinstance(there, Stays):
            continue
        if there:
            target = by_name.get(there, target)
        if target is not None:
            target.add(pod.request, 1)
        node.add(pod.request, -1)
        reason = rules.reason(pod.facts, facts, now) or f"the strategy {rules.name} moves it"
        moves.add(pod, node, rules, reason, there or ("" if target is None else target.name))
        sight = without(sight, pod.pod)
        facts = node_record(sight, catalogue, TIMES, now)
        if not rules.releases(facts, now):
            return


def _taker(pod: SeenPod, nodes: Iterable[SeenNode]) -> SeenNode | None:
    return next((node for node in nodes if node.row != pod.row and node.takes(pod)), None)


def without(sight: NodeSight, gone: Pod) -> NodeSight:
    """The node as it is without a pod, what was measured of that included."""
    metric = sight.metric
    return replace(
        sight,
        pods=tuple(pod for pod in sight.pods if pod.key != gone.key),
        metric=None if metric is None else measured_without(metric, gone.key),
    )
