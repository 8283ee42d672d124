"""How long decisions take, and what makes them slow: numbers for a scrape, and a trouble for each rule that is to blame."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from koordpolicy.cluster.nodes import NodeView
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns
from koordpolicy.model.distinct import distinct
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.metrics import Metrics, Sizes
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.profile import KIND, ROOTS, place_of
from koordpolicy.scheduler.scheduler import Scheduler
from koordpolicy.scheduler.step import Step

_TIMES: Final = "koordpolicy_scheduler_decision_seconds"

_SAMPLE: Final = 256
"""Nodes that an expression is measured on at most: a slow one is as slow a node, however many there are."""

_REST: Final = 100
"""Measuring takes no more than one part in so many of the work."""


_NAMED: Final = 3
"""Rules that are told of at a time, the dearest first."""


class DecisionTimes:
    """Counts how long decisions take; adding one costs next to nothing. Once for the metrics of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._bounds = metrics.table[_TIMES].buckets
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0
        metrics.measure_elsewhere(_TIMES, self)

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def sizes(self) -> Iterable[Sizes]:
        """The seconds."""
        return [((), list(self._counts), self._total)]


class SlowRules:
    """Finds the filters and scores that make decisions slower than policy has it (`diagnosis.slowDecision`).

    `clock` gives the nanoseconds that a processor has worked for this thread: a machine that is busy elsewhere is no fault of a
    rule. Nor is it that the first decision of a framework takes longer, which makes what the later ones find.
    """

    def __init__(self, scheduler: Scheduler, troubles: Troubles, clock: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._troubles = troubles
        self._clock = clock
        self._not_before = clock()
        self._begun: Framework | None = None

    def decided(self, pod: Pod, seconds: float) -> None:
        """A decision on a pod took so long: if that is slow, tell of the rules to blame, as far as any are."""
        if self._begun is not self._scheduler.framework:
            self._begun = self._scheduler.framework
            return
        limit = self._scheduler.diagnosis.limits.slow_decision
        if not limit or seconds * 1e9 <= limit or (began := self._clock()) < self._not_before:
            return
        try:
            self._tell(pod, limit)
        except (CelError, ParameterError, ObjectError):
            pass  # a pod that cannot be asked about says nothing of rules
        finally:
            ended = self._clock()
            self._not_before = ended + _REST * (ended - began)

    def _tell(self, pod: Pod, limit: int) -> None:
        framework = self._scheduler.framework
        graph, profile, nodes = framework.graph, framework.profile, len(framework.cache)
        found = dict(self._measured(framework.cycle(pod))) if nodes else {}
        if sum(found.values()) <= limit:
            return  # it was something else: the machine, or what was done for a pod that finds no node
        dearest = sorted(found, key=lambda place: -found[place])[:_NAMED]
        for step in dearest:
            took = found[step]
            if took > limit or step == dearest[0]:
                place = place_of(graph, profile.name, step)
                kind, _, name = step.partition(":")
                shown = f"{kind} `{name}`" + (f" ({place})" if place else "")
                of = "1 node" if nodes == 1 else f"{nodes:,} nodes"
                text = f"{shown} takes about {took / 1e6:,.3g} ms of a decision on {of}"
                self._troubles.slow(
                    f"{KIND}/{profile.name}",
                    profile.digest,
                    text,
                    rule=step,
                    place=place,
                    example=f"pod {'/'.join(pod.key)}",
                )

    def _measured(self, cycle: Cycle) -> Iterator[tuple[str, int]]:
        """About how long each filter and score takes for all nodes, in nanoseconds."""
        table = self._scheduler.framework.cache.table
        count = len(table)
        rows = distinct(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))
        for step in (*cycle.profile.filters, *cycle.profile.scores):
            took = 0
            if step.enabled.value(cycle.records) is False:
                continue
            if step.plugin is not None:
                took += self._took(lambda step=step: _asked(step, cycle, NodeView(table, None, cycle.state)))  # type: ignore[misc]
            if step.expression:
                program = self._program(step)
                self._took(lambda program=program: program.call(table, cycle.records, rows[:1]))  # type: ignore[misc]
                some = self._took(lambda program=program: program.call(table, cycle.records, rows))  # type: ignore[misc]
                took += some * count // len(rows)
            yield step.place, took

    def _took(self, ask: Callable[[], object]) -> int:
        began = self._clock()
        with suppress(CelError, ParameterError, ObjectError):  # what fails has taken its time, too
            ask()
        return self._clock() - began

    def _program(self, step: Step) -> ColumnProgram:
        """The program of a step's expression alone."""
        graph, target = self._scheduler.framework.graph, f"{KIND}/{self._scheduler.profile.name}"
        field = "require" if step.weight is None else "value"
        kind, _, name = step.place.partition(":")
        return graph.once(
            (target, "alone", step.place),
            lambda: compile_columns(
                {"": graph.expression(f"{target}.{kind}s[{name}].{field}")},
                "node",
                ROOTS,
                budget=graph.budget,
            ),
        )


def _asked(step: Step, cycle: Cycle, nodes: NodeView) -> None:
    """Ask a step's plugin of all nodes, for nothing."""
    plugin = step.plugin
    assert plugin is not None
    if step.weight is None and plugin.filter is not None:
        plugin.filter(cycle.view, nodes, step.values(cycle.records))
    elif step.weight is not None and plugin.score is not None:
        plugin.score(cycle.view, nodes, step.values(cycle.records))
