"""Readers of workloads: files of published formats, of clusters, and descriptions. One file a format."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from numpy.random import Generator

from koordpolicy.model.node import read_node
from koordpolicy.model.protocol import MEMORY
from koordpolicy.model.reading import mapping
from koordpolicy.simulator.traces import batch_tasks, gpu_serving, machine_spec, manifests, openb
from koordpolicy.simulator.traces.described import read_described
from koordpolicy.simulator.workload import Arrival, Json, Workload, WorkloadError


class Reader(Protocol):
    """A format of files."""

    def read_nodes(self, file: Path) -> list[Json]:
        """Node objects in the order of the file. Raises WorkloadError."""

    def read_pods(self, file: Path) -> list[Arrival]:
        """Arrivals in order of their time. Raises WorkloadError."""

    def read_objects(self, file: Path) -> list[Json]:
        """What the cluster has beside nodes and pods. Raises WorkloadError."""


READERS: dict[str, Reader] = {
    ".csv": openb,
    ".json": manifests,
    ".jsonl": manifests,
    ".yaml": manifests,
    ".yml": manifests,
    ".gz": manifests,
}
"""The formats by the suffix of the file."""


_MOST: Final = 1 << 16
"""Characters of a line that names columns."""


def read_workload(nodes: Path, pods: Path, share: float = 1.0, chance: Generator | None = None) -> Workload:
    """Nodes and pods, each in the format that its suffix and first line say; of the pods a share that `chance` draws (None: all).

    Raises WorkloadError.
    """
    found_nodes = _reader(nodes).read_nodes(nodes)

    def taken(count: int) -> int:
        return count if chance is None else int(chance.binomial(count, share))

    files = [nodes]
    if _columns(pods).issuperset(batch_tasks.COLUMNS):
        found_pods = batch_tasks.read_tasks(pods, _most_memory(found_nodes), taken)
    else:
        found_pods = [one for one in _reader(pods).read_pods(pods) if taken(1)]
        files = list(dict.fromkeys((nodes, pods)))
    found_objects = [one for file in files for one in _reader(file).read_objects(file)]
    if not found_nodes:
        raise WorkloadError(f"{nodes}: there is no node in it")
    if not found_pods:
        raise WorkloadError(
            f"{pods}: there is no pod in it that is to run"
            + ("" if chance is None else f", of a share of {share:.4g}")
        )
    counts = Counter(str(mapping(one, "metadata").get("name")) for one in found_nodes)
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise WorkloadError(f"{nodes}: the node `{twice}` stands in it {counts[twice]:,} times; leave one")
    last = max((one.time + (one.duration or 0) for one in found_pods), default=0)
    return Workload(
        tuple(found_nodes),
        tuple(found_pods),
        f"{nodes.name}, {pods.name}",
        tuple(found_objects),
        span=last or manifests.SPAN,
    )


def _reader(file: Path) -> Reader:
    reader = READERS.get(file.suffix.lower())
    if reader is None and not file.exists():
        raise WorkloadError(f"{file}: No such file or directory")
    if reader is None:
        raise WorkloadError(f"{file}: unknown format; files end with {', '.join(READERS)}")
    return _of_columns(file) if reader is openb else reader


def _of_columns(file: Path) -> Reader:
    """The format of a CSV file, by the columns that its first line names."""
    columns = _columns(file)
    if columns.issuperset(batch_tasks.COLUMNS):
        raise WorkloadError(f"{file}: it has the columns of batch tasks, which are pods: name it with --pods")
    if columns.issuperset(gpu_serving.NODE_COLUMNS) or columns.issuperset(gpu_serving.POD_COLUMNS):
        return gpu_serving
    return machine_spec if columns.issuperset(machine_spec.COLUMNS) else openb


def _columns(file: Path) -> set[str]:
    """Those that the first line of a CSV file names; none of another file, or one that cannot be read: its reader says so."""
    if file.suffix.lower() != ".csv":
        return set()
    try:
        with file.open(encoding="utf-8-sig") as stream:
            return {one.strip() for one in stream.readline(_MOST).split(",")}
    except (OSError, UnicodeDecodeError):
        return set()


def _most_memory(nodes: Iterable[Json]) -> int:
    """Bytes of memory of the largest node."""
    return max((read_node(node).allocatable.get(MEMORY, 0) for node in nodes), default=0)


__all__ = ["READERS", "read_described", "read_workload"]
