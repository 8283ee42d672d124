"""Regular expressions as the solver's: what RE2 and Python read alike, nothing cleverer."""

from typing import Final

import z3

from koordpolicy.graph.proof.terms import Formula

_CLASSES: Final = {
    "d": (("0", "9"),),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "s": ((" ", " "), ("\t", "\n"), ("\f", "\r")),
}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_SPECIAL: Final = ".^$*+?()[]{}|\\/-"
_MOST_REPEATED: Final = 300


class NotReadError(Exception):
    """The pattern has something that is not read here."""


def pattern_of(text: str, *, python: bool = False) -> Formula | None:
    """The texts in which the pattern is found somewhere; None where it is not read.

    With `python` it is read as Python's `re` does, whose `$` may stand before a last end of line.
    """
    try:
        reader = _Reader(text, z3.Option(z3.Re("\n")) if python else None)
        found = reader.choices()
        return found if reader.at == len(text) else None
    except (NotReadError, IndexError):
        return None


def _anything() -> Formula:
    return z3.Full(z3.ReSort(z3.StringSort()))


def _any_character() -> Formula:
    """Any character but the end of a line."""
    every = z3.AllChar(z3.ReSort(z3.StringSort()))
    return z3.Intersect(every, z3.Complement(z3.Re("\n")))


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str, last: Formula | None) -> None:
        self.text = text
        self._last = last
        self.at = 0

    def choices(self) -> Formula:
        """Alternatives, each anchored where it says so and free where it does not."""
        found = [self._anchored()]
        while self._take("|"):
            found.append(self._anchored())
        return found[0] if len(found) == 1 else z3.Union(*found)

    def _anchored(self) -> Formula:
        begins = self._take("^")
        parts = self._sequence()
        ends = self._take("$")
        whole = ([] if begins else [_anything()]) + parts + self._end(ends)
        return _joined(whole)

    def _end(self, ends: bool) -> list[Formula]:
        if not ends:
            return [_anything()]
        return [] if self._last is None else [self._last]

    def _group(self) -> Formula:
        found = [_joined(self._sequence())]
        while self._take("|"):
            found.append(_joined(self._sequence()))
        if not self._take(")"):
            raise NotReadError
        return found[0] if len(found) == 1 else z3.Union(*found)

    def _sequence(self) -> list[Formula]:
        parts: list[Formula] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)$":
            parts.append(self._repeated(self._one()))
        return parts

    def _one(self) -> Formula:
        sign = self.text[self.at]
        self.at += 1
        if sign == "(":
            if self._take("?") and not self._take(":"):
                raise NotReadError
            return self._group()
        if sign == "[":
            return self._class()
        if sign == ".":
            return _any_character()
        if sign == "\\":
            return _union(self._escaped())
        if sign in "*+?{^":
            raise NotReadError
        return z3.Re(z3.StringVal(sign))

    def _repeated(self, part: Formula) -> Formula:
        if self._take("*"):
            made = z3.Star(part)
        elif self._take("+"):
            made = z3.Plus(part)
        elif self._take("?"):
            made = z3.Option(part)
        elif self._take("{"):
            made = self._counted(part)
        else:
            return part
        self._take("?")  # how much is taken at a time does not matter to whether there is a match
        if self.at < len(self.text) and self.text[self.at] in "*+{":
            raise NotReadError
        return made

    def _counted(self, part: Formula) -> Formula:
        end = self.text.index("}", self.at) if "}" in self.text[self.at :] else -1
        least, comma, most = self.text[self.at : end].partition(",")
        if end < 0 or not least.isdigit() or not (most.isdigit() or not most):
            raise NotReadError
        self.at = end + 1
        low, high = int(least), int(most or least)
        if max(low, high) > _MOST_REPEATED or high < low:
            raise NotReadError
        if comma and not most:
            return _joined([z3.Loop(part, low, low), z3.Star(part)]) if low else z3.Star(part)
        return z3.Loop(part, low, high) if high else z3.Re(z3.StringVal(""))

    def _class(self) -> Formula:
        negative = self._take("^")
        ranges: list[tuple[str, str]] = []
        while not self._take("]"):
            sign = self.text[self.at]
            self.at += 1
            if sign == "[":
                raise NotReadError
            if sign == "\\":
                ranges += self._escaped()
                continue
            if self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                last = self.text[self.at + 1]
                if last in "\\[" or last < sign:
                    raise NotReadError
                self.at += 2
                ranges.append((sign, last))
            else:
                ranges.append((sign, sign))
        if not ranges:
            raise NotReadError
        found = _union(ranges)
        if not negative:
            return found
        return z3.Intersect(z3.AllChar(z3.ReSort(z3.StringSort())), z3.Complement(found))

    def _escaped(self) -> list[tuple[str, str]]:
        sign = self.text[self.at]
        self.at += 1
        if sign in _CLASSES:
            return list(_CLASSES[sign])
        plain = _CONTROLS.get(sign, sign if sign in _SPECIAL else "")
        if not plain:
            raise NotReadError
        return [(plain, plain)]

    def _take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += 1
            return True
        return False


def _joined(parts: list[Formula]) -> Formula:
    if not parts:
        return z3.Re(z3.StringVal(""))
    return parts[0] if len(parts) == 1 else z3.Concat(*parts)


def _union(ranges: list[tuple[str, str]]) -> Formula:
    found = [
        z3.Re(z3.StringVal(low)) if low == high else z3.Range(z3.StringVal(low), z3.StringVal(high))
        for low, high in ranges
    ]
    return found[0] if len(found) == 1 else z3.Union(*found)
