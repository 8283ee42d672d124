"""One expression compiled, evaluated once and measured."""

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.meter import DEFAULT_BUDGET, meter_of
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from tests.metering.values import ROOTS

NOISE = 20_000
"""Nanoseconds that a call may take beside its work: the clock, raising an error."""

ENVIRONMENT = Environment(functions=FUNCTIONS).extended({name: root.type for name, root in ROOTS.items()})


@dataclass(frozen=True, slots=True)
class Measured:
    """Units `charged`, and with what the expression does once; CPU time in ns, growth of the process's peak in
    octets, and how it ended: "value", or the kind of its error.
    """

    text: str
    charged: int
    units: int
    nanoseconds: int
    grown: int
    ended: str

    @property
    def each(self) -> float:
        """Nanoseconds a unit, noise apart."""
        return max(0, self.nanoseconds - NOISE) / max(1, self.units)


def typed(text: str) -> ir.Node | None:
    """The typed form; None for an expression with problems."""
    problems: list[Problem] = []
    try:
        node = check(parse(text), ENVIRONMENT, problems, text)
    except SyntaxProblem:
        return None
    return None if problems else node


def measure(text: str, budget: int = DEFAULT_BUDGET) -> Measured | None:
    """What evaluating an expression took; None for one with problems. It is not folded, so that all of it runs."""
    node = typed(text)
    return None if node is None else measured(text, node, budget)


def measured(text: str, node: ir.Node, budget: int) -> Measured:
    """The same of a typed form."""
    names = sorted(ROOTS)
    program = compile_row(names, node, budget=budget)
    given: Sequence[object] = [ROOTS[name].value for name in names]
    meter = meter_of(budget)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = "value"
    began = time.thread_time_ns()
    try:
        value: object = program.call(*given, meter) if program.metered else program.call(*given)
    except CelError as error:
        value, ended = None, error.kind
    spent = time.thread_time_ns() - began
    del value
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    charged = budget - max(0, meter[0])
    return Measured(text, charged, charged + program.price, spent, grown * 1024, ended)


def by_end(results: Sequence[Measured]) -> Mapping[str, int]:
    """How many ended in each way."""
    counts: dict[str, int] = {}
    for result in results:
        counts[result.ended] = counts.get(result.ended, 0) + 1
    return dict(sorted(counts.items(), key=lambda entry: -entry[1]))
