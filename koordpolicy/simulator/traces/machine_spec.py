"""Alibaba's published machines of its platform for artificial intelligence (cluster-trace-gpu-v2020, `pai_machine_spec`).

Nodes have the columns `machine, gpu_type, cap_gpu` and what there is of CPUs and memory in GiB: `cap_cpu, cap_mem`, or
`cap_cpu_cores, cap_mem_gib`. The published file has no line of column names, which its description gives. Pods come from a file of
another format.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.gpus import UNKNOWN, cards, device_object, device_objects, node_object
from koordpolicy.simulator.traces.rows import table_rows, whole_number
from koordpolicy.simulator.workload import Arrival, Json, WorkloadError

COLUMNS: Final = ("machine", "gpu_type", "cap_gpu")
AMOUNTS: Final = (("cap_cpu", "cap_mem"), ("cap_cpu_cores", "cap_mem_gib"))
PODS_OF_NODE: Final = 256
_NO_GPU: Final = "CPU"
"""What stands for the model of a machine without."""


def read_nodes(file: Path) -> list[Json]:
    """Node objects, in order of the file. Raises WorkloadError."""
    return [_node(row, at) for at, row in table_rows(file, COLUMNS)]


def read_pods(file: Path) -> list[Arrival]:
    """There are none. Raises WorkloadError."""
    raise WorkloadError(
        f"{file}: these are machines; name a file of pods, such as `openb_pod_list_default.csv`"
    )


def read_objects(file: Path) -> list[Json]:
    """The Device objects of machines with GPUs. Raises WorkloadError."""
    return device_objects(
        (at, device_object(row["machine"], _model(row), gpus))
        for at, row in table_rows(file, COLUMNS)
        if (gpus := cards(row, "cap_gpu", at))
    )


def _model(row: Mapping[str, str]) -> str:
    return row["gpu_type"] if row["gpu_type"] != _NO_GPU else UNKNOWN


def _node(row: Mapping[str, str], at: str) -> Json:
    cpu, memory = next((names for names in AMOUNTS if names[0] in row), AMOUNTS[0])
    if cpu not in row or memory not in row:
        raise WorkloadError(f"{at}: there is no column `{cpu}` or no column `{memory}`")
    amounts = {
        protocol.CPU: str(whole_number(row, cpu, at)),
        protocol.MEMORY: f"{whole_number(row, memory, at)}Gi",
        protocol.PODS: str(PODS_OF_NODE),
    }
    return node_object(row["machine"], amounts, cards(row, "cap_gpu", at), _model(row))
