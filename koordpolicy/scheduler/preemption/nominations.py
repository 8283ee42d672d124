"""Pods that wait for others to leave a node, and how they count for those who look at it meanwhile."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, Filtered, evaluate
from koordpolicy.scheduler.plugins import Verdicts
from koordpolicy.scheduler.preemption.hypothesis import Change, SupposedNodes
from koordpolicy.scheduler.preemption.policy import PreemptionPolicy


class Nominations:
    """Which pod waits for which node."""

    __slots__ = ("_by_node", "_cache", "_nodes", "_policy", "_supposed")

    def __init__(self, cache: ClusterCache, policy: PreemptionPolicy) -> None:
        self._cache = cache
        self._policy = policy
        self._nodes: dict[PodKey, str] = {}
        self._by_node: dict[str, dict[PodKey, PodView]] = {}
        self._supposed = SupposedNodes(cache)

    def __len__(self) -> int:
        return len(self._nodes)

    def node_of(self, key: PodKey) -> str | None:
        """The node that a pod waits for."""
        return self._nodes.get(key)

    def on(self, node: str) -> Mapping[PodKey, PodView]:
        """The pods that wait for a node."""
        return self._by_node.get(node, {})

    def items(self) -> Iterator[tuple[PodView, str]]:
        """All that wait, each with its node."""
        for node, pods in self._by_node.items():
            for view in pods.values():
                yield view, node

    def set(self, view: PodView, node: str) -> None:
        """A pod waits for this node, and for no other."""
        key = view.pod.key
        if self._nodes.get(key) != node:
            self.remove(key)
        self._nodes[key] = node
        self._by_node.setdefault(node, {})[key] = view

    def remove(self, key: PodKey) -> None:
        """A pod does not wait any more."""
        node = self._nodes.pop(key, None)
        if node is not None:
            pods = self._by_node[node]
            del pods[key]
            if not pods:
                del self._by_node[node]

    def respected(self, cycle: Cycle, node: str) -> tuple[PodView, ...]:
        """The pods that count as being on a node for the one that is asked of."""
        waiting = self.on(node)
        if not waiting:
            return ()
        me, respected = cycle.view.pod.key, self._policy.respected_by(cycle.records)
        return tuple(view for key, view in waiting.items() if key != me and respected(view))

    def counted(self, cycle: Cycle, evaluation: Evaluation) -> Evaluation:
        """The answers about all nodes, where a node must pass with those who wait for it, too.

        Filters that look beyond a node's row are not asked again here: `passes_beside` does that for one.
        """
        wanted: dict[str, Change] = {}
        for node in self._by_node:
            if node in self._cache:
                beside = self.respected(cycle, node)
                if beside:
                    wanted[node] = Change(beside=beside)
        if not wanted:
            return evaluation
        supposed = self._supposed
        for _ in supposed.outdated():
            pass
        supposed.keep(wanted)
        for name, change in wanted.items():
            supposed.set(name, change)
        fresh = evaluate(cycle, supposed.table, local_only=True)
        rows = np.array([self._cache.table.index(name) for name in supposed.table.names], dtype=np.int64)
        return _both(evaluation, fresh, rows)

    def passes_beside(self, cycle: Cycle, node: str) -> bool:
        """Whether a node passes all filters with those who wait for it. Raises CycleProblem."""
        beside = self.respected(cycle, node)
        if not beside:
            return True
        with self._cache.supposing(node, (), beside):
            row = self._cache.table.index(node)
            return passes(evaluate(cycle, self._cache.table, np.array([row])))


def passes(evaluation: Evaluation) -> bool:
    """Whether the one node that was evaluated passes all filters."""
    return evaluation.feasible() is None


def _both(evaluation: Evaluation, fresh: Evaluation, rows: Rows) -> Evaluation:
    """The answers about all nodes, refusals about some rows added."""
    both = zip(evaluation.filters, fresh.filters, strict=True)
    return replace(evaluation, filters=[_added(one, more, rows) for one, more in both])


def _added(one: Filtered, more: Filtered, rows: Rows) -> Filtered:
    """What a filter says of all nodes, its refusals about some rows added."""
    verdicts, accepted = one.verdicts, one.accepted
    if verdicts is not None and more.verdicts is not None and more.verdicts.refused.any():
        reasons = tuple(dict.fromkeys((*verdicts.reasons, *more.verdicts.reasons)))
        refused = np.zeros((len(reasons), verdicts.refused.shape[1]), np.bool_)
        refused[: len(verdicts.reasons)] = verdicts.refused
        for at, reason in enumerate(more.verdicts.reasons):
            refused[reasons.index(reason), rows] |= more.verdicts.refused[at]
        unresolvable = verdicts.unresolvable.copy()
        unresolvable[rows] |= more.verdicts.unresolvable
        verdicts = Verdicts(reasons, refused, unresolvable)
    if accepted is not None and more.accepted is not None:
        accepted = accepted.copy()
        accepted[rows] &= more.accepted
    return Filtered(one.step, verdicts, accepted)
