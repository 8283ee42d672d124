"""The facts of a rollout, and what its guards say of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.model.policy_revision import NO_AGENTS, RevisionAgents
from koordpolicy.runtime.rollout.counts import ComparisonCounts
from koordpolicy.runtime.rollout.machine import Judged
from koordpolicy.runtime.rollout.plan import KIND, RolloutPlan
from koordpolicy.runtime.rollout.state import RolloutProgress


@dataclass(frozen=True, slots=True)
class Gathered:
    """What all processes report of the present step, and how many of them there are; `agents` are among them."""

    counts: ComparisonCounts = field(default_factory=ComparisonCounts)
    instances: int = 0
    rejected: int = 0
    canary: int = 0
    agents: RevisionAgents = NO_AGENTS


@dataclass(frozen=True, slots=True)
class Baseline:
    """A process's own metrics when the step began: what counters count from."""

    counters: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def rollout_facts(
    state: RolloutProgress, gathered: Gathered, metrics: Mapping[str, float], now: int
) -> dict[str, Any]:
    """The record `rollout`, by dotted paths. `metrics` are as `increase` gives them."""
    counts = gathered.counts
    total = counts.total
    facts: dict[str, Any] = {
        "step": state.step,
        "elapsed": Duration(state.elapsed(now)),
        "compared": total.compared,
        "disagreements": total.different,
        "disagreementByKind": {
            kind: 100.0 * one.different / one.compared for kind, one in counts.kinds.items() if one.compared
        },
        "failures": total.failed,
        "instances.total": gathered.instances,
        "instances.rejected": gathered.rejected,
        "instances.canary": gathered.canary,
        "metrics": dict(metrics),
    }
    if total.compared:
        facts["disagreement"] = 100.0 * total.different / total.compared
        facts["latency.active"] = Duration(counts.active_time // total.compared)
        facts["latency.candidate"] = Duration(counts.candidate_time // total.compared)
    agents = gathered.agents
    if agents.due is not None and agents.step == state.step:
        facts |= {
            "agents.due": agents.due,
            "agents.running": agents.deciding,
            "agents.behind": agents.behind,
            "agents.rejected": agents.rejected,
            "agents.silent": agents.silent,
        }
    return facts


def increase(numbers: Mapping[str, float], gauges: frozenset[str], baseline: Baseline) -> dict[str, float]:
    """Gauges as they are, everything else as what came since the baseline."""
    return {
        name: value if name in gauges else value - baseline.counters.get(name, 0.0)
        for name, value in numbers.items()
    }


def judge(graph: RuleGraph, plan: RolloutPlan, facts: Mapping[str, Any], now: int) -> dict[str, Judged]:
    """What each guard of the old revision says of the facts."""
    about = graph.about(KIND, "", {"rollout": facts, "now": Timestamp(now)})
    return {guard.name: _judged(about, guard.name) for guard in plan.guards}


def _judged(about: About, guard: str) -> Judged:
    try:
        holds = about.value(f"guards[{guard}].require")
    except CelError as error:
        return Judged(None, error.message)
    if holds is None:
        return Judged(True)  # it does not apply now
    if holds:
        return Judged(True)
    return Judged(False, str(about.value_or(f"guards[{guard}].reason", None) or ""))
