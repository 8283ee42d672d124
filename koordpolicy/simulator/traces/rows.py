"""Rows of CSV files, and what stands in them, with their places."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TextIO

from koordpolicy.kube.memory.metadata import is_subdomain
from koordpolicy.simulator.clock import LONGEST, SECOND
from koordpolicy.simulator.traces.compression import opened
from koordpolicy.simulator.traces.formats import Format, header
from koordpolicy.simulator.workload import WorkloadError

MAX_ROWS: Final = 1_000_000
MAX_LINE: Final = 1 << 20
"""Characters of a line."""
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_SHOWN: Final = 60
"""Characters of a cell that an error shows."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers: what they are, with their unit, and between which bounds they lie.

    Where it is `whole`, fractions are refused. Where it `may_be_empty`, an empty cell is 0.
    """

    name: str
    what: str
    most: int
    least: int = 0
    whole: bool = True
    may_be_empty: bool = False

    @property
    def allowed(self) -> str:
        """What may stand in a cell."""
        kind = "whole numbers" if self.whole else "numbers"
        return f"allowed are {kind} from {self.least:,} to {self.most:,}, {self.what}"


def seconds(name: str, *, may_be_empty: bool = True) -> NumberColumn:
    """A column of moments or lengths."""
    return NumberColumn(
        name, "in seconds: up to 80 years", LONGEST // SECOND, whole=False, may_be_empty=may_be_empty
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file, whose place is `file:line`."""

    place: str
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """What stands in a column; nothing where there is no such column."""
        return self.cells.get(column, "").strip()

    def number(self, column: NumberColumn) -> float:
        """A number; 0 where there may be none. Raises WorkloadError for what cannot stand in the column."""
        text = self.text(column.name)
        if not text:
            if column.may_be_empty or column.name not in self.cells:
                return 0
            raise self.wrong(f"column `{column.name}` is empty; {column.allowed}")
        found = f"`{shown(text)}` in column `{column.name}`"
        if _NUMBER.fullmatch(text) is None:
            raise self.wrong(f"{found} is no number; {column.allowed}")
        value = float(text)
        if value < 0:
            raise self.wrong(f"{found} is negative; {column.allowed}")
        if not column.least <= value <= column.most:
            raise self.wrong(
                f"{found} is too {'much' if value > column.most else 'little'}; {column.allowed}"
            )
        if column.whole and value != int(value):
            raise self.wrong(f"{found} is no whole number; {column.allowed}")
        return value

    def whole(self, column: NumberColumn) -> int:
        """A number, rounded down. Raises WorkloadError as `number`."""
        return int(self.number(column))

    def moment(self, column: NumberColumn) -> int:
        """Nanoseconds of a number of seconds, rounded down to whole ones. Raises WorkloadError as `number`."""
        return self.whole(column) * SECOND

    def lasting(self, column: NumberColumn) -> int:
        """The same with fractions of seconds."""
        return round(SECOND * self.number(column))

    def demand_order(self, columns: Sequence[NumberColumn]) -> None:
        """Refuse times that go backwards, of those that are said. Raises WorkloadError."""
        said = [(one, self.number(one)) for one in columns if self.text(one.name)]
        for (before, begins), (after, then) in pairwise(said):
            if then < begins:
                raise self.wrong(
                    f"`{shown(self.text(after.name))}` in column `{after.name}` is before `{shown(self.text(before.name))}`"
                    f" in column `{before.name}`; it must not be earlier"
                )

    def word(self, column: str, words: Sequence[str]) -> str:
        """One of some words, or nothing. Raises WorkloadError for another one."""
        text = self.text(column)
        if text and text not in words:
            raise self.wrong(
                f"`{shown(text)}` in column `{column}` is unknown; allowed are {', '.join(words)}, or nothing"
            )
        return text

    def named(self, column: str, name: str) -> str:
        """The name that an object gets of a column. Raises WorkloadError where no object has such a name."""
        if not is_subdomain(name):
            raise self.wrong(
                f"`{shown(self.text(column))}` in column `{column}` makes no name of an object;"
                " allowed are up to 253 lower-case letters, digits, `-` and `.`, a letter or digit first and last"
            )
        return name

    def wrong(self, message: str) -> WorkloadError:
        """What is raised of this row."""
        return WorkloadError(f"{self.place}: {message}")


def shown(text: str) -> str:
    """A cell as an error shows it."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def table_rows(file: Path, of: Format) -> Iterator[Row]:
    """The rows of a file of this format. Raises WorkloadError for rows with too few or too many columns, or a key that another has."""
    lines: dict[tuple[str, ...], int] = {}
    with opened(file, newline="") as stream:
        reader = csv.reader(_lines(file, stream), strict=True)
        try:
            columns = header(next(reader, []))
            empty = 0
            for cells in reader:
                if not cells:
                    empty += 1
                    if empty > MAX_ROWS:
                        raise WorkloadError(
                            f"{file}:{reader.line_num}: more than {MAX_ROWS:,} empty lines by then"
                        )
                    continue
                line = reader.line_num
                row = Row(f"{file}:{line}", dict(zip(columns, cells, strict=False)))
                _demand_all(row, columns, cells)
                _demand_key(row, of, lines, line)
                yield row
        except csv.Error as error:
            raise WorkloadError(f"{file}:{reader.line_num}: no line of a CSV file: {error}") from None


def _lines(file: Path, stream: TextIO) -> Iterator[str]:
    """The lines of a stream, none of which is read whole that is longer than a row can be. Raises WorkloadError."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise WorkloadError(
                f"{file}:{number}: no line of a CSV file: it has more than {MAX_LINE:,} characters"
            )
        yield line


def _demand_all(row: Row, columns: Sequence[str], cells: Sequence[str]) -> None:
    if len(cells) < len(columns):
        lost = ", ".join(f"`{one}`" for one in columns[len(cells) :][:5])
        raise row.wrong(
            f"{len(cells)} columns, where line 1 names {len(columns)}; nothing is left for {lost}: write a comma for each that is empty"
        )
    if len(cells) > len(columns):
        raise row.wrong(
            f"{len(cells)} columns, where line 1 names {len(columns)}; `{shown(cells[len(columns)])}` is beyond the last:"
            ' put a value with commas in "quotes"'
        )


def _demand_key(row: Row, of: Format, lines: dict[tuple[str, ...], int], line: int) -> None:
    key = tuple(row.text(one) for one in of.key)
    named = " and ".join(f"`{one}`" for one in of.key)
    if not all(key):
        raise row.wrong(f"column {named} is empty; each row needs a name of its own")
    if key in lines:
        values = " and ".join(f"`{shown(one)}`" for one in key)
        raise row.wrong(
            f"{values} in column {named} stands in line {lines[key]} already; each row needs a name of its own"
        )
    if len(lines) >= MAX_ROWS:
        raise row.wrong(f"more than {MAX_ROWS:,} rows by then; take a part of them")
    lines[key] = line
