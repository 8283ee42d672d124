"""What all fact records share: names of amounts, and times as the policy language wants them.

A record is one flat mapping from dotted path to value, with the paths that the language declares. The
builders give what follows from the objects alone. What depends on policy (class, band, sums over bands)
or on a component's own state (queue, load) is added by the component that has asked for it, with the
functions here that end in `_facts` or by plain merging: `{**pod_facts(...), **class_facts(...)}`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    MID_CPU,
    MID_MEMORY,
    PODS,
)
from koordpolicy.model.reading import Amounts

Record = dict[str, object]
"""A fact record: dotted path → value. An absent path is missing data."""

BASIC: Final[Mapping[str, str]] = MappingProxyType({"cpu": CPU, "memory": MEMORY})
"""Step in a path → resource name, for what is measured."""

REQUESTABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        **BASIC,
        "ephemeralStorage": EPHEMERAL_STORAGE,
        "batch.cpu": BATCH_CPU,
        "batch.memory": BATCH_MEMORY,
        "mid.cpu": MID_CPU,
        "mid.memory": MID_MEMORY,
    }
)
"""The same for what pods request."""

COUNTED: Final[Mapping[str, str]] = MappingProxyType({**REQUESTABLE, "pods": PODS})
"""The same for what nodes have."""


@dataclass(frozen=True, slots=True)
class Times:
    """How nanoseconds become values of the policy language: since 1970, and as a length of time."""

    timestamp: Callable[[int], object]
    duration: Callable[[int], object]


class Paths:
    """The paths of some amounts under one prefix, made once and used for every record.

    `pairs` are (path, resource name), `steps` path by resource name, `nothing` a record with 0 for each.
    """

    __slots__ = ("nothing", "pairs", "steps")

    def __init__(self, prefix: str, resources: Mapping[str, str]) -> None:
        self.pairs = tuple((f"{prefix}.{step}", resource) for step, resource in resources.items())
        self.steps = {resource: path for path, resource in self.pairs}
        self.nothing = dict.fromkeys((path for path, _ in self.pairs), 0)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)


def paths(prefix: str, resources: Mapping[str, str]) -> Paths:
    """The paths of resources under a prefix."""
    return Paths(prefix, resources)


def put_all(record: Record, where: Paths, amounts: Amounts) -> None:
    """Set the amount of every resource, 0 for those the list does not have."""
    record.update(where.nothing)
    put_known(record, where, amounts)


def put_known(record: Record, where: Paths, amounts: Amounts) -> None:
    """Set the amounts of resources that have a path; the others stay as they are."""
    steps = where.steps
    for resource, amount in amounts.items():
        path = steps.get(resource)
        if path is not None:
            record[path] = amount


def put_present(record: Record, where: Paths, amounts: Amounts) -> None:
    """Set the amounts that the list has; the others stay missing."""
    for path, resource in where:
        if resource in amounts:
            record[path] = amounts[resource]
