"""The answers about one kind of pods, followed node by node as nodes change.

Whoever judges a few nodes anew need not ask by arrays: what depends on the pod alone is worked out once, and a
node costs a few plain functions of its facts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle, Evaluation
from koordpolicy.scheduler.plugins import ParameterError, Scores, Verdicts
from koordpolicy.scheduler.plugins.base import Refused
from koordpolicy.scheduler.standing import Standing
from koordpolicy.scheduler.step import Step

Facts = Mapping[str, Any]


@dataclass(slots=True)
class _Filter:
    """A filter that may refuse other nodes now: its plugin's part, or its expression's."""

    step: Step
    refuses: Mask
    """The nodes that it refuses."""
    verdicts: Verdicts | None = None
    ask: "Callable[[Facts], Refused | None] | None" = None
    accepted: Mask | None = None
    output: int = 0


@dataclass(slots=True)
class _Score:
    step: Step
    scores: Scores
    ask: "Callable[[Facts], float] | None" = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class _Concerned:
    """The steps whose answers can be others after a change of certain facts."""

    plugins: Sequence[_Filter]
    expressions: Sequence[_Filter]
    scores: Sequence[_Score]


class Following:
    """What was evaluation of all nodes, in arrays that are ours to write, with how they stand by that.

    None of it looks beyond nodes. `refresh` says whether it could follow; where it could not, everything kept
    here is void.
    """

    __slots__ = ("_ask", "_concerned", "_filters", "_judged", "_refusals", "_scores", "_standing")

    def __init__(self, cycle: Cycle, evaluation: Evaluation, standing: Standing) -> None:
        """Raises CelError, ParameterError and ObjectError, as asking the plugins does."""
        profile = cycle.profile
        program = profile.evaluate
        outputs = {} if program is None else {name: at for at, name in enumerate(program.outputs)}
        self._ask = None if program is None else program.bound(cycle.records).ask
        self._judged = evaluation
        self._standing = standing
        self._concerned: dict[frozenset[str], _Concerned | None] = {}
        self._filters = [
            one
            for step, verdicts, accepted in zip(
                profile.filters, evaluation.verdicts, evaluation.accepted, strict=True
            )
            for one in _filters(cycle, step, verdicts, accepted, outputs)
        ]
        self._refusals: NDArray[np.int16] = np.zeros(len(standing.totals), np.int16)
        for one in self._filters:
            self._refusals += one.refuses
        self._scores = [
            _score(cycle, step, scores, outputs)
            for step, scores in zip(profile.scores, evaluation.scores, strict=True)
            if scores is not None
        ]

    def refresh(self, table: NodeTable, rows: Sequence[int], changed: frozenset[str]) -> bool:
        """Judge some nodes anew of which these facts have changed."""
        if changed not in self._concerned:
            self._concerned[changed] = self._find_concerned(changed)
        concerned = self._concerned[changed]
        if concerned is None:
            return False
        try:
            return all(self._judge(row, table.row(row), concerned) for row in rows)
        except (CelError, ParameterError, ObjectError):
            return False  # whoever asks the usual way will say what is wrong

    def _judge(self, row: int, facts: Facts, concerned: _Concerned) -> bool:
        answers = None if self._ask is None else self._ask(facts)
        for one in concerned.plugins:
            assert one.ask is not None
            found = one.ask(facts)
            if found is not None or one.refuses[row]:
                assert one.verdicts is not None
                refused, unresolvable = (False, False) if found is None else found
                one.verdicts.refused[:, row], one.verdicts.unresolvable[row] = refused, unresolvable
                self._note(one, row, refuses=found is not None)
        for one in concerned.expressions:
            assert one.accepted is not None
            assert answers is not None
            accepted = answers[one.output] is True
            one.accepted[row] = accepted
            self._note(one, row, refuses=not accepted)
        for score in concerned.scores:
            value: Any = 0 if score.ask is None else score.ask(facts)
            if score.output is not None:
                assert answers is not None
                said: Any = answers[score.output]
                if not isinstance(said, CelError):
                    value += said
            score.scores[row] = value
        return self._standing.follow(self._judged, row, passes=not self._refusals[row])

    def _note(self, one: _Filter, row: int, *, refuses: bool) -> None:
        if bool(one.refuses[row]) != refuses:
            one.refuses[row] = refuses
            self._refusals[row] += 1 if refuses else -1

    def _find_concerned(self, changed: frozenset[str]) -> _Concerned | None:
        """The steps to ask; None when one of them cannot be asked node by node."""
        filters = [one for one in self._filters if not one.step.settled(changed)]
        scores = [one for one in self._scores if not one.step.settled(changed)]
        plugins = [one for one in filters if one.verdicts is not None]
        for one in plugins:
            if one.ask is None:
                return None
        for score in scores:
            if score.step.normalize != "None" or (score.ask is None and score.step.plugin is not None):
                return None
        return _Concerned(plugins, [one for one in filters if one.accepted is not None], scores)


def _filters(
    cycle: Cycle,
    step: Step,
    verdicts: Verdicts | None,
    accepted: Mask | None,
    outputs: Mapping[str, int],
) -> Sequence[_Filter]:
    found = []
    if verdicts is not None:
        ask = None
        if step.plugin is not None and step.plugin.filter_one is not None:
            reasons, ask = step.plugin.filter_one(cycle.view, step.values(cycle.records))
            assert reasons == verdicts.reasons
        found.append(_Filter(step, np.array(verdicts.refused.any(axis=0)), verdicts, ask))
    if accepted is not None:
        found.append(_Filter(step, ~accepted, accepted=accepted, output=outputs[step.place]))
    return found


def _score(cycle: Cycle, step: Step, scores: Scores, outputs: Mapping[str, int]) -> _Score:
    ask = None
    if step.plugin is not None and step.plugin.score_one is not None:
        ask = step.plugin.score_one(cycle.view, step.values(cycle.records))
    return _Score(step, scores, ask, outputs[step.place] if step.expression else None)
