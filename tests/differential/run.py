"""Comparing: every engine against the row program, counted, disagreements kept."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.graph.testing.celpython import FAILED, same
from koordpolicy.language.cel.values_equality import equal
from tests.differential.cases import Case
from tests.differential.engines import ENGINES, Checked, Failed, Skipped, checked, rows


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An engine that gives another value than the row program, on a row of a case."""

    case: Case
    engine: str
    row: int
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        ours = f"{type(self.ours).__name__} {self.ours!r}"
        return (
            f"{self.engine}: {self.case.text}\n  row program: {ours}\n"
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
    texts: set[str] = field(default_factory=set)

    def visit(self, case: Case) -> None:
        """Ask all engines of one case; an expression drawn again is not asked again."""
        if case.text in self.texts:
            return
        self.texts.add(case.text)
        self.expressions += 1
        one = checked(case)
        try:
            ours = rows(one)
        except Skipped as reason:
            self._skip("row program", str(reason))
            return
        self.errors += sum(isinstance(value, Failed) for value in ours) == len(ours)
        for name, engine in ENGINES.items():
            try:
                theirs = engine(one)
            except Skipped as reason:
                self._skip(name, str(reason))
                continue
            except Exception as defect:  # noqa: BLE001  # any exception is what a run is to find
                self.disagreements.append(Disagreement(case, name, 0, ours[0], defect))
                continue
            self.compared[name] += 1
            self._compare(one, name, ours, theirs)

    def _skip(self, engine: str, reason: str) -> None:
        self.skipped.setdefault(engine, Counter())[reason] += 1

    def _compare(self, one: Checked, engine: str, ours: list[Any], theirs: list[Any]) -> None:
        for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            if not (_agree(mine, other) if engine == "columns" else same(_foreign(mine), other)):
                self.disagreements.append(Disagreement(one.case, engine, at, mine, other))
                return


def disagreements(case: Case) -> list[Disagreement]:
    """What there is to say about one case."""
    totals = Totals()
    totals.visit(case)
    return totals.disagreements


def _agree(one: Any, other: Any) -> bool:
    """Ours with ours: two errors, or equal values of one class.

    Which error comes first where several parts fail is nobody's promise.
    """
    if isinstance(one, Failed) or isinstance(other, Failed):
        return isinstance(one, Failed) and isinstance(other, Failed)
    return type(one) is type(other) and (equal(one, other) or (one != one and other != other))


def _foreign(value: Any) -> Any:
    if isinstance(value, Failed):
        return FAILED
    if isinstance(value, Mapping):
        return {key: _foreign(item) for key, item in value.items()}
    return value


def _shown(value: Any) -> str:
    return "an error" if value is FAILED else f"{type(value).__name__} {value!r}"
