"""Rounds of evictions on a node: when one may be, how many pods go in it, and which ones still count from before.

Nobody goes on stale measurements, while a cool-down lasts, or beyond a budget.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from koordpolicy.agent.plan import Eviction, Plan
from koordpolicy.agent.strategies.evictable import PodKey, pod_key
from koordpolicy.agent.strategies.eviction_need import Needs
from koordpolicy.algorithms.eviction_round import eviction_round
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES
from koordpolicy.model.time import NANOSECONDS

_HOUR: Final = 3600 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class EvictionMemory:
    """What is known of evictions of one kind, times in nanoseconds since 1970.

    `last` is when a pod last went, or the agent started: then nobody goes for the length of a cool-down either. `going` are
    pods that went and may still be there, `lately` the times of all within an hour.
    """

    last: int
    going: Mapping[PodKey, int] = field(default_factory=dict)
    lately: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class EvictionOutcome:
    """What a round did, what is known afterwards, and whether it may only have been too early for more."""

    plan: Plan
    memory: EvictionMemory
    satisfied: Sequence[bool] = ()


def evict_by_needs(
    graph: RuleGraph,
    kind: str,
    needs: Needs,
    node: Facts,
    memory: EvictionMemory,
    now: int,
    evict: Callable[[Eviction], bool],
) -> EvictionOutcome:
    """Let pods go for what a kind of evictions needs.

    `evict` says whether a pod really goes; one that only plans says so of all. Where it is not, the next pod is asked.
    Raises `CelError` where policy cannot decide: then nobody went.
    """
    tasks = needs.tasks
    memory = _still(memory, node, now)
    if not tasks:
        return EvictionOutcome(Plan(), memory)
    about = graph.about(kind, "", {"node": node, "now": TIMES.timestamp(now)})
    memory = _expected(memory, about, now)
    refused = _too_early(about, node, memory, now)
    if refused is not None:
        return EvictionOutcome(Plan(notes=(f"{kind}: {refused}",)), memory)
    by, most = str(about.value("conduct.by")), _budget(about, memory)
    gone: list[Eviction] = []

    def asked(pod: PodKey, reason: str) -> bool:
        namespace, name, uid = pod
        eviction = Eviction(namespace, name, uid, reason, kind, by)
        if not evict(eviction):
            return False
        gone.append(eviction)
        return True

    found = eviction_round(tasks, memory.going, asked, most)
    notes = [
        f"{kind}: {task.reason} is not satisfied: {dict(task.release)} were to be released"
        for task, done in zip(tasks, found.satisfied, strict=True)
        if not done
    ]
    if gone:
        memory = EvictionMemory(
            now,
            {**memory.going, **dict.fromkeys(found.evicted, now)},
            (*memory.lately, *(now for _ in gone)),
        )
    return EvictionOutcome(Plan(evictions=tuple(gone), notes=tuple(notes)), memory, found.satisfied)


def _too_early(about: About, node: Facts, memory: EvictionMemory, now: int) -> str | None:
    """Why nobody goes now, in a phrase; None where somebody may."""
    stale, age = about.value("conduct.staleAfter"), node.get("metric.age")
    if age is None or (stale is not None and stale < age):
        return "the node was not measured lately"
    cooldown = about.value("cooldown")
    if cooldown is not None and now - memory.last < cooldown.ns:
        return "the last eviction was a moment ago"
    budget = _budget(about, memory)
    if budget is not None and budget <= 0:
        return "enough pods went within the hour"
    return None


def _budget(about: About, memory: EvictionMemory) -> int | None:
    """How many pods may go in this round; None for any number."""
    at_once, per_hour = about.value("conduct.mostAtOnce"), about.value("conduct.mostPerHour")
    limits = [at_once, None if per_hour is None else per_hour - len(memory.lately)]
    said = [int(limit) for limit in limits if limit is not None]
    return max(min(said), 0) if said else None


def _still(memory: EvictionMemory, node: Facts, now: int) -> EvictionMemory:
    """What still counts of the past: pods that are still there, evictions within the hour."""
    there = {pod_key(pod) for pod in node["pods"]}
    return replace(
        memory,
        going={key: at for key, at in memory.going.items() if key in there},
        lately=tuple(at for at in memory.lately if now - at < _HOUR),
    )


def _expected(memory: EvictionMemory, about: About, now: int) -> EvictionMemory:
    """Without pods that should have gone by now: they are asked again."""
    within = about.value("conduct.expectedWithin")
    if within is None:
        return memory
    return replace(memory, going={key: at for key, at in memory.going.items() if now - at < within.ns})
