"""Evictions for memory: what a node's use and its requests call for, by policy."""

from typing import Final

from koordpolicy.agent.strategies.evictable import Evictable
from koordpolicy.agent.strategies.eviction_need import Needs, by_requests, by_use
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.model.protocol import MEMORY

KIND: Final = "MemoryEviction"
BEST_EFFORT: Final = "BEMemoryEvict"
BY_REQUESTS: Final = "MemoryAllocatableEvict"
BY_PRIORITY: Final = "MemoryEvict"


def memory_needs(graph: RuleGraph, node: Facts, now: int) -> Needs:
    """What memory calls for on a node whose record says what it uses; `now` in nanoseconds since 1970.

    Raises `CelError` where policy cannot decide: then nobody should go.
    """
    if not graph.subjects(KIND):
        return Needs()
    rules = Evictable(graph, KIND, node, now)
    thresholds = rules.thresholds("threshold", "lower")
    use = node.get("usage.total.memory")
    return Needs(
        {
            BEST_EFFORT: by_use(rules, BEST_EFFORT, "bestEffort", MEMORY, use, thresholds),
            BY_REQUESTS: by_requests(rules, BY_REQUESTS, MEMORY),
            BY_PRIORITY: by_use(rules, BY_PRIORITY, "byPriority", MEMORY, use, thresholds),
        }
    )
