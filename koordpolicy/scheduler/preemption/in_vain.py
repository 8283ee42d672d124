"""Why nobody goes for a pod: what is said of each node, as Kubernetes' scheduler counts it.

A node where fewer pods would not help, one from which nobody may go, or what refuses the pod even when all who
may go are gone. The last is asked of many nodes at once as far as it follows from their rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.mechanism.columns import Mask
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cache import ClusterCache
from koordpolicy.scheduler.cycle import Judged, Question
from koordpolicy.scheduler.preemption.policy import Moment
from koordpolicy.scheduler.preemption.pools import PoolsFor
from koordpolicy.scheduler.preemption.supposing import Supposing, why_refused

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True)
class Without:
    """Why nobody goes: how many nodes for which reason; or one text where no node was looked at."""

    counts: Mapping[str, int]
    ineligible: str = ""

    def message(self, nodes: int) -> str:
        """As Kubernetes' scheduler says it, after the reasons of the filters."""
        if self.ineligible:
            return f"preemption: {self.ineligible}"
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items() if count))
        return f"preemption: 0/{nodes} nodes are available: {listed}" if listed else ""


def helpful(question: Question, judged: Judged, nodes: int) -> Mask:
    """The nodes whose first refusal is one that fewer pods there might change.

    None is where a filter settles the pod without a look at nodes.
    """
    left, hopeless = np.ones(nodes, np.bool_), np.zeros(nodes, np.bool_)
    around = question.around
    for step, verdicts, accepted in zip(
        question.profile.filters, judged.verdicts, judged.accepted, strict=True
    ):
        if verdicts is not None and step.mechanism is not None:
            settles = step.mechanism.settles
            if settles is not None and around is not None and settles(question.view, around):
                return np.zeros(nodes, np.bool_)
            hopeless |= verdicts.hopeless & left
            left &= ~verdicts.refused.any(axis=0)
        if accepted is not None:
            if not step.depends_on_pods:
                hopeless |= left & ~accepted
            left &= accepted
    return ~hopeless


def in_vain(
    moments: Sequence[Moment], judged: Judged, cache: ClusterCache, pools: PoolsFor, supposing: Supposing,
    without: Callable[[Sequence[str]], NodeTable],
) -> Without:  # fmt: skip
    """What is said of all nodes once it is known that nobody goes from any. Raises CycleProblem.

    `moments` are the question, now and later; `pools` are those who may go, `without` gives nodes as they are when these are gone.
    """
    table, question = cache.table, moments[0].question
    possible = helpful(question, judged, len(table))
    names = [table.name(int(row)) for row in np.flatnonzero(possible)]
    crowded = [name for name in names if pools.on(name).views]
    counts = Counter({NOT_HELPFUL: len(table) - len(names), NO_VICTIMS: len(names) - len(crowded)})
    if crowded:
        found, unsettled = _by_rows(moments, judged, without(crowded), crowded)
        counts += found
        for name in unsettled:
            counts += supposing.refusals(question, name, pools.on(name))
    return Without(counts)


def _by_rows(
    moments: Sequence[Moment], judged: Judged, table: NodeTable, names: Sequence[str]
) -> tuple[Counter[str], list[str]]:
    """Why nodes are refused, and those of them of which the filters that look beyond nodes have to be asked."""
    rows = np.array([table.index(name) for name in names], dtype=np.int64)
    filters = moments[0].question.profile.filters
    first = next(
        (at for at, step in enumerate(filters) if step.looks_beyond and step.place in judged.stamps),
        len(filters),
    )
    counts: Counter[str] = Counter()
    for moment in moments:
        if len(rows):
            fresh = moment.judge(table, rows, local_only=True)
            refused, left = why_refused(moment.question, fresh, rows, table, first)
            counts += refused
            rows = rows[left]
    return counts, [table.name(int(row)) for row in rows]
