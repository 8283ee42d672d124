"""The processors of a machine and where they sit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Processor:
    """A logical CPU: its number, and the numbers of its core, socket and NUMA node."""

    cpu: int
    core: int
    socket: int
    node: int
