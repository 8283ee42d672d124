"""How much of a resource has to be given back, by its use or by what is requested of it. Percentages are of 100."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which percentage pods go, and down to which. None of them makes sense otherwise (`valid`)."""

    threshold: float
    lower: float

    @property
    def valid(self) -> bool:
        """Whether something ever goes, and then no more than all."""
        return self.threshold >= 0 and self.lower < self.threshold


def used_percent(used: int, capacity: int) -> int:
    """Whole percent of a capacity that are in use; 0 of no capacity."""
    return used * 100 // capacity if capacity > 0 else 0


def release_by_use(used: int, capacity: int, thresholds: Thresholds) -> int:
    """What has to go of a resource of which that much is in use; 0 below the threshold."""
    percent = used_percent(used, capacity)
    if percent < thresholds.threshold:
        return 0
    return int(capacity * (percent - Fraction(thresholds.lower)) / 100)


def release_by_requests(
    requested: Mapping[str, int], allocatable: Mapping[str, int], thresholds: Thresholds
) -> dict[str, int]:
    """What has to go of each resource, by name, of which more is requested than a percentage of what there is.

    Of a resource that is not there at all, everything.
    """
    found = {}
    for resource, asked in requested.items():
        there = allocatable.get(resource, 0)
        if there <= 0:
            found[resource] = asked
        elif Fraction(asked, there) > Fraction(thresholds.threshold) / 100:
            found[resource] = int(asked - Fraction(thresholds.lower) * there / 100)
    return {resource: amount for resource, amount in found.items() if amount > 0}
