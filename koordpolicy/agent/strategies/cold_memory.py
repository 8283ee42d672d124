"""What the kernel is told so that it looks for memory that nobody uses, where policy wants that."""

from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.collection import KIND
from koordpolicy.agent.plan import NODE, Plan, Write
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.time import NANOSECONDS

WRITER: Final = "cold-memory"
SCAN_PERIOD: Final = "kidled.scan_period_in_seconds"
WITH_CHILDREN: Final = "kidled.use_hierarchy"


@dataclass(frozen=True, slots=True)
class ColdMemoryPace:
    """How often is read what was found, and how often the kernel looks, in nanoseconds; `bucket` is the first that is cold."""

    every: int
    scan: int
    bucket: int


def decide_cold_memory(graph: RuleGraph, node: Facts, now: int) -> ColdMemoryPace | None:
    """What holds for the node; None where nothing is looked for. Raises `CelError`."""
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    if not about.value("coldMemory.enabled"):
        return None
    return ColdMemoryPace(
        about.value("coldMemory.every").ns,
        about.value("coldMemory.scanEvery").ns,
        about.value("coldMemory.fromBucket"),
    )


def cold_memory_plan(graph: RuleGraph, node: Facts, now: int) -> Plan:
    """What is to be written: how often each page is looked at, and that a group counts what is below it. Raises `CelError`."""
    pace = decide_cold_memory(graph, node, now)
    if pace is None:
        return Plan()
    seconds = max(pace.scan // NANOSECONDS, 1)
    return Plan(
        (
            Write(SCAN_PERIOD, NODE, seconds, f"{KIND}.coldMemory.scanEvery", WRITER),
            Write(WITH_CHILDREN, NODE, 1, f"{KIND}.coldMemory.enabled", WRITER),
        )
    )
