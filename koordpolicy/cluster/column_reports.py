"""Reports of many nodes at one moment as columns: what a table takes from them in one step, and each as a value when it is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.load import AssignedPod
from koordpolicy.cluster.loads import LAST, LoadRules
from koordpolicy.model.facts.record import BASIC
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.table import NodeTable

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


def sums_up(rules: LoadRules) -> bool:
    """Whether load by these rules is what was measured, where no report has windows and all pods are measured."""
    return all(
        aggregation == LAST or not duration
        for aggregation, duration in (rules.filter_window, rules.score_window)
    )


def unseen_until(pod: AssignedPod) -> int:
    """Up to when reports may begin that leave a pod's estimate in force."""
    return pod.since if pod.hold_until is None else max(pod.since, pod.hold_until)


def write_reports(table: NodeTable, rules: LoadRules, reports: ColumnReports) -> None:
    """Write the rows of nodes whose load is counted alike, and whose pods are all measured."""
    rows = np.array([table.index(name) for name in reports.names], np.int64)
    table.write_maps(("resources.usage",), reports.usage, rows)
    for step, resource in BASIC.items():
        if resource in reports.usage:
            table.write(f"usage.total.{step}", reports.usage[resource], rows)
    nothing = np.zeros(len(rows), np.int64)
    load = {name: reports.usage.get(name, nothing) for name in rules.resources}
    of_prod = reports.of_bands(rules.prod_bands)
    prod = {name: of_prod.get(name, nothing) for name in rules.resources}
    if rules.includes_system:
        prod = {name: used + reports.system.get(name, nothing) for name, used in prod.items()}
    table.write_maps(("resources.load", "resources.filterLoad", "resources.scoreLoad"), load, rows)
    table.write_maps(("resources.prodLoad",), prod, rows)
    for step, resource in BASIC.items():
        table.write(f"load.{step}", load.get(resource, nothing), rows)
        table.write(f"load.prod.{step}", prod.get(resource, nothing), rows)
