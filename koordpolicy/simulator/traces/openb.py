"""The openb format: Alibaba's published GPU cluster as two CSV files.

Nodes have the columns `sn, cpu_milli, memory_mib, gpu, model`, pods `name, cpu_milli, memory_mib, num_gpu,
gpu_milli` and optionally `gpu_spec, qos, creation_time, deletion_time` (seconds). GPUs are asked for in percent, by
`koordinator.sh/gpu`: a whole one is 100, 460 milli are 46; each node with some has a Device object that lists them.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from koordpolicy.model import protocol
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.workload import Arrival, Json, WorkloadError

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib")
IMAGE = "openb"
"""The trace says nothing of images, but a pod needs one."""

BATCH_CLASS = "koord-batch"
"""The PriorityClass that best-effort pods of the trace come with: their class permits no pods without."""

MAX_ROWS = 1_000_000
PODS_PER_NODE = 1001
"""The published study sets no limit that matters; this is the one its simulator has."""

_QOS_LABELS = ("LSE", "LSR", "LS", "BE", "SYSTEM")


def read_nodes(file: Path) -> list[Json]:
    """Node objects, in order of the file."""
    return [_node(row, at) for at, row in _rows(file, NODE_COLUMNS)]


def read_pods(file: Path) -> list[Arrival]:
    """Arrivals in order of creation; without times all arrive at once and stay."""
    arrivals = [_arrival(row, at) for at, row in _rows(file, POD_COLUMNS)]
    return sorted(arrivals, key=lambda arrival: arrival.time)


def read_objects(file: Path) -> list[Json]:
    """The Device objects of nodes with GPUs; none for a file of pods."""
    return [device for at, row in _rows(file, ()) if "sn" in row and (device := _device(row, at)) is not None]


def _rows(file: Path, wanted: tuple[str, ...]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Rows with their place as `file:line`; raises `WorkloadError`."""
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [column for column in wanted if column not in (reader.fieldnames or ())]
            if missing:
                raise WorkloadError(
                    f"{file}:1: there is no column {', '.join(f'`{column}`' for column in missing)};"
                    f" the first line must name the columns {', '.join(wanted)}"
                )
            for count, row in enumerate(reader):
                if count >= MAX_ROWS:
                    raise WorkloadError(f"{file}: more than {MAX_ROWS:,} rows")
                yield f"{file}:{reader.line_num}", row
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file}: not UTF-8 at byte {error.start}") from None


def _node(row: Mapping[str, str], at: str) -> Json:
    gpus = _number(row, "gpu", at)
    resources = {
        protocol.CPU: f"{_number(row, 'cpu_milli', at)}m",
        protocol.MEMORY: f"{_number(row, 'memory_mib', at)}Mi",
        protocol.PODS: str(PODS_PER_NODE),
    }
    labels = {"kubernetes.io/hostname": row["sn"]}
    if gpus:
        words = protocol.GPU, protocol.GPU_CORE, protocol.GPU_MEMORY_RATIO, protocol.GPU_SHARED
        resources |= dict.fromkeys(words, str(100 * gpus))
        labels[protocol.GPU_MODEL] = row.get("model") or "unknown"
    return {
        "metadata": {"name": row["sn"], "labels": labels},
        "status": {"capacity": resources, "allocatable": dict(resources)},
    }


def _device(row: Mapping[str, str], at: str) -> Json | None:
    """What an agent would say of a node's GPUs; nothing is known of where they are plugged in."""
    gpus = _number(row, "gpu", at)
    if not gpus:
        return None
    listed = [
        {
            "type": "gpu",
            "id": f"{row['sn']}-{minor}",
            "minor": minor,
            "health": True,
            "resources": {protocol.GPU_CORE: "100", protocol.GPU_MEMORY_RATIO: "100"},
        }
        for minor in range(gpus)
    ]
    labels = {protocol.GPU_MODEL: row.get("model") or "unknown"}
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": row["sn"], "labels": labels},
        "spec": {"devices": listed},
    }


def _arrival(row: Mapping[str, str], at: str) -> Arrival:
    qos = row.get("qos") or ""
    requests: dict[str, str] = {
        protocol.CPU: f"{_number(row, 'cpu_milli', at)}m",
        protocol.MEMORY: f"{_number(row, 'memory_mib', at)}Mi",
    }
    limits: dict[str, str] = dict(requests) if qos in ("Guaranteed", "BE") else {}
    gpus = _number(row, "num_gpu", at)
    if gpus:
        milli = min(_number(row, "gpu_milli", at), 1000)
        percent = str(gpus * -(-milli // 10))
        requests[protocol.GPU] = limits[protocol.GPU] = percent
    spec: dict[str, Any] = {
        "containers": [
            {"name": "main", "image": IMAGE, "resources": {"requests": requests, "limits": limits}}
        ],
    }
    if qos == "BE":
        spec["priorityClassName"] = BATCH_CLASS
    models = [model for model in (row.get("gpu_spec") or "").split("|") if model]
    if models:
        spec["affinity"] = _one_of(protocol.GPU_MODEL, models)
    labels = {protocol.QOS_CLASS: qos} if qos in _QOS_LABELS else {}
    created = _number(row, "creation_time", at)
    deleted = _number(row, "deletion_time", at)
    return Arrival(
        time=created * SECOND,
        pod={"metadata": {"name": row["name"], "namespace": "default", "labels": labels}, "spec": spec},
        duration=(deleted - created) * SECOND if deleted > created else None,
    )


def _one_of(label: str, values: list[str]) -> Json:
    expression = {"key": label, "operator": "In", "values": values}
    term = {"matchExpressions": [expression]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _number(row: Mapping[str, str], column: str, at: str) -> int:
    text = (row.get(column) or "").strip()
    if not text:
        return 0
    try:
        value = int(float(text))
    except (ValueError, OverflowError):
        raise WorkloadError(f"{at}: `{text}` in column `{column}` is no number") from None
    if value < 0:
        raise WorkloadError(f"{at}: `{text}` in column `{column}` is negative")
    return value
