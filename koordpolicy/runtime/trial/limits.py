"""What a trial may take of the machine."""

import math
import resource
from dataclasses import dataclass
from typing import Final

from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.linux.memory import address_space, end_first, free_in_container

MIB: Final = 1 << 20
_SHARE: Final = 0.8
"""Of what the container may still take: a trial that the kernel ends for want of memory may take the container along."""


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """Limits of one trial.

    `cpu` are seconds of CPU time, `memory` bytes beyond what the process has from the start, `evaluation` seconds of
    CPU time for one decision on one example, `max_cost` the units that a decision may cost at most.
    """

    cpu: float = 60.0
    memory: int = 1024 * MIB
    evaluation: float = 1.0
    max_cost: int = DEFAULT_BUDGET

    @property
    def wall(self) -> float:
        """Seconds by the clock after which a trial is given up: it may have to share its processor."""
        return 30.0 + 4 * self.cpu

    def allowed_memory(self) -> int:
        """Bytes that a trial may take now: what the limits say, or less where the container has less."""
        free = free_in_container()
        return self.memory if free is None else min(self.memory, int(free * _SHARE))

    def impose(self, allowed: int) -> None:
        """Bind this process to them, for good, and to so many bytes more than it has."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _lower(resource.RLIMIT_CPU, math.ceil(self.cpu), math.ceil(self.cpu) + 1)
        if (present := address_space()) is not None:
            _lower(resource.RLIMIT_AS, present + allowed, present + allowed)
        end_first()


def _lower(which: int, soft: int, hard: int) -> None:
    """Set a limit, unless it is lower already."""
    _, most = resource.getrlimit(which)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(which, (soft, hard))
