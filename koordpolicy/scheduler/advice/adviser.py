"""What would help, filter by filter."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms import node_affinity
from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.work import Work, finished
from koordpolicy.cluster.nodes import Rows
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.advice.knobs import Knobs, Turn
from koordpolicy.scheduler.advice.pace import Evaluations, TooMuch
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.refusals import reasons_of
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.plugins.base import PAUSE, RefusedNodes
from koordpolicy.scheduler.plugins.placement import unknown_labels
from koordpolicy.scheduler.plugins.verdicts import Missing
from koordpolicy.scheduler.step import Step

T = TypeVar("T")

_AFFINITY: Final = "NodeAffinity"

_REASONS: Final = 4
"""Reasons of one filter that are looked at, the most frequent first."""

_OTHERS: Final = "refused for other reasons, which fewer nodes have"

_TURNS: Final = 3
"""Values that are named for one filter, those for most nodes first."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What would help against one filter: `nodes` are those that it alone refuses, `reason` what it says of
    most of them. `cut` says that not all was tried that might help.

    Of nodes that several filters refuse, `filter` names these, and `changes` what is missing there; `several` says so.
    """

    filter: str
    reason: str
    nodes: int
    changes: tuple[str, ...]
    cut: bool = False
    several: bool = False

    @property
    def text(self) -> str:
        """The advice as a sentence without its full stop."""
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        if self.several:
            return "; ".join(
                (f"{nodes}: {self.reason}: no change to one of these alone would help", *self.changes)
            )
        if self.cut:
            changes = "; ".join((*self.changes, "not all was tried that might help"))
        else:
            changes = "; ".join(self.changes) or "nothing that could be changed would help"
        return f"{nodes}: {self.reason}: {changes}"


class Adviser:
    """Advises on pods of one profile, after at most so many evaluations each. Programs are made when they are first
    needed.
    """

    def __init__(self, graph: RuleGraph, profile: str, evaluations: int) -> None:
        self._most = evaluations
        self._graph = graph
        self._profile = profile
        self._knobs: dict[str, Knobs] = {}

    def advise(self, cycle: Cycle, evaluation: Evaluation, table: NodeTable) -> tuple[Advice, ...]:
        """The same as `pieces`, in one go."""
        return finished(self.pieces(cycle, evaluation, table, Evaluations(self._most)))

    def pieces(
        self, cycle: Cycle, evaluation: Evaluation, table: NodeTable, evaluations: Evaluations
    ) -> Work[tuple[Advice, ...]]:
        """What would help a pod that these answers are about, the filter that alone refuses most nodes first.

        The answers are not looked at any more after the first pause, nodes are. They may change, but neither come
        nor go before the end.
        """
        refused = list(_refused(evaluation))
        count = np.zeros(len(table), np.int64)
        for _, mask, _ in refused:
            count += mask
        alone = [(step, np.flatnonzero(mask & (count == 1)), reason) for step, mask, reason in refused]
        found: list[Advice] = []
        # What matters to most nodes first, in case the evaluations do not do for all.
        for step, rows, reason in sorted(alone, key=lambda one: -len(one[1])):
            if len(rows):
                for text, some in _by_reason(cycle, step, table, rows, reason, evaluations):
                    yield PAUSE
                    found.append((yield from self._advice(cycle, step, table, some, text, evaluations)))
        found.sort(key=lambda one: -one.nodes)
        told = self._with_unknown(cycle, table, found)
        if told and told[0].nodes == len(table):
            return told  # all nodes are accounted for
        several = yield from self._of_several(cycle, table, refused, count)
        # Reasons that are too rare to be looked at.
        left = int(np.count_nonzero(count)) - sum(one.nodes for one in (*told, *several))
        rest = (Advice("", _OTHERS, left, (), cut=True),) if left > 0 else ()
        return (*told, *several, *rest)

    def _of_several(
        self,
        cycle: Cycle,
        table: NodeTable,
        refused: Sequence[tuple[Step, Mask, str]],
        count: NDArray[np.int64],
    ) -> Work[tuple[Advice, ...]]:
        """What is said of nodes that more than one filter refuses, by these filters, those of most nodes first."""
        rows = np.flatnonzero(count > 1)
        if not len(rows):
            return ()
        masks = np.array([mask[rows] for _, mask, _ in refused])
        _, of, sizes = np.unique(masks, axis=1, return_inverse=True, return_counts=True)
        of = of.ravel()
        found: list[Advice] = []
        for group in np.argsort(-sizes, kind="stable")[:_REASONS].tolist():
            yield PAUSE
            some = rows[of == group]
            steps = [(step, reason) for step, mask, reason in refused if mask[some[0]]]
            texts: list[str] = []
            changes: list[str] = []
            for step, reason in steps:
                texts.append(reason or _first_said(cycle, step, some[:1], table))
                yield from _listed(self._missing(cycle, step, table, some), changes)
            names = ", ".join(step.name for step, _ in steps)
            reasons = f"{'; '.join(texts[:-1])}; and {texts[-1]}"
            found.append(Advice(names, reasons, len(some), tuple(changes), several=True))
        return tuple(found)

    def _missing(self, cycle: Cycle, step: Step, table: NodeTable, rows: Rows) -> Iterator[str | None]:
        """What a plugin misses on nodes, whoever else refuses them: one that bars nodes can tell."""
        if step.plugin is None or step.plugin.bars is None:
            return
        try:
            yield from (
                one
                for one in self._native(cycle, step, table, rows)
                if one is None or isinstance(one, Missing)
            )
        except (CelError, ParameterError, ObjectError):
            return

    def _with_unknown(self, cycle: Cycle, table: NodeTable, found: Sequence[Advice]) -> tuple[Advice, ...]:
        """The same, after what the pod asks for that there is not at all: one advice for one thing."""
        try:
            said = tuple(unknown_labels(cycle.view, table)) if len(table) else ()
        except ObjectError:
            said = ()
        if not said:
            return tuple(found)
        same = [one for one in found if (one.filter, one.reason) == (_AFFINITY, node_affinity.MISMATCH)]
        changes = (*said, *(change for one in same for change in one.changes))
        cut = any(one.cut for one in same)
        nowhere = Advice(_AFFINITY, node_affinity.MISMATCH, len(table), changes, cut)
        return (nowhere, *(one for one in found if one not in same))

    def _advice(
        self,
        cycle: Cycle,
        step: Step,
        table: NodeTable,
        rows: Rows,
        reason: str,
        evaluations: Evaluations,
    ) -> Work[Advice]:
        changes: list[str] = []
        cut = False
        try:
            yield from _listed(self._native(cycle, step, table, rows), changes)
            if step.expression:
                turns: list[Turn] = []
                try:
                    yield from _listed(self._turns(cycle, step, table, rows, evaluations), turns)
                finally:
                    changes += (turn.text for turn in sorted(turns, key=_reach, reverse=True)[:_TURNS])
        except TooMuch:
            cut = True
        except (CelError, ParameterError, ObjectError):
            changes = []
        return Advice(step.name, reason, len(rows), tuple(changes), cut)

    def _native(self, cycle: Cycle, step: Step, table: NodeTable, rows: Rows) -> Iterator[str | None]:
        helper = None if step.plugin is None else step.plugin.advice
        if helper is None:
            return iter(())
        return helper(cycle.view, step.values(cycle.records), RefusedNodes(table, rows, cycle.state))

    def _turns(
        self, cycle: Cycle, step: Step, table: NodeTable, rows: Rows, evaluations: Evaluations
    ) -> Iterator[Turn | None]:
        knobs = self._knobs.get(step.name)
        if knobs is None:
            knobs = self._knobs[step.name] = Knobs(self._graph, self._profile, step)
        return knobs.turns(table, cycle.records, rows, evaluations)


def _first_said(cycle: Cycle, step: Step, rows: Rows, table: NodeTable) -> str:
    """What policy says of the first of some nodes that a filter refuses."""
    return reasons_of(cycle, step, rows, table).texts[0]


def _listed(found: Iterator[T | None], into: list[T]) -> Work[None]:
    """Gather what is found, and pause where it does."""
    for one in found:
        if one is None:
            yield PAUSE
        else:
            into.append(one)


def _reach(turn: Turn) -> int:
    return turn.nodes


def _by_reason(
    cycle: Cycle, step: Step, table: NodeTable, rows: Rows, reason: str, evaluations: Evaluations
) -> Sequence[tuple[str, Rows]]:
    """The nodes that a filter refuses, by what policy says of them; the most frequent reasons only.

    Once the evaluations are spent, one node speaks for all.
    """
    some = rows
    try:
        evaluations.spend()
    except TooMuch:
        some = rows[:1]
    if reason:
        return [(reason, rows)]
    found = reasons_of(cycle, step, some, table)
    groups = found.groups(rows) if len(some) == len(rows) else [(found.texts[0], rows)]
    return sorted(groups, key=lambda one: -len(one[1]))[:_REASONS]


def _refused(evaluation: Evaluation) -> Iterator[tuple[Step, Mask, str]]:
    """For each filter that refuses nodes, which, and for what reason where it has just one."""
    for one in evaluation.filters:
        passing = one.passing()
        if passing is not None:
            verdicts = one.verdicts
            said = (
                []
                if verdicts is None
                else [text for text, row in zip(verdicts.reasons, verdicts.refused, strict=True) if row.any()]
            )
            yield one.step, ~passing, ", ".join(said)
