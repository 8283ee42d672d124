"""What a pod's annotations say over the strategies of its node. What cannot be read says nothing."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.model.protocol import BLKIO_QOS, CPU_BURST, CPU_QOS, MEMORY_QOS
from koordpolicy.model.reading import Json, ObjectError, embedded_object


def said_of_burst(annotations: Mapping[str, str]) -> Json:
    """How the pod's containers may burst, by the names of NodeSLO's `cpuBurstStrategy`."""
    return _said(annotations, CPU_BURST)


def said_of_memory(annotations: Mapping[str, str]) -> Json:
    """How the pod's memory is treated, by the names of NodeSLO's `memoryQOS`, and `policy`."""
    return _said(annotations, MEMORY_QOS)


def said_of_cpu(annotations: Mapping[str, str]) -> Json | None:
    """How the kernel's scheduler treats the pod, by the names of NodeSLO's `cpuQOS`; None where it says nothing."""
    return _said(annotations, CPU_QOS) if CPU_QOS in annotations else None


def said_of_blocks(annotations: Mapping[str, str]) -> Json | None:
    """What the pod may ask of devices, by the names of NodeSLO's `blkioQOS`; None where it says nothing.

    Raises ObjectError for what cannot be read.
    """
    return embedded_object(annotations[BLKIO_QOS], BLKIO_QOS) if annotations.get(BLKIO_QOS) else None


def whole_number(said: Json, name: str) -> int | None:
    """A whole number that an annotation says, None where it says none."""
    value: Any = said.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _said(annotations: Mapping[str, str], name: str) -> Json:
    source = annotations.get(name)
    if not source:
        return {}
    try:
        return embedded_object(source, name)
    except ObjectError:
        return {}
