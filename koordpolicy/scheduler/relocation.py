"""Where pods that are on nodes would go if they came anew: the scheduler's own decisions, for whoever wants to move pods.

Nothing is decided on here for good, and nothing follows: it hears of the cluster as a scheduler does, and is asked.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from koordpolicy.algorithms.descheduling.measured_without import measured_without
from koordpolicy.cluster.listeners import Listeners
from koordpolicy.cluster.pods import scheduler_of
from koordpolicy.cluster.relocation import Relocation
from koordpolicy.graph import RuleGraph
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.reading import mapping
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.profile import KIND, ProfileError
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler
from koordpolicy.scheduler.select_host import weighted


class SchedulerRelocations(Listeners):
    """`Relocations` by the profiles of a graph, a pod by that of its scheduler; one of no known scheduler by the default profile.

    `clock` gives nanoseconds since 1970. A `ClusterListener`.
    """

    def __init__(self, graph: RuleGraph, clock: Callable[[], int]) -> None:
        self._graph = graph
        self._clock = clock
        self._schedulers: dict[str, Scheduler] = {}
        self._moved: dict[tuple[str, PodKey], tuple[str, int, str]] = {}
        self._lightened: dict[tuple[str, str], tuple[NodeMetric, NodeMetric]] = {}
        self._problem = "the policies have no SchedulingProfile"
        for name in graph.subjects(KIND):
            try:
                self._schedulers[name] = Scheduler(graph, clock, profile=name, explained=0, refusals=False)
            except ProfileError as problem:
                self._problem = str(problem)
        super().__init__(*self._schedulers.values())

    def follow(self, graph: RuleGraph) -> bool:
        """Answer by another revision from now on; whether that can be done without hearing of the cluster anew."""
        if graph is self._graph:
            return True
        if set(graph.subjects(KIND)) != set(self._schedulers):
            return False
        try:
            self.end()
            for one in self._schedulers.values():
                one.replace_graph(graph)
        except ProfileError:
            return False
        self._graph = graph
        return True

    # --- see `Relocations` ------------------------------------------------------------------------

    def begin(self) -> None:
        """See `Relocations`."""
        self.end()

    def of(self, pod: Pod) -> Relocation:
        """See `Relocations`."""
        scheduler = self._of(pod)
        if scheduler is None:
            return Relocation("", why=self._problem)
        cache, node = scheduler.cache, pod.node_name
        if cache.node_of(pod.key) is None:
            return Relocation("", why="it is not known to be on its node")
        heavy = cache.metric(node)
        if heavy is not None:
            cache.set_metric(measured_without(heavy, pod.key))
        try:
            with cache.trial():
                cache.displace(pod.key)
                return _asked(scheduler.framework, _as_if_new(pod), node)
        finally:
            if heavy is not None:
                cache.set_metric(heavy)

    def goes(self, pod: Pod, node: str) -> None:
        """See `Relocations`."""
        for name, scheduler in self._schedulers.items():
            self._move(name, scheduler, pod, node)

    def end(self) -> None:
        """See `Relocations`."""
        # Whatever news said meanwhile holds.
        for (name, key), (node, since, there) in self._moved.items():
            cache = self._schedulers[name].cache
            view = cache.view(key)
            if view is not None and cache.node_of(key) == there:
                cache.place(view, node, since)
        for (name, node), (before, now) in self._lightened.items():
            cache = self._schedulers[name].cache
            if cache.metric(node) is now:
                cache.set_metric(before)
        self._moved.clear()
        self._lightened.clear()

    def _move(self, name: str, scheduler: Scheduler, pod: Pod, node: str) -> None:
        cache = scheduler.cache
        view, before = cache.view(pod.key), cache.node_of(pod.key)
        if view is None or before is None or node not in cache:
            return
        self._moved[name, pod.key] = (before, cache.since(pod.key), node)
        heavy = cache.metric(before)
        if heavy is not None:
            first, _ = self._lightened.get((name, before), (heavy, heavy))
            light = measured_without(heavy, pod.key)
            self._lightened[name, before] = (first, light)
            cache.set_metric(light)
        cache.place(view, node, self._clock())

    def _of(self, pod: Pod) -> Scheduler | None:
        found = self._schedulers.get(scheduler_of(pod)) or self._schedulers.get(DEFAULT_PROFILE)
        return found or next(iter(self._schedulers.values()), None)


def _as_if_new(pod: Pod) -> Pod:
    spec: dict[str, Any] = {
        key: value for key, value in mapping(pod.raw, "spec").items() if key != "nodeName"
    }
    return replace(pod, node_name="", raw={**pod.raw, "spec": spec})


def _asked(framework: Framework, pod: Pod, own: str) -> Relocation:
    cycle = framework.cycle(pod)
    evaluation, decision = framework.decided(cycle)
    if evaluation is None or not decision.placed:
        return Relocation("", why=decision.problem or decision.message.partition("\n")[0])
    if decision.node == own:
        return Relocation(own, 0.0)
    try:
        return Relocation(decision.node, _gain(framework, cycle, evaluation, decision.node, own))
    except CycleProblem as problem:
        return Relocation("", why=str(problem))


def _gain(framework: Framework, cycle: Cycle, evaluation: Evaluation, node: str, own: str) -> float | None:
    """By how much a node counts for more than the pod's own; None where that would not take it."""
    table = framework.cache.table
    feasible = evaluation.feasible()
    rows = np.arange(len(table)) if feasible is None else np.flatnonzero(feasible)
    if own not in table or table.index(own) not in rows:
        return None
    totals = np.zeros(len(rows)) + sum(part for _, part in weighted(cycle, evaluation, rows, table))
    at = np.searchsorted(rows, [table.index(node), table.index(own)])
    return float(totals[at[0]] - totals[at[1]])
