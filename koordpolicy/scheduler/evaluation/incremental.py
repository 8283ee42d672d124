"""An evaluation brought up to date node by node as nodes change.

Whoever asks about a few nodes need not ask by arrays: what depends on the pod alone is worked out once, and a
node costs a few plain functions of its facts.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation.answers import Filtered, Scored
from koordpolicy.scheduler.evaluation.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.ranking import Ranking
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.plugins.base import Facts
from koordpolicy.scheduler.plugins.verdicts import Refused


@dataclass(slots=True)
class _Refuser:
    """One part of a filter, and the nodes that it refuses (a byte a node: those of an array cost five times as much to read
    one by one): its plugin, asked by `ask` (None: only by arrays), or its expression, the program's `output`.
    """

    filtered: Filtered
    refuses: bytearray
    ask: "Callable[[Facts], Refused | None] | None" = None
    output: int | None = None


@dataclass(slots=True)
class _Scorer:
    """One score, the parts of it likewise."""

    scored: Scored
    ask: "Callable[[Facts], float] | None"
    output: int | None


class _Concerned(NamedTuple):
    """What can have another answer after a change of certain facts."""

    refusers: Sequence[_Refuser]
    scorers: Sequence[_Scorer]


class IncrementalEvaluator:
    """Keeps one evaluation, which looks nowhere beyond nodes, and its ranking up to date.

    `refresh` says whether it could; where it could not, the evaluation is void.
    """

    __slots__ = ("_ask", "_concerned", "_ranking", "_refusals", "_refusers", "_scorers")

    def __init__(self, cycle: Cycle, evaluation: Evaluation, ranking: Ranking) -> None:
        """Raises CelError, ParameterError and ObjectError, as asking the plugins does."""
        program = cycle.profile.evaluate
        outputs = {} if program is None else {name: at for at, name in enumerate(program.outputs)}
        self._ask = None if program is None else program.bound(cycle.records).ask
        self._ranking = ranking
        self._concerned: dict[frozenset[str], _Concerned | None] = {}
        evaluation.own()
        self._refusers = [
            part for one in evaluation.filters for part in _refusers(cycle, one, outputs.get(one.step.place))
        ]
        self._scorers = [_scorer(cycle, one, outputs) for one in evaluation.scores if one.scores is not None]
        refusals = np.zeros(evaluation.nodes, np.int16)
        for part in self._refusers:
            refusals += np.frombuffer(part.refuses, np.bool_)
        self._refusals = array("h", refusals.tobytes())

    def refresh(self, table: NodeTable, rows: Sequence[int], changed: frozenset[str]) -> bool:
        """Ask about some nodes anew of which these facts have changed."""
        if changed not in self._concerned:
            self._concerned[changed] = self._find_concerned(changed)
        concerned = self._concerned[changed]
        if concerned is None:
            return False
        try:
            return all(self._evaluate(row, table.row(row), concerned) for row in rows)
        except (CelError, ParameterError, ObjectError):
            return False  # whoever asks the usual way will say what is wrong

    def _evaluate(self, row: int, facts: Facts, concerned: _Concerned) -> bool:
        answers: Sequence[Any] = () if self._ask is None else self._ask(facts)
        for part in concerned.refusers:
            refused = part.refuses[row]
            if part.output is not None:
                refuses = answers[part.output] is not True
                if refuses != refused:
                    assert part.filtered.accepted is not None
                    part.filtered.accepted[row] = not refuses
                    part.filtered.failed |= isinstance(answers[part.output], CelError)
            else:
                assert part.ask is not None
                found = part.ask(facts)
                refuses = found is not None
                if refuses or refused:
                    verdicts = part.filtered.verdicts
                    assert verdicts is not None
                    verdicts.refused[:, row], verdicts.unresolvable[row] = found or (False, False)
            if refuses != refused:
                part.refuses[row] = refuses
                self._refusals[row] += 1 if refuses else -1
        for score in concerned.scorers:
            value: Any = 0 if score.ask is None else score.ask(facts)
            if score.output is not None:
                failed = isinstance(answers[score.output], CelError)
                if not failed:
                    value += answers[score.output]
                if failed or score.scored.failed is not None:
                    score.scored.note(row, failed=failed)
            assert score.scored.scores is not None
            score.scored.scores[row] = value
        return self._ranking.follow(row, passes=not self._refusals[row])

    def _find_concerned(self, changed: frozenset[str]) -> _Concerned | None:
        """The parts to ask; None when one of them cannot be asked node by node."""
        found = _Concerned(
            [part for part in self._refusers if not part.filtered.step.settled(changed)],
            [part for part in self._scorers if not part.scored.step.settled(changed)],
        )
        if any(part.ask is None and part.output is None for part in found.refusers) or any(
            part.scored.step.normalize != "None" or (part.ask is None and part.scored.step.plugin is not None)
            for part in found.scorers
        ):
            return None
        return found


def _refusers(cycle: Cycle, one: Filtered, output: int | None) -> Sequence[_Refuser]:
    found, plugin = [], one.step.plugin
    if one.verdicts is not None:
        ask = None
        if plugin is not None and plugin.filter_one is not None:
            reasons, ask = plugin.filter_one(cycle.view, one.step.values(cycle.records))
            assert reasons == one.verdicts.reasons
        found.append(_Refuser(one, bytearray(one.verdicts.refused.any(axis=0).tobytes()), ask))
    if one.accepted is not None:
        found.append(_Refuser(one, bytearray((~one.accepted).tobytes()), output=output))
    return found


def _scorer(cycle: Cycle, one: Scored, outputs: Mapping[str, int]) -> _Scorer:
    ask, plugin = None, one.step.plugin
    if plugin is not None and plugin.score_one is not None:
        ask = plugin.score_one(cycle.view, one.step.values(cycle.records))
    return _Scorer(one, ask, outputs[one.step.place] if one.step.expression else None)
