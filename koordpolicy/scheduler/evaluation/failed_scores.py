"""Scores that could not be evaluated: they count 0 on a node, and whoever wrote them is to know."""

import numpy as np

from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.decision import FailedScore
from koordpolicy.scheduler.evaluation.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.refusals import error_on


def failed_scores(cycle: Cycle, evaluation: Evaluation, table: NodeTable) -> tuple[FailedScore, ...]:
    """The scores whose expressions fail on feasible nodes, in order, each with what goes wrong on the first of these."""
    feasible, found = evaluation.feasible(), []
    for one in evaluation.scores:
        if one.failed is None:
            continue
        rows = np.flatnonzero(one.failed if feasible is None else one.failed & feasible)
        if len(rows):
            found.append(
                FailedScore(one.step.name, len(rows), error_on(cycle, one.step, int(rows[0]), table))
            )
    return tuple(found)
