"""The openb format: Alibaba's published GPU cluster as two CSV files.

Nodes have the columns `sn, cpu_milli, memory_mib, gpu, model`, pods `name, cpu_milli, memory_mib, num_gpu,
gpu_milli` and optionally `gpu_spec, qos, creation_time, deletion_time` (seconds). GPUs are asked for in percent, by
`koordinator.sh/gpu`: a whole one is 100, 460 milli are 46; each node with some has a Device object that lists them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.gpus import UNKNOWN, cards, device_object, device_objects, node_object
from koordpolicy.simulator.traces.rows import moment, table_rows, whole_number
from koordpolicy.simulator.workload import Arrival, Json

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib")
IMAGE = "openb"
"""The trace says nothing of images, but a pod needs one."""

BATCH_CLASS = "koord-batch"
"""The PriorityClass that best-effort pods of the trace come with: their class permits no pods without."""

PODS_PER_NODE = 1001
"""The published study sets no limit that matters; this is the one its simulator has."""

_QOS_LABELS = ("LSE", "LSR", "LS", "BE", "SYSTEM")


def read_nodes(file: Path) -> list[Json]:
    """Node objects, in order of the file."""
    return [_node(row, at) for at, row in table_rows(file, NODE_COLUMNS)]


def read_pods(file: Path) -> list[Arrival]:
    """Arrivals in order of creation; without times all arrive at once and stay."""
    arrivals = [_arrival(row, at) for at, row in table_rows(file, POD_COLUMNS)]
    return sorted(arrivals, key=lambda arrival: arrival.time)


def read_objects(file: Path) -> list[Json]:
    """The Device objects of nodes with GPUs; none for a file of pods."""
    return device_objects(
        (at, device_object(row["sn"], row.get("model") or UNKNOWN, gpus))
        for at, row in table_rows(file, ())
        if "sn" in row and (gpus := cards(row, "gpu", at))
    )


def _node(row: Mapping[str, str], at: str) -> Json:
    amounts = {
        protocol.CPU: f"{whole_number(row, 'cpu_milli', at)}m",
        protocol.MEMORY: f"{whole_number(row, 'memory_mib', at)}Mi",
        protocol.PODS: str(PODS_PER_NODE),
    }
    return node_object(row["sn"], amounts, cards(row, "gpu", at), row.get("model") or UNKNOWN)


def _arrival(row: Mapping[str, str], at: str) -> Arrival:
    qos = row.get("qos") or ""
    requests: dict[str, str] = {
        protocol.CPU: f"{whole_number(row, 'cpu_milli', at)}m",
        protocol.MEMORY: f"{whole_number(row, 'memory_mib', at)}Mi",
    }
    limits: dict[str, str] = dict(requests) if qos in ("Guaranteed", "BE") else {}
    gpus = whole_number(row, "num_gpu", at)
    if gpus:
        milli = min(whole_number(row, "gpu_milli", at), 1000)
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
    created = moment(row, "creation_time", at)
    deleted = moment(row, "deletion_time", at)
    return Arrival(
        time=created,
        pod={"metadata": {"name": row["name"], "namespace": "default", "labels": labels}, "spec": spec},
        duration=deleted - created if deleted > created else None,
    )


def _one_of(label: str, values: list[str]) -> Json:
    expression = {"key": label, "operator": "In", "values": values}
    term = {"matchExpressions": [expression]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
