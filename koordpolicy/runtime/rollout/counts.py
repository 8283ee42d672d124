"""What comparing two revisions came to, as numbers that add up over processes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from koordpolicy.model.reading import Json, integer, mapping, objects, text


@dataclass(frozen=True, slots=True)
class ComparisonTally:
    """Of one kind: decisions compared, those with different answers, those that only the new revision failed on."""

    compared: int = 0
    different: int = 0
    failed: int = 0

    def __add__(self, other: "ComparisonTally") -> "ComparisonTally":
        return ComparisonTally(
            self.compared + other.compared, self.different + other.different, self.failed + other.failed
        )


@dataclass(frozen=True, slots=True)
class ComparisonCounts:
    """Tallies by kind, and the time spent on the same inputs by either revision, in nanoseconds."""

    kinds: Mapping[str, ComparisonTally] = field(default_factory=lambda: MappingProxyType({}))
    active_time: int = 0
    candidate_time: int = 0

    @property
    def total(self) -> ComparisonTally:
        """Over all kinds."""
        return sum(self.kinds.values(), ComparisonTally())

    def __add__(self, other: "ComparisonCounts") -> "ComparisonCounts":
        kinds = {
            kind: self.kinds.get(kind, ComparisonTally()) + other.kinds.get(kind, ComparisonTally())
            for kind in sorted({*self.kinds, *other.kinds})
        }
        return ComparisonCounts(
            kinds, self.active_time + other.active_time, self.candidate_time + other.candidate_time
        )


def sum_of(counts: Iterable[ComparisonCounts]) -> ComparisonCounts:
    """All together."""
    return sum(counts, ComparisonCounts())


def counts_to_json(counts: ComparisonCounts) -> dict[str, Any]:
    """As a JSON object."""
    return {
        "activeMicroseconds": counts.active_time // 1000,
        "candidateMicroseconds": counts.candidate_time // 1000,
        "kinds": [
            {"kind": kind, "compared": one.compared, "different": one.different, "failed": one.failed}
            for kind, one in sorted(counts.kinds.items())
        ],
    }


def counts_from_json(said: Json) -> ComparisonCounts:
    """The inverse. Raises `ObjectError`."""
    said = mapping({"counts": said}, "counts")
    at = "counts"

    def number(one: Json, key: str) -> int:
        return integer(one, key, at) or 0

    kinds = {
        text(one, "kind", at): ComparisonTally(
            number(one, "compared"), number(one, "different"), number(one, "failed")
        )
        for one in objects(said, "kinds", at)
    }
    return ComparisonCounts(
        kinds, number(said, "activeMicroseconds") * 1000, number(said, "candidateMicroseconds") * 1000
    )
