"""Readers of workloads: files of published formats, of clusters, and descriptions. One file a format."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from numpy.random import Generator

from koordpolicy.model.node import read_node
from koordpolicy.model.protocol import MEMORY
from koordpolicy.model.reading import mapping
from koordpolicy.simulator.traces import batch_tasks, gpu_serving, machine_spec, manifests, openb
from koordpolicy.simulator.traces.compression import COMPRESSED, name_of, opened
from koordpolicy.simulator.traces.described import read_described
from koordpolicy.simulator.traces.formats import Format, format_of
from koordpolicy.simulator.traces.rows import Row, table_rows
from koordpolicy.simulator.workload import Arrival, Json, Workload, WorkloadError

_Objects = Callable[[Iterable[Row]], list[Json]]

_NODES: Final[Mapping[Format, tuple[_Objects, _Objects]]] = {
    openb.NODES: (openb.read_nodes, openb.read_objects),
    gpu_serving.NODES: (gpu_serving.read_nodes, gpu_serving.read_objects),
    **dict.fromkeys(machine_spec.MACHINES, (machine_spec.read_nodes, machine_spec.read_objects)),
}
"""What reads nodes of CSV files, and what they have beside nodes."""

_PODS: Final[Mapping[Format, Callable[[Iterable[Row]], list[Arrival]]]] = {
    openb.PODS: openb.read_pods,
    gpu_serving.PODS: gpu_serving.read_pods,
}
"""What reads pods of CSV files that have a row for each."""

FORMATS: Final = (*_NODES, *_PODS, batch_tasks.TASKS)

_TABLE: Final = ".csv"
_SUFFIXES: Final = (_TABLE, *manifests.SUFFIXES)


def read_workload(nodes: Path, pods: Path, share: float = 1.0, chance: Generator | None = None) -> Workload:
    """Nodes and pods, each in the format that its suffix and first line say; of the pods a share that `chance` draws (None: all).

    Raises WorkloadError.
    """
    found_nodes, found_objects = _nodes(nodes)

    def taken(count: int) -> int:
        return count if chance is None else int(chance.binomial(count, share))

    found_pods = _pods(pods, found_nodes, taken)
    if pods != nodes and not _is_table(pods):
        found_objects += manifests.read_objects(pods)
    if not found_nodes:
        raise WorkloadError(f"{nodes}: there is no node in it")
    if not found_pods:
        raise WorkloadError(
            f"{pods}: there is no pod in it that is to run"
            + ("" if chance is None else f", of a share of {share:.4g}")
        )
    _demand_one_each(nodes, "node", (_name(one) for one in found_nodes))
    _demand_one_each(pods, "pod", (_name(one.pod, "default") for one in found_pods))
    last = max((one.time + (one.duration or 0) for one in found_pods), default=0)
    return Workload(
        tuple(found_nodes),
        tuple(found_pods),
        f"{nodes.name}, {pods.name}",
        tuple(found_objects),
        span=last or manifests.SPAN,
    )


def _nodes(file: Path) -> tuple[list[Json], list[Json]]:
    """The nodes of a file, and what it has beside nodes and pods. Raises WorkloadError."""
    if not _is_table(file):
        return manifests.read_nodes(file), manifests.read_objects(file)
    found = format_of(file, "nodes", FORMATS)
    read_nodes, read_objects = _NODES[found]
    return read_nodes(table_rows(file, found)), read_objects(table_rows(file, found))


def _pods(file: Path, nodes: Iterable[Json], taken: Callable[[int], int]) -> list[Arrival]:
    """The pods of a file that are taken. Raises WorkloadError."""
    if not _is_table(file):
        return [one for one in manifests.read_pods(file) if taken(1)]
    found = format_of(file, "pods", FORMATS)
    rows = table_rows(file, found)
    if found == batch_tasks.TASKS:
        return batch_tasks.read_tasks(rows, _most_memory(nodes), taken)
    return [one for one in _PODS[found](rows) if taken(1)]


def _is_table(file: Path) -> bool:
    """Whether it is a CSV file, by its suffix. Raises WorkloadError for one that nothing is known of."""
    name = name_of(file)
    suffix = name.suffix.lower()
    if suffix in _SUFFIXES or (name != file and not suffix):
        return suffix == _TABLE
    with opened(file):  # says so if it is not there, or compressed in a way of which nothing is known
        raise WorkloadError(
            f"{file}: unknown format; files end with {', '.join(_SUFFIXES)}, compressed ones with {', '.join(COMPRESSED)} after that"
        )


def _name(obj: Json, namespace: str = "") -> str:
    metadata = mapping(obj, "metadata")
    within = f"{metadata.get('namespace') or namespace}/" if namespace else ""
    return f"{within}{metadata.get('name')}"


def _demand_one_each(file: Path, what: str, names: Iterable[str]) -> None:
    twice = next(((name, count) for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        name, count = twice
        raise WorkloadError(f"{file}: the {what} `{name}` stands in it {count:,} times; leave one")


def _most_memory(nodes: Iterable[Json]) -> int:
    """Bytes of memory of the largest node."""
    return max((read_node(node).allocatable.get(MEMORY, 0) for node in nodes), default=0)


__all__ = ["read_described", "read_workload"]
