"""Comparing: everything against the row program, counted, disagreements kept."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.graph.testing.celpython import FAILED
from koordpolicy.graph.testing.celpython import same as loosely_same
from koordpolicy.language.cel.defects import SEEN
from koordpolicy.language.cel.values_equality import equal
from tests.conformance.values import same
from tests.differential.cases import Case
from tests.differential.deviations import deviation
from tests.differential.engines import OURS, REFEREES, Checked, Skipped, rows
from tests.differential.outcomes import Bound, Error, Failed, Refused
from tests.differential.referees import Referee

_EMPTY_RANGE = re.compile(r"(?:\[\]|\{\}|optional\.none\(\))\)*\.\w+\(\w+, ")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An engine that gives another value than the row program, on a row of a case."""

    case: Case
    engine: str
    row: int
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return (
            f"{self.engine}: {self.case.text}\n  row program: {_shown(self.ours)}\n"
            f"  {self.engine}: {_shown(self.theirs)}\n  values: {dict(self.case.rows[self.row])}"
        )


@dataclass(slots=True)
class Totals:
    """What a run counted: expressions, those compared by engine, those skipped by engine and reason."""

    expressions: int = 0
    errors: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, Counter[str]] = field(default_factory=dict)
    disagreements: list[Disagreement] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def add(self, other: "Totals") -> None:
        """Take in what another process counted."""
        self.expressions += other.expressions
        self.errors += other.errors
        self.compared.update(other.compared)
        for engine, reasons in other.skipped.items():
            self.skipped.setdefault(engine, Counter()).update(reasons)
        self.disagreements.extend(other.disagreements)


class Run:
    """Visits cases with what is named, of this process, and with programs of their own."""

    def __init__(self, named: Sequence[str] = (*OURS, *REFEREES), programs: Sequence[Referee] = ()) -> None:
        self._engines = {name: engine for name, engine in {**OURS, **REFEREES}.items() if name in named}
        self._programs = programs
        self.totals = Totals()

    def visit(self, cases: Sequence[Case]) -> None:
        """Ask everything about some cases; an expression met before is not asked again."""
        totals = self.totals
        fresh: list[Checked] = []
        for case in cases:
            key = hash((case.family, case.text))
            if key not in totals.seen:
                totals.seen.add(key)
                if (one := self._checked(case)) is not None:
                    fresh.append(one)
        asked = [(program, self._hand_in(program, fresh)) for program in self._programs]
        ours = {id(one): self._ours(one) for one in fresh}
        for program, batch in asked:
            if not batch:
                continue
            for one, theirs in zip(batch, program.answers(), strict=True):
                mine = ours[id(one)]
                if mine is not None:
                    self.compare(one, program.name, mine, theirs)

    def _checked(self, case: Case) -> Checked | None:
        """The case's typed form; None where an empty literal is a macro's range, and the checker refuses.

        What such a literal would hold is of the type that the first function wants, which those that follow may not.
        Whatever else the checker refuses is a fault of what draws cases: raises AssertionError.
        """
        try:
            return Checked(case)
        except AssertionError:
            if _EMPTY_RANGE.search(case.text) is None:
                raise
        self._skip("row program", "refused: an empty literal as a range, whose variables want two types")
        return None

    def _hand_in(self, program: Referee, cases: Sequence[Checked]) -> list[Checked]:
        batch: list[Checked] = []
        for one in cases:
            reason = program.outside(one)
            if reason is None:
                batch.append(one)
            else:
                self._skip(program.name, reason)
        if batch:
            program.ask(batch)
        return batch

    def _ours(self, one: Checked) -> list[Any] | None:
        """The row program's values, compared with every engine in this process; None past a limit of ours."""
        totals = self.totals
        totals.expressions += 1
        ours = self._asked("row program", rows, one, None)
        if ours is None:
            return None
        totals.errors += sum(isinstance(value, Failed) for value in ours) == len(ours)
        for name, engine in self._engines.items():
            theirs = self._asked(name, engine, one, ours[0])
            if theirs is None:
                continue
            totals.compared[name] += 1
            for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                if not (_agree(mine, other) if name in OURS else loosely_same(_foreign(mine), other)):
                    totals.disagreements.append(Disagreement(one.case, name, at, mine, other))
                    break
        return ours

    def _asked(
        self, name: str, engine: Callable[[Checked], list[Any]], one: Checked, ours: Any
    ) -> list[Any] | None:
        """What an engine gives; None when it is not asked, or when it meets an exception that is none of the language's."""
        before = SEEN.copy()
        try:
            found = engine(one)
        except Skipped as reason:
            self._skip(name, str(reason))
            return None
        except Exception as defect:  # noqa: BLE001  # any exception is what a run is to find
            self.totals.disagreements.append(Disagreement(one.case, name, 0, ours, defect))
            return None
        if survived := SEEN - before:
            self.totals.disagreements.append(Disagreement(one.case, name, 0, ours, survived))
            return None
        return found

    def compare(self, one: Checked, name: str, ours: Sequence[Any], answer: Refused | Sequence[Any]) -> None:
        """Count what a referee that is a program answers, and keep the first row where it says otherwise."""
        refused = isinstance(answer, Refused)
        theirs: Sequence[Any] = [answer] * len(ours) if isinstance(answer, Refused) else answer
        for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            if other is Bound:
                self._skip(name, "a limit of its own")
                return
            failed = isinstance(other, Error | Refused)
            if isinstance(mine, Failed) and failed:
                continue
            if not isinstance(mine, Failed) and not failed and same(mine, other):
                continue
            reason = deviation(name, one.node, mine, other)
            if reason is not None:
                self._skip(name, reason)
                return
            self.totals.disagreements.append(Disagreement(one.case, name, at, mine, other))
            return
        self.totals.compared[f"{name}, refused by both" if refused else name] += 1

    def _skip(self, engine: str, reason: str) -> None:
        self.totals.skipped.setdefault(engine, Counter())[reason] += 1


def disagreements(case: Case, programs: Sequence[Referee] = ()) -> list[Disagreement]:
    """What there is to say about one case."""
    run = Run(programs=programs)
    run.visit([case])
    return run.totals.disagreements


def _agree(one: Any, other: Any) -> bool:
    """Ours with ours: two errors, or equal values of one class.

    Which error comes first where several parts fail is nobody's promise.
    """
    if isinstance(one, Failed) or isinstance(other, Failed):
        return isinstance(one, Failed) and isinstance(other, Failed)
    return same(one, other) or (type(one) is type(other) and equal(one, other))


def _foreign(value: Any) -> Any:
    if isinstance(value, Failed):
        return FAILED
    if isinstance(value, Mapping):
        return {key: _foreign(item) for key, item in value.items()}
    return value


def _shown(value: Any) -> str:
    return "an error" if value is FAILED else f"{type(value).__name__} {value!r}"
