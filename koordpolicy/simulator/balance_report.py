"""What a simulation's report says of the balance of nodes, and of the descheduler that keeps it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from koordpolicy.simulator.balance import Balance
from koordpolicy.simulator.journal import Sample

if TYPE_CHECKING:
    from koordpolicy.simulator.descheduling import SimulatedDescheduler


def balance(samples: Sequence[Sample]) -> dict[str, Any]:
    """Means over time, and at the end: the CPU in use as shares of nodes, and how many nodes are too full by policy; None of what no policy says."""
    last = samples[-1].balance if samples else None
    return {
        **{key: _mean(samples, of) for key, of in _MEASURES.items()},
        "overloadedNodes": _overloaded(samples),
        "atTheEnd": None
        if last is None
        else {**{key: of(last) for key, of in _MEASURES.items()}, "overloadedNodes": last.overloaded},
    }


def balance_of(samples: Sequence[Sample]) -> dict[str, Any]:
    """The same of a part of the time, for the course of it."""
    return {
        "cpuDeviation": _mean(samples, _MEASURES["deviation"]),
        "cpuHighestNode": _mean(samples, _MEASURES["highestNode"]),
        "cpuLowestNode": _mean(samples, _MEASURES["lowestNode"]),
        "overloadedNodes": _overloaded(samples),
    }


def descheduling(descheduler: "SimulatedDescheduler | None") -> dict[str, Any] | None:
    """What the descheduler did; None where none ran."""
    if descheduler is None:
        return None
    counts = descheduler.counts
    return {
        "rounds": counts.rounds,
        "moves": dict(sorted(counts.moves.items())),
        "results": dict(sorted(counts.results.items())),
        "evicted": counts.evicted,
        "migrations": dict(sorted(descheduler.migrations_by_phase.items())),
    }


BALANCE_OVER_TIME = ("cpuDeviation", "cpuHighestNode", "cpuLowestNode", "overloadedNodes")
"""The keys of `balance_of`."""

_MEASURES: dict[str, Callable[[Balance], float]] = {
    "deviation": lambda one: one.deviation,
    "highestNode": lambda one: one.highest,
    "lowestNode": lambda one: one.lowest,
}


def _mean(samples: Sequence[Sample], of: Callable[[Balance], float]) -> float:
    """By how long each holds; all alike where none does."""
    time = sum(one.seconds for one in samples)
    if time:
        return sum(of(one.balance) * one.seconds for one in samples) / time
    return sum(of(one.balance) for one in samples) / len(samples) if samples else 0.0


def _overloaded(samples: Sequence[Sample]) -> float | None:
    if any(one.balance.overloaded is None for one in samples):
        return None
    return _mean(samples, lambda one: float(one.overloaded or 0))
