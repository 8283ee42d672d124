"""Why nobody goes for a pod: what is said of each node, as Kubernetes' scheduler counts it.

A node where fewer pods would not help, one from which nobody may go, or what refuses the pod even when all who
may go are gone. The last is asked of many nodes at once as far as it follows from their rows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.decision import NoCandidate
from koordpolicy.scheduler.plugins.base import FilterResults, FilterRun
from koordpolicy.scheduler.plugins.preemption.pools import PoolsFor
from koordpolicy.scheduler.plugins.preemption.what_if import WhatIf

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NOT_ASKED: Final = "node(s) not asked about: the search had come to its end (preemption.search.most)"


def in_vain(
    run: FilterRun, results: FilterResults, cache: ClusterCache, pools: PoolsFor, what_if: WhatIf,
    without: Callable[[Sequence[str]], NodeTable],
) -> NoCandidate:  # fmt: skip
    """What is said of all nodes once it is known that nobody goes from any. Raises CycleProblem.

    `pools` are those who may go, `without` gives nodes as they are when these are gone.
    """
    table = cache.table
    names = table.named(np.flatnonzero(~run.unresolvable(results)))
    crowded = pools.crowded(names)
    counts = Counter({NOT_HELPFUL: len(table) - len(names), NO_VICTIMS: len(names) - len(crowded)})
    if crowded:
        found, unsettled = _by_rows(run, results, without(crowded), crowded)
        counts += found
        for at, name in enumerate(unsettled):
            if what_if.left <= 0:
                counts[NOT_ASKED] += len(unsettled) - at
                break
            counts += what_if.refusals(run, name, pools.on(name))
    return NoCandidate(counts)


def _by_rows(
    run: FilterRun, results: FilterResults, table: NodeTable, names: Sequence[str]
) -> tuple[Counter[str], list[str]]:
    """Why nodes are refused, and those of them of which the filters that look beyond nodes have to be asked."""
    rows = np.array([table.index(name) for name in names], dtype=np.int64)
    filters = run.filters
    first = next(
        (at for at, step in enumerate(filters) if step.looks_beyond and step.place in results.cache_keys),
        len(filters),
    )
    counts: Counter[str] = Counter()
    for moment in run.moments:
        if len(rows):
            fresh = moment.evaluate(table, rows, local_only=True)
            refused, left = moment.why_refused(fresh, table, rows, first)
            counts += refused
            rows = rows[left]
    return counts, table.named(rows)
