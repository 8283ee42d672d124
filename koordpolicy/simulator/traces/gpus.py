"""Nodes with GPUs, as an agent and the manager would tell of them, for traces that say how many there are.

Nothing is known of where devices are plugged in.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.rows import MAX_ROWS, Row
from koordpolicy.simulator.workload import Json

UNKNOWN: Final = "unknown"
"""The model of GPUs of which none is said."""

_WORDS: Final = (protocol.GPU, protocol.GPU_CORE, protocol.GPU_MEMORY_RATIO, protocol.GPU_SHARED)


MOST_CARDS: Final = 1024
"""Of a node: each is an entry of its Device object."""
MOST_CPUS: Final = 8192
"""Of a node: as many as Linux knows."""
MOST_MEMORY: Final = 1 << 16
"""GiB of a node: what the largest machines have. More is a number in another unit."""


def device_objects(found: Iterable[tuple[Row, Json]]) -> list[Json]:
    """Device objects with their rows. Raises WorkloadError where they list too many devices together."""
    made, count = [], 0
    for row, device in found:
        count += len(device["spec"]["devices"])
        if count > MAX_ROWS:
            raise row.wrong(f"more than {MAX_ROWS:,} devices of all nodes by then; take a part of the nodes")
        made.append(device)
    return made


def node_object(name: str, amounts: Mapping[str, str], gpus: int, model: str) -> Mapping[str, Any]:
    """A node that offers these amounts, and so many GPUs of a model beside them, each in percent of one."""
    labels, offered = {"kubernetes.io/hostname": name}, dict(amounts)
    if gpus:
        offered |= dict.fromkeys(_WORDS, str(100 * gpus))
        labels[protocol.GPU_MODEL] = model
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": offered, "allocatable": dict(offered)},
    }


def device_object(node: str, model: str, gpus: int, network_cards: int = 0) -> Mapping[str, Any]:
    """The Device object of a node."""
    gpu = {protocol.GPU_CORE: "100", protocol.GPU_MEMORY_RATIO: "100"}
    listed = [
        {"type": type, "id": f"{node}-{type}-{minor}", "minor": minor, "health": True, "resources": resources}
        for type, count, resources in (("gpu", gpus, gpu), ("rdma", network_cards, {protocol.RDMA: "100"}))
        for minor in range(count)
    ]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": node, "labels": {protocol.GPU_MODEL: model}},
        "spec": {"devices": listed},
    }
