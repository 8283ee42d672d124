"""Strategies that policy makes of expressions alone: which nodes give pods away, which pods, in which order."""

from collections.abc import Sequence
from dataclasses import replace

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.language.facts import TIMES
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod


def release(
    nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves, catalogue: Catalogue
) -> Work[None]:
    """Let pods go from nodes that release some, each asked again after every pod that goes.

    Where a pod has to fit elsewhere, what it requests counts there from then on.
    """
    for node in nodes:
        yield
        if rules.releases(node.facts, moves.now):
            _release_from(node, nodes, rules, moves, catalogue)


def _release_from(
    node: SeenNode, nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves, catalogue: Catalogue
) -> None:
    now, sight, facts = moves.now, node.sight, node.facts
    candidates = [
        pod
        for pod in node.pods
        if moves.why_not(pod, node) is None and rules.candidate(pod.facts, facts, now)
    ]
    candidates.sort(key=lambda pod: rules.key(pod.facts, facts, now))
    for pod in candidates:
        if moves.why_not(pod, node) is not None:
            continue
        target = None
        if rules.fits(pod.facts, facts, now):
            target = _taker(pod, nodes)
            if target is None:
                continue
            target.add(pod.request, 1)
        node.add(pod.request, -1)
        reason = rules.reason(pod.facts, facts, now) or f"the strategy {rules.name} moves it"
        moves.add(pod, node, rules, reason, target)
        sight = without(sight, pod.pod)
        facts = node_record(sight, catalogue, TIMES, now)
        if not rules.releases(facts, now):
            return


def _taker(pod: SeenPod, nodes: Sequence[SeenNode]) -> SeenNode | None:
    return next((node for node in nodes if node.row != pod.row and node.takes(pod)), None)


def without(sight: NodeSight, gone: Pod) -> NodeSight:
    """The node as it is without a pod, what was measured of that included."""
    metric = sight.metric
    return replace(
        sight,
        pods=tuple(pod for pod in sight.pods if pod.key != gone.key),
        metric=None if metric is None else _without(metric, gone),
    )


def _without(metric: NodeMetric, gone: Pod) -> NodeMetric:
    used = next((one.usage for one in metric.pods if one.key == gone.key), None)
    if used is None:
        return metric
    node = metric.node_usage
    return replace(
        metric,
        pods=tuple(one for one in metric.pods if one.key != gone.key),
        node_usage=None
        if node is None
        else {name: max(amount - used.get(name, 0), 0) for name, amount in node.items()},
    )
