"""Why nobody goes for a pod: what is said of each node, as Kubernetes' scheduler counts it.

A node where fewer pods would not help, one from which nobody may go, or what refuses the pod even when all who
may go are gone. The last is asked of many nodes at once as far as it follows from their rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, FirstRefusals
from koordpolicy.scheduler.preemption.policy import Moment
from koordpolicy.scheduler.preemption.pools import PoolsFor
from koordpolicy.scheduler.preemption.what_if import WhatIf, why_refused

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True)
class NoCandidate:
    """Why nobody goes: how many nodes for which reason; or one text where no node was looked at."""

    counts: Mapping[str, int]
    ineligible: str = ""

    def message(self, nodes: int) -> str:
        """As Kubernetes' scheduler says it, after the reasons of the filters."""
        if self.ineligible:
            return f"preemption: {self.ineligible}"
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items() if count))
        return f"preemption: 0/{nodes} nodes are available: {listed}" if listed else ""


def helpful(cycle: Cycle, evaluation: Evaluation, nodes: int) -> Mask:
    """The nodes whose first refusal is one that fewer pods there might change.

    None is where a filter refuses the pod without a look at nodes.
    """
    state, unresolvable = cycle.state, np.zeros(nodes, np.bool_)
    for one in evaluation.filters:
        plugin = None if one.verdicts is None else one.step.plugin
        refuses_as_such = None if plugin is None else plugin.unresolvable
        if refuses_as_such is not None and state is not None and refuses_as_such(cycle.view, state):
            return np.zeros(nodes, np.bool_)
    for first in FirstRefusals(evaluation):
        unresolvable |= first.unresolvable
    return ~unresolvable


def in_vain(
    moments: Sequence[Moment], evaluation: Evaluation, cache: ClusterCache, pools: PoolsFor, what_if: WhatIf,
    without: Callable[[Sequence[str]], NodeTable],
) -> NoCandidate:  # fmt: skip
    """What is said of all nodes once it is known that nobody goes from any. Raises CycleProblem.

    `moments` are the cycle, now and later; `pools` are those who may go, `without` gives nodes as they are when these are gone.
    """
    table, cycle = cache.table, moments[0].cycle
    possible = helpful(cycle, evaluation, len(table))
    names = [table.name(int(row)) for row in np.flatnonzero(possible)]
    crowded = [name for name in names if pools.on(name).views]
    counts = Counter({NOT_HELPFUL: len(table) - len(names), NO_VICTIMS: len(names) - len(crowded)})
    if crowded:
        found, unsettled = _by_rows(moments, evaluation, without(crowded), crowded)
        counts += found
        for name in unsettled:
            counts += what_if.refusals(cycle, name, pools.on(name))
    return NoCandidate(counts)


def _by_rows(
    moments: Sequence[Moment], evaluation: Evaluation, table: NodeTable, names: Sequence[str]
) -> tuple[Counter[str], list[str]]:
    """Why nodes are refused, and those of them of which the filters that look beyond nodes have to be asked."""
    rows = np.array([table.index(name) for name in names], dtype=np.int64)
    filters = moments[0].cycle.profile.filters
    first = next(
        (at for at, step in enumerate(filters) if step.looks_beyond and step.place in evaluation.cache_keys),
        len(filters),
    )
    counts: Counter[str] = Counter()
    for moment in moments:
        if len(rows):
            fresh = moment.evaluate(table, rows, local_only=True)
            refused, left = why_refused(moment.cycle, fresh, rows, table, first)
            counts += refused
            rows = rows[left]
    return counts, [table.name(int(row)) for row in rows]
