"""Strategies that policy makes of expressions alone: which nodes give pods away, which pods, in which order, and to which nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.descheduling.measured_without import measured_without
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import Stays, StrategyRules
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.pod import Pod


def release(
    nodes: Sequence[SeenNode], rules: StrategyRules, moves: Moves, catalogue: Catalogue
) -> Work[None]:
    """Let pods go from nodes that release some, each asked again after every pod that goes.

    Where a pod has to fit elsewhere, what it requests counts there from then on.
    """
    round_of_rules = Release({node.name: node for node in nodes}, rules, moves, catalogue)
    releasing = []
    for node in nodes:
        yield
        if rules.releases(node.facts, moves.now):
            releasing.append(node)
    releasing.sort(key=lambda one: rules.node_key(one.facts, moves.now))
    for node in releasing:
        yield
        if rules.whole(node.facts, moves.now):
            yield from round_of_rules.all_or_none(node)
        else:
            yield from round_of_rules.one_by_one(node)


@dataclass(slots=True)
class Release:
    """One round of one strategy: pods go where its rules and limits let them."""

    by_name: Mapping[str, SeenNode]
    rules: StrategyRules
    moves: Moves
    catalogue: Catalogue

    def one_by_one(self, node: SeenNode) -> Work[None]:
        """As many as the node releases."""
        now, sight, facts = self.moves.now, node.sight, node.facts
        most, gone = self.rules.most(facts, now), 0
        for pod in self._candidates(node):
            yield
            if (most is not None and gone >= most) or self.enough():
                return
            if self.moves.why_not(pod, node) is not None:
                continue
            where = self._where(pod, node, facts)
            if isinstance(where, Stays):
                continue
            self._go(pod, node, facts, where)
            gone += 1
            sight = without(sight, pod.pod)
            facts = node_record(sight, self.catalogue, TIMES, now)
            if not self.rules.releases(facts, now):
                return

    def one(self, pod: SeenPod, node: SeenNode) -> None:
        """A pod that the strategy's plugin found, where nothing keeps it."""
        most = self.rules.most(node.facts, self.moves.now)
        gone = sum(move.node == node.name and move.strategy == self.rules.name for move in self.moves.found)
        if (most is not None and gone >= most) or self.enough() or self.moves.why_not(pod, node) is not None:
            return
        where = self._where(pod, node, node.facts)
        if not isinstance(where, Stays):
            self._go(pod, node, node.facts, where)

    def enough(self) -> bool:
        """Whether as many pods go for the strategy's reason as may in one round."""
        total = self.rules.total
        return total is not None and self.moves.going_by(self.rules.name) >= total

    def all_or_none(self, node: SeenNode) -> Work[None]:
        """All that may go for this reason, where each finds room beside the others, and none has to stay."""
        pods, taken = self._candidates(node), []
        try:
            for pod in pods:
                yield
                where = self._where(pod, node, node.facts)
                if isinstance(where, Stays):
                    return
                target = self.by_name.get(where)
                if target is not None:
                    target.add(pod.request, 1)
                taken.append((pod, target, where))
        finally:
            for pod, target, _ in taken:
                if target is not None:
                    target.add(pod.request, -1)
        for pod, _, where in taken:
            # A limit may end that: what has gone has gone.
            if self.enough() or self.moves.why_not(pod, node) is not None:
                return
            self._go(pod, node, node.facts, where)

    def _candidates(self, node: SeenNode) -> list[SeenPod]:
        now, rules = self.moves.now, self.rules
        found = [
            pod
            for pod in (node.ended if rules.ended else node.pods)
            if self.moves.why_not(pod, node) is None and rules.candidate(pod.facts, node.facts, now)
        ]
        found.sort(key=lambda pod: rules.key(pod.facts, node.facts, now))
        return found

    def _where(self, pod: SeenPod, node: SeenNode, facts: Record) -> str | Stays:
        """Where a pod would go, empty where that is not asked; or why it stays."""
        now, rules = self.moves.now, self.rules
        target = ""
        if rules.fits(pod.facts, facts, now):
            taker = self._taker(pod, facts, self.by_name.values())
            if taker is None:
                return Stays(f"strategies[{rules.name}].fits", "no other node has room for it")
            target = taker.name
        there = self.moves.relocation(pod, node, rules)
        if isinstance(there, Stays) or not there:
            return there or target
        other = self.by_name.get(there)
        if other is None or rules.takes(pod.facts, facts, other.facts, now):
            return there
        return self.moves.keep(
            pod, rules, "takes", f"the scheduler would put it on {there}, which is not meant to take it"
        )

    def _taker(self, pod: SeenPod, facts: Record, nodes: Iterable[SeenNode]) -> SeenNode | None:
        now, rules = self.moves.now, self.rules
        return next(
            (
                node
                for node in nodes
                if node.row != pod.row and node.takes(pod) and rules.takes(pod.facts, facts, node.facts, now)
            ),
            None,
        )

    def _go(self, pod: SeenPod, node: SeenNode, facts: Record, where: str) -> None:
        target = self.by_name.get(where)
        if target is not None:
            target.add(pod.request, 1)
        if not pod.pod.terminal:
            node.add(pod.request, -1)
        rules = self.rules
        reason = rules.reason(pod.facts, facts, self.moves.now) or f"the strategy {rules.name} moves it"
        self.moves.add(pod, node, rules, reason, where)


def without(sight: NodeSight, gone: Pod) -> NodeSight:
    """The node as it is without a pod, what was measured of that included."""
    metric = sight.metric
    return replace(
        sight,
        pods=tuple(pod for pod in sight.pods if pod.key != gone.key),
        metric=None if metric is None else measured_without(metric, gone.key),
    )
