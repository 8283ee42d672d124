"""What a column program gives."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.strings import CallStrings
from koordpolicy.language.cel.values import Duration, Timestamp, Value

Array = NDArray[Any]


class ColumnResult:
    """One output for all rows of a call.

    `values` has a number, bool or string number a row (see `texts`), nanoseconds for durations and
    points in time (Python ints where int64 is too narrow), Python values for anything else. `errors` marks the rows whose
    evaluation failed, whose value means nothing; None when there is none.
    """

    __slots__ = ("_detail", "_strings", "errors", "kind", "values")

    def __init__(
        self, kind: str | None, values: Array, errors: Array | None,
        strings: CallStrings, detail: Callable[[int], CelError | None],
    ) -> None:  # fmt: skip
        self.kind = kind
        self.values = values
        self.errors = errors
        self._strings = strings
        self._detail = detail

    def __len__(self) -> int:
        return len(self.values)

    def error(self, at: int) -> CelError | None:
        """What went wrong at an entry: evaluated again by the row program, on the facts of now."""
        return None if self.errors is None or not self.errors[at] else self._detail(at)

    def value(self, at: int) -> Value:
        """An entry as a run-time value. Raises the entry's CelError."""
        if self.errors is not None and self.errors[at]:
            raise self._detail(at) or CelError("the facts have changed since the evaluation")
        held = self.values[at]
        match self.kind:
            case "string":
                return self._strings.text(int(held))
            case "duration":
                return Duration(int(held))
            case "timestamp":
                return Timestamp(int(held))
            case None:
                value: Value = held
                return value
        plain: Value = held.item()
        return plain

    def texts(self) -> list[str]:
        """All strings of an output of kind string."""
        return [self._strings.text(int(code)) for code in self.values]
