"""Reports of many nodes at one moment as columns: what a table takes from them in one step, and each as a value when it is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.model.metric import NodeMetric

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnReports:
    """One report of each of `names`, all `updated_at` then, in nanoseconds since 1970, every `interval` nanoseconds.

    `usage` and `system` are amounts by resource (millicores, bytes), a number a node; `of_bands` gives the same of what the pods of
    some bands were measured to use. `measured` is how many pods each report names. All reports have the same resources, and
    no windows. `whole` makes one report as a value, as long as nothing was reported since.
    """

    names: Sequence[str]
    updated_at: int
    interval: int
    usage: dict[str, Numbers]
    system: dict[str, Numbers]
    of_bands: Callable[[frozenset[str]], dict[str, Numbers]]
    measured: Numbers
    whole: Callable[[str], NodeMetric]

    def some(self, places: NDArray[Any]) -> "ColumnReports":
        """The reports at some places."""
        return ColumnReports(
            [self.names[at] for at in places.tolist()],
            self.updated_at,
            self.interval,
            {name: numbers[places] for name, numbers in self.usage.items()},
            {name: numbers[places] for name, numbers in self.system.items()},
            lambda bands: {name: numbers[places] for name, numbers in self.of_bands(bands).items()},
            self.measured[places],
            self.whole,
        )


@dataclass(frozen=True, slots=True)
class PendingReport:
    """A report that the table shows already, and that nobody has asked for as a value yet."""

    reports: ColumnReports
    name: str

    def metric(self) -> NodeMetric:
        """The report."""
        return self.reports.whole(self.name)
