"""What stands in the columns of a table: the kinds a schema is made of, and interned strings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np


class Absent:
    """The class of `ABSENT`, which stands for a value that nobody supplied."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class Storage(StrEnum):
    """How values of a column are held: int64, float64, bool, or int32 codes of interned strings."""

    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class ScalarFact:
    """A fact of one value. `encode` turns a value of another class (a duration, a point in time)
    into the int that is held; without it values are held as they are.
    """

    storage: Storage
    encode: Callable[[object], int] | None = None


@dataclass(frozen=True, slots=True)
class MapFact:
    """A map with string keys, such as labels. Each key that is asked for becomes a column."""

    values: ScalarFact


@dataclass(frozen=True, slots=True)
class ListFact:
    """A list of records, or of plain values, which then stand at the path `""`."""

    elements: "Schema"


@dataclass(frozen=True, slots=True)
class OpaqueFact:
    """A fact that has no column form; rows hold it, and only its presence is a column."""


FactKind: TypeAlias = ScalarFact | MapFact | ListFact | OpaqueFact
Schema: TypeAlias = Mapping[str, FactKind]
"""What stands at each dotted path of a record."""

ELEMENT: Final = ""
"""The path of the value itself in a list of plain values."""

DTYPES: Final[Mapping[Storage, np.dtype[np.generic]]] = {
    Storage.INT: np.dtype(np.int64),
    Storage.DOUBLE: np.dtype(np.float64),
    Storage.BOOL: np.dtype(np.bool_),
    Storage.STRING: np.dtype(np.int32),
}


class Strings:
    """Strings numbered in order of first sight; a number never changes. Number 0 is `""`.

    Numbers are never given back: a table holds as many strings as it has ever compared.
    """

    __slots__ = ("_codes", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str) -> int:
        """The number of a string, given now if it is new."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int:
        """The number of a string, or -1, equal to no other, when no column holds it."""
        return self._codes.get(text, -1)
