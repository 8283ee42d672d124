"""Whether a pod is within its quota, and those above it."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.reading import Amounts

OWN: Final = "quota"
NON_PREEMPTIBLE: Final = "non_preemptible"
PARENT: Final = "parent"
ABOVE_OTHERS: Final = "above_others"
"""The quota has others below it, and so no pods of its own."""


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """What a quota has in use, and what it may have; a resource that is not in `limit` has none."""

    name: str
    used: Amounts
    limit: Amounts


@dataclass(frozen=True, slots=True)
class QuotaExcess:
    """What a pod would exceed: at which stage, of which quota, which resources (sorted), with what that quota had before."""

    stage: str
    of: QuotaLimit
    exceeded: tuple[str, ...]


def exceeded(used: Amounts, request: Amounts, limit: Amounts) -> tuple[str, ...]:
    """The resources, sorted, of which more would be used than the limit says. One that it does not name has none."""
    found = [
        name
        for name, most in limit.items()
        if (name in used or name in request) and used.get(name, 0) + request.get(name, 0) > most
    ]
    return tuple(sorted(found))


def masked(amounts: Amounts, keys: AbstractSet[str]) -> Amounts:
    """The amounts of these resources; the same mapping where that is all."""
    if amounts.keys() <= keys:
        return amounts
    return {name: number for name, number in amounts.items() if name in keys}


def excess(
    request: Amounts, own: QuotaLimit, reserved: QuotaLimit | None = None, above: Iterable[QuotaLimit] = ()
) -> QuotaExcess | None:
    """What a pod that requests so much would exceed first; None where it fits.

    Its `own` quota is looked at with every resource that is in use there, `reserved` is what pods that cannot be preempted use
    and may use (None for a pod that can), and quotas `above`, from the nearest on, are looked at with what the pod requests.
    """
    found = exceeded(own.used, request, own.limit)
    if found:
        return QuotaExcess(OWN, own, found)
    if reserved is not None:
        found = exceeded(reserved.used, request, reserved.limit)
        if found:
            return QuotaExcess(NON_PREEMPTIBLE, reserved, found)
    for one in above:
        found = exceeded(masked(one.used, request.keys()), request, one.limit)
        if found:
            return QuotaExcess(PARENT, one, found)
    return None


def larger(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """The larger amount of each resource; one that is missing takes the other."""
    found = dict(first)
    for name, number in second.items():
        found[name] = max(number, found.get(name, number))
    return found


def less(amounts: Amounts, gone: Amounts) -> Amounts:
    """The amounts without those of what is gone; the same mapping where nothing is."""
    return {key: number - gone.get(key, 0) for key, number in amounts.items()} if gone else amounts
