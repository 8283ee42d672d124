"""Readers of workloads: files of published formats, of clusters, and descriptions. One file a format."""

from collections import Counter
from pathlib import Path
from typing import Final, Protocol

from koordpolicy.model.reading import mapping
from koordpolicy.simulator.traces import gpu_serving, machine_spec, manifests, openb
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


def read_workload(nodes: Path, pods: Path) -> Workload:
    """Nodes and pods, each in the format that its suffix says. Raises WorkloadError."""
    found_nodes = _reader(nodes).read_nodes(nodes)
    found_pods = _reader(pods).read_pods(pods)
    found_objects = [one for file in dict.fromkeys((nodes, pods)) for one in _reader(file).read_objects(file)]
    if not found_nodes:
        raise WorkloadError(f"{nodes}: there is no node in it")
    if not found_pods:
        raise WorkloadError(f"{pods}: there is no pod in it that is to run")
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
    try:
        with file.open(encoding="utf-8") as stream:
            columns = {one.strip() for one in stream.readline(_MOST).split(",")}
    except (OSError, UnicodeDecodeError):
        return openb  # whoever reads it says so
    if columns.issuperset(gpu_serving.NODE_COLUMNS) or columns.issuperset(gpu_serving.POD_COLUMNS):
        return gpu_serving
    return machine_spec if columns.issuperset(machine_spec.COLUMNS) else openb


__all__ = ["READERS", "read_described", "read_workload"]
