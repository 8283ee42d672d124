"""What a simulation is given: nodes that are there, pods that come and go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod object with the nanoseconds at which it is created and, once placed, how long it runs.

    `duration` None runs to the end. `load` is the share of its CPU request that it uses in the mean,
    None for what its QoS class does by default.
    """

    time: int
    pod: Json
    duration: int | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Nodes, arrivals in order of time, and where they were read from."""

    nodes: tuple[Json, ...]
    arrivals: tuple[Arrival, ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    objects: tuple[Json, ...] = field(default_factory=tuple)


class WorkloadError(ValueError):
    """An input that cannot be read; the message names file, line and remedy."""
