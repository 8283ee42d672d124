"""The first half of a scheduling cycle: what the profile says of all nodes about one pod.

`judge` gives the masks of each filter and the scores of each score, for all nodes or for those that
changed; `choosing.choose` makes a decision of them.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns import ColumnResult
from koordpolicy.mechanism.columns import Mask
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.mechanisms import ParameterError, Scores, Verdicts
from koordpolicy.scheduler.nodes import NodeView, Rows
from koordpolicy.scheduler.pods import PodView
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.step import Step
from koordpolicy.scheduler.surroundings import Surroundings
from koordpolicy.scheduler.volume_plan import NOTHING_TO_BIND, VolumePlan

Records = Mapping[str, Any]
"""The records of a decision by root, the node excepted."""


Stamps: TypeAlias = dict[str, Hashable]
"""The stamps of mechanisms by where they stand: `filter:NAME`, `score:NAME`."""


class CycleProblem(Exception):
    """The question itself failed: no answer is to be had about any node.

    `step` is the filter or score that failed (`filter:NAME`), empty where that is not known; `cause` is an error that
    nobody foresaw, None for one of policy, of a parameter or of the pod.
    """

    def __init__(self, text: str, step: str = "", cause: Exception | None = None) -> None:
        super().__init__(text)
        self.step = step
        self.cause = cause

    @classmethod
    def of(cls, problem: Exception, step: Step | None = None) -> "CycleProblem":
        """Whatever was raised, over a step if one was being asked."""
        if isinstance(problem, CycleProblem):
            return problem
        known = isinstance(problem, CelError | ParameterError | ObjectError)
        return cls(str(problem), "" if step is None else step.place, None if known else problem)


@dataclass(slots=True)
class Judged:
    """What the profile says of every node about one pod.

    `verdicts` are those of the mechanism of each filter (None where it has none), `accepted` what each
    filter's expression says (None likewise), `scores` the scores in order; None for one that takes no
    part. A score's weight is 0 where it is switched off. `barred` nodes are promised to other pods. `stamps`
    are those of the mechanisms that look beyond nodes and have something to say, as `filter:NAME` and
    `score:NAME`.
    """

    verdicts: list[Verdicts | None]
    accepted: list[Mask | None]
    scores: list[Scores | None]
    weights: list[int]
    barred: Mask | None = None
    stamps: Stamps = field(default_factory=dict)

    def refusing(self, row: int) -> "Judged":
        """The same, one more node barred that passes by itself but not with those it is promised to."""
        first = next(
            one for one in (*(v.hopeless for v in self.verdicts if v), *self.accepted) if one is not None
        )
        barred = np.zeros(len(first), np.bool_) if self.barred is None else self.barred.copy()
        barred[row] = True
        return replace(self, barred=barred)


@dataclass(frozen=True, slots=True)
class Question:
    """A pod, asked of a profile. `view` is the pod, `records` the facts that expressions read.

    `around` is what there is beside nodes; without it, mechanisms that look beyond nodes are not asked.
    """

    profile: Profile
    view: PodView
    records: Records
    around: Surroundings | None = None


def judge(
    question: Question,
    table: NodeTable,
    rows: Rows | None = None,
    *,
    local_only: bool = False,
    timed_only: bool = False,
    known: Judged | None = None,
    changed: frozenset[str] | None = None,
) -> Judged:
    """Ask all filters and scores about all nodes, or about some rows. Raises CycleProblem.

    `local_only` asks only filters whose verdict about a node follows from its row, and no scores: for
    tables of nodes that are only supposed. `timed_only` asks only filters that read the time, and no scores: for
    what was asked before as of another moment. Mechanisms whose stamps differ from those of what is `known` of
    all nodes are asked about all of them again; what is known by mechanisms that read none of the `changed`
    facts (None: any may have changed) is taken over.
    """
    profile, records = question.profile, question.records
    nodes = NodeView(table, rows, question.around)
    judged = Judged(
        [None] * len(profile.filters),
        [None] * len(profile.filters),
        [None] * len(profile.scores),
        [0] * len(profile.scores),
    )
    step: Step | None = None
    try:
        found = (
            {} if profile.judge is None or nodes.count == 0 else profile.judge.call_all(table, records, rows)
        )
        stamps = judged.stamps = {} if local_only else stamps_of(question)
        for at, step in enumerate(profile.filters):
            if (step.speaks_by_stamp and step.place not in stamps) or (timed_only and not step.reads_time):
                continue
            if known is not None and step.settled(changed):
                judged.verdicts[at] = known.verdicts[at]
            elif step.enabled.value(records) is not False:
                if not step.looks_beyond or step.place in stamps:
                    view = _asked(step, stamps, nodes, known)
                    judged.verdicts[at] = _verdicts(step, question, view)
                if step.expression:
                    judged.accepted[at] = _accepted(found.get(step.place))
        if not (local_only or timed_only):
            for at, step in enumerate(profile.scores):
                if known is not None and step.settled(changed):
                    judged.weights[at], judged.scores[at] = known.weights[at], known.scores[at]
                elif weight := step.weighs(records):
                    judged.weights[at] = weight
                    asks = not step.looks_beyond or step.place in stamps
                    seen = _asked(step, stamps, nodes, known) if asks else None
                    judged.scores[at] = _scores(step, question, seen, found.get(step.place))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    return judged


def stamps_of(question: Question) -> Stamps:
    """The stamps of the mechanisms that look beyond nodes and have something to say."""
    found: Stamps = {}
    around = question.around
    if around is not None:
        for name, step, stamp in question.profile.beyond:
            made = stamp(question.view, around, lambda step=step: step.values(question.records))  # type: ignore[misc]
            if made is not None:
                found[name] = made
    return found


def unchanged(question: Question, known: Judged) -> bool:
    """Whether answers about nodes that have not changed would still be the same."""
    try:
        found = stamps_of(question)
    except (CelError, ParameterError, ObjectError):
        return False
    return found.keys() == known.stamps.keys() and not any(stale(known, found, name) for name in found)


def stale(known: Judged, fresh: Stamps, name: str) -> bool:
    """Whether what is known of a mechanism's answers does not hold any more, though no node has changed.

    One by one: a dict finds a stamp equal to itself, though it says that it equals nothing.
    """
    return bool(known.stamps.get(name) != fresh.get(name))


def _asked(step: Step, stamps: Stamps, nodes: NodeView, known: Judged | None) -> NodeView:
    """The nodes that the mechanism of a step is asked about."""
    if known is None or not step.looks_beyond or not stale(known, stamps, step.place):
        return nodes
    return nodes.whole()


def reservation(question: Question, table: NodeTable, node: str) -> VolumePlan:
    """What the mechanisms of filters want done before the pod is bound to a node. Raises CycleProblem."""
    nodes = NodeView(table, np.array([table.index(node)]), question.around)
    step: Step | None = None
    try:
        for step in question.profile.filters:
            mechanism = step.mechanism
            if mechanism is None or mechanism.reserve is None:
                continue
            if step.enabled.value(question.records) is not False:
                return mechanism.reserve(question.view, nodes, step.values(question.records))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
    return NOTHING_TO_BIND


def _verdicts(step: Step, question: Question, nodes: NodeView) -> Verdicts | None:
    if step.mechanism is None or step.mechanism.filter is None:
        return None
    return step.mechanism.filter(question.view, nodes, step.values(question.records))


def _accepted(result: ColumnResult | None) -> Mask | None:
    """Where an expression is true. A node that it fails on is refused, with the error as its reason."""
    if result is None:
        return None
    accepted: Mask = result.values
    return accepted if result.errors is None else accepted & ~result.errors


def _scores(
    step: Step, question: Question, nodes: NodeView | None, result: ColumnResult | None
) -> Scores | None:
    """A score before normalisation: the mechanism's and the expression's, together where both are given."""
    scores: Scores | None = None
    if nodes is not None and step.mechanism is not None and step.mechanism.score is not None:
        scores = step.mechanism.score(question.view, nodes, step.values(question.records))
    if result is not None:
        value = result.values if result.errors is None else np.where(result.errors, 0, result.values)
        scores = value if scores is None else scores + value
    return scores


def ranked(step: Step, question: Question, table: NodeTable, rows: Rows) -> Scores | None:
    """A score of the nodes that are left, in view of each other. Raises CycleProblem."""
    assert step.mechanism is not None
    assert step.mechanism.rank is not None
    nodes = NodeView(table, None, question.around)
    try:
        return step.mechanism.rank(question.view, nodes, rows, step.values(question.records))
    except Exception as problem:
        raise CycleProblem.of(problem, step) from problem
