"""What can go wrong while an expression is evaluated.

CelError
├── LimitExceeded          a size or step limit: ends the evaluation, nothing absorbs it
└── EvaluationError        absorbed by a decisive operand of `&&`, `||`, `all`, `exists`
    ├── NoSuchOverload     operand types that no operator or function takes
    ├── NoSuchKey          a key of a map, or an index of a list, that is not there
    ├── MissingFact        a fact nobody supplied: missing or stale data
    ├── DivisionByZero     integer division or remainder by zero
    ├── Overflow           a result outside its type's range
    ├── InvalidArgument    a malformed text, pattern, time zone, offset, ...
    └── Unbound            a name or function unknown to an unchecked expression
"""

from typing import ClassVar


class CelError(Exception):
    """An evaluation that gave no value. `kind` is a stable word, `message` one phrase."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class LimitExceeded(CelError):
    """A bound on sizes or steps was reached."""

    kind = "limit_exceeded"


class EvaluationError(CelError):
    """An error as CEL means it."""

    kind = "evaluation_error"


class NoSuchOverload(EvaluationError):
    """No operator or function takes operands of these types."""

    kind = "no_such_overload"


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
