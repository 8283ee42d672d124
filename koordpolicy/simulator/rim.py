"""The rim of the scheduler's driver on a virtual clock: when it is asked, and how often.

On a real cluster `scheduler/loop.py` comes whenever something is heard, and when the driver says so. Here it is the same,
but for two things that a long simulation of many pods could not afford. Between reports so many attempts are made at a
time, and no more: a long queue of hopeless pods must not be gone through for each that comes or goes. And pods
that nothing helps are tried again with the reports alone, since whatever happens in a simulation is heard.
"""

from collections.abc import Callable
from itertools import islice

from koordpolicy.scheduler.driver import Action, Driver
from koordpolicy.simulator.clock import SECOND, Agenda

ATTEMPTS = 32
"""Attempts at a time between two reports."""

_PAUSE = SECOND // 1000
"""Between two looks at the queue, in nanoseconds."""


class VirtualRim:
    """Asks a driver for actions. `carry_out` brings one to its end; `before` hears that decisions are about to come."""

    def __init__(
        self,
        agenda: Agenda,
        driver: Driver,
        carry_out: Callable[[Action], None],
        before: Callable[[], None],
    ) -> None:
        self._agenda = agenda
        self._driver = driver
        self._carry_out = carry_out
        self._before = before
        self._wakes_at: int | None = None

    def wake(self) -> None:
        """Something happened: come once everything else that happens at this moment has."""
        self._come_at(self._agenda.now)

    def decide(self, most: int = ATTEMPTS) -> int:
        """Carry out what is due, so many attempts at most; how many there were."""
        self._wakes_at = None
        self._before()
        attempts = 0
        for action in islice(self._driver.actions(self._agenda.now), most):
            attempts += 1
            self._carry_out(action)
        due = self._driver.next_time(retries=False)
        if due is not None:
            self._come_at(max(due, self._agenda.now + _PAUSE))
        return attempts

    def _come_at(self, time: int) -> None:
        if self._wakes_at is None or time < self._wakes_at:
            self._wakes_at = time
            self._agenda.at(time, lambda: self._come(time))

    def _come(self, time: int) -> None:
        if self._wakes_at == time:
            self.decide()
