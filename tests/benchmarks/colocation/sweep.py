"""The model of contention against the kernel: response times at seven loads, alone, beside pods with requests, and beside best-effort pods.

Two loads of each company are what `quantum`, `missed` and `slowdown` are fitted to (see `koordpolicy/simulator/contention.yaml`); of the five
others the model is told how many requests come a second and what CPU time they took, and says the response times. Without
an agent, for what is asked is what the kernel does with weights. Needs root, as the control groups are real.

Other work of the machine does not belong to any of this. Alone, the service therefore runs before it, in the kernel's real-time class,
which is the same for workers that share their processors with nobody; beside pods, `others` says how much of the processors it took.
"""

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, pvariance
from typing import Final

from koordpolicy.algorithms.contention import Company, Rival, Service, response_times
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.host_root import HOST_TREES, HostRoot
from tests.benchmarks.colocation.latency import TASK, batch_pod, busy
from tests.benchmarks.colocation.pods import KUBEPODS, BenchPod, Groups, result, started
from tests.benchmarks.colocation.spin import units_in
from tests.benchmarks.measure import Row

LOADS: Final = (0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65)
"""Of what the service can have in its company."""
FITTED: Final = (0.2, 0.6)
SECONDS: Final = 9.0
ROUNDS: Final = 3
"""All loads are measured so many times in turn, and what was seen at one load is taken together: a fast or slow minute is none of its load."""
QUANTILES: Final = (0.5, 0.95, 0.99)
TICK: Final = 0.004
"""Seconds of a tick of the kernel's clock, as of CONFIG_HZ=250."""
_SETTLES: Final = 0.7
_SHARES: Final = 1024
_QUANTA: Final = tuple(step / 4000 for step in range(4, 41))
_MISSED: Final = tuple(step / 200 for step in range(41))
_SERVICE: Final = "tests.benchmarks.colocation.service"
_FIRST: Final = "--before-others"
_PARTS: Final = 50
_OF_ROOM: Final = 0.8
"""How near the loads of the service beside pods with requests come to what their weights leave: beyond that its queue grows for as long as is measured."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Who is beside the service: pods of that class, empty for none. `left` is the share of the processors that weights leave it."""

    name: str
    batch: str = ""
    left: float = 1.0


NEIGHBOURS: Final = (
    Neighbours("alone"),
    Neighbours("beside pods with requests", "Burstable", _OF_ROOM / 3),
    Neighbours("beside best effort", "BestEffort"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen at one load: requests a second, quantiles of response times, seconds.

    `work` has evenly spread quantiles of the CPU time of a request, seconds, as processors of virtual machines have fast and slow
    minutes; `others` is the share of all processors that was used by what is no part of this.
    """

    company: Neighbours
    load: float
    rate: float
    work: tuple[float, ...]
    times: tuple[float, ...]
    others: float


@dataclass(frozen=True, slots=True)
class Seen:
    """Requests of one stretch of time: response and CPU times of each, microseconds; `others` as of `Measured`."""

    times: Sequence[int]
    work: Sequence[int]
    others: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted: seconds, and a share."""

    quantum: float
    missed: float


def run() -> Iterable[Row]:
    """A row a load and company, then the parameters and the largest errors at the loads that they were not fitted to."""
    if os.geteuid() != 0:
        return [{"company": "skipped: control groups are made by root"}]
    groups = Groups(discover_hierarchy(HostRoot(HOST_TREES)))
    units = units_in(TASK)
    seen: dict[tuple[Neighbours, float], list[Seen]] = {}
    for number in range(ROUNDS):
        for load in LOADS:
            for one in NEIGHBOURS:
                seen.setdefault((one, load), []).append(_seen(groups, one, load, units, number))
    return list(rows([_together(*key, parts) for key, parts in seen.items()]))


def rows(found: Sequence[Measured]) -> Iterator[Row]:
    """What the model makes of measurements."""
    fit = fitted([one for one in found if one.load in FITTED])
    errors: dict[str, list[list[float]]] = {}
    for one in sorted(found, key=lambda one: (NEIGHBOURS.index(one.company), one.load)):
        said = predicted(one, fit)
        off = [abs(a / b - 1) for a, b in zip(said, one.times, strict=True)]
        if one.load not in FITTED:
            errors.setdefault(one.company.name, []).append(off)
        yield {
            "company": one.company.name,
            "load": f"{one.load:.0%}" + (" (fitted)" if one.load in FITTED else ""),
            "others": f"{one.others:.0%}" if one.company.batch else "",
            "CPU ms a request": round(1e3 * mean(one.work), 2),
            **{f"p{100 * q:.0f} ms": round(1e3 * t, 2) for q, t in zip(QUANTILES, one.times, strict=True)},
            **{f"model p{100 * q:.0f}": round(1e3 * t, 2) for q, t in zip(QUANTILES, said, strict=True)},
            "most off": f"{max(off):.0%}",
        }
    for name, each in errors.items():
        yield {
            "at loads not fitted": name,
            **{
                f"p{100 * q:.0f} off at most": f"{max(one[at] for one in each):.0%}"
                for at, q in enumerate(QUANTILES)
            },
            "quantum ms": 1e3 * fit.quantum,
            "missed": f"{fit.missed:.1%}",
            "slowdown": f"{slowdown(found):.1%}",
        }


def predicted(one: Measured, fit: Fit) -> tuple[float, ...]:
    """The quantiles of response times by the model, in seconds."""
    cpus = os.cpu_count() or 1
    weights = {"": (), "Burstable": (2.0, 0.0), "BestEffort": (2 * 2 / _SHARES, fit.missed)}[
        one.company.batch
    ]
    rivals = (Rival(weights[0], fit.quantum, weights[1]),) if weights else ()
    work = mean(one.work)
    multiples = tuple(each / work for each in one.work)
    service = Service(cpus, work, pvariance(multiples), float(cpus), multiples, _turn(cpus), TICK)
    return tuple(response_times(service, one.rate, Company(rivals=rivals), QUANTILES).tolist())


def _turn(cpus: int) -> float:
    """base_slice of Linux, in seconds, as it sets it by the number of processors (get_update_sysctl_factor, kernel/sched/fair.c)."""
    return 0.0007 * (1 + int(math.log2(min(cpus, 8))))


def fitted(found: Sequence[Measured]) -> Fit:
    """The parameters whose errors over these measurements are least in sum."""

    def off(quantum: float, missed: float, ones: Iterable[Measured]) -> float:
        fit = Fit(quantum, missed)
        return sum(
            abs(a / b - 1) for one in ones for a, b in zip(predicted(one, fit), one.times, strict=True)
        )

    shared = [one for one in found if one.company.batch == "Burstable"]
    best_effort = [one for one in found if one.company.batch == "BestEffort"]
    quantum = min(_QUANTA, key=lambda quantum: off(quantum, 0.0, shared))
    return Fit(quantum, min(_MISSED, key=lambda missed: off(quantum, missed, best_effort)))


def slowdown(found: Sequence[Measured]) -> float:
    """How much more CPU time requests need beside best-effort work than alone, at the loads that are fitted."""
    alone, beside = (
        mean(mean(one.work) for one in found if one.company == company and one.load in FITTED)
        for company in (NEIGHBOURS[0], NEIGHBOURS[2])
    )
    return max(beside / alone - 1, 0.0)


def _rate(company: Neighbours, load: float) -> float:
    return (os.cpu_count() or 1) * load * company.left / TASK


def _together(company: Neighbours, load: float, parts: Sequence[Seen]) -> Measured:
    times, work = (sorted(each for one in parts for each in getattr(one, name)) for name in ("times", "work"))
    return Measured(
        company,
        load,
        _rate(company, load),
        tuple(work[int(len(work) * (at + 0.5) / _PARTS)] / 1e6 for at in range(_PARTS)),
        tuple(times[int(len(times) * one)] / 1e6 for one in QUANTILES),
        mean(one.others for one in parts),
    )


def _seen(groups: Groups, company: Neighbours, load: float, units: int, number: int) -> Seen:
    cpus = os.cpu_count() or 1
    service = BenchPod("service", "Burstable", _SHARES * cpus)
    batch = [batch_pod(number, company.batch) for number in range(2 * cpus)] if company.batch else []
    asked = (
        "--units", f"{units}", "--rate", f"{_rate(company, load)}", "--seconds", f"{SECONDS}",
        "--seed", f"{100 * number + round(100 * load)}",
    )  # fmt: skip
    with groups.of([service, *batch]):
        loops = [
            groups.start(pod, "tests.benchmarks.colocation.batch", "--seconds", f"{_SETTLES + SECONDS + 1}")
            for pod in batch
        ]
        time.sleep(_SETTLES)
        began, before = time.monotonic(), busy() - groups.used_cpu(KUBEPODS.root)
        # A new group has no real-time work to give; a service alone needs none of its own.
        served = groups.start(service, _SERVICE, *asked) if batch else started(_SERVICE, *asked, _FIRST)
        told = result(served, 6 * SECONDS)
        others = busy() - groups.used_cpu(KUBEPODS.root) - before
        lasted = time.monotonic() - began
        for loop in loops:
            result(loop, 6 * SECONDS)
    return Seen(told["times"], told["work"], max(others, 0.0) / (lasted * cpus))
