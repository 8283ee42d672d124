"""How a duration is measured, and how rows of results are shown."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Row: TypeAlias = Mapping[str, object]
"""One line of a table: column to text or number."""


def seconds(action: Callable[[], object], at_least: float = 0.2, rounds: int = 7) -> float:
    """The time of one call: the best of several rounds, each long enough to be measured.

    The best, because everything else on the machine only ever adds to it.
    """
    times = 1
    while (spent := _spent(action, times)) < at_least / rounds:
        times = max(2 * times, int(times * at_least / rounds / max(spent, 1e-9)))
    return min(_spent(action, times) for _ in range(rounds)) / times


def _spent(action: Callable[[], object], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        action()
    return time.perf_counter() - begin


def table(rows: Sequence[Row]) -> str:
    """The rows under a common head, numbers to the right."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = [[_shown(row.get(name, "")) for name in columns] for row in rows]
    widths = [
        max(map(len, (name, *column))) for name, column in zip(columns, zip(*texts, strict=True), strict=True)
    ]
    numeric = [any(isinstance(row.get(name), int | float) for row in rows) for name in columns]

    def line(cells: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, texts)])


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def as_installed() -> dict[str, str]:
    """The environment of a command whose modules are kept compiled, as in every installation, whatever ours says."""
    mine = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**mine, "PYTHONPYCACHEPREFIX": str(Path("build/bytecode").absolute())}
