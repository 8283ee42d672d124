"""Alibaba's published traces of GPUs that serve: nodes of the pool for spot instances, instances of recommendation models.

Nodes have the columns `gpu_model, gpu_capacity_num, cpu_num, node_name`, pods `instance_sn, role, app_name, cpu_request, gpu_request,
rdma_request, memory_request` (GiB) and optionally limits, `creation_time` and `deletion_time` (seconds). GPUs and network cards
(`koordinator.sh/rdma`, in percent of one) are devices. The files say nothing of nodes' memory and network cards: there are 8 GiB for
each CPU, and a network card for two GPUs. `max_instance_per_node` is not kept.
"""

from collections.abc import Iterable
from typing import Final

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

ROLE: Final = "role"
NODES: Final = Format(
    "nodes of the GPU serving trace",
    "nodes",
    ("node_name",),
    ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name"),
)
PODS: Final = Format(
    "instances of the GPU serving trace",
    "pods",
    ("instance_sn",),
    ("instance_sn", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request"),
    optional=(ROLE, "creation_time", "scheduled_time", "deletion_time"),
    ignored=(
        "cpu_limit",
        "gpu_limit",
        "rdma_limit",
        "memory_limit",
        "disk_request",
        "disk_limit",
        "max_instance_per_node",
    ),
)
MEMORY_OF_CPU: Final = 8
"""GiB."""
PODS_OF_NODE: Final = 256

_NODE_CPUS: Final = NumberColumn("cpu_num", "in CPUs", MOST_CPUS, least=1)
_CARDS: Final = NumberColumn("gpu_capacity_num", "the GPUs of the node", MOST_CARDS)
_CPUS: Final = NumberColumn("cpu_request", "in CPUs", MOST_CPUS)
_MEMORY: Final = NumberColumn("memory_request", "in GiB", MOST_MEMORY, whole=False)
_GPUS: Final = NumberColumn("gpu_request", "the GPUs of the instance", MOST_CARDS)
_NETWORK: Final = NumberColumn("rdma_request", "in percent of a network card", 100 * MOST_CARDS)
_CREATED, _SCHEDULED, _DELETED = (seconds(f"{one}_time") for one in ("creation", "scheduled", "deletion"))


def read_nodes(rows: Iterable[Row]) -> list[Json]:
    """Node objects, in order of the rows. Raises WorkloadError."""
    return [_node(row) for row in rows]


def read_pods(rows: Iterable[Row]) -> list[Arrival]:
    """Arrivals in order of creation; those without times are there from the beginning, and stay. Raises WorkloadError."""
    return sorted(map(_arrival, rows), key=lambda arrival: arrival.time)


def read_objects(rows: Iterable[Row]) -> list[Json]:
    """The Device objects of nodes with GPUs. Raises WorkloadError."""
    return device_objects(
        (row, device_object(_name(row), row.text("gpu_model") or UNKNOWN, gpus, _network_cards(gpus)))
        for row in rows
        if (gpus := row.whole(_CARDS))
    )


def _name(row: Row) -> str:
    return row.named("node_name", f"node-{row.text('node_name')}")


def _network_cards(gpus: int) -> int:
    return -(-gpus // 2)


def _node(row: Row) -> Json:
    cpus, gpus = row.whole(_NODE_CPUS), row.whole(_CARDS)
    amounts = {
        protocol.CPU: str(cpus),
        protocol.MEMORY: f"{MEMORY_OF_CPU * cpus}Gi",
        protocol.PODS: str(PODS_OF_NODE),
    }
    if gpus:
        amounts[protocol.RDMA] = str(100 * _network_cards(gpus))
    return node_object(_name(row), amounts, gpus, row.text("gpu_model") or UNKNOWN)


def _arrival(row: Row) -> Arrival:
    asked = {protocol.CPU: str(row.whole(_CPUS)), protocol.MEMORY: f"{row.whole(_MEMORY)}Gi"}
    for name, column, of_one in ((protocol.GPU, _GPUS, 100), (protocol.RDMA, _NETWORK, 1)):
        if number := row.whole(column):
            asked[name] = str(of_one * number)
    row.demand_order((_CREATED, _SCHEDULED, _DELETED))
    created, deleted = row.moment(_CREATED), row.moment(_DELETED)
    labels = {protocol.QOS_CLASS: "LS", "app": row.text("app_name").replace("_", "-"), ROLE: row.text(ROLE)}
    container = {"name": "main", "image": "serving", "resources": {"requests": asked, "limits": dict(asked)}}
    name = row.named("instance_sn", row.text("instance_sn").replace("_", "-"))
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return Arrival(
        time=created,
        pod={"metadata": metadata, "spec": {"containers": [container]}},
        duration=deleted - created if deleted > created else None,
    )
