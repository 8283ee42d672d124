"""What is wanted: a number of the report in CEL, and constraints on it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.measures import NEEDS, OFFER, REPORT, measured, unit_of
from koordpolicy.diagnostics import Severity
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check_as
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.recovery import parse_all
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import BOOL, DOUBLE, Type, record
from koordpolicy.language.facts.table import FactTable
from koordpolicy.simulator.comparison import Compared

_ROOT: Final = "report"
_SHARE: Final = "share"
_ENVIRONMENT: Final = Environment(
    variables={_ROOT: record(REPORT.name)},
    functions=FUNCTIONS,
    facts=FactTable((REPORT, OFFER)),
    homogeneous_literals=True,
    literal_checks=True,
)


@dataclass(frozen=True, slots=True)
class Value:
    """What one simulation is worth: the objective, and which constraints it breaks, by their text."""

    objective: float
    broken: tuple[str, ...] = ()


class Objective:
    """An objective with its constraints, compiled. Raises `CannotRunError` for what has no meaning, with its place.

    `unit` is what it counts; empty where that is no single thing.
    """

    def __init__(self, text: str, constraints: Sequence[str], *, maximise: bool) -> None:
        self.text, self.maximise, self.constraints = text, maximise, tuple(constraints)
        flag = "--maximise" if maximise else "--minimise"
        read = {(flag, text): _checked(flag, text, DOUBLE)}
        read |= {("--subject-to", one): _checked("--subject-to", one, BOOL) for one in constraints}
        self._read = {where: facts_of(node) for where, node in read.items()}
        self._value = compile_row((_ROOT,), read[flag, text])
        self.unit = unit_of(read[flag, text])
        self._holds = {one: compile_row((_ROOT,), read["--subject-to", one]) for one in constraints}

    def demand(self, parts: Collection[str]) -> None:
        """Raise CannotRunError for what stands in a part of the report that is not among those that there will be."""
        for (flag, text), facts in self._read.items():
            for part in sorted({path.partition(".")[0] for name, path in facts if name == REPORT.name}):
                if part in NEEDS and part not in parts:
                    raise CannotRunError(f"{flag} `{text}`: there will be no `report.{part}`; {NEEDS[part]}")

    def value(self, report: Mapping[str, Any]) -> Value:
        """What a report is worth. Raises `CannotRunError` where an expression has no value of it."""
        facts = measured(report)
        number = float(_asked(self._value, self.text, facts))
        if not math.isfinite(number):
            raise CannotRunError(f"`{self.text}` gives {number}, which is no number to compare")
        broken = tuple(text for text, one in self._holds.items() if not _asked(one, text, facts))
        return Value(number, broken)

    def read_by(self, constraint: str) -> list[str]:
        """The numbers of the report that a constraint reads, by their paths."""
        return sorted(
            path for name, path in self._read["--subject-to", constraint] if name == REPORT.name and path
        )

    def shown(self, value: float) -> str:
        """A value of the objective, with its unit."""
        scale, unit = (100, "%") if self.unit == _SHARE else (1, self.unit)
        return f"{scale * value:.4g} {unit}".rstrip()

    def difference(self, one: Compared) -> str:
        """How far two values of it are apart, with the interval; shares in percentage points."""
        scale, unit = (100, "points") if self.unit == _SHARE else (1, self.unit)
        text = f"{'+' if one.difference >= 0 else '−'}{abs(scale * one.difference):.4g}"
        if one.low is not None and one.high is not None:
            text += f" ± {scale * (one.high - one.low) / 2:.3g}"
        return f"{text} {unit}".rstrip()

    def better(self, one: float, other: float) -> bool:
        """Whether one value is better than another."""
        return one > other if self.maximise else one < other


def _asked(program: RowProgram, text: str, facts: Mapping[str, Any]) -> Any:
    try:
        return program.call(facts)
    except CelError as error:
        raise CannotRunError(f"`{text}` has no value: {error}") from None


def _checked(flag: str, text: str, wanted: Type) -> ir.Node:
    parsed = parse_all(text)
    problems: list[Problem] = []
    node: ir.Node | None = None
    if parsed.tree is not None and not parsed.problems:
        node = check_as(parsed.tree, wanted, _ENVIRONMENT, problems, text)
    wrong: list[Problem | SyntaxProblem] = [
        *parsed.problems,
        *(one for one in problems if one.severity is Severity.ERROR),
    ]
    if wrong or node is None:
        raise CannotRunError("\n".join(_shown(flag, text, one) for one in wrong) or f"{flag}: `{text}`")
    return node


def _shown(flag: str, text: str, problem: Problem | SyntaxProblem) -> str:
    """The problem with a caret below its place."""
    line = text.replace("\n", " ")
    caret = " " * problem.start + "^" * max(1, problem.end - problem.start)
    help = f"; {problem.help}" if problem.help else ""
    return f"{flag}, column {problem.start + 1}: {problem.message}{help}\n  {line}\n  {caret}"
