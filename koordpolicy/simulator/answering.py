"""How fast services answer, and whether as fast as they should: the model of contention for all of them at once.

Services are the pods outside of the best-effort group that run on to the end and request CPU. Each has a worker for each CPU that it
requests, of which the use of the moment is the load. A node's other work is met where a worker wakes up and finds no idle
processor, more often the more are busy. Response times of like services are found once and kept.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.contention import Company, Rival, Service, knee, response_times
from koordpolicy.model.shares import LEAST_SHARES
from koordpolicy.simulator.contention import Contention
from koordpolicy.simulator.fleet import Fleet

_STEPS: Final = 50
"""Loads that are told apart."""
_SHARES: Final = 20
"""Shares of a node that others use, told apart."""
_RARE: Final = 100
"""Chances to meet other work that are told apart."""
_PLACES: Final = np.array([26, 20, 13, 6, 0])
"""Where the numbers stand in one that are told apart: workers, loads, both chances, shares."""
_MOST_WORKERS: Final = 1024
_FAIR_SHARES: Final = 1024
"""cpu.shares of a whole CPU that is requested."""

_Key = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Answers:
    """All services at a moment: how many, on how many nothing answers fast enough, and the means of two quantiles in seconds."""

    services: int = 0
    violating: int = 0
    median: float = 0.0
    tail: float = 0.0


NONE: Final = Answers()
"""Where there are no services."""


class Answering:
    """What `parameters` make of what pods use."""

    def __init__(self, parameters: Contention) -> None:
        self._given = parameters
        self._found: dict[_Key, tuple[float, float]] = {}
        self._objectives: dict[int, float] = {}

    def answers(self, fleet: Fleet, wishes: NDArray[np.float64]) -> Answers:
        """How services answer now, where pods wish for so many millicores, by slot."""
        slots, workers, node, used = fleet.services()
        if not len(slots):
            return NONE
        wished = wishes[slots]
        unserved = used + 1 < wished  # in whole millicores
        whole = np.maximum(fleet.cpu[node], 1)
        busy = np.clip(fleet.used[node] / whole, 0.0, 1.0)
        best_effort = np.clip(fleet.given[node] / whole, 0.0, 1.0)
        others = np.clip(busy - best_effort - used / whole, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            taken = np.where(busy > 0, busy ** (self._given.searched - 1), 0.0)
        table = np.stack(
            [
                workers,
                np.minimum(np.rint(_STEPS * wished / (1000 * workers)), _STEPS),
                np.rint(_RARE * taken * best_effort),
                np.rint(_RARE * taken * others),
                np.rint(_SHARES * (best_effort + others)),
            ],
            axis=1,
        ).astype(np.int64)
        # In one number each, which are put in order much sooner than rows.
        _, first, of = np.unique(
            np.bitwise_or.reduce(table << _PLACES, axis=1), return_index=True, return_inverse=True
        )
        kinds = table[first]
        told = np.array([self._times((*map(int, kind),)) for kind in kinds.tolist()])[of.reshape(-1)]
        told[unserved] = self._given.patience
        objectives = np.array([self._objective(int(one)) for one in kinds[:, 0]])[of.reshape(-1)]
        violating = unserved | (told[:, 1] > objectives)
        return Answers(len(slots), int(violating.sum()), float(told[:, 0].mean()), float(told[:, 1].mean()))

    def _times(self, key: tuple[int, ...]) -> tuple[float, float]:
        """The median and the objective's quantile of one kind of service in one kind of company."""
        workers, load, best_effort, others, company = key
        found = self._found.get((workers, load, best_effort, others, company))
        if found is None:
            given = self._given
            rivals = (
                Rival(LEAST_SHARES / _FAIR_SHARES, given.quantum, given.missed, best_effort / _RARE),
                Rival(1.0, given.quantum, 0.0, others / _RARE),
            )
            beside = Company(slowdown=1 + given.slowdown * company / _SHARES, rivals=rivals)
            found = self._asked(workers, load / _STEPS, beside)
            self._found[workers, load, best_effort, others, company] = found
        return found

    def _objective(self, workers: int) -> float:
        found = self._objectives.get(workers)
        if found is None:
            found = self._objectives[workers] = knee(self._service(workers), self._given.quantile)
        return found

    def _asked(self, workers: int, load: float, beside: Company) -> tuple[float, float]:
        given = self._given
        service = self._service(workers)
        rate = load * service.workers / given.work
        median, tail = response_times(service, rate, beside, (0.5, given.quantile))
        return min(float(median), given.patience), min(float(tail), given.patience)

    def _service(self, workers: int) -> Service:
        counted = min(workers, _MOST_WORKERS)
        given = self._given
        return Service(counted, given.work, given.variation, float(counted), turn=given.turn, tick=given.tick)
