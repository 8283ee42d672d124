"""The second half of a scheduling cycle: one node is chosen, and why.

Filters count in order, scores are normalised among the feasible nodes and weighted, ties are broken as
policy says. Where no node is left, each counts for the first filter that refused it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import normalized
from koordpolicy.algorithms.sampling import first_found, nodes_to_find
from koordpolicy.cluster.nodes import Rows
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import Candidate, PodDecision, Refusals
from koordpolicy.scheduler.evaluation import Evaluation, FirstRefusals
from koordpolicy.scheduler.evaluation.evaluate import rank
from koordpolicy.scheduler.evaluation.refusals import error_on
from koordpolicy.scheduler.profile import FIRST

PROMISED = "node(s) were promised to other pods"

Draw = Callable[[int], int]
"""Draws a number from 0 to n - 1."""


def first_of(_count: int) -> int:
    """The draw that always takes the first: for tests and for runs that must not differ."""
    return 0


@dataclass(slots=True)
class HostSelection:
    """How a node is selected: how ties are broken, and what is explained.

    `explained` is how many of the best nodes are listed; with `refusals` a pod that found a node shows
    what kept it from the others, too, with `failing` where a filter's expression may have failed on some of these. `start` is the node
    where the next search begins that policy ends before it has seen all.
    """

    draw: Draw
    explained: int
    refusals: bool
    failing: bool = False
    start: int = 0
    shows: bool = field(init=False)
    """Whether every pod that found a node shows more than that."""

    def __post_init__(self) -> None:
        self.shows = self.refusals or self.explained > 0


def select_host(
    cycle: Cycle,
    evaluation: Evaluation,
    table: NodeTable,
    selection: HostSelection,
    promised: str | None = None,
) -> PodDecision:
    """The decision that follows from an evaluation. The node `promised` to the pod is taken if it is feasible, else
    the first that is of those which its hint prefers. Raises ObjectError for a hint that cannot be read.
    """
    pod, profile = cycle.view.pod, cycle.profile
    preferred = _preferred(cycle) if pod.annotations else ()
    if (
        promised is None
        and not preferred
        and not (selection.shows or (selection.failing and evaluation.filters_fail))
        and profile.share_seen(cycle.records) is None
        and (ranking := evaluation.ranking()) is not None
        and ranking.count
    ):
        found = ranking.best()
        row = found if isinstance(found, int) else int(found[_one_of(cycle, table, found, selection.draw)])
        name = table.name(row)
        return PodDecision(pod.key, pod.uid, name, len(table), ranking.count, digest=profile.digest)
    rows = _feasible(evaluation)
    told = not len(rows) or selection.refusals or (selection.failing and evaluation.filters_fail)
    refusals = _refusals(cycle, evaluation, table) if told else ()
    if not len(rows):
        return PodDecision(pod.key, pod.uid, "", len(table), 0, refusals, digest=profile.digest)
    feasible_count = len(rows)
    if promised is not None and promised in table and table.index(promised) in rows:
        rows = np.array([table.index(promised)], dtype=np.int64)
    elif (liked := _first_of(preferred, rows, table)) is not None:
        rows = np.array([liked], dtype=np.int64)
    else:
        rows = _sampled(cycle, rows, len(table), selection)
    parts = weighted(cycle, evaluation, rows, table)
    totals = np.zeros(len(rows)) if not parts else np.sum([part for _, part in parts], axis=0, dtype=float)
    chosen = _best(cycle, table, rows, totals, selection.draw)
    best = _table(table, rows, totals, parts, chosen, selection.explained)
    return PodDecision(
        pod.key,
        pod.uid,
        table.name(int(rows[chosen])),
        len(table),
        feasible_count,
        refusals,
        best,
        digest=profile.digest,
    )


def _preferred(cycle: Cycle) -> tuple[str, ...]:
    """The nodes that the pod's hint prefers, the first most, as far as policy has them tried. Raises ObjectError."""
    named = cycle.view.preferred_nodes
    return named[: cycle.profile.most_preferred(cycle.records)] if named else ()


def _first_of(preferred: Sequence[str], feasible: Rows, table: NodeTable) -> int | None:
    """The row of the first of these nodes that is feasible; None where none is."""
    for name in preferred:
        if name in table and (row := table.index(name)) in feasible:
            return row
    return None


def comparison(
    cycle: Cycle, evaluation: Evaluation, table: NodeTable, decision: PodDecision, most: int
) -> PodDecision:
    """A decision that was made, with what refused the other nodes, and how the best ones compare.

    Where policy looks at a share of the nodes, nothing is compared: which they were is not known any more.
    """
    refusals = decision.refusals or _refusals(cycle, evaluation, table)
    best: tuple[Candidate, ...] = ()
    rows = _feasible(evaluation)
    if decision.placed and cycle.profile.share_seen(cycle.records) is None:
        chosen = np.flatnonzero(rows == table.index(decision.node))
        if len(chosen):
            parts = weighted(cycle, evaluation, rows, table)
            totals = np.zeros(len(rows)) + sum(part for _, part in parts)
            best = _table(table, rows, totals, parts, int(chosen[0]), most)
    return replace(decision, refusals=refusals, best=best)


def best_of(cycle: Cycle, evaluation: Evaluation, table: NodeTable, barred: Mask | None) -> tuple[Rows, Rows]:
    """The nodes of which one would be selected, and all feasible ones. `barred` are promised to other pods. Raises CycleProblem."""
    rows = _feasible(evaluation if barred is None else replace(evaluation, barred=barred))
    if not len(rows):
        return rows, rows
    parts = weighted(cycle, evaluation, rows, table)
    totals = np.zeros(len(rows)) + sum(part for _, part in parts)
    return rows[np.isclose(totals, totals.max(), rtol=1e-9)], rows


def _feasible(evaluation: Evaluation) -> Rows:
    feasible = evaluation.feasible()
    return np.arange(evaluation.nodes) if feasible is None else np.flatnonzero(feasible)


def _sampled(cycle: Cycle, rows: Rows, nodes: int, selection: HostSelection) -> Rows:
    """The feasible nodes that are looked at: all of them, or as many as policy says."""
    share = cycle.profile.share_seen(cycle.records)
    if share is None:
        return rows
    found, seen = first_found(rows, nodes, selection.start % nodes, nodes_to_find(nodes, int(share)))
    selection.start = (selection.start + seen) % nodes
    return found


def _refusals(cycle: Cycle, evaluation: Evaluation, table: NodeTable) -> tuple[Refusals, ...]:
    """Why no node is left: each node counts for the first filter that refused it. Pods that are alike are refused alike."""
    made = evaluation.made(table.version)
    found: tuple[Refusals, ...] | None = made.get(Refusals)
    if found is None:
        found = made[Refusals] = _counted(cycle, evaluation, table)
    return found


def _counted(cycle: Cycle, evaluation: Evaluation, table: NodeTable) -> tuple[Refusals, ...]:
    found: list[Refusals] = []
    every, folded = np.arange(len(table)), FirstRefusals(evaluation)
    for first in folded:
        name = first.step.name
        if first.reasons:
            said = first.said(cycle, table, every)
            for reason, mask in zip(said.reasons, said.refused, strict=True):
                _count(found, name, reason, mask, ~first.unresolvable)
        else:
            error = error_on(cycle, first.step, int(np.argmax(first.nodes)), table)
            counts = first.counts(cycle, table, every)
            found.extend(Refusals(name, reason, nodes, error=error) for reason, nodes in counts.items())
    if evaluation.barred is not None and (barred := int(np.count_nonzero(folded.left & evaluation.barred))):
        found.append(Refusals("", PROMISED, barred))
    return tuple(found)


def _count(refusals: list[Refusals], name: str, reason: str, refused: Mask, resolvable: Mask) -> None:
    """Nodes that could be helped and nodes that could not are counted apart."""
    total = int(np.count_nonzero(refused))
    if total:
        helped = int(np.count_nonzero(refused & resolvable))
        if helped:
            refusals.append(Refusals(name, reason, helped))
        if helped < total:
            refusals.append(Refusals(name, reason, total - helped, resolvable=False))


def weighted(
    cycle: Cycle, evaluation: Evaluation, rows: Rows, table: NodeTable
) -> list[tuple[str, NDArray[Any]]]:
    """The scores of the feasible nodes by name, normalised among them, times their weights."""
    parts = []
    for one in evaluation.scores:
        if not one.weight:
            continue
        step = one.step
        total = None if one.scores is None else normalized(step.normalize, one.scores[rows])
        plugin = step.plugin
        if plugin is not None and plugin.rank is not None and step.place in evaluation.cache_keys:
            ranked = rank(step, cycle, table, rows)
            ranked = None if ranked is None else normalized(step.normalize, ranked)
            total = ranked if total is None or ranked is None else total + ranked
        if total is not None:
            parts.append((step.name, total * one.weight))
    return parts


def _best(cycle: Cycle, table: NodeTable, rows: Rows, totals: NDArray[np.float64], draw: Draw) -> int:
    """The place among `rows` of the node that is taken."""
    tied = np.flatnonzero(totals == totals.max())
    return int(tied[_one_of(cycle, table, rows[tied], draw)])


def _one_of(cycle: Cycle, table: NodeTable, tied: Rows, draw: Draw) -> int:
    """The place among nodes that are equally good of the one that is taken."""
    if len(tied) == 1:
        return 0
    try:
        ties = cycle.profile.ties.value(cycle.records)
    except CelError:
        ties = FIRST
    if ties == FIRST:
        return table.first_by_name(tied)
    return draw(len(tied))


def _table(
    table: NodeTable, rows: Rows, totals: NDArray[np.float64], parts: Sequence[tuple[str, NDArray[Any]]],
    chosen: int, explained: int,
) -> tuple[Candidate, ...]:  # fmt: skip
    """The best nodes with the parts of their totals, the chosen one first."""
    if explained <= 0:
        return ()
    size = min(explained, len(rows))
    order = np.argpartition(-totals, size - 1)[:size] if size < len(rows) else np.arange(len(rows))
    ranked = sorted(
        (int(at) for at in order if at != chosen), key=lambda at: (-totals[at], table.name(int(rows[at])))
    )
    names = _one_of_equal(tuple(name for name, _ in parts))
    return tuple(
        Candidate(
            table.name(int(rows[at])),
            _plain(totals[at]),
            names,
            tuple(_plain(part[at]) for _, part in parts),
        )
        for at in [chosen, *ranked][:size]
    )


@lru_cache(maxsize=256)
def _one_of_equal(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same tuple for equal ones: each that is kept is one more for the collector of garbage."""
    return names


def _plain(number: Any) -> float:
    """Whole scores as whole numbers."""
    value = float(number)
    return int(value) if value.is_integer() else value
