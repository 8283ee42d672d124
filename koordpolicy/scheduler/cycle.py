"""One scheduling cycle as plain functions: judge all nodes by the profile, choose one, say why.

judge    masks of each filter and scores of each score, for all nodes or for those that changed
choose   filters in order, scores normalised and weighted, ties broken; the decision
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.mechanism.columns import Mask
from koordpolicy.mechanism.normalize import normalized
from koordpolicy.mechanism.sampling import first_found, nodes_to_find
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.decision import Candidate, Decision, Refusals
from koordpolicy.scheduler.mechanisms import ParameterError, Parameters, Scores, Verdicts
from koordpolicy.scheduler.nodes import NodeView, Rows
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.profile import FIRST, Profile, Step

Draw = Callable[[int], int]
"""Draws a number from 0 to n - 1."""

Records = Mapping[str, Any]
"""The records of a decision by root, the node excepted."""


class CycleProblem(Exception):
    """The question itself failed: no answer is to be had about any node."""


@dataclass(slots=True)
class Judged:
    """What the profile says of every node about one pod.

    `verdicts` are those of the mechanism of each filter (None where it has none), `accepted` what each
    filter's expression says (None likewise), `scores` the scores in order; None for one that takes no
    part. A score's weight is 0 where it is switched off.
    """

    verdicts: list[Verdicts | None]
    accepted: list[Mask | None]
    scores: list[Scores | None]
    weights: list[int]


@dataclass(frozen=True, slots=True)
class Question:
    """A pod, asked of a profile. `view` is the pod, `records` the facts that expressions read."""

    profile: Profile
    view: PodView
    records: Records


def judge(question: Question, table: NodeTable, rows: Rows | None = None) -> Judged:
    """Ask all filters and scores about all nodes, or about some rows. Raises CycleProblem."""
    profile = question.profile
    nodes = NodeView(table, rows)
    try:
        found = (
            {}
            if profile.judge is None or nodes.count == 0
            else profile.judge.call_all(table, question.records, rows)
        )
        judged = Judged([], [], [], [])
        for step in profile.filters:
            if step.enabled.value(question.records) is False:
                judged.verdicts.append(None)
                judged.accepted.append(None)
                continue
            parameters = _parameters(step, question.records)
            judged.verdicts.append(_verdicts(step, question.view, nodes, parameters))
            judged.accepted.append(_accepted(found.get(f"filter:{step.name}")))
        for step in profile.scores:
            weight = _weight(step, question.records)
            judged.weights.append(weight)
            judged.scores.append(_scores(step, question, nodes, found) if weight else None)
    except (CelError, ParameterError, ObjectError) as problem:
        raise CycleProblem(str(problem)) from problem
    return judged


def _parameters(step: Step, records: Records) -> Parameters:
    return {name: asked.value(records) for name, asked in step.parameters}


def _verdicts(step: Step, view: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts | None:
    if step.mechanism is None or step.mechanism.filter is None:
        return None
    return step.mechanism.filter(view, nodes, parameters)


def _accepted(result: ColumnResult | None) -> Mask | None:
    """Where an expression is true. A node that it fails on is refused, with the error as its reason."""
    if result is None:
        return None
    accepted: Mask = result.values
    return accepted if result.errors is None else accepted & ~result.errors


def _weight(step: Step, records: Records) -> int:
    if step.enabled.value(records) is False or step.weight is None:
        return 0
    weight = step.weight.value(records)
    return weight if isinstance(weight, int) else 0


def _scores(
    step: Step, question: Question, nodes: NodeView, found: Mapping[str, ColumnResult]
) -> Scores | None:
    """A score before normalisation: the mechanism's and the expression's, together where both are given."""
    scores: Scores | None = None
    if step.mechanism is not None and step.mechanism.score is not None:
        parameters = _parameters(step, question.records)
        scores = step.mechanism.score(question.view, nodes, parameters)
    result = found.get(f"score:{step.name}")
    if result is not None:
        value = result.values if result.errors is None else np.where(result.errors, 0, result.values)
        scores = value if scores is None else scores + value
    return scores


# --- choosing ------------------------------------------------------------------------------------


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


def choose(question: Question, judged: Judged, table: NodeTable, choice: Choice) -> Decision:
    """The decision that follows from what was judged."""
    pod, profile = question.view.pod, question.profile
    feasible = np.ones(len(table), np.bool_)
    for verdicts, accepted in zip(judged.verdicts, judged.accepted, strict=True):
        if verdicts is not None:
            feasible &= ~verdicts.refused.any(axis=0)
        if accepted is not None:
            feasible &= accepted
    rows = np.flatnonzero(feasible)
    refusals = _refusals(question, judged, table) if choice.refusals or not len(rows) else ()
    if not len(rows):
        return Decision(pod.key, pod.uid, "", len(table), 0, refusals, digest=profile.digest)
    feasible_count = len(rows)
    rows = _sampled(question, rows, len(table), choice)
    parts = _weighted(profile.scores, judged, rows)
    totals = np.zeros(len(rows)) if not parts else np.sum([part for _, part in parts], axis=0, dtype=float)
    chosen = _best(question, table, rows, totals, choice.draw)
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


def _sampled(question: Question, rows: Rows, nodes: int, choice: Choice) -> Rows:
    """The feasible nodes that are looked at: all of them, or as many as policy says."""
    try:
        share = question.profile.sampling.value(question.records)
    except CelError:
        return rows
    if not isinstance(share, float) or share >= 100:
        return rows
    found, seen = first_found(rows, nodes, choice.start % nodes, nodes_to_find(nodes, int(share)))
    choice.start = (choice.start + seen) % nodes
    return found


def _refusals(question: Question, judged: Judged, table: NodeTable) -> tuple[Refusals, ...]:
    """Why no node is left: each node counts for the first filter that refused it."""
    left = np.ones(len(table), np.bool_)
    found: list[Refusals] = []
    for step, verdicts, accepted in zip(
        question.profile.filters, judged.verdicts, judged.accepted, strict=True
    ):
        if verdicts is not None:
            refused = verdicts.refused & left
            for reason, mask in zip(verdicts.reasons, refused, strict=True):
                _count(found, step.name, reason, mask, ~verdicts.hopeless)
            left &= ~refused.any(axis=0)
        if accepted is not None:
            rows = np.flatnonzero(left & ~accepted)
            if len(rows):
                counted = reasons_of(question, step, rows, table)
                found.extend(Refusals(step.name, reason, nodes) for reason, nodes in counted.items())
                left &= accepted
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


def reasons_of(
    question: Question, step: Step, rows: Rows | Sequence[int], table: NodeTable
) -> dict[str, int]:
    """Why a filter's expression refused the nodes of some rows: how many for each reason of policy's."""
    numbers = np.asarray(rows, dtype=np.int64)
    program = question.profile.reasons.get(step.name)
    if program is None:
        return {_without_reason(question, step, int(numbers[0]), table): len(numbers)}
    result = program.call(table, question.records, numbers)
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
        counts[_without_reason(question, step, first, table)] = int(np.count_nonzero(silent))
    return counts


def _without_reason(question: Question, step: Step, row: int, table: NodeTable) -> str:
    """What stands for the reason of nodes for which policy gives none.

    Where the filter could not be evaluated, what went wrong on one of them speaks for all.
    """
    text = f"node(s) didn't pass the filter {step.name}"
    if question.profile.judge is None:
        return text
    found = question.profile.judge.call_all(table, question.records, np.array([row]))
    error = found[f"filter:{step.name}"].error(0)
    return text if error is None else f"{text}: {error}"


def _weighted(steps: Sequence[Step], judged: Judged, rows: Rows) -> list[tuple[str, NDArray[Any]]]:
    """The scores of the feasible nodes by name, normalised among them, times their weights."""
    parts = []
    for step, scores, weight in zip(steps, judged.scores, judged.weights, strict=True):
        if scores is not None and weight:
            parts.append((step.name, normalized(step.normalize, scores[rows]) * weight))
    return parts


def _best(question: Question, table: NodeTable, rows: Rows, totals: NDArray[np.float64], draw: Draw) -> int:
    """The place among `rows` of the node that is taken."""
    tied = np.flatnonzero(totals == totals.max())
    if len(tied) == 1:
        return int(tied[0])
    try:
        ties = question.profile.ties.value(question.records)
    except CelError:
        ties = FIRST
    if ties == FIRST:
        return int(min(tied, key=lambda at: table.name(int(rows[at]))))
    return int(tied[draw(len(tied))])


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
