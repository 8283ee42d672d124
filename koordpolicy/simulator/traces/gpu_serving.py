"""Alibaba's published traces of GPUs that serve: nodes of the pool for spot instances, instances of recommendation models.

Nodes have the columns `gpu_model, gpu_capacity_num, cpu_num, node_name`, pods `instance_sn, role, app_name, cpu_request, gpu_request,
rdma_request, memory_request` (GiB) and optionally limits, `creation_time` and `deletion_time` (seconds). GPUs and network cards
(`koordinator.sh/rdma`, in percent of one) are devices. The files say nothing of nodes' memory and network cards: there are 8 GiB for
each CPU, and a network card for two GPUs. `max_instance_per_node` is not kept.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.gpus import UNKNOWN, cards, device_object, device_objects, node_object
from koordpolicy.simulator.traces.rows import moment, table_rows, whole_number
from koordpolicy.simulator.workload import Arrival, Json

NODE_COLUMNS: Final = ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")
POD_COLUMNS: Final = (
    "instance_sn",
    "app_name",
    "cpu_request",
    "gpu_request",
    "rdma_request",
    "memory_request",
)
MEMORY_OF_CPU: Final = 8
"""GiB."""
PODS_OF_NODE: Final = 256
ROLE: Final = "role"


def read_nodes(file: Path) -> list[Json]:
    """Node objects, in order of the file. Raises WorkloadError."""
    return [_node(row, at) for at, row in table_rows(file, NODE_COLUMNS)]


def read_pods(file: Path) -> list[Arrival]:
    """Arrivals in order of creation; those without times are there from the beginning, and stay. Raises WorkloadError."""
    arrivals = [_arrival(row, at) for at, row in table_rows(file, POD_COLUMNS)]
    return sorted(arrivals, key=lambda arrival: arrival.time)


def read_objects(file: Path) -> list[Json]:
    """The Device objects of a file of nodes; none for one of pods. Raises WorkloadError."""
    return device_objects(
        (at, device_object(_name(row), row["gpu_model"] or UNKNOWN, gpus, _network_cards(gpus)))
        for at, row in table_rows(file, ())
        if "node_name" in row and (gpus := cards(row, "gpu_capacity_num", at))
    )


def _name(row: Mapping[str, str]) -> str:
    return f"node-{row['node_name']}"


def _network_cards(gpus: int) -> int:
    return -(-gpus // 2)


def _node(row: Mapping[str, str], at: str) -> Json:
    cpus, gpus = whole_number(row, "cpu_num", at), cards(row, "gpu_capacity_num", at)
    amounts = {
        protocol.CPU: str(cpus),
        protocol.MEMORY: f"{MEMORY_OF_CPU * cpus}Gi",
        protocol.PODS: str(PODS_OF_NODE),
    }
    if gpus:
        amounts[protocol.RDMA] = str(100 * _network_cards(gpus))
    return node_object(_name(row), amounts, gpus, row["gpu_model"] or UNKNOWN)


def _arrival(row: Mapping[str, str], at: str) -> Arrival:
    asked = {
        protocol.CPU: str(whole_number(row, "cpu_request", at)),
        protocol.MEMORY: f"{whole_number(row, 'memory_request', at)}Gi",
    }
    for name, column, of_one in ((protocol.GPU, "gpu_request", 100), (protocol.RDMA, "rdma_request", 1)):
        if number := whole_number(row, column, at):
            asked[name] = str(of_one * number)
    created, deleted = moment(row, "creation_time", at), moment(row, "deletion_time", at)
    labels = {protocol.QOS_CLASS: "LS", "app": row["app_name"].replace("_", "-"), ROLE: row.get("role") or ""}
    container = {"name": "main", "image": "serving", "resources": {"requests": asked, "limits": dict(asked)}}
    metadata = {"name": row["instance_sn"].replace("_", "-"), "namespace": "default", "labels": labels}
    return Arrival(
        time=created,
        pod={"metadata": metadata, "spec": {"containers": [container]}},
        duration=deleted - created if deleted > created else None,
    )
