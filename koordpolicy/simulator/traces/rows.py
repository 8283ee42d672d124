"""Rows of CSV files, and numbers in them, with their places."""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from koordpolicy.simulator.clock import LONGEST, SECOND
from koordpolicy.simulator.workload import WorkloadError

MAX_ROWS = 1_000_000


def table_rows(file: Path, wanted: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Rows with their place as `file:line`, of a file with these columns. Raises WorkloadError."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            try:
                yield from _rows(file, reader, wanted)
            except csv.Error as error:
                raise WorkloadError(
                    f"{file}:{reader.reader.line_num}: no line of a CSV file: {error}"
                ) from None
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file}: not UTF-8 at byte {error.start}") from None


def _rows(
    file: Path, reader: "csv.DictReader[str]", wanted: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    missing = [column for column in wanted if column not in (reader.fieldnames or ())]
    if missing:
        raise WorkloadError(
            f"{file}:1: there is no column {', '.join(f'`{column}`' for column in missing)};"
            f" the first line must name the columns {', '.join(wanted)}"
        )
    for count, row in enumerate(reader):
        if count >= MAX_ROWS:
            raise WorkloadError(f"{file}: more than {MAX_ROWS:,} rows")
        yield f"{file}:{reader.line_num}", row


def whole_number(row: Mapping[str, str], column: str, at: str) -> int:
    """A number of a row, rounded down; 0 where there is none. Raises WorkloadError for what is none, or below 0."""
    return int(number(row, column, at))


def moment(row: Mapping[str, str], column: str, at: str) -> int:
    """Nanoseconds of a number of seconds, rounded down to whole ones. Raises WorkloadError as `number`, and for more than `LONGEST`."""
    return _not_too_long(whole_number(row, column, at) * SECOND, column, at)


def lasting(row: Mapping[str, str], column: str, at: str) -> int:
    """The same with fractions of seconds."""
    return _not_too_long(min(SECOND * number(row, column, at), float(LONGEST + SECOND)), column, at)


def _not_too_long(length: float, column: str, at: str) -> int:
    if length > LONGEST:
        raise WorkloadError(
            f"{at}: column `{column}` has more than {LONGEST // SECOND:,} s, which are 80 years"
        )
    return round(length)


def number(row: Mapping[str, str], column: str, at: str) -> float:
    """The same as it is."""
    text = (row.get(column) or "").strip()
    if not text:
        return 0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WorkloadError(f"{at}: `{text}` in column `{column}` is no number")
    if value < 0:
        raise WorkloadError(f"{at}: `{text}` in column `{column}` is negative")
    return value
