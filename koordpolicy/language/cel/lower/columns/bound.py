"""The outputs of a program for one pod, or for pods alike, asked row by row.

What no fact of a row decides is computed once, when the values of the other roots are given.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.symbols import DURATION, TIMESTAMP

Answer: TypeAlias = "object | CelError"
"""A number, bool or string, nanoseconds for durations and points in time, any other value as it is; or what
went wrong."""

Ask: TypeAlias = "Callable[[Mapping[str, object]], tuple[Answer, ...]]"


class BoundRows:
    """The outputs of a program, all roots but the row's given. For one thread.

    `ask(facts)` gives each output's `Answer` for a row with these facts, in the order of the program's `outputs`.
    """

    __slots__ = ("ask",)

    def __init__(self, ask: Ask) -> None:
        self.ask = ask


def held(value: Any, kind: str | None) -> Answer:
    """A run-time value of a kind of output, or its error, as an answer."""
    if kind in (DURATION, TIMESTAMP) and not isinstance(value, CelError):
        return int(value.ns)
    return value
