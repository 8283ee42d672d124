"""Strings in columns: numbers for one call, membership, and functions remembered string by string."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.columns.held import held
from koordpolicy.language.cel.lower.columns.symbols import COUNTED, DOUBLE, DTYPES, STRING
from koordpolicy.language.cel.meter import Meter, Metered
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, UInt
from koordpolicy.model.distinct import among, distinct
from koordpolicy.model.table.kinds import Strings

Array = NDArray[Any]

_LOCAL: Final = 1 << 30
"""Numbers from here on belong to strings of one call, which the table never learns."""

_MEMORIES: Final = 64
"""Argument lists that a function remembers at once."""


class CallStrings:
    """The table's strings, and those that a call alone has: parameters of the pod, results."""

    __slots__ = ("_known", "_own", "_texts", "shared")

    def __init__(self, shared: Strings) -> None:
        self.shared = shared
        self._known = len(shared)
        self._own: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        """The number of a string, equal for equal strings."""
        found = self.shared.find(text)
        if found < 0:
            found = self._own.get(text, -1)
            if found < 0:
                found = self._own[text] = _LOCAL + len(self._texts)
                self._texts.append(text)
        return found

    @property
    def outdated(self) -> bool:
        """Whether a string may have two numbers by now: one of its own, and one that the table gave it
        since, while a column was made. Then everything computed with them must be computed again.
        """
        return bool(self._own) and len(self.shared) != self._known

    def text(self, code: int) -> str:
        """The string of a number."""
        return self.shared.texts[code] if code < _LOCAL else self._texts[code - _LOCAL]


def is_among(values: Array, kind: str, items: Iterable[object], strings: CallStrings) -> Array:
    """Whether each value equals one of a few items of any type, by CEL's equality."""
    if kind == STRING:
        return among(values, [strings.code(item) for item in items if isinstance(item, str)])
    if kind == DOUBLE:
        return among(values, [float(item) for item in items if type(item) in (int, float, UInt)])  # type: ignore[arg-type]
    if kind == "bool":
        return among(values, [item for item in items if isinstance(item, bool)])
    if kind in COUNTED and kind != "int":
        name = kind.capitalize()
        times = [item.ns for item in items if type(item).__name__ == name]  # type: ignore[attr-defined]
        return among(values, [ns for ns in times if INT_MIN <= ns <= INT_MAX])  # no column holds another
    numbers = list(items)
    whole = [int(item) for item in numbers if type(item) in (int, UInt) and int(item) <= INT_MAX]  # type: ignore[call-overload]
    found = among(values, whole)
    doubles = [item for item in numbers if type(item) is float]
    return found | among(values.astype(np.float64), doubles) if doubles else found


class Memo:
    """A function of one column of strings: each string's result is computed once.

    `subject` is the place of the string among the arguments; the others are one for all rows.
    """

    __slots__ = ("_dtype", "_function", "_kind", "_known", "_subject")

    def __init__(self, function: Metered, subject: int, kind: str) -> None:
        self._function = function
        self._subject = subject
        self._kind = kind
        self._dtype = np.dtype(DTYPES[kind])
        self._known: dict[object, _Results] = {}

    def look_up(
        self, codes: Array, strings: CallStrings, meter: Meter, others: tuple[object, ...]
    ) -> tuple[Array, Array | None]:
        """Results and errors for strings by number."""
        if len(codes) and codes.max() >= _LOCAL:
            local, places = np.unique(codes, return_inverse=True)
            pairs = [self._compute(strings.text(int(code)), strings, meter, others, False) for code in local]
            values = np.array([value for value, _ in pairs], self._dtype)[places]
            failed = np.array([bad for _, bad in pairs], np.bool_)[places]
            return values, failed if failed.any() else None
        # The table's numbers mean other strings in another table.
        key = (id(strings.shared), *map(_distinct, others))
        results = self._known.get(key)
        if results is None or results.strings is not strings.shared:
            if len(self._known) == _MEMORIES:
                del self._known[next(iter(self._known))]
            results = self._known[key] = _Results(strings.shared, self._dtype)
        results.grow()
        fresh = codes[~results.known[codes]]
        for code in distinct(fresh):
            text = strings.shared.texts[code]
            results.values[code], results.failed[code] = self._compute(text, strings, meter, others, True)
            results.known[code] = True
            results.errors += int(results.failed[code])
        values = results.values[codes]
        return values, results.failed[codes] if results.errors else None

    def _compute(
        self, text: str, strings: CallStrings, meter: Meter, others: tuple[object, ...], keep: bool
    ) -> tuple[Any, bool]:
        arguments = [*others[: self._subject], text, *others[self._subject :]]
        try:
            result = self._function(meter, *arguments)
            return held(result, self._kind, strings.shared if keep else strings), False
        except CelError:
            return 0, True


def _distinct(value: object) -> object:
    return (type(value), value)


class _Results:
    """What a function gave for each string so far."""

    __slots__ = ("errors", "failed", "known", "strings", "values")

    def __init__(self, strings: Strings, dtype: np.dtype[Any]) -> None:
        self.strings = strings
        self.values: Array = np.zeros(0, dtype)
        self.failed: Array = np.zeros(0, np.bool_)
        self.known: Array = np.zeros(0, np.bool_)
        self.errors = 0

    def grow(self) -> None:
        """Make room for all strings there are."""
        size = len(self.strings)
        if size > len(self.known):
            room = 2 * size
            for name in ("values", "failed", "known"):
                old = getattr(self, name)
                new = np.zeros(room, old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
