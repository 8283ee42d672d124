"""What came of a simulation, as plain data: what `--output json` prints and texts are made from."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from koordpolicy.manager.webhooks.rules import KIND as ADMISSION
from koordpolicy.model.pod import PodKey
from koordpolicy.model.protocol import CPU
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.explanation import explanation
from koordpolicy.simulator.answering import Answers
from koordpolicy.simulator.balance_report import balance, balance_of, descheduling
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.events import CollectedEvents
from koordpolicy.simulator.explanation import suppression
from koordpolicy.simulator.failures import rule_place
from koordpolicy.simulator.fault_report import faults
from koordpolicy.simulator.fragmentation import fragmentation
from koordpolicy.simulator.journal import Explained, Sample, Untried
from koordpolicy.simulator.simulation import Simulation

HOUR = 3600 * SECOND
FINE_SERIES = 48 * HOUR
"""Simulations of a day or two are told hour by hour, longer ones in as many parts as `PARTS`, shorter ones in as many at most, of one of
these minutes."""

PARTS = 24
PART_MINUTES = (1, 2, 5, 10, 15, 20, 30)
MOST_REASONS = 50
_TOLD_REASONS = 2

NOT_TRIED = "not tried yet when the simulation ended"


def report(simulation: Simulation, passed: int | None = None) -> dict[str, Any]:
    """The whole report: counts, shares from 0 to 1, CPU in cores, memory in bytes, times in seconds.

    Of all pods, each is scheduled, pending, refused, another scheduler's, or had not arrived when the simulation ended.
    With `passed`, nanoseconds since its beginning, it is one of a simulation that goes on, as if it was interrupted now.
    """
    journal = simulation.journal
    interrupted = simulation.interrupted if passed is None else passed
    waiting = simulation.waiting
    refused = sum(len(pods) for pods in journal.refused.values())
    machines = simulation.machines.values()
    cpu, memory = sum(one.cpu for one in machines), sum(one.memory for one in machines)
    return {
        "workload": {
            "title": simulation.workload.title,
            "nodes": len(simulation.machines),
            "cpu": cpu / 1000,
            "memory": memory,
            "seconds": simulation.span / SECOND,
            "intervalSeconds": simulation.interval / SECOND,
        },
        "interruptedAtSeconds": None if interrupted is None else interrupted / SECOND,
        "policies": {"digest": simulation.graph.digest},
        "failedEvaluations": [asdict(one) for one in simulation.cluster.failures.found()],
        "pods": {
            "total": len(simulation.workload.arrivals),
            "scheduled": journal.placed,
            "pending": len(waiting),
            "refused": refused,
            "notOurs": sum(len(pods) for pods in journal.others.values()),
            "notArrived": len(simulation.workload.arrivals) - journal.arrived,
            "finished": journal.finished,
            "running": simulation.running,
            "placedAnew": len(journal.anew),
            "onOtherNodes": sum(journal.anew.values()),
        },
        "pending": _pending(waiting, simulation.cluster.schedulers.held_up),
        "refused": [
            {"reason": reason, "pods": len(pods), "example": pods[0]}
            for reason, pods in sorted(journal.refused.items(), key=lambda one: (-len(one[1]), one[0]))
        ][:MOST_REASONS],
        "notOurs": [
            {"scheduler": scheduler, "pods": len(pods), "example": pods[0]}
            for scheduler, pods in sorted(journal.others.items(), key=lambda one: (-len(one[1]), one[0]))
        ][:MOST_REASONS],
        "admission": _admission(simulation),
        "colocation": {
            "enabled": simulation.settings.colocation,
            "profiles": dict(sorted(simulation.cluster.drawn.items())),
            "bands": dict(sorted(simulation.cluster.translated.items())),
        },
        "scheduling": {
            "attempts": journal.attempts,
            "preempted": journal.preempted,
            "placedAtOnce": sum(not one for one in journal.waits),
            "placedWithReports": journal.placed_with_reports,
            "waitSeconds": _waits(journal.waits),
        },
        "events": _events(simulation.cluster.events),
        "volumes": {"bound": simulation.cluster.volumes.bound, "made": simulation.cluster.volumes.made},
        "utilisation": _utilisation(journal.samples, cpu, memory),
        "overcommit": _overcommit(journal.samples, cpu),
        "suppression": _suppression(simulation, cpu),
        "batch": _batch(simulation, interrupted),
        "services": {"shortOfNodeTime": _short(simulation), **_answers(simulation)},
        "fragmentation": fragmentation(simulation),
        "balance": balance(simulation.journal.samples),
        "descheduling": descheduling(simulation.descheduler),
        "agents": _agents(simulation),
        "faults": faults(simulation.faults),
        "series": _series(simulation, cpu, memory),
        "explained": [_explained(simulation, one) for one in journal.explained.values()],
        "untried": [_untried(simulation, name, one) for name, one in journal.untried.items()],
    }


def _explained(simulation: Simulation, one: Explained) -> dict[str, Any]:
    return {
        "atSeconds": one.time / SECOND,
        "profile": one.profile.name,
        **explanation(simulation.graph, one.profile, one.decision, one.pod),
    }


def _untried(simulation: Simulation, name: str, one: Untried) -> dict[str, Any]:
    return {
        "atSeconds": one.time / SECOND,
        "pod": name,
        "why": one.why,
        "rules": [
            {
                "name": broken.rule,
                "enforcement": broken.enforcement,
                "reason": broken.reason,
                "message": broken.message,
                "rule": rule_place(simulation.graph, f"{ADMISSION}/{broken.rule}.require"),
            }
            for broken in one.violations
        ],
    }


def _admission(simulation: Simulation) -> dict[str, Any]:
    """The admission rules that were broken, those included that refuse nothing, and how many pods they kept."""
    return {
        "kept": simulation.journal.kept,
        "broken": [
            {
                "name": rule,
                "operation": operation,
                "enforcement": enforcement,
                "times": one.times,
                "example": one.example,
                "message": one.message,
                "rule": rule_place(simulation.graph, f"{ADMISSION}/{rule}.require"),
            }
            for (rule, operation, enforcement), one in sorted(
                simulation.cluster.broken.items(), key=lambda item: (-item[1].times, item[0])
            )
        ],
    }


def _pending(
    waiting: Mapping[PodKey, PodDecision | None], held_up: Mapping[PodKey, str]
) -> list[dict[str, Any]]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, decision in waiting.items():
        message = "" if decision is None else decision.message
        groups.setdefault(held_up.get(key) or _reason(decision), []).append(("/".join(key), message))
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    return [
        {"reason": reason, "pods": len(pods), "example": pods[0][0], "message": pods[0][1]}
        for reason, pods in ordered[:MOST_REASONS]
    ]


def _reason(decision: PodDecision | None) -> str:
    """The reasons that refused most nodes, without the numbers that differ from pod to pod."""
    if decision is None:
        return NOT_TRIED
    if decision.problem:
        return decision.problem
    counted: Counter[str] = Counter()
    for refusals in decision.refusals:
        counted[refusals.reason] += refusals.nodes
    ranked = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(reason for reason, _ in ranked[:_TOLD_REASONS]) or "there are no nodes"


def _events(events: CollectedEvents) -> dict[str, Any]:
    """What was told of pods, by reason: how often, and the latest."""
    return {
        "reasons": {
            reason: {
                "type": one.latest.type,
                "count": one.count,
                "example": f"{one.latest.about.get('namespace', '')}/{one.latest.about['name']}".lstrip("/"),
                "message": one.latest.message,
            }
            for reason, one in sorted(events.reasons.items())
        },
        "dropped": events.dropped,
    }


def _waits(waits: Sequence[float]) -> dict[str, float]:
    ordered = sorted(waits)
    if not ordered:
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "max": 0.0}
    return {
        "mean": sum(ordered) / len(ordered),
        "p50": ordered[len(ordered) // 2],
        "p95": ordered[min(len(ordered) * 95 // 100, len(ordered) - 1)],
        "max": ordered[-1],
    }


def _utilisation(samples: Sequence[Sample], cpu: int, memory: int) -> dict[str, dict[str, float]]:
    def over(measure: Callable[[Sample], float], whole: int) -> dict[str, float]:
        found = [(measure(one) / whole if whole else 0.0, one.seconds) for one in samples]
        return {
            "mean": _mean(found),
            "p95": _quantile(found, 0.95),
            "max": max((v for v, _ in found), default=0.0),
        }

    return {
        "cpuUsed": over(lambda one: one.used, cpu),
        "cpuRequested": over(lambda one: one.requested, cpu),
        "cpuBestEffort": over(lambda one: one.best_effort, cpu),
        "memoryUsed": over(lambda one: one.used_memory, memory),
    }


def _overcommit(samples: Sequence[Sample], cpu: int) -> dict[str, dict[str, float]]:
    names = samples[0].offered if samples else {}
    found = {}
    for name in names:
        offered = [(float(one.offered[name]), one.seconds) for one in samples]
        allocated = [(float(one.allocated[name]), one.seconds) for one in samples]
        if not any(value for value, _ in (*offered, *allocated)):
            continue
        scale = 1000 if CPU in name else 1
        found[name] = {
            "offeredMean": _mean(offered) / scale,
            "allocatedMean": _mean(allocated) / scale,
            "allocatedMax": max(value for value, _ in allocated) / scale,
        }
    return found


def _suppression(simulation: Simulation, cpu: int) -> dict[str, Any]:
    journal = simulation.journal
    hosting = sum(one.hosting * one.seconds for one in journal.samples)
    suppressed = sum(one.suppressed * one.seconds for one in journal.samples)
    withheld = sum(one.withheld * one.seconds for one in journal.samples)
    given = sum(one.best_effort * one.seconds for one in journal.samples)
    return {
        "shareOfNodeTime": suppressed / hosting if hosting else 0.0,
        "hostingNodeHours": hosting / 3600,
        "withheldCoreHours": withheld / 3_600_000,
        "withheldShare": withheld / (withheld + given) if withheld else 0.0,
        "givenCoreHours": given / 3_600_000,
        "lowest": None if journal.lowest is None else suppression(simulation.graph, journal.lowest),
        "worst": None if journal.worst is None else suppression(simulation.graph, journal.worst),
    }


def _agents(simulation: Simulation) -> dict[str, Any] | None:
    """What agents did that ran on models of kernels; None where none did."""
    agents = simulation.agents
    if agents is None:
        return None
    from koordpolicy.simulator.agents import KINDS, NOT_SIMULATED  # noqa: PLC0415  # there already, as there are any

    counts = agents.counts
    return {
        "nodes": len(agents),
        "rounds": counts.rounds,
        "fileWrites": counts.writes,
        "refusedWrites": counts.refused,
        "evicted": sum(simulation.journal.evicted.values()),
        "evictions": dict(sorted(simulation.journal.evicted.items())),
        "oomKills": counts.killed,
        "throttledContainerHours": counts.throttled / HOUR,
        "strategies": sorted(KINDS),
        "notSimulated": list(NOT_SIMULATED),
    }


def _batch(simulation: Simulation, interrupted: int | None) -> dict[str, Any]:
    """What best-effort work came to."""
    hours = (simulation.span if interrupted is None else interrupted) / HOUR
    core_hours = sum(one.best_effort * one.seconds for one in simulation.journal.samples) / 3_600_000
    return {
        "coreHours": core_hours,
        "finishedPodsAnHour": simulation.journal.finished / hours if hours else 0.0,
    }


def _short(simulation: Simulation) -> float:
    """The share of node time in which pods outside the best-effort groups got less CPU than they wished."""
    samples, nodes = simulation.journal.samples, len(simulation.machines)
    whole = nodes * sum(one.seconds for one in samples)
    return sum(one.short * one.seconds for one in samples) / whole if whole else 0.0


def _answers(simulation: Simulation) -> dict[str, float]:
    """How services answered: means over them and over time, and the service minutes in which one was slower than its objective."""
    samples = simulation.journal.samples
    time = sum(one.answers.services * one.seconds for one in samples)
    late = sum(one.answers.violating * one.seconds for one in samples)

    def over(measure: Callable[[Answers], float]) -> float:
        return _mean([(measure(one.answers), one.answers.services * one.seconds) for one in samples])

    return {
        "minutes": time / 60,
        "violationMinutes": late / 60,
        "violationShare": late / time if time else 0.0,
        "medianSeconds": over(lambda one: one.median),
        "tailSeconds": over(lambda one: one.tail),
    }


def _series(simulation: Simulation, cpu: int, memory: int) -> list[dict[str, Any]]:
    """The course of the simulation in parts of equal length."""
    part = _part(max(simulation.span, 1), simulation.interval)
    groups: dict[int, list[Sample]] = {}
    for one in simulation.journal.samples:
        if one.seconds or simulation.span == 0:
            groups.setdefault(one.time // part, []).append(one)
    whole = cpu or 1
    ordered = sorted(groups.items())
    before = {index: groups[last][-1].finished for (last, _), (index, _) in pairwise(ordered)}
    before |= {index: 0 for index, _ in ordered[:1]}
    return [
        {
            "fromSeconds": index * part / SECOND,
            "cpuUsed": _mean([(one.used / whole, one.seconds) for one in group]),
            "cpuRequested": _mean([(one.requested / whole, one.seconds) for one in group]),
            "cpuBestEffort": _mean([(one.best_effort / whole, one.seconds) for one in group]),
            "cpuWithheld": _mean([(one.withheld / whole, one.seconds) for one in group]),
            "suppressedNodes": max(one.suppressed for one in group),
            "shortNodes": max(one.short for one in group),
            "tailSeconds": _mean([(one.answers.tail, one.answers.services * one.seconds) for one in group]),
            "violatingServices": max(one.answers.violating for one in group),
            "memoryUsed": _mean([(one.used_memory / (memory or 1), one.seconds) for one in group]),
            **balance_of(group),
            "offered": _amounts([one.offered for one in group]),
            "allocated": _amounts([one.allocated for one in group]),
            "finished": group[-1].finished - before[index],
            "running": group[-1].running,
            "pending": group[-1].pending,
        }
        for index, group in ordered
    ]


def _part(span: int, interval: int) -> int:
    """How long the parts are by which a simulation is told. Each has a moment that was looked at."""
    if span > FINE_SERIES:
        return -(-span // PARTS)
    shorter = (minutes * 60 * SECOND for minutes in PART_MINUTES)
    return next((part for part in shorter if part >= interval and span <= PARTS * part), max(HOUR, interval))


def _amounts(found: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """The means of amounts, CPU in cores."""
    return {
        name: _plain_mean(one[name] for one in found) / (1000 if CPU in name else 1)
        for name in found[0]
        if any(one[name] for one in found)
    }


def _mean(found: Sequence[tuple[float, float]]) -> float:
    """The mean of values by their weights; of equal ones where all weights are 0."""
    weight = sum(seconds for _, seconds in found)
    if not weight:
        return _plain_mean(value for value, _ in found)
    return sum(value * seconds for value, seconds in found) / weight


def _plain_mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _quantile(found: Sequence[tuple[float, float]], share: float) -> float:
    """The least value that is not exceeded for that share of the weight; 0 of none."""
    whole = sum(seconds for _, seconds in found)
    passed = 0.0
    ordered = sorted(found)
    for value, seconds in ordered:
        passed += seconds
        if passed >= share * whole:
            return value
    return ordered[-1][0] if ordered else 0.0
