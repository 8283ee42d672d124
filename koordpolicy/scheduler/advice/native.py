"""What would help against the built-in filters: less of a resource, a toleration, a label.

Each takes the nodes that nothing but its filter refuses, so that what it says is enough.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms import node_affinity, toleration
from koordpolicy.cluster.nodes import TAINTS, NodeView, Rows, taints_of
from koordpolicy.model.placement import Placement
from koordpolicy.model.protocol import EPHEMERAL_STORAGE, MEMORY, PODS
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.advice.pace import PAUSE, ROWS
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.plugins import placement, resources
from koordpolicy.scheduler.plugins.base import Filter
from koordpolicy.scheduler.step import Step

_MIB: Final = 2**20
_LISTED: Final = 3
"""Changes that are named for one filter, the best first."""

_HAS: Final = "resources.allocatable"
_USED: Final = "resources.requested"

Helper = Callable[[Cycle, Step, NodeTable, Rows], Iterator[str | None]]
"""Says what would help against a filter, with pauses where it takes long."""


def less(cycle: Cycle, step: Step, table: NodeTable, rows: Rows) -> Iterator[str]:
    """How much too much the pod requests on the node that lacks least, by shares of what it requests."""
    assert step.plugin is not None
    if step.plugin.requests is None:
        return
    wanted = step.plugin.requests(cycle.view, step.values(cycle.records))
    nodes = NodeView(table, rows)
    missing = {
        name: np.maximum(amount - (nodes.amount(_HAS, name) - nodes.amount(_USED, name)), 0)
        for name, amount in wanted.items()
        if amount > 0
    }
    shares = sum(lacking / wanted[name] for name, lacking in missing.items())
    at = int(np.argmin(shares))
    lacking = {name: int(column[at]) for name, column in missing.items() if column[at] > 0}
    words = ", ".join(
        f"{amount} more pods" if name == PODS else f"{_rounded(name, amount)} {name}"
        for name, amount in lacking.items()
    )
    equal = int(np.count_nonzero(np.all([column <= column[at] for column in missing.values()], axis=0)))
    others = "" if equal == 1 else f", and {equal - 1} more"
    yield f"nearest is {table.name(int(rows[at]))}{others}, where {words} would have to be free"


def _rounded(resource: str, amount: int) -> str:
    """An amount as people write it; bytes up to the next MiB."""
    many_bytes = amount >= _MIB and (resource in (MEMORY, EPHEMERAL_STORAGE) or resource.endswith("memory"))
    return f"{-(-amount // _MIB)}Mi" if many_bytes else amount_text(resource, amount)


def tolerations(cycle: Cycle, _step: Step, table: NodeTable, rows: Rows) -> Iterator[str | None]:
    """The single taints that keep the pod away."""
    tolerated = cycle.view.placement.tolerations
    found: Counter[str] = Counter()
    for at, row in enumerate(rows, 1):
        if at % ROWS == 0:
            yield PAUSE
        text = str(table.row(int(row)).get(TAINTS, ""))
        bad = [
            taint
            for taint in taints_of(text)
            if taint.effect in (toleration.NO_SCHEDULE, toleration.NO_EXECUTE)
            and not toleration.tolerated(tolerated, taint)
        ]
        if len(bad) == 1:
            taint = bad[0]
            found[
                f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            ] += 1
    for taint_text, count in found.most_common(_LISTED):
        yield f"{count} would take it if the pod tolerated {taint_text}"


def labels(cycle: Cycle, _step: Step, table: NodeTable, rows: Rows) -> Iterator[str | None]:
    """The single labels that nodes lack."""
    wanted = cycle.view.placement
    found: Counter[str] = Counter()
    for at, row in enumerate(rows, 1):
        if at % ROWS == 0:
            yield PAUSE
        facts = table.row(int(row))
        own: Any = facts["labels"]
        bad = [f"{key}={value}" for key, value in wanted.node_selector.items() if own.get(key) != value]
        if len(bad) == 1 and _affinity_passes(wanted, str(facts["name"]), own):
            found[bad[0]] += 1
    for label, count in found.most_common(_LISTED):
        yield f"{count} would take it with the label {label}"
    rest = len(rows) - sum(found.values())
    if rest and wanted.required is not None and not found:
        yield "no node has the labels that the pod's affinity requires"


def unknown_labels(cycle: Cycle, table: NodeTable) -> Iterator[str]:
    """Labels of the pod's selector that no node has at all, whatever else refuses the nodes."""
    for key, value in cycle.view.placement.node_selector.items():
        column = table.entry("labels", key)
        same = column.values == table.strings.find(value)
        if not (same if column.absent is None else same & ~column.absent).any():
            yield f"no node has the label {key}={value}"


def _affinity_passes(wanted: Placement, name: str, own: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets what the affinity alone requires."""
    return wanted.required is None or node_affinity.matches(Placement(required=wanted.required), name, own)


def uncordoned(_question: Cycle, _step: Step, _table: NodeTable, rows: Rows) -> Iterator[str]:
    """Cordoned nodes could be uncordoned."""
    yield f"{len(rows)} would take it if uncordoned"


HELPERS: Mapping[Filter, Helper] = MappingProxyType(
    {
        placement.node_unschedulable: uncordoned,
        placement.taint_toleration: tolerations,
        placement.required_affinity: labels,
        resources.resources_fit: less,
    }
)
"""By the filter that they help against."""
