"""The openb format: Alibaba's published GPU cluster as two CSV files.

Nodes have the columns `sn, cpu_milli, memory_mib, gpu, model`, pods `name, cpu_milli, memory_mib, num_gpu,
gpu_milli` and optionally `gpu_spec, qos, creation_time, deletion_time` (seconds). GPUs are asked for in percent, by
`koordinator.sh/gpu`: a whole one is 100, 460 milli are 46; each node with some has a Device object that lists them.
"""

from collections.abc import Iterable
from typing import Any, Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.formats import Format
from koordpolicy.simulator.traces.gpus import (
    MOST_CARDS,
    MOST_CPUS,
    MOST_MEMORY,
    UNKNOWN,
    device_object,
    device_objects,
    node_object,
)
from koordpolicy.simulator.traces.rows import NumberColumn, Row, seconds
from koordpolicy.simulator.workload import Arrival, Json

NODES: Final = Format(
    "openb nodes", "nodes", ("sn",), ("sn", "cpu_milli", "memory_mib"), optional=("gpu", "model")
)
PODS: Final = Format(
    "openb pods",
    "pods",
    ("name",),
    ("name", "cpu_milli", "memory_mib"),
    optional=("num_gpu", "gpu_milli", "gpu_spec", "qos", "creation_time", "scheduled_time", "deletion_time"),
    ignored=("pod_phase",),
)
IMAGE: Final = "openb"
"""The trace says nothing of images, but a pod needs one."""

BATCH_CLASS: Final = "koord-batch"
"""The PriorityClass that best-effort pods of the trace come with: their class permits no pods without."""

PODS_PER_NODE: Final = 1001
"""The published study sets no limit that matters; this is the one its simulator has."""

_QOS_LABELS: Final = ("LSE", "LSR", "LS", "BE", "SYSTEM")
_QOS: Final = (*_QOS_LABELS, "Guaranteed", "Burstable")
"""Words of the column `qos`: classes of Koordinator, and those of Kubernetes that pods which request CPU can have."""

_CPU: Final = NumberColumn("cpu_milli", "in thousandths of a CPU", 1000 * MOST_CPUS)
_MEMORY: Final = NumberColumn("memory_mib", "in MiB", MOST_MEMORY << 10)
_NODE_CPU: Final = NumberColumn("cpu_milli", "in thousandths of a CPU", 1000 * MOST_CPUS, least=1)
_NODE_MEMORY: Final = NumberColumn("memory_mib", "in MiB", MOST_MEMORY << 10, least=1)
_CARDS: Final = NumberColumn("gpu", "the GPUs of the node", MOST_CARDS, may_be_empty=True)
_GPUS: Final = NumberColumn("num_gpu", "the GPUs of the pod", MOST_CARDS, may_be_empty=True)
_GPU_SHARE: Final = NumberColumn("gpu_milli", "in thousandths of each GPU", 1000, may_be_empty=True)
_CREATED, _SCHEDULED, _DELETED = (seconds(f"{one}_time") for one in ("creation", "scheduled", "deletion"))


def read_nodes(rows: Iterable[Row]) -> list[Json]:
    """Node objects, in order of the rows. Raises WorkloadError."""
    return [_node(row) for row in rows]


def read_pods(rows: Iterable[Row]) -> list[Arrival]:
    """Arrivals in order of creation; without times all arrive at once and stay. Raises WorkloadError."""
    return sorted(map(_arrival, rows), key=lambda arrival: arrival.time)


def read_objects(rows: Iterable[Row]) -> list[Json]:
    """The Device objects of nodes with GPUs. Raises WorkloadError."""
    return device_objects(
        (row, device_object(row.text("sn"), row.text("model") or UNKNOWN, gpus))
        for row in rows
        if (gpus := row.whole(_CARDS))
    )


def _node(row: Row) -> Json:
    amounts = {
        protocol.CPU: f"{row.whole(_NODE_CPU)}m",
        protocol.MEMORY: f"{row.whole(_NODE_MEMORY)}Mi",
        protocol.PODS: str(PODS_PER_NODE),
    }
    name = row.named("sn", row.text("sn"))
    return node_object(name, amounts, row.whole(_CARDS), row.text("model") or UNKNOWN)


def _arrival(row: Row) -> Arrival:
    qos = row.word("qos", _QOS)
    requests: dict[str, str] = {
        protocol.CPU: f"{row.whole(_CPU)}m",
        protocol.MEMORY: f"{row.whole(_MEMORY)}Mi",
    }
    limits: dict[str, str] = dict(requests) if qos in ("Guaranteed", "BE") else {}
    percent = _gpu_percent(row)
    if percent:
        requests[protocol.GPU] = limits[protocol.GPU] = str(percent)
    spec: dict[str, Any] = {
        "containers": [
            {"name": "main", "image": IMAGE, "resources": {"requests": requests, "limits": limits}}
        ],
    }
    if qos == "BE":
        spec["priorityClassName"] = BATCH_CLASS
    models = [model for model in row.text("gpu_spec").split("|") if model]
    if models:
        spec["affinity"] = _one_of(protocol.GPU_MODEL, models)
    labels = {protocol.QOS_CLASS: qos} if qos in _QOS_LABELS else {}
    row.demand_order((_CREATED, _SCHEDULED, _DELETED))
    created, deleted = row.moment(_CREATED), row.moment(_DELETED)
    name = row.named("name", row.text("name"))
    return Arrival(
        time=created,
        pod={"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec},
        duration=deleted - created if deleted > created else None,
    )


def _gpu_percent(row: Row) -> int:
    """What a pod asks of GPUs, in percent of one. Raises WorkloadError where number and share do not fit each other."""
    gpus, milli = row.whole(_GPUS), row.whole(_GPU_SHARE)
    if gpus and not milli:
        raise row.wrong(
            f"column `gpu_milli` has nothing, while `num_gpu` is {gpus}; allowed are 1 to 1,000 thousandths of each"
        )
    if milli and not gpus:
        raise row.wrong(f"`{milli}` in column `gpu_milli` is of no GPU, since `num_gpu` is 0; allowed is 0")
    if gpus > 1 and milli != 1000:
        raise row.wrong(f"`{milli}` in column `gpu_milli` is a part of each of {gpus} GPUs; allowed is 1000")
    return gpus * -(-milli // 10)


def _one_of(label: str, values: list[str]) -> Json:
    expression = {"key": label, "operator": "In", "values": values}
    term = {"matchExpressions": [expression]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
