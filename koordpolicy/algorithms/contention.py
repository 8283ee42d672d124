"""How long a service takes to answer beside other work: a queue with several workers in front of shared processors.

Requests come at random and are taken in order by the first worker that is free (M/G/c). The chance to wait for one is Erlang's C
formula (A. K. Erlang, 1917); who waits does so for an exponential time, its mean the two-moment approximation of Allen and Cunneen
(A. O. Allen, "Probability, Statistics, and Queueing Theory", 2nd edition, 1990, 5.3). Others take processors away in three ways:

- by weight: while a worker runs beside a rival, each gets its share, as in generalised processor sharing (L. Kleinrock, "Queueing
  Systems" II, 1976, 4.4); not evenly, but in turns: before each of the worker's the rival may run on for the rest of a quantum, with the
  chance by which it comes to its share (I. Stoica, H. Abdel-Wahab, "Earliest eligible virtual deadline first", 1995, as Linux has it).
  Before the first one it does so where the worker still owes it for the last request, or where it was let run just now, as Linux takes
  no processor from who has not had a turn of it (RUN_TO_PARITY, kernel/sched/fair.c): what is owed is forgotten once it is paid;
- by more than that: a node may have less left for services than they wish, and a quota is no other share;
- all the time: requests need more CPU time where caches, memory and cores are shared (`slowdown`).

Times are seconds. Quantiles are those of sums of independent times, over `POINTS` points in two dimensions that the powers of the
plastic number spread evenly (M. Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]

POINTS: Final = 4096
_ROOT: Final = 1.3247179572447460
"""The plastic number, the real root of x³ = x + 1."""
_TURNS: Final = 30
"""Rounds in which how busy workers are settles, as it depends on itself."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of so many workers, whose requests need `work` seconds of CPU in the mean; `variation` is the squared
    coefficient of variation of that (0: all need the same). Single requests are spread as the ascending `multiples` of the mean, where it is
    known that they are, each of them as often; else lognormally. `weight` is what all of its workers weigh together. A worker
    has its processor for `turn` seconds before a rival may have it, and a rival before a worker; whether a turn is over is looked at
    every `tick` seconds.
    """

    workers: int
    work: float
    variation: float
    weight: float
    multiples: tuple[float, ...] = ()
    turn: float = math.inf
    tick: float = 0.0


@dataclass(frozen=True, slots=True)
class Rival:
    """Work that always wants each processor, by `weight`; a worker finds some there with the chance `presence`.

    It is let run for up to `quantum` seconds at a time, and that for at least the share `missed` of the requests that meet it, however
    little it weighs.
    """

    weight: float
    quantum: float
    missed: float = 0.0
    presence: float = 1.0


@dataclass(frozen=True, slots=True)
class Company:
    """What a service has beside it. `share` of its workers' processors is left to it and to rivals."""

    share: float = 1.0
    slowdown: float = 1.0
    rivals: tuple[Rival, ...] = ()


ALONE: Final = Company()


@dataclass(frozen=True, slots=True)
class _Held:
    """How long a rival keeps a worker from its processor at a request of so many turns, of which the last may be a part: with that
    chance, `further` after the first turn, evenly between 0 and `most`.
    """

    chance: float
    most: float
    turns: float
    further: float

    @property
    def mean(self) -> float:
        return (self.chance + (self.turns - 1) * self.further) * self.most / 2

    @property
    def spread(self) -> float:
        """The variance of that."""
        first, others = (
            chance * self.most**2 * (1 / 3 - chance / 4) for chance in (self.chance, self.further)
        )
        return first + (self.turns - 1) * others


def erlang_c(workers: int, busy: float) -> float:
    """The chance to wait, of workers that are busy for this share of the time; 1 where they never rest."""
    if busy >= 1:
        return 1.0
    offered = workers * busy
    blocked = 1.0  # Erlang's B, by its recursion
    for number in range(1, workers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return blocked / (1 - busy * (1 - blocked))


def response_times(service: Service, rate: float, beside: Company, quantiles: Sequence[float]) -> Real:
    """The quantiles of response times at so many requests a second; infinite where more come than can be answered."""
    work = service.work * beside.slowdown / max(beside.share, _LEAST)
    held = _settled(service, rate, work, beside.rivals)
    if held is None:
        return np.full(len(quantiles), math.inf)
    busy, delays = held
    mean = work + sum(one.mean for one in delays)
    spread = work**2 * service.variation + sum(
        one.spread for one in delays
    )  # of what a worker is taken by a request, which grows by what rivals do
    waits = erlang_c(service.workers, busy)
    behind = mean * (1 + spread / max(mean, _LEAST) ** 2) / (2 * service.workers * (1 - busy))
    times = work * _multiples(service) + _kept(delays) + _queued(waits, behind)
    # np.quantile does the same at three times the cost, and loads masked arrays.
    return np.asarray(np.interp(np.asarray(quantiles) * (POINTS - 1), _PLACES, np.sort(times)))


def knee(service: Service, quantile: float) -> float:
    """The quantile of response times at the load beyond which a service alone pays more in time than it wins: where load over time is
    greatest (L. Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979).
    """
    loads = [number / _KNEE_STEPS for number in range(1, _KNEE_STEPS)]
    rates = [load * service.workers / service.work for load in loads]
    times = [float(response_times(service, rate, ALONE, (quantile,))[0]) for rate in rates]
    return max(zip(loads, times, strict=True), key=lambda one: one[0] / one[1])[1]


_KNEE_STEPS: Final = 100
_LEAST: Final = 1e-9
_MOST_TURNS: Final = 8
"""Of one request that are told apart."""


def _settled(
    service: Service, rate: float, work: float, rivals: Sequence[Rival]
) -> tuple[float, tuple[_Held, ...]] | None:
    """How busy workers are, and how long rivals hold them; None where they do not get along with what comes."""
    busy = rate * work / service.workers
    if busy >= 1:
        return None
    held: tuple[_Held, ...] = ()
    taken = busy
    for _ in range(_TURNS):
        held = tuple(_held(service, work, busy, one) for one in rivals)
        taken = rate * (work + sum(one.mean for one in held)) / service.workers
        busy = (busy + min(taken, 1.0)) / 2
    return (busy, held) if taken < 1 and busy < 1 else None


def _held(service: Service, work: float, busy: float, rival: Rival) -> _Held:
    """The weight of a service is shared by the workers that are busy; a rival gets by its own of the time in which one works."""
    mine = service.weight / (1 + (service.workers - 1) * busy)
    turns = min(max(work / service.turn, 1.0), _MOST_TURNS)
    quanta = 2 * work / turns * rival.weight / mine / max(rival.quantum, _LEAST)
    just_now = min(service.turn / service.tick, 1.0) if service.tick else 1.0
    # A worker owes for as long as it would be busy if it paid at once.
    met = just_now + (1 - just_now) * min(busy, 1.0)
    first = rival.presence * max(min(quanta, met), rival.missed)
    further = rival.presence * min(quanta, 1.0)
    return _Held(first, rival.quantum * max(quanta, 1.0), turns, further)


def _sequence(power: int) -> Real:
    return np.asarray((0.5 + np.arange(1, POINTS + 1) / _ROOT**power) % 1.0)


_PLACES: Final = np.arange(POINTS)
_FIRST: Final = _sequence(1)
_SECOND: Final = _sequence(2)
_THIRD: Final = np.asarray((_FIRST + np.arange(1, POINTS + 1) * math.sqrt(2)) % 1.0)
_TURN: Final = (
    _THIRD,
    *((_THIRD + np.arange(1, POINTS + 1) * math.sqrt(prime)) % 1.0 for prime in (3, 5, 7, 11, 13, 17, 19)),
)
"""For each turn of a request points of its own, by roots that have nothing to do with each other."""
_NORMAL: Final = np.array([NormalDist().inv_cdf(float(one)) for one in _FIRST])


def _multiples(service: Service) -> Real:
    """Work of requests as multiples of the mean."""
    if service.multiples:
        known = len(service.multiples)
        return np.asarray(np.interp(_FIRST, (np.arange(known) + 0.5) / known, service.multiples))
    width = math.log1p(service.variation)
    return np.asarray(np.exp(math.sqrt(width) * _NORMAL - width / 2))


def _queued(chance: float, mean: float) -> Real:
    """What requests wait behind others: nothing, or an exponential time with that chance."""
    left = 1 - _SECOND
    return np.asarray(np.where(left < chance, -mean * np.log(left / max(chance, _LEAST)), 0.0))


def _kept(delays: Sequence[_Held]) -> Real:
    """What requests are kept by rivals, of which one at a time is met."""
    kept = np.zeros(POINTS)
    for turn, points in enumerate(_TURN):
        begin = 0.0
        for one in delays:
            chance = min(max(one.turns - turn, 0.0), 1.0) * one.further if turn else one.chance
            within = (begin <= points) & (begin + chance > points)
            if chance * POINTS >= 1:
                kept += np.where(within, one.most * (points - begin) / max(chance, _LEAST), 0.0)
            begin += chance
    return kept
