"""What can go wrong while an expression is evaluated.

CelError
├── LimitExceeded          a limit of size: ends the evaluation, nothing absorbs it
│   └── CostExceeded       more units of cost than the evaluation may spend
└── EvaluationError        absorbed by a decisive operand of `&&`, `||`, `all`, `exists`
    ├── NoSuchOverload     operand types that no operator or function takes
    ├── WrongType          a value of any type (dyn) that is not of the type its place declares
    ├── NotPermitted       a value of the right type that its place does not take
    ├── NoSuchKey          a key of a map, or an index of a list, that is not there
    ├── MissingFact        a fact nobody supplied: missing or stale data
    ├── DivisionByZero     integer division or remainder by zero
    ├── Overflow           a result outside its type's range
    ├── InvalidArgument    a malformed text, pattern, time zone, offset, ...
    ├── Unbound            a name or function unknown to an unchecked expression
    └── InternalError      an exception that is none of these: a defect of this program (see `defects`)
"""

from typing import ClassVar

_SHOWN = 300
"""Characters of an unforeseen exception's message."""


class CelError(Exception):
    """An evaluation that gave no value. `kind` is a stable word, `message` one phrase."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class LimitExceeded(CelError):
    """A bound on sizes was reached."""

    kind = "limit_exceeded"


class CostExceeded(LimitExceeded):
    """The evaluation would cost more than `budget` units (see `meter`)."""

    kind = "cost_exceeded"

    def __init__(self, budget: int) -> None:
        super().__init__(f"it costs more than {budget:,} units")
        self.budget = budget


class EvaluationError(CelError):
    """An error as CEL means it."""

    kind = "evaluation_error"


class NoSuchOverload(EvaluationError):
    """No operator or function takes operands of these types."""

    kind = "no_such_overload"


class WrongType(EvaluationError):
    """A value that only run time knows is not of the type that its place declares."""

    kind = "wrong_type"


class NotPermitted(EvaluationError):
    """A value of the right type that its place does not take: no choice of a slot, out of its range."""

    kind = "not_permitted"


class NoSuchKey(EvaluationError):
    """A map without the key, or a list without the index."""

    kind = "no_such_key"


class MissingFact(EvaluationError):
    """A fact that was not supplied. `path` names it from its root: `node.usage.prod.cpu`."""

    kind = "missing_fact"

    def __init__(self, path: str) -> None:
        super().__init__(f"no value for `{path}`")
        self.path = path


class DivisionByZero(EvaluationError):
    """An integer division or remainder by zero, or a quotient of quantities by zero."""

    kind = "division_by_zero"


class Overflow(EvaluationError):
    """A result outside the range of its type."""

    kind = "overflow"


class InvalidArgument(EvaluationError):
    """A value that a function cannot take."""

    kind = "invalid_argument"


class Unbound(EvaluationError):
    """A name or function that nothing declares; only unchecked expressions can hold one."""

    kind = "unbound"


class InternalError(EvaluationError):
    """A mistake of this program, not of the expression: `defect` is the exception."""

    kind = "internal"

    def __init__(self, defect: Exception) -> None:
        super().__init__(f"{type(defect).__name__}: {defect}"[:_SHOWN])
        self.defect = defect
