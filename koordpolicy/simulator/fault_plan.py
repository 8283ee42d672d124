"""What is to go wrong in a simulation, from a file: nodes that are lost, reports that stop, writes that the API server refuses.

    faults:
    - nodeLoss: {at: 2h, for: 30m, nodes: {count: 2}}            # without `for` they do not return
    - metricGap: {at: 5h, for: 20m, nodes: {matchLabels: {pool: a}}}
    - apiErrors: {at: 8h, for: 10m, share: 30%, code: 500}

Times count from the beginning. `nodes` are `names`, those of `matchLabels`, or all; `count` takes so many of them by the seed. Chance
is a hash of the seed and of what is drawn, so that faults take no number from any other source, and are the same for both sides of a
comparison.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.documents import Document
from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.one_document import one_document
from koordpolicy.simulator.workload import WorkloadError

CODES: Final = (409, 429, 500)
"""What an API server answers that takes no write: a conflict, too many requests, an error of its own."""
_DIGITS: Final = 1 << 64


class FaultKind(StrEnum):
    """What can go wrong."""

    NODE_LOSS = "nodeLoss"
    METRIC_GAP = "metricGap"
    API_ERRORS = "apiErrors"


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault. Times in nanoseconds, `lasts` None for to the end; `share` of the writes, from 0 to 1.

    `names` None for any node; `count` None for all that fit. `place` is where it is written.
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
            raise WorkloadError(
                f"{fault.place}: {len(found)} nodes fit `nodes`; ask for fewer, or for others"
            )
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
    listed = document.data.get("faults")
    if not isinstance(listed, list) or not listed or len(document.data) != 1:
        raise _wrong(
            document, (), "a list `faults` is needed, and nothing else; its elements are `nodeLoss`, ..."
        )
    return FaultPlan(tuple(_fault(document, at, one) for at, one in enumerate(listed)))


def _wrong(document: Document, path: Sequence[str | int], message: str) -> WorkloadError:
    span = document.positions.value(tuple(path))
    return WorkloadError(f"{span.file}:{span.start.line}: {message}")


def _named(
    document: Document, path: tuple[str | int, ...], said: Any, known: Sequence[str]
) -> Mapping[str, Any]:
    """An object that has known fields alone."""
    if not isinstance(said, dict):
        raise _wrong(document, path, f"an object with {', '.join(f'`{one}`' for one in known)} is needed")
    for name in said:
        if name not in known:
            close = nearest(str(name), known)
            meant = f"; did you mean `{close}`?" if close else f"; there are {', '.join(known)}"
            raise _wrong(document, (*path, name), f"unknown field `{name}`{meant}")
    return said


_FIELDS: Final = {
    FaultKind.NODE_LOSS: ("at", "for", "nodes"),
    FaultKind.METRIC_GAP: ("at", "for", "nodes"),
    FaultKind.API_ERRORS: ("at", "for", "share", "code"),
}


def _fault(document: Document, at: int, said: Any) -> PlannedFault:
    path: tuple[str | int, ...] = ("faults", at)
    one = _named(document, path, said, [str(kind) for kind in FaultKind])
    if len(one) != 1:
        raise _wrong(document, path, f"one of {', '.join(FaultKind)} is needed")
    kind = FaultKind(next(iter(one)))
    path = (*path, str(kind))
    fields = _named(document, path, one[kind], _FIELDS[kind])
    begins = _time(document, path, fields, "at")
    if begins is None:
        raise _wrong(document, path, "`at` is needed: when it begins, such as `2h`")
    lasts = _time(document, path, fields, "for")
    if lasts == 0 or (lasts is None and kind is not FaultKind.NODE_LOSS):
        raise _wrong(document, path, "`for` is needed: how long it lasts, such as `10m`")
    place = f"{document.positions.value(path).file}:{document.positions.value(path).start.line}"
    if kind is FaultKind.API_ERRORS:
        share = _share(document, path, fields.get("share", "100%"))
        code = fields.get("code", CODES[-1])
        if isinstance(code, bool) or code not in CODES:
            raise _wrong(document, (*path, "code"), f"`code` is one of {', '.join(map(str, CODES))}")
        return PlannedFault(kind, begins, lasts, place, share=share, code=code)
    return _with_nodes(document, path, fields, PlannedFault(kind, begins, lasts, place))


def _with_nodes(
    document: Document, path: tuple[str | int, ...], fields: Mapping[str, Any], fault: PlannedFault
) -> PlannedFault:
    path = (*path, "nodes") if "nodes" in fields else path
    nodes = _named(document, path, fields.get("nodes"), ("names", "matchLabels", "count"))
    names, labels, count = nodes.get("names"), nodes.get("matchLabels"), nodes.get("count")
    if not nodes:
        raise _wrong(document, path, "`nodes` is needed, such as `{count: 2}`")
    if names is not None and not (
        isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    ):
        raise _wrong(document, (*path, "names"), "`names` is a list of names of nodes")
    if labels is not None and not (
        isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values())
    ):
        raise _wrong(document, (*path, "matchLabels"), "`matchLabels` is an object of texts")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise _wrong(document, (*path, "count"), "`count` is a whole number of nodes, 1 or more")
    return PlannedFault(
        fault.kind,
        fault.at,
        fault.lasts,
        fault.place,
        None if names is None else tuple(dict.fromkeys(names)),
        labels,
        count,
    )


def _time(
    document: Document, path: tuple[str | int, ...], fields: Mapping[str, Any], name: str
) -> int | None:
    if name not in fields:
        return None
    try:
        length = parse_duration(str(fields[name]))
    except ValueError as error:
        raise _wrong(document, (*path, name), f"`{name}`: {error}") from None
    if length < 0:
        raise _wrong(document, (*path, name), f"`{name}`: `{fields[name]}` is negative")
    return length


def _share(document: Document, path: tuple[str | int, ...], said: Any) -> float:
    text = str(said)
    number = text.removesuffix("%")
    if not text.endswith("%") or not number.replace(".", "", 1).isdecimal() or not 0 < float(number) <= 100:
        raise _wrong(
            document, (*path, "share"), f"`share`: `{text}` is no percentage up to 100%, such as `30%`"
        )
    return float(number) / 100
