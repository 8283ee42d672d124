"""What a trial may take of the machine."""

import math
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.linux.memory import address_space, ended_first, free_in_container

MIB: Final = 1 << 20
_SHARE: Final = 0.8
"""Of what the container may still take: a trial that the kernel ends for want of memory may take the container along."""


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """Limits of one trial.

    `cpu` are seconds of CPU time, `memory` bytes beyond what the process has from the start, `evaluation` seconds of
    CPU time for one decision on one example, `max_cost` the units that a decision may cost at most. `by_flags` says that
    flags of the process set them, which messages name then.
    """

    cpu: float = 60.0
    memory: int = 1024 * MIB
    evaluation: float = 1.0
    max_cost: int = DEFAULT_BUDGET
    by_flags: bool = True

    @property
    def wall(self) -> float:
        """Seconds by the clock after which a trial is given up: it may have to share its processor."""
        return 30.0 + 4 * self.cpu

    def allowed_memory(self) -> int:
        """Bytes that a trial may take now: what the limits say, or less where the container has less."""
        free = free_in_container()
        return self.memory if free is None else min(self.memory, int(free * _SHARE))

    @contextmanager
    def imposed(self, allowed: int) -> Iterator[None]:
        """Bind this process to them, and to so many bytes more than it has; it has just forked, so that its CPU time is 0.

        Policies cannot take them back: what an expression may call is in the library's table.
        """
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with ExitStack() as stack:
            stack.enter_context(_lowered(resource.RLIMIT_CPU, math.ceil(self.cpu)))
            if (present := address_space()) is not None:
                stack.enter_context(_lowered(resource.RLIMIT_AS, present + allowed))
            stack.enter_context(ended_first())
            yield


@contextmanager
def _lowered(which: int, soft: int) -> Iterator[None]:
    """A limit, unless it is lower already, and as it was at the end."""
    before, most = resource.getrlimit(which)
    known = [one for one in (soft, before) if one != resource.RLIM_INFINITY]
    resource.setrlimit(which, (min(known), most))
    try:
        yield
    finally:
        resource.setrlimit(which, (before, most))
