"""What is looked for: an input on which two expressions differ, or one on which a condition is false."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from koordpolicy.graph.proof.same import same_value
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import BOOL


class Goal(Protocol):
    """A question whose answer is an input.

    `expressions` are what it is about, for boundaries and constants worth trying. `pairs` are compared by the solver:
    an input is wanted on which the two of any pair differ, while `given` holds.
    """

    @property
    def expressions(self) -> tuple[ir.Node, ...]: ...

    @property
    def pairs(self) -> tuple[tuple[ir.Node, ir.Node], ...]: ...

    @property
    def given(self) -> ir.Node | None: ...

    def prepared(self, records: Records) -> Records:
        """The input as the question wants it, whatever was drawn."""
        ...

    def met(self, records: Records) -> bool:
        """Whether the engine does on this input what is looked for."""
        ...


@dataclass(frozen=True)
class Differ:
    """Two expressions give unlike values, or one of them a value where the other has none. Two errors are alike.

    `old` and `new` answer as the engine does; they raise `CelError`. With `given` only inputs count on which that is
    true; `holds` asks the engine.
    """

    left: ir.Node
    right: ir.Node
    old: Callable[[Records], Any]
    new: Callable[[Records], Any]
    given: ir.Node | None = None
    holds: Callable[[Records], bool] | None = None

    @property
    def expressions(self) -> tuple[ir.Node, ...]:
        return (self.left, self.right) if self.given is None else (self.left, self.right, self.given)

    @property
    def pairs(self) -> tuple[tuple[ir.Node, ir.Node], ...]:
        return ((self.left, self.right),)

    def prepared(self, records: Records) -> Records:
        """The input itself."""
        return records

    def met(self, records: Records) -> bool:
        """Whether the engine answers differently."""
        if self.holds is not None and not self.holds(records):
            return False
        try:
            first = self.old(records)
        except CelError:
            return not _fails(self.new, records)
        try:
            return not same_value(first, self.new(records))
        except CelError:
            return True


def _fails(ask: Callable[[Records], Any], records: Records) -> bool:
    try:
        ask(records)
    except CelError:
        return True
    return False


TRUE = constant(BOOL, True)


@dataclass(frozen=True)
class Valued:
    """When it counts that an expression has no value: where all of `parts` have one, and `usual` is true."""

    parts: tuple[ir.Node, ...]
    usual: ir.Node
    program: RowProgram

    @classmethod
    def made(cls, roots: Sequence[str], parts: Sequence[ir.Node], usual: ir.Node) -> "Valued":
        """With the program that finds it out: all parts by number, and `usual`."""
        asked = {**{str(at): part for at, part in enumerate(parts)}, "usual": usual}
        return cls(tuple(parts), usual, compile_row(roots, asked))

    def counts(self, records: Records) -> bool:
        """Whether the engine finds all values there."""
        found = self.program.call(*arguments(self.program.roots, records))
        return found["usual"] is True and not any(isinstance(one, CelError) for one in found.values())


@dataclass(frozen=True)
class Fails:
    """A condition is false, or has no value where that counts: never, unless `valued` says when.

    With `given` only inputs count on which that is true, too, or has no value where `given_valued` says that this counts;
    `test` is its program. `prepare` makes of what is drawn an input that may fit.
    """

    condition: ir.Node
    program: RowProgram
    given: ir.Node | None = None
    test: RowProgram | None = None
    prepare: Callable[[Records], Records] | None = None
    valued: Valued | None = None
    given_valued: Valued | None = None

    @property
    def expressions(self) -> tuple[ir.Node, ...]:
        return (self.condition,) if self.given is None else (self.condition, self.given)

    @property
    def pairs(self) -> tuple[tuple[ir.Node, ir.Node], ...]:
        return ((self.condition, TRUE),)

    def prepared(self, records: Records) -> Records:
        """The input as `prepare` makes it."""
        return records if self.prepare is None else self.prepare(records)

    def met(self, records: Records) -> bool:
        """Whether the engine finds it false, or without the value that it should have."""
        try:
            if self.test is not None and self.test.call(*arguments(self.test.roots, records)) is not True:
                return False
        except CelError:
            return self.given_valued is not None and self.given_valued.counts(records)
        try:
            return self.program.call(*arguments(self.program.roots, records)) is False
        except CelError:
            return self.valued is not None and self.valued.counts(records)


def arguments(roots: Sequence[str], records: Mapping[str, Any]) -> list[Any]:
    """The records in the order of a program's roots; one that is absent is empty."""
    return [records.get(root, {}) for root in roots]
