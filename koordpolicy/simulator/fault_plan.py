"""What is to go wrong in a simulation, from a file (`fault_file.py` is its model).

    faults:
    - nodeLoss: {at: 2h, for: 30m, nodes: {count: 2}}            # without `for` they do not return
    - metricGap: {at: 5h, for: 20m, nodes: {matchLabels: {pool: a}}}
    - lateAgents: {at: 6h, for: 1h, by: 30s, nodes: {count: 10}}  # report and act later than they should
    - lateStart: {by: 20m, nodes: {count: 3}}                     # begin later than their nodes
    - apiErrors: {at: 8h, for: 10m, share: 30%, code: 500}

Times count from the beginning. `nodes` are `names`, those of `matchLabels`, or all; `count` takes so many of them by the seed. Chance
is a hash of the seed and of what is drawn, so that faults take no number from any other source, and are the same for both sides of a
comparison.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.fault_file import (
    APIErrors,
    Fault,
    FaultFile,
    LateAgents,
    LateStart,
    MetricGap,
    NodeLoss,
    StruckNodes,
)
from koordpolicy.simulator.one_document import one_document
from koordpolicy.simulator.shaped import place_of, shaped
from koordpolicy.simulator.workload import WorkloadError

_DIGITS: Final = 1 << 64


class FaultKind(StrEnum):
    """What can go wrong."""

    NODE_LOSS = "nodeLoss"
    METRIC_GAP = "metricGap"
    LATE_AGENTS = "lateAgents"
    LATE_START = "lateStart"
    API_ERRORS = "apiErrors"


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault. Times in nanoseconds, `lasts` None for to the end; `share` of the writes, from 0 to 1.

    `names` None for any node; `count` None for all that fit. `place` is where it is written. `delay` is by how much agents are late.
    """

    kind: FaultKind
    at: int
    lasts: int | None
    place: str
    names: tuple[str, ...] | None = None
    labels: Mapping[str, str] | None = None
    count: int | None = None
    share: float = 0.0
    code: int = 0
    delay: int = 0


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All faults, and the seed of what is drawn."""

    faults: tuple[PlannedFault, ...]
    seed: int = 0

    def nodes_of(self, fault: PlannedFault, nodes: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
        """The nodes that a fault strikes, of all with their labels. Raises WorkloadError where there are too few."""
        for name in fault.names or ():
            if name not in nodes:
                close = nearest(name, nodes)
                meant = f"; did you mean `{close}`?" if close else ""
                raise WorkloadError(f"{fault.place}: there is no node `{name}`{meant}")
        wanted = (fault.labels or {}).items()
        found = [
            name
            for name in (fault.names if fault.names is not None else nodes)
            if all(nodes[name].get(key) == value for key, value in wanted)
        ]
        if not found or len(found) < (fault.count or 0):
            raise WorkloadError(f"{fault.place}: {_too_few(len(found), fault)}")
        if fault.count is None:
            return tuple(found)
        return tuple(
            sorted(found, key=lambda name: (self.draw(f"{fault.kind} {fault.at} {name}"), name))[
                : fault.count
            ]
        )

    def draw(self, what: str) -> float:
        """A number from 0 to below 1, always the same for the same thing."""
        digest = hashlib.sha256(f"{self.seed}/{what}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / _DIGITS


def read_faults(file: Path) -> FaultPlan:
    """The faults of a file, YAML or JSON. Raises WorkloadError with file, line and what is wrong."""
    document = one_document(file)
    read = shaped(document, FaultFile)
    return FaultPlan(tuple(_planned(document, at, one) for at, one in enumerate(read.faults)))


def _planned(document: Document, at: int, fault: Fault) -> PlannedFault:
    (name,) = fault.model_fields_set
    kind = FaultKind(Fault.model_fields[name].alias or name)
    place = place_of(document, ("faults", at, str(kind)))
    match getattr(fault, name):
        case APIErrors() as errors:
            share = float(errors.share.removesuffix("%")) / 100
            begins, lasts = parse_duration(errors.at), parse_duration(errors.for_)
            return PlannedFault(kind, begins, lasts, place, share=share, code=errors.code)
        case LateStart() as start:
            return PlannedFault(kind, 0, parse_duration(start.by), place, **_nodes(start.nodes))
        case LateAgents() as late:
            begins, lasts = parse_duration(late.at), parse_duration(late.for_)
            return PlannedFault(
                kind, begins, lasts, place, **_nodes(late.nodes), delay=parse_duration(late.by)
            )
        case NodeLoss() | MetricGap() as gap:
            lasting = None if gap.for_ is None else parse_duration(gap.for_)
            return PlannedFault(kind, parse_duration(gap.at), lasting, place, **_nodes(gap.nodes))
        case other:
            raise AssertionError(f"no fault: {other}")


def _nodes(nodes: StruckNodes) -> dict[str, Any]:
    return {
        "names": None if nodes.names is None else tuple(dict.fromkeys(nodes.names)),
        "labels": nodes.match_labels,
        "count": nodes.count,
    }


def _too_few(fit: int, fault: PlannedFault) -> str:
    """That a fault strikes more nodes than there are."""
    labels = ", ".join(f"{name}={value}" for name, value in (fault.labels or {}).items())
    of = " of those named" if fault.names is not None else ""
    which = f"{of} with the labels {labels}" if labels else of
    if not fit:
        return f"there is no node{which}"
    there = "is one node" if fit == 1 else f"are {fit} nodes"
    return f"there {there}{which}, fewer than `count: {fault.count}`"
