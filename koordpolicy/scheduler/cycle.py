"""The first half of a scheduling cycle: what the profile says of all nodes about one pod.

`judge` gives the masks of each filter and the scores of each score, for all nodes or for those that
changed; `choosing.choose` makes a decision of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.mechanism.columns import Mask
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.mechanisms import ParameterError, Parameters, Scores, Verdicts
from koordpolicy.scheduler.nodes import NodeView, Rows
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.profile import Profile, Step

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
