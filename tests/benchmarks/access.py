"""What it costs to bring an evaluation up to date about some nodes, in each way that there is.

The figures that `koordpolicy/model/table/access_path.py` decides by. The peer is an evaluation of all nodes anew,
to be kept in turn. `followed` are rows one by one with what the pod decides worked out before,
`one by one` the same by plugins and programs for any pod, `gathered` arrays of these rows laid over those of all.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from koordpolicy.cluster import nodes
from koordpolicy.language.cel.lower.columns import program
from koordpolicy.model.table.access_path import AccessPath, access_path
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import evaluate
from koordpolicy.scheduler.evaluation.incremental import IncrementalEvaluator
from tests.benchmarks import scheduling
from tests.benchmarks.measure import Row

NODES = (1_000, 5_000, 20_000)
SHARES = (8, 4, 2, 1)
"""Of all nodes, one in so many is asked about."""
ROWS = (1, 3, 6, 9, 12, 16, 24, 48, 96)
MOST_ONE_BY_ONE = 96
TOUCHED = 400
"""So many of the rows are written before; beyond that everything that is kept of the table is made anew."""
ROUNDS = 40


def run() -> Iterator[Row]:
    """For each number of nodes, so many rows."""
    graph = scheduling.pack()
    for size in NODES:
        made = scheduling.scheduler(graph, size)
        cycle, changed = _cycle(made)
        for count in (*ROWS, *(size // share for share in SHARES)):
            yield {"nodes": size, "rows": count, **_ways(made, cycle, changed, count)}


def _cycle(made: Scheduler) -> tuple[Cycle, frozenset[str]]:
    """A pod that is asked about, and the facts that change where one like it is placed."""
    pods = scheduling.pods("asked", 1)
    table, version = made.cache.table, made.cache.table.version
    made.set_pod(next(pods))
    decision = made.schedule_one()
    assert decision is not None
    assert decision.placed
    changed = table.changed_since(version)
    assert changed is not None
    return made.framework.cycle(next(pods)), changed


def _ways(made: Scheduler, cycle: Cycle, changed: frozenset[str], count: int) -> Row:
    table = made.cache.table
    known = evaluate(cycle, table)
    ranking = known.ranking()
    assert ranking is not None
    rows = np.sort(np.array(random.Random(count).sample(range(len(table)), count), np.int64))
    numbers = rows.tolist()
    following = IncrementalEvaluator(cycle, known, ranking)

    def touch() -> None:
        """Write the rows again, as they are: who keeps what follows from them has to look at them."""
        for row in numbers[:TOUCHED]:
            facts = table.row(row)
            table.update(table.name(row), {path: facts[path] for path in changed if path in facts})

    def follow() -> None:
        assert following.refresh(table, numbers, changed)

    def overlay() -> None:
        assert known.overlay(evaluate(cycle, table, rows, known=known, changed=changed), rows)
        known.ranking()

    def anew() -> None:
        made = evaluate(cycle, table)
        made.own()
        made.ranking()

    found: dict[str, object] = {}
    few = count <= MOST_ONE_BY_ONE
    found["followed µs"] = _spent(touch, follow) if few else ""
    with _read(AccessPath.ONE_BY_ONE):
        found["one by one µs"] = _spent(touch, overlay) if few else ""
    with _read(AccessPath.GATHER):
        found["gathered µs"] = _spent(touch, overlay)
    found["peer, all µs"] = _spent(touch, anew)
    for name, ready in (("taken", True), ("unless followed", False)):
        found[name] = access_path(count, len(table), ready=ready).name.lower().replace("_", " ")
    return found


@contextmanager
def _read(path: AccessPath) -> Iterator[None]:
    """Read rows in this way meanwhile, whatever is quicker."""
    usual = {one: one.access_path for one in (program, nodes)}
    for one in usual:
        setattr(one, "access_path", lambda _rows: path)  # noqa: B010  # so that the other ways are measured too
    try:
        yield
    finally:
        for one, decide in usual.items():
            setattr(one, "access_path", decide)  # noqa: B010  # as above


def _spent(before: Callable[[], object], action: Callable[[], object]) -> float:
    """The best of several calls, each after a change that is not measured; µs."""
    times = []
    for _ in range(ROUNDS):
        before()
        begin = time.process_time()  # others that use the machine meanwhile do not count
        action()
        times.append(time.process_time() - begin)
    return min(times) * 1e6
