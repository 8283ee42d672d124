"""Objects as `kubectl get -o json` and `-o yaml` print them, alone, in a List, or several in a file, in JSON one a line; or a
snapshot.

One file may hold nodes, pods, and all else that a simulated cluster is to have: claims, volumes, storage classes, budgets,
services, controllers, topologies. Of a snapshot the rest is passed over.

Pods arrive at the simulation's beginning, highest first in the file, and stay. An annotation may say more
of a pod: `koordpolicy.io/arrives` when it is created, `koordpolicy.io/runs` how long it runs, each as a
duration such as `90s` or `1h30m`; `koordpolicy.io/memory-growth` how much memory it takes more an hour, such as `2Gi`.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from koordpolicy.cluster.event_handlers import EVENT_HANDLERS, EVERY_RESOURCE, handle
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.kube import resources
from koordpolicy.kube.memory.metadata import is_dns_label, is_subdomain
from koordpolicy.kube.snapshot import FORMAT, SnapshotError, snapshot_of
from koordpolicy.language.documents import read_manifests
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import MEMORY, PHASE_FAILED, PHASE_SUCCEEDED
from koordpolicy.model.quantity import QuantityError, amount
from koordpolicy.model.reading import ObjectError, mapping, parse_json
from koordpolicy.model.time import parse_duration
from koordpolicy.simulator.clock import LONGEST
from koordpolicy.simulator.traces.compression import name_of, opened
from koordpolicy.simulator.workload import Arrival, Json, WorkloadError

ARRIVES = "koordpolicy.io/arrives"
RUNS = "koordpolicy.io/runs"
GROWS = "koordpolicy.io/memory-growth"
MAX_OBJECTS = 1_000_000
SPAN = 3600 * 1_000_000_000
"""How long a simulation of pods lasts that say nothing of their time."""

_LINES: Final = ".jsonl"
_YAML: Final = (".yaml", ".yml")
SUFFIXES: Final = (".json", _LINES, *_YAML)
"""How names of such files end. What is compressed and says nothing else is JSON, as a snapshot may be."""

_HANDLERS = {handler.resource: handler for handler in EVENT_HANDLERS}
_RESOURCES = resources.ResourcesByObject(_HANDLERS)
_KINDS = {*(resource.kind for resource in _HANDLERS), resources.PRIORITY_CLASSES.kind}
_BESIDE = _KINDS - {resources.NODES.kind, resources.PODS.kind, resources.NODE_METRICS.kind}
"""Kinds of what a cluster has beside nodes and pods. What nodes report is simulated."""

_MAX_NESTING = 4
"""Lists within lists."""


def read_nodes(file: Path) -> list[Json]:
    """The Node objects of a file. Raises WorkloadError for what no simulation has a use for."""
    nodes = []
    for at, obj in _of_kind(file, "Node"):
        try:
            name = read_node(obj).name
        except ObjectError as error:
            raise WorkloadError(f"{at}: {error}") from None
        if not name:
            raise WorkloadError(f"{at}: the node has no `metadata.name`")
        _demand_name(obj, at, resources.NODES.kind)
        nodes.append(obj)
    return nodes


def read_pods(file: Path) -> list[Arrival]:
    """Arrivals in order of their time. Pods that have ended are left out. Raises WorkloadError."""
    arrivals = [arrival for at, obj in _of_kind(file, "Pod") if (arrival := _arrival(obj, at))]
    return sorted(arrivals, key=lambda arrival: arrival.time)


def read_objects(file: Path) -> list[Json]:
    """The objects of a file that are neither nodes nor pods, with their kinds. Raises WorkloadError."""
    found: list[Json] = []
    for at, kind, obj in _objects(file):
        if kind in _BESIDE:
            if not mapping(obj, "metadata").get("name"):
                raise WorkloadError(f"{at}: the {kind} has no `metadata.name`")
            _demand_name(obj, at, kind)
            _demand_namespace(obj, at)
            resource = _RESOURCES.of(obj)
            why = None if resource is None else handle(_HANDLERS[resource], ClusterObjects(), obj)
            if why is not None:
                raise WorkloadError(f"{at}: {why.reason}")
            found.append({**obj, "kind": kind})
    return found


def _arrival(obj: Json, at: str) -> Arrival | None:
    try:
        pod = read_pod(obj)
    except ObjectError as error:
        raise WorkloadError(f"{at}: {error}") from None
    if not pod.name:
        raise WorkloadError(f"{at}: the pod has no `metadata.name`")
    _demand_namespace(obj, at)
    if pod.phase in (PHASE_SUCCEEDED, PHASE_FAILED):
        return None
    arrives, runs = (_duration(pod.annotations, name, at) for name in (ARRIVES, RUNS))
    return Arrival(arrives or 0, obj, runs, growth=_growth(pod.annotations, at))


def _demand_name(obj: Json, at: str, kind: str) -> None:
    """Refuse an object by whose name no API server knows one."""
    name = mapping(obj, "metadata").get("name")
    can_be = is_dns_label if kind == resources.NAMESPACES.kind else is_subdomain
    if not can_be(name):
        raise WorkloadError(
            f"{at}: metadata.name: `{name}` is no name of a {kind}; write lower-case letters, digits and `-`"
        )


def _demand_namespace(obj: Json, at: str) -> None:
    """Refuse an object in a namespace that no cluster has: the simulated one makes those that are named."""
    namespace = mapping(obj, "metadata").get("namespace")
    if namespace is None or (isinstance(namespace, str) and is_dns_label(namespace)) or namespace == "":
        return
    raise WorkloadError(
        f"{at}: metadata.namespace: `{namespace}` is no name of a namespace; write lower-case letters, digits and `-`"
    )


def _growth(annotations: Mapping[str, str], at: str) -> int:
    written = annotations.get(GROWS, "0")
    try:
        growth = amount(MEMORY, written)
    except QuantityError as error:
        raise WorkloadError(f"{at}: annotation `{GROWS}`: {error}") from None
    if growth < 0:
        raise WorkloadError(f"{at}: annotation `{GROWS}`: `{written}` is negative")
    return growth


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
    if length > LONGEST:
        raise WorkloadError(f"{at}: annotation `{name}`: `{text}` is more than 80 years")
    return length


def _of_kind(file: Path, kind: str) -> Iterator[tuple[str, Json]]:
    """The objects of one kind with their places, those among them that do not say their kind."""
    for place, found, obj in _objects(file):
        if found == "" and not isinstance(obj.get("kind"), str) and "kind" in obj:
            raise WorkloadError(f"{place}: expected a {kind}, found the kind `{obj['kind']}`")
        if found in (kind, ""):
            yield place, obj
        elif found not in _KINDS:
            raise WorkloadError(f"{place}: expected a {kind}, found the kind `{found}`")


def _objects(file: Path) -> Iterator[tuple[str, str, Json]]:
    """The objects of a file with place and kind, empty where they do not say."""
    count = 0
    for at, document in _documents(file):
        for place, obj in _unpacked(at, document, _MAX_NESTING):
            count += 1
            if count > MAX_OBJECTS:
                raise WorkloadError(f"{file}: more than {MAX_OBJECTS:,} objects")
            kind = obj.get("kind")
            yield place, kind if isinstance(kind, str) else "", obj


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


def _of_snapshot(file: Path, document: Mapping[str, Any]) -> Iterator[Json]:
    """The objects of a snapshot that a simulation has a use for. Lists of a server leave kinds out."""
    try:
        snapshot = snapshot_of(file, document)
    except SnapshotError as error:
        raise WorkloadError(str(error)) from None
    for resource in (*EVERY_RESOURCE, resources.PRIORITY_CLASSES):
        api = {"apiVersion": resource.api_version, "kind": resource.kind}
        yield from ({**api, **obj, "kind": resource.kind} for obj in snapshot.of(resource))


def _of_lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    """One object a line; empty lines are passed over."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield f"{file}:{number}", parse_json(line)
        except ValueError as error:
            raise WorkloadError(f"{file}:{number}: not valid JSON ({error})") from None


def _documents(file: Path) -> Iterator[tuple[str, Any]]:
    with opened(file) as stream:
        text = stream.read()
    if not text.strip():
        raise WorkloadError(
            f"{file}: the file is empty; `kubectl get nodes,pods -A -o json` writes what it may hold"
        )
    suffix = name_of(file).suffix.lower()
    if suffix == _LINES:
        yield from _of_lines(file, text)
    elif suffix in _YAML:
        yield from _of_yaml(file, text)
    else:
        yield from ((str(file), one) for one in _of_json(file, text))


def _of_json(file: Path, text: str) -> Iterable[Any]:
    """One object, a list of them, or those of a snapshot."""
    try:
        document = parse_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise WorkloadError(f"{file}:{line}: not valid JSON ({error})") from None
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return _of_snapshot(file, document)
    return document if isinstance(document, list) else [document]


def _of_yaml(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    found = Diagnostics()
    for one in read_manifests(str(file), text, found):
        yield f"{file}:{one.positions.start().line}", one.data
    for finding in found:
        raise WorkloadError(f"{finding.span.file}:{finding.span.start.line}: {finding.message}")
