"""The second half of a scheduling cycle: one node is chosen, and why.

Filters count in order, scores are normalised among the feasible nodes and weighted, ties are broken as
policy says. Where no node is left, each counts for the first filter that refused it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.normalize import normalized
from koordpolicy.algorithms.sampling import first_found, nodes_to_find
from koordpolicy.cluster.nodes import Rows
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, Evaluation, ranked
from koordpolicy.scheduler.decision import Candidate, Decision, Refusals
from koordpolicy.scheduler.profile import FIRST
from koordpolicy.scheduler.standing import Standing
from koordpolicy.scheduler.step import Step

PROMISED = "node(s) were promised to other pods"

Draw = Callable[[int], int]
"""Draws a number from 0 to n - 1."""


@dataclass(slots=True)
class Choice:
    """How to choose: how ties are broken, and what is explained.

    `explained` is how many of the best nodes are listed; with `refusals` a pod that found a node shows
    what kept it from the others, too. `start` is the node where the next search begins that policy ends
    before it has seen all.
    """

    draw: Draw
    explained: int
    refusals: bool
    start: int = 0


def choose(
    cycle: Cycle,
    evaluation: Evaluation,
    table: NodeTable,
    choice: Choice,
    promised: str | None = None,
    standing: Standing | None = None,
) -> Decision:
    """The decision that follows from what was evaluation. The node `promised` to the pod is taken if it is feasible.

    `standing` saves the work where all nodes are compared and nothing is to be explained.
    """
    pod, profile = cycle.view.pod, cycle.profile
    if (
        standing is not None
        and standing.count
        and promised is None
        and not (choice.explained or choice.refusals)
        and profile.share_seen(cycle.records) is None
    ):
        found = standing.best()
        row = found if isinstance(found, int) else int(found[_one_of(cycle, table, found, choice.draw)])
        name = table.name(row)
        return Decision(pod.key, pod.uid, name, len(table), standing.count, digest=profile.digest)
    feasible = feasible_nodes(evaluation, table)
    rows = np.flatnonzero(feasible)
    refusals = _refusals(cycle, evaluation, table) if choice.refusals or not len(rows) else ()
    if not len(rows):
        return Decision(pod.key, pod.uid, "", len(table), 0, refusals, digest=profile.digest)
    feasible_count = len(rows)
    if promised is not None and promised in table and feasible[table.index(promised)]:
        rows = np.array([table.index(promised)], dtype=np.int64)
    else:
        rows = _sampled(cycle, rows, len(table), choice)
    parts = weighted(cycle, evaluation, rows, table)
    totals = np.zeros(len(rows)) if not parts else np.sum([part for _, part in parts], axis=0, dtype=float)
    chosen = _best(cycle, table, rows, totals, choice.draw)
    best = _table(table, rows, totals, parts, chosen, choice.explained)
    return Decision(
        pod.key,
        pod.uid,
        table.name(int(rows[chosen])),
        len(table),
        feasible_count,
        refusals,
        best,
        digest=profile.digest,
    )


def comparison(
    cycle: Cycle, evaluation: Evaluation, table: NodeTable, decision: Decision, most: int
) -> Decision:
    """A decision that was made, with what refused the other nodes, and how the best ones compare.

    Where policy looks at a share of the nodes, nothing is compared: which they were is not known any more.
    """
    left = feasible_nodes(evaluation, table)
    refusals = decision.refusals or _refusals(cycle, evaluation, table)
    best: tuple[Candidate, ...] = ()
    rows = np.flatnonzero(left)
    if decision.placed and cycle.profile.share_seen(cycle.records) is None:
        chosen = np.flatnonzero(rows == table.index(decision.node))
        if len(chosen):
            parts = weighted(cycle, evaluation, rows, table)
            totals = np.zeros(len(rows)) + sum(part for _, part in parts)
            best = _table(table, rows, totals, parts, int(chosen[0]), most)
    return replace(decision, refusals=refusals, best=best)


def feasible_nodes(evaluation: Evaluation, table: NodeTable) -> Mask:
    """The nodes that no filter refuses and that are not promised to others."""
    feasible: Mask = np.ones(len(table), np.bool_)
    for verdicts, accepted in zip(evaluation.verdicts, evaluation.accepted, strict=True):
        if verdicts is not None and not verdicts.none:
            feasible &= ~verdicts.refused.any(axis=0)
        if accepted is not None:
            feasible &= accepted
    if evaluation.barred is not None:
        feasible &= ~evaluation.barred
    return feasible


def _sampled(cycle: Cycle, rows: Rows, nodes: int, choice: Choice) -> Rows:
    """The feasible nodes that are looked at: all of them, or as many as policy says."""
    share = cycle.profile.share_seen(cycle.records)
    if share is None:
        return rows
    found, seen = first_found(rows, nodes, choice.start % nodes, nodes_to_find(nodes, int(share)))
    choice.start = (choice.start + seen) % nodes
    return found


def _refusals(cycle: Cycle, evaluation: Evaluation, table: NodeTable) -> tuple[Refusals, ...]:
    """Why no node is left: each node counts for the first filter that refused it."""
    left = np.ones(len(table), np.bool_)
    found: list[Refusals] = []
    for step, verdicts, accepted in zip(
        cycle.profile.filters, evaluation.verdicts, evaluation.accepted, strict=True
    ):
        if verdicts is not None and not verdicts.none:
            refused = verdicts.refused & left
            for reason, mask in zip(verdicts.reasons, refused, strict=True):
                _count(found, step.name, reason, mask, ~verdicts.unresolvable)
            left &= ~refused.any(axis=0)
        if accepted is not None:
            rows = np.flatnonzero(left & ~accepted)
            if len(rows):
                counted = reasons_of(cycle, step, rows, table)
                error = _error(cycle, step, int(rows[0]), table)
                found.extend(
                    Refusals(step.name, reason, nodes, error=error) for reason, nodes in counted.items()
                )
                left &= accepted
    if evaluation.barred is not None and (barred := int(np.count_nonzero(left & evaluation.barred))):
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


def reasons_of(cycle: Cycle, step: Step, rows: Rows | Sequence[int], table: NodeTable) -> dict[str, int]:
    """Why a filter's expression refused the nodes of some rows: how many for each reason of policy's."""
    numbers = np.asarray(rows, dtype=np.int64)
    program = cycle.profile.reasons.get(step.name)
    if program is None:
        return {_without_reason(cycle, step, int(numbers[0]), table): len(numbers)}
    try:
        result = program.call(table, cycle.records, numbers)
    except CelError:  # all nodes together cost too much
        return {_without_reason(cycle, step, int(numbers[0]), table): len(numbers)}
    silent = np.zeros(len(numbers), np.bool_) if result.errors is None else result.errors.copy()
    counts: dict[str, int] = {}
    for code in np.unique(result.values[~silent]):
        same = (result.values == code) & ~silent
        text = str(result.value(int(np.argmax(same))))
        if text:
            counts[text] = int(np.count_nonzero(same))
        else:
            silent |= same
    if silent.any():
        first = int(numbers[int(np.argmax(silent))])
        counts[_without_reason(cycle, step, first, table)] = int(np.count_nonzero(silent))
    return counts


def _without_reason(cycle: Cycle, step: Step, row: int, table: NodeTable) -> str:
    """What stands for the reason of nodes for which policy gives none.

    Where the filter could not be evaluated, what went wrong on one of them speaks for all.
    """
    text, error = f"node(s) didn't pass the filter {step.name}", _error(cycle, step, row, table)
    return f"{text}: {error}" if error else text


def _error(cycle: Cycle, step: Step, row: int, table: NodeTable) -> str:
    """What went wrong where a filter's expression could not be evaluated about a node; empty where it could."""
    if cycle.profile.evaluate is None:
        return ""
    found = cycle.profile.evaluate.call_all(table, cycle.records, np.array([row]))
    error = found[step.place].error(0)
    return "" if error is None else str(error)


def weighted(
    cycle: Cycle, evaluation: Evaluation, rows: Rows, table: NodeTable
) -> list[tuple[str, NDArray[Any]]]:
    """The scores of the feasible nodes by name, normalised among them, times their weights."""
    parts = []
    for step, scores, weight in zip(cycle.profile.scores, evaluation.scores, evaluation.weights, strict=True):
        if not weight:
            continue
        total = None if scores is None else normalized(step.normalize, scores[rows])
        plugin = step.plugin
        if plugin is not None and plugin.rank is not None and step.place in evaluation.cache_keys:
            rank = ranked(step, cycle, table, rows)
            total = rank if total is None or rank is None else total + rank
        if total is not None:
            parts.append((step.name, total * weight))
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
        return min(range(len(tied)), key=lambda at: table.name(int(tied[at])))
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
    return tuple(
        Candidate(
            table.name(int(rows[at])),
            _plain(totals[at]),
            tuple((name, _plain(part[at])) for name, part in parts),
        )
        for at in [chosen, *ranked][:size]
    )


def _plain(number: Any) -> float:
    """Whole scores as whole numbers."""
    value = float(number)
    return int(value) if value.is_integer() else value
