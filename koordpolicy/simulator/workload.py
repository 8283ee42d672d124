"""What a simulation is given: nodes that are there, pods that come and go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wave:
    """Use of CPU over a day as a share of the request.

    It moves between `base` and `peak`, which it reaches `peak_hour` hours after the day's beginning. Equal
    `base` and `peak` make a level without noise.
    """

    base: float = 0.08
    peak: float = 0.40
    peak_hour: float = 14.0

    @property
    def level(self) -> bool:
        """Whether the use is the same all day."""
        return self.base == self.peak


SERVICE = Wave()
"""What is known of online services in the mean."""

EAGER = Wave(0.95, 0.95)
"""Work that takes what it requested whenever it may."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod object with the nanoseconds at which it is created and, once placed, how long it runs.

    `time` counts from the beginning of the simulation. `duration` is what the pod needs at full speed, None
    for the whole of the simulation. `wave` None takes what the pod's QoS class does by default. `growth` are the bytes of
    memory that it takes more an hour; they count where agents run.
    """

    time: int
    pod: Json
    duration: int | None = None
    wave: Wave | None = None
    growth: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Nodes, arrivals in order of time, and where they were read from.

    `objects` are what must be there before the first pod, with their kinds: namespaces, priority classes, and all else
    that components hear of but nodes, pods and reports. `span` is how many
    nanoseconds the workload means to last, None for until everything that was planned is over.
    """

    nodes: tuple[Json, ...]
    arrivals: tuple[Arrival, ...]
    title: str = ""
    objects: tuple[Json, ...] = field(default_factory=tuple)
    span: int | None = None

    def horizon(self) -> int:
        """When the simulation ends, in nanoseconds from its beginning."""
        if self.span is not None:
            return self.span
        return max((one.time + (one.duration or 0) for one in self.arrivals), default=0)


class WorkloadError(ValueError):
    """An input that cannot be read; the message names file, line and remedy."""
