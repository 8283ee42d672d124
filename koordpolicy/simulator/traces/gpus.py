"""Nodes with GPUs, as an agent and the manager would tell of them, for traces that say how many there are.

Nothing is known of where devices are plugged in.
"""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.model import protocol

UNKNOWN: Final = "unknown"
"""The model of GPUs of which none is said."""

_WORDS: Final = (protocol.GPU, protocol.GPU_CORE, protocol.GPU_MEMORY_RATIO, protocol.GPU_SHARED)


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
