"""Evictions for CPU: for best-effort pods that get too little, for a node's use, and for its requests, by policy."""

from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.strategies.evictable import Evictable, PodKey, pod_key
from koordpolicy.agent.strategies.eviction_need import (
    INVALID,
    OFF,
    RELEASE,
    UNMEASURED,
    Need,
    Needs,
    by_requests,
    by_use,
)
from koordpolicy.algorithms.eviction_round import EvictionTask, Target
from koordpolicy.algorithms.satisfaction import (
    BestEffortUse,
    SatisfactionLimits,
    Verdict,
    enough_samples,
    offered,
    release,
)
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.graph.graph import Facts
from koordpolicy.model.protocol import CPU
from koordpolicy.model.reading import Amounts
from koordpolicy.model.time import NANOSECONDS

KIND: Final = "CPUEviction"
BEST_EFFORT: Final = "BECPUEvict"
BY_REQUESTS: Final = "CPUAllocatableEvict"
BY_PRIORITY: Final = "CPUEvict"
DEFAULT_USAGE: Final = 90.0
"""Percent of what they get that best-effort pods must use where no rule says it: the meaning of `bestEffort.usage`."""
_BEST_EFFORT_CLASS: Final = "BE"


@dataclass(frozen=True, slots=True)
class MeasuredCPU:
    """What the agent measured of CPU over the window that `eviction_window` gives, samples taken every `interval` seconds.

    `node` is the node's average use in millicores. Each is None where it was not measured lately.
    """

    interval: float
    node: int | None = None
    average: BestEffortUse | None = None
    current: BestEffortUse | None = None


def eviction_window(graph: RuleGraph, node: Facts, interval: float, now: int) -> float:
    """Over how many seconds CPU is averaged: as policy says, and one sample at least."""
    if not graph.subjects(KIND):
        return interval
    said = Evictable(graph, KIND, node, now).about().value("window")
    return interval if said is None else max(interval, said.ns / NANOSECONDS)


def cpu_needs(graph: RuleGraph, node: Facts, measured: MeasuredCPU, now: int) -> Needs:
    """What CPU calls for on a node; `now` in nanoseconds since 1970.

    Raises `CelError` where policy cannot decide: then nobody should go.
    """
    if not graph.subjects(KIND):
        return Needs()
    rules = Evictable(graph, KIND, node, now)
    thresholds = rules.thresholds("byPriority.threshold", "byPriority.lower")
    return Needs(
        {
            BEST_EFFORT: _by_satisfaction(rules, measured),
            BY_REQUESTS: by_requests(rules, BY_REQUESTS, CPU),
            BY_PRIORITY: by_use(rules, BY_PRIORITY, "byPriority", CPU, measured.node, thresholds),
        }
    )


def _by_satisfaction(rules: Evictable, measured: MeasuredCPU) -> Need:
    section = "bestEffort"
    if not rules.on(section):
        return Need(OFF)
    about = rules.about()
    threshold, upper, usage = (about.value(f"{section}.{name}") for name in ("threshold", "upper", "usage"))
    if threshold is None or upper is None:
        return Need(INVALID)
    limits = SatisfactionLimits(
        threshold / 100, upper / 100, (DEFAULT_USAGE if usage is None else usage) / 100
    )
    average, current = measured.average, measured.current
    if not limits.valid:
        return Need(INVALID)
    if average is None or current is None:
        return Need(UNMEASURED)
    window = eviction_window(rules.graph, rules.node, measured.interval, rules.now)
    if not enough_samples(average.count, measured.interval, window):
        return Need(str(Verdict.FEW_SAMPLES))
    resource = best_effort_cpu(rules.graph)
    if about.value(f"{section}.measured") == "Allocatable":
        there = offered(rules.node["resources.allocatable"].get(resource))
        average, current = average.of(there), current.of(there)
    amount, verdict = release(average, current, limits)
    if amount <= 0:
        return Need(str(verdict))
    pods = rules.candidates(section)
    amounts: dict[PodKey, Amounts] = {
        pod_key(pod): {resource: int(pod["resources.request"].get(resource, 0))} for pod in pods
    }
    task = EvictionTask(BEST_EFFORT, Target.REQUEST, {resource: amount}, list(amounts), amounts)
    return Need(RELEASE, task)


def best_effort_cpu(graph: RuleGraph) -> str:
    """The resource that best-effort pods request in place of CPU."""
    found = graph.catalogue.classes.get(_BEST_EFFORT_CLASS)
    return band_resources(graph, "" if found is None else found.default_band).get(CPU, CPU)
