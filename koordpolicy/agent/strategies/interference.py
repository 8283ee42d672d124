"""Pods that others on their node hold up: which rules say so, for how long, and what policy does about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from koordpolicy.agent.strategies.cpu_eviction import KIND as CPU_EVICTION
from koordpolicy.agent.strategies.evictable import Evictable, PodKey, pod_key, used
from koordpolicy.agent.strategies.eviction_need import RELEASE, Need, Needs
from koordpolicy.agent.strategies.suppression import Suppression, SuppressionAction
from koordpolicy.algorithms.eviction_round import EvictionTask, Target
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.protocol import CPU

KIND: Final = "Interference"
SUPPRESS: Final = "SuppressBestEffort"
EVICT: Final = "EvictBestEffort"
_SMALLEST: Final = 1
"""Millicores: one pod that uses any CPU is enough for a round."""


@dataclass(frozen=True, slots=True)
class PodSignals:
    """What says that a pod is held up; what was not measured is absent.

    `pressure` in percent by resource and kind, `("cpu", "some")`; `cpi` cycles per instruction; `waiting` is the percentage of
    time that its tasks waited for a CPU.
    """

    pressure: Mapping[tuple[str, str], float] = field(default_factory=dict)
    cpi: float | None = None
    waiting: float | None = None


def signal_facts(signals: PodSignals) -> Record:
    """The signals as facts of a pod."""
    record: Record = {
        f"pressure.{resource}.{kind}": value for (resource, kind), value in signals.pressure.items()
    }
    if signals.cpi is not None:
        record["cpi"] = signals.cpi
    if signals.waiting is not None:
        record["schedulingDelay"] = signals.waiting
    return record


@dataclass(frozen=True, slots=True)
class InterferenceMemory:
    """Since when each rule holds of each pod, by the rule's name and the pod, and when it last was true long enough."""

    since: Mapping[tuple[str, PodKey], int] = field(default_factory=dict)
    last: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one rule wants now. `pods` are those that suffer: none while it only lasts. `share` of the node's CPU, in percent."""

    rule: str
    reaction: str
    share: float
    pods: Sequence[PodKey]

    @property
    def words(self) -> str:
        """For people."""
        names = ", ".join(f"{namespace}/{name}" for namespace, name, _uid in self.pods)
        return f"{KIND}/{self.rule}: {self.reaction}" + (f" for {names}" if names else ", a moment longer")


def reactions(
    graph: RuleGraph,
    node: Facts,
    signals: Mapping[PodKey, PodSignals],
    memory: InterferenceMemory,
    now: int,
) -> tuple[list[Reaction], InterferenceMemory]:
    """What all rules want for the pods that were measured, and what is to be remembered.

    A rule that cannot be told of a pod does not hold of it: nothing is done on missing signals.
    """
    since: dict[tuple[str, PodKey], int] = {}
    last: dict[str, int] = {}
    found = []
    for rule in graph.subjects(KIND):
        roots: dict[str, Any] = {"node": node, "now": TIMES.timestamp(now)}
        about = graph.about(KIND, rule, roots)
        try:
            if not about.value("enabled"):
                continue
            after, lasts = about.value("after").ns, about.value("lasts").ns
            reaction, share = about.value("reaction"), about.value("share")
        except CelError:
            continue
        suffering = []
        for pod in node["pods"]:
            key = pod_key(pod)
            if key not in signals:
                continue
            facts = {**pod, **signal_facts(signals[key])}
            if about.value_or("when", otherwise=False, pod=facts):
                began = since[rule, key] = memory.since.get((rule, key), now)
                if now - began >= after:
                    suffering.append(key)
        before = memory.last.get(rule)
        if suffering:
            last[rule] = now
        elif before is not None and now - before < lasts:
            last[rule] = before
        if rule in last:
            found.append(Reaction(rule, str(reaction), 0.0 if share is None else share, suffering))
    return found, InterferenceMemory(since, last)


def suppressed_more(decision: Suppression, wanted: Sequence[Reaction], capacity: int) -> Suppression:
    """The suppression of best-effort work, with so much less for it as the strictest reaction wants; millicores."""
    share = max((one.share for one in wanted if one.reaction == SUPPRESS), default=0.0)
    if share <= 0 or decision.outcome is not SuppressionAction.SUPPRESS:
        return decision
    return replace(decision, target=decision.target - int(capacity * share / 100))


def eviction_needs(graph: RuleGraph, node: Facts, wanted: Sequence[Reaction], now: int) -> Needs:
    """What reactions call for: one best-effort pod that uses CPU, in the order in which they go for CPU.

    Carried out as evictions of CPUEviction are, within its limits.
    """
    rules = [one.rule for one in wanted if one.reaction == EVICT and one.pods]
    if not rules or not graph.subjects(CPU_EVICTION):
        return Needs()
    pods = Evictable(graph, CPU_EVICTION, node, now).candidates("bestEffort")
    uses = {key: amount for key, amount in used(pods, CPU).items() if amount[CPU] > 0}
    keys = [pod_key(pod) for pod in pods if pod_key(pod) in uses]
    reason = f"{KIND}/{rules[0]}"
    return Needs({reason: Need(RELEASE, EvictionTask(reason, Target.USED, {CPU: _SMALLEST}, keys, uses))})
