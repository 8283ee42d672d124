"""Which format a CSV file has: its first line names the columns."""

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.simulator.traces.compression import opened
from koordpolicy.simulator.workload import WorkloadError

Holds = Literal["nodes", "pods"]

_MOST: Final = 1 << 16
"""Characters of a line that names columns."""
_MOST_TOLD: Final = 8
"""Columns that an error names."""
_OTHER_SEPARATORS: Final = {";": "`;`", "\t": "tabs", "|": "`|`"}


@dataclass(frozen=True, slots=True)
class Format:
    """Columns of one kind of file.

    Those of `required` are there, those of `optional` may be; `ignored` are known and not read. No two rows have the same in the
    columns of `key`.
    """

    title: str
    holds: Holds
    key: tuple[str, ...]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def known(self) -> str:
        """One line of a list of formats."""
        more = f" (and, if there are: {', '.join(self.optional)})" if self.optional else ""
        return f"{self.title}: {', '.join(self.required)}{more}"


def columns_of(file: Path) -> list[str]:
    """The columns that the first line of a CSV file names. Raises WorkloadError."""
    with opened(file) as stream:
        line = stream.readline(_MOST)
        try:
            return header(next(csv.reader([line], strict=True), []))
        except csv.Error as error:
            raise WorkloadError(f"{file}:1: no line of a CSV file: {error}") from None


def header(cells: Iterable[str]) -> list[str]:
    """The names of columns, of the cells of the first row."""
    return [one.strip() for one in cells]


def format_of(file: Path, holds: Holds, formats: Sequence[Format]) -> Format:
    """The one of some formats that a file has. Raises WorkloadError, with all formats there are, and which is nearest."""
    columns = columns_of(file)
    fitting = [one for one in formats if one.holds == holds and {*one.required} <= {*columns}]
    if fitting:
        found = max(fitting, key=lambda one: len(one.required))
        _demand_distinct(file, columns)
        _demand_no_slip(file, columns, found)
        return found
    other = next((one for one in formats if one.holds != holds and {*one.required} <= {*columns}), None)
    if other is not None:
        raise WorkloadError(f"{file}:1: it has the columns of {other.title}: name it with --{other.holds}")
    raise WorkloadError(
        f"{file}:1: {_unknown(columns, holds, formats)}\nThe first line names the columns of a format. Formats of {holds} are:\n"
        + "\n".join(f"- {one.known()}" for one in formats if one.holds == holds)
    )


def _unknown(columns: Sequence[str], holds: Holds, formats: Iterable[Format]) -> str:
    """What is wrong with columns that no format has."""
    told = ", ".join(f"`{one[:40]}`" for one in columns[:_MOST_TOLD])
    told = f"{told}, ..." if len(columns) > _MOST_TOLD else told
    best = max((one for one in formats if one.holds == holds), key=lambda one: _likeness(one, columns))
    if not _likeness(best, columns):
        separated = next(
            (name for one, name in _OTHER_SEPARATORS.items() if len(columns) == 1 and one in columns[0]), None
        )
        if separated is not None:
            return f"its columns are separated by {separated}; write commas"
        return f"no known format has its columns, {told}" if any(columns) else "there are no columns"
    missing = ", ".join(
        f"`{one}`" + (f" (is it `{like}`?)" if (like := _like(one, columns, best)) else "")
        for one in best.required
        if one not in columns
    )
    return f"there is no column {missing}; the nearest format is {best.title}"


def _likeness(one: Format, columns: Sequence[str]) -> float:
    """How much of a format is there, from 0 to 1; a column that is written otherwise counts half."""
    there = sum(
        1.0 if name in columns else 0.5 if _like(name, columns, one) else 0.0 for name in one.required
    )
    return there / len(one.required)


def _like(name: str, columns: Iterable[str], of: Format) -> str | None:
    """The column that may be meant to be this one."""
    return nearest(name, (one for one in columns if one not in _all(of)))


def _all(of: Format) -> Collection[str]:
    return {*of.required, *of.optional, *of.ignored}


def _demand_distinct(file: Path, columns: Sequence[str]) -> None:
    for at, name in enumerate(columns):
        if name and name in columns[:at]:
            raise WorkloadError(
                f"{file}:1: the column `{name}` stands there twice, as number {columns.index(name) + 1} and {at + 1}; leave one"
            )


def _demand_no_slip(file: Path, columns: Iterable[str], of: Format) -> None:
    """Refuse a column that looks like one which is read: what it says would be lost."""
    absent = [one for one in of.optional if one not in columns]
    for name in columns:
        close = nearest(name, absent) if name not in _all(of) else None
        if close is not None:
            raise WorkloadError(
                f"{file}:1: {of.title} have no column `{name}`; did you mean `{close}`? Columns that are not to be read need other names"
            )
