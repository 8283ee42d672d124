"""The three answers to a question about all inputs, and how much may be spent on one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Records = Mapping[str, Any]
"""Records by root: a flat mapping from path to value, or the value of a root that is a fact by itself."""


@dataclass(frozen=True, slots=True)
class ProofBudget:
    """What may be spent on one question: inputs that are tried, and the solver's own units of work.

    Both are counted, not timed, so that the same question has the same answer on every machine.
    """

    inputs: int = 6_000
    work: int = 3_000_000
    elements: int = 2

    @property
    def words(self) -> str:
        """The budget in a phrase."""
        return f"{self.inputs:,} inputs, {self.work:,} units of the solver, lists of up to {self.elements} elements"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An input that does what was asked for, run through the engine."""

    records: Records


@dataclass(frozen=True, slots=True)
class Proved:
    """There is no such input."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Neither an input nor a proof. `why` completes the sentence "gave up: ..."."""

    why: str


Verdict: TypeAlias = Counterexample | Proved | GaveUp
