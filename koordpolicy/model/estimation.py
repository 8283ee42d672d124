"""What a pod's annotations say about the estimate of its use."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.model.protocol import (
    ESTIMATED_SCALING_FACTORS,
    ESTIMATED_SECONDS_AFTER_INITIALIZED,
    ESTIMATED_SECONDS_AFTER_SCHEDULED,
)
from koordpolicy.model.reading import ObjectError, embedded_object
from koordpolicy.model.time import NANOSECONDS

_LONGEST = 18


@dataclass(frozen=True, slots=True)
class Estimation:
    """A pod's own wishes; None for each that is absent or unreadable.

    `factors` are percent by resource, durations nanoseconds.
    """

    factors: Mapping[str, float] | None = None
    after_scheduled: int | None = None
    after_initialized: int | None = None


NO_ESTIMATION = Estimation()


def estimation(annotations: Mapping[str, str]) -> Estimation:
    """The wishes of a pod with these annotations. What is unreadable counts as absent."""
    if not annotations:
        return NO_ESTIMATION
    return Estimation(
        _factors(annotations.get(ESTIMATED_SCALING_FACTORS)),
        _seconds(annotations.get(ESTIMATED_SECONDS_AFTER_SCHEDULED)),
        _seconds(annotations.get(ESTIMATED_SECONDS_AFTER_INITIALIZED)),
    )


def _factors(source: str | None) -> Mapping[str, float] | None:
    if not source:
        return None
    try:
        declared = embedded_object(source, ESTIMATED_SCALING_FACTORS)
    except ObjectError:
        return None
    factors: dict[str, float] = {}
    for resource, factor in declared.items():
        if isinstance(factor, bool) or not isinstance(factor, int):
            return None
        factors[resource] = float(factor)
    return factors


def _seconds(source: str | None) -> int | None:
    """Whole seconds from 0; more digits than fit into nanoseconds of 64 bits count as unreadable."""
    if source is None or len(source) > _LONGEST or not (source.isascii() and source.isdigit()):
        return None
    found = int(source) * NANOSECONDS
    return found if found < 2**63 else None
