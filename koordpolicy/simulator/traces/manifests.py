"""Objects as `kubectl get -o json` and `-o yaml` print them, alone, in a List, or several in a file.

Pods arrive at the simulation's beginning, highest first in the file, and stay. An annotation may say more
of a pod: `koordpolicy.io/arrives` when it is created, `koordpolicy.io/runs` how long it runs, each as a
duration such as `90s` or `1h30m`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import PHASE_FAILED, PHASE_SUCCEEDED
from koordpolicy.model.reading import ObjectError, parse_json
from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.workload import Arrival, Json, WorkloadError

ARRIVES = "koordpolicy.io/arrives"
RUNS = "koordpolicy.io/runs"
MAX_BYTES = 1 << 30
MAX_OBJECTS = 1_000_000
SPAN = 3600 * 1_000_000_000
"""How long a simulation of pods lasts that say nothing of their time."""

_MAX_NESTING = 4
"""Lists within lists."""


def read_nodes(file: Path) -> list[Json]:
    """The Node objects of a file. Raises WorkloadError for anything else in it."""
    nodes = []
    for at, obj in _objects(file, "Node"):
        try:
            name = read_node(obj).name
        except ObjectError as error:
            raise WorkloadError(f"{at}: {error}") from None
        if not name:
            raise WorkloadError(f"{at}: the node has no `metadata.name`")
        nodes.append(obj)
    return nodes


def read_pods(file: Path) -> list[Arrival]:
    """Arrivals in order of their time. Pods that have ended are left out. Raises WorkloadError."""
    arrivals = [arrival for at, obj in _objects(file, "Pod") if (arrival := _arrival(obj, at))]
    return sorted(arrivals, key=lambda arrival: arrival.time)


def _arrival(obj: Json, at: str) -> Arrival | None:
    try:
        pod = read_pod(obj)
    except ObjectError as error:
        raise WorkloadError(f"{at}: {error}") from None
    if not pod.name:
        raise WorkloadError(f"{at}: the pod has no `metadata.name`")
    if pod.phase in (PHASE_SUCCEEDED, PHASE_FAILED):
        return None
    arrives, runs = (_duration(pod.annotations, name, at) for name in (ARRIVES, RUNS))
    return Arrival(arrives or 0, obj, runs)


def _duration(annotations: Mapping[str, str], name: str, at: str) -> int | None:
    text = annotations.get(name)
    if text is None:
        return None
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise WorkloadError(f"{at}: annotation `{name}`: {error}") from None
    if length < 0:
        raise WorkloadError(f"{at}: annotation `{name}`: `{text}` is negative")
    return length


def _objects(file: Path, kind: str) -> Iterator[tuple[str, Json]]:
    """The objects of one kind with their places; WorkloadError for other kinds."""
    count = 0
    for at, document in _documents(file):
        for place, obj in _unpacked(at, document, _MAX_NESTING):
            count += 1
            if count > MAX_OBJECTS:
                raise WorkloadError(f"{file}: more than {MAX_OBJECTS:,} objects")
            found = obj.get("kind", kind)
            if found != kind:
                raise WorkloadError(f"{place}: expected a {kind}, found the kind `{found}`")
            yield place, obj


def _unpacked(at: str, document: object, depth: int) -> Iterator[tuple[str, Json]]:
    if not isinstance(document, Mapping):
        raise WorkloadError(f"{at}: expected an object")
    kind = document.get("kind", "List" if isinstance(document.get("items"), list) else "")
    if not (isinstance(kind, str) and kind.endswith("List")):
        yield at, document
        return
    items = document.get("items")
    if not isinstance(items, list) or depth == 0:
        raise WorkloadError(f"{at}: `items` of a List must be a list of objects")
    for index, item in enumerate(items):
        yield from _unpacked(f"{at}: items[{index}]", item, depth - 1)


def _documents(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise WorkloadError(f"{file}: larger than {MAX_BYTES >> 20} MiB")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file}: not UTF-8 at byte {error.start}") from None
    if file.suffix == ".json":
        try:
            document = parse_json(text)
        except ValueError as error:
            line = getattr(error, "lineno", 1)
            raise WorkloadError(f"{file}:{line}: not valid JSON ({error})") from None
        documents = document if isinstance(document, list) else [document]
        yield from ((str(file), one) for one in documents)
        return
    found = Diagnostics()
    for one in read_documents(str(file), text, found):
        yield f"{file}:{one.positions.start().line}", one.data
    for finding in found:
        raise WorkloadError(f"{finding.span.file}:{finding.span.start.line}: {finding.message}")
