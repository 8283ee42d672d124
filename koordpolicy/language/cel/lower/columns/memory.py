"""Which array each operation writes to: a few arrays that live as long as the program, used in turn.

New arrays for every step would cost more than the steps: the system takes freed memory back and hands
it out page by page. So a variable's array is used again as soon as nothing may look at it any more.
A plain assignment may give an array another name; names that may stand for one array live together.

With new arrays for every step, a scheduling decision about a pod unlike all before takes 6 % more CPU among 1,000 nodes,
63 % among 5,000 and 141 % among 20,000; pods of a few kinds, whose evaluations are remembered, show no difference
(medians of paired runs of `tests/benchmarks/scheduling.py`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel.lower.columns.writer import OUT, SPACE, Line

Array: TypeAlias = NDArray[Any]
Slots: TypeAlias = dict[tuple[str, int], int]
"""How many arrays there are, by type and space."""
Slot: TypeAlias = tuple[tuple[str, int], int]
"""One array: type and space, and its number among those."""

_NAME = re.compile(r"\b[a-z]*[vemdk][0-9]+\b")
"""Variables that may hold arrays of the program's own: values, errors, masks, doubles, lists of masks."""


_LETTERS = {"int64": "I", "float64": "F", "bool": "B", "int32": "S"}


def place(lines: Sequence[Line], results: str) -> tuple[list[str], Slots]:
    """The text of lines with each `OUT` filled in, and the arrays that it takes.

    Arrays that the text `results` may refer to are made anew in each call, because the caller keeps
    them. So are arrays written in loops.
    """
    groups = _Groups()
    uses = [groups.read(line) for line in lines]
    kept = {groups.find(name) for name in _NAME.findall(results)}
    last = {groups.find(name): at for at, names in enumerate(uses) for name in names}
    pool = _Pool()
    held: dict[int, list[Slot]] = {}
    texts = []
    for at, line in enumerate(lines):
        # An operand read for the last time here may give its array to the result: entry by entry, it is
        # read before it is written.
        ended = held.pop(at, [])
        if not line.apart:
            pool.release(ended)
        target = "None"
        if line.makes is not None and not line.looped:
            group = groups.find(line.makes)
            if group not in kept:
                slot = pool.take((line.dtype, line.space))
                held.setdefault(last[group], []).append(slot)
                target = f"{array_name(line.dtype, line.space)}[{slot[1]}]"
        if line.apart:
            pool.release(ended)
        texts.append((line.depth, line.text.replace(OUT, target)))
    return [" " * depth + text for depth, text in _opened(texts, pool.sizes)], pool.sizes


def _opened(texts: Sequence[tuple[int, str]], slots: Slots) -> Iterator[tuple[int, str]]:
    """The texts with the statements that name the arrays of a space where it begins."""
    for depth, text in texts:
        if not text.startswith(SPACE):
            yield depth, text
            continue
        _, number, count = text.split()
        for dtype, space in slots:
            if space == int(number):
                yield depth, f"{array_name(dtype, space)} = memory.of({dtype!r}, {space}, {count})"


def array_name(dtype: str, space: int) -> str:
    """The generated code's name of the arrays of a type and space."""
    return f"{_LETTERS[dtype]}{space}"


class _Groups:
    """Names that may stand for one array."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def find(self, name: str) -> str:
        while (parent := self._parents.get(name, name)) != name:
            self._parents[name] = self._parents.get(parent, parent)
            name = parent
        return name

    def read(self, line: Line) -> list[str]:
        """The names in a line; those of an assignment grow together unless it makes a new array."""
        names: list[str] = _NAME.findall(line.text)
        assigns = " = " in line.text or ".append(" in line.text
        if line.makes is None and assigns and not line.text.endswith(":"):
            one = names if line.aliases is None else line.aliases
            for name in one[1:]:
                self._parents[self.find(name)] = self.find(one[0])
        return names


class _Pool:
    """Arrays that are free; the one freed last is taken first, because it is still in the cache."""

    def __init__(self) -> None:
        self.sizes: Slots = {}
        self._free: dict[tuple[str, int], list[int]] = {}

    def take(self, kind: tuple[str, int]) -> Slot:
        free = self._free.setdefault(kind, [])
        if not free:
            free.append(self.sizes.get(kind, 0))
            self.sizes[kind] = free[0] + 1
        return kind, free.pop()

    def release(self, slots: Sequence[Slot]) -> None:
        for kind, number in slots:
            self._free[kind].append(number)


@dataclass(slots=True)
class Memory:
    """The arrays of one program, for calls of any number of entries, one call at a time."""

    slots: Slots
    _arrays: dict[tuple[str, int], list[Array]] = field(default_factory=dict)
    _views: dict[tuple[str, int], tuple[int, list[Array]]] = field(default_factory=dict)

    def of(self, dtype: str, space: int, count: int) -> list[Array]:
        """The arrays of a type and space, each with `count` entries."""
        kind = (dtype, space)
        known = self._views.get(kind)
        if known is not None and known[0] == count:
            return known[1]
        arrays = self._arrays.get(kind, [])
        if not arrays or len(arrays[0]) < count:
            room = max(64, count + count // 4)
            arrays = self._arrays[kind] = [np.empty(room, dtype) for _ in range(self.slots[kind])]
        views = [array[:count] for array in arrays]
        self._views[kind] = (count, views)
        return views
