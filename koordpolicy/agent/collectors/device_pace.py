"""Which devices of the node policy wants to be told of, and how often they are looked at."""

from dataclasses import dataclass

from koordpolicy.agent.collection import KIND
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record


@dataclass(frozen=True, slots=True)
class DevicePace:
    """`every` in nanoseconds. `harmless` are errors of programs by NVIDIA's numbers, after which a GPU works as before."""

    every: int
    gpus: bool
    rdma: bool
    harmless: frozenset[int] = frozenset()


def decide_device_pace(graph: RuleGraph, node: Record, now: int) -> DevicePace | None:
    """What holds for the node; None where it is to tell of no devices. Raises `CelError`."""
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    gpus, rdma = bool(about.value("devices.gpus")), bool(about.value("devices.rdma"))
    if not gpus and not rdma:
        return None
    harmless = frozenset(about.value("devices.harmlessErrors"))
    return DevicePace(about.value("devices.every").ns, gpus, rdma, harmless)
