"""Alibaba's published machines of its platform for artificial intelligence (cluster-trace-gpu-v2020, `pai_machine_spec`).

Nodes have the columns `machine, gpu_type, cap_gpu` and what there is of CPUs and memory in GiB: `cap_cpu, cap_mem`, or
`cap_cpu_cores, cap_mem_gib`. The published file has no line of column names, which its description gives. Pods come from a file of
another format.
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
from koordpolicy.simulator.traces.rows import NumberColumn, Row
from koordpolicy.simulator.workload import Json

AMOUNTS: Final = (("cap_cpu", "cap_mem"), ("cap_cpu_cores", "cap_mem_gib"))
MACHINES: Final = tuple(
    Format("machines with GPUs", "nodes", ("machine",), ("machine", "gpu_type", *amounts, "cap_gpu"))
    for amounts in AMOUNTS
)
PODS_OF_NODE: Final = 256
_NO_GPU: Final = "CPU"
"""What stands for the model of a machine without."""

_AMOUNTS: Final = tuple(
    (
        NumberColumn(cpus, "in CPUs", MOST_CPUS, least=1),
        NumberColumn(memory, "in GiB", MOST_MEMORY, least=1, whole=False),
    )
    for cpus, memory in AMOUNTS
)
_CARDS: Final = NumberColumn("cap_gpu", "the GPUs of the machine", MOST_CARDS)


def read_nodes(rows: Iterable[Row]) -> list[Json]:
    """Node objects, in order of the rows. Raises WorkloadError."""
    return [_node(row) for row in rows]


def read_objects(rows: Iterable[Row]) -> list[Json]:
    """The Device objects of machines with GPUs. Raises WorkloadError."""
    return device_objects(
        (row, device_object(row.text("machine"), _model(row), gpus))
        for row in rows
        if (gpus := row.whole(_CARDS))
    )


def _model(row: Row) -> str:
    said = row.text("gpu_type")
    return said if said != _NO_GPU else UNKNOWN


def _node(row: Row) -> Json:
    cpus, memory = next(columns for columns in _AMOUNTS if columns[0].name in row.cells)
    amounts = {
        protocol.CPU: str(row.whole(cpus)),
        protocol.MEMORY: f"{row.whole(memory)}Gi",
        protocol.PODS: str(PODS_OF_NODE),
    }
    return node_object(row.named("machine", row.text("machine")), amounts, row.whole(_CARDS), _model(row))
