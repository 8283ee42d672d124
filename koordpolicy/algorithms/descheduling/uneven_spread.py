"""Pods that make a topology spread uneven, as RemovePodsViolatingTopologySpreadConstraint of Kubernetes' descheduler finds them."""

from collections.abc import Callable, Collection, Hashable, Sequence
from math import ceil
from typing import TypeVar

Pod = TypeVar("Pod")
Domain = TypeVar("Domain", bound=Hashable)


def uneven_pods(
    domains: Sequence[tuple[Domain, Sequence[Pod]]],
    max_skew: int,
    fits: Callable[[Pod, Collection[Domain]], bool],
    min_domains: int = 1,
) -> list[Pod]:
    """The pods that are to leave their domains so that no two of these differ by more than `max_skew`.

    `domains` have their pods in the order in which they go, the last one first. Domains with more than the mean give to those with less,
    the fullest to the emptiest, until these are even enough; others are left to the next round. A pod that `fits` says has no room in the domains below the mean counts
    as moved, and stays. Where there are fewer than `min_domains`, the least counts as none, as for the scheduler, which Kubernetes'
    descheduler does not know: no domain is to have more than `max_skew`, and those above give to those below.
    """
    places = sorted(domains, key=lambda one: len(one[1]))
    if len(places) < min_domains:
        return _above(places, max_skew, fits)
    if not places or len(places[-1][1]) - len(places[0][1]) <= max_skew:
        return []
    mean = sum(len(pods) for _, pods in places) / len(places)
    below = [name for name, pods in places if len(pods) < mean]
    counts = [list(pods) for _, pods in places]
    low, high = 0, len(counts) - 1
    leaving: list[Pod] = []
    while low < high:
        if len(counts[high]) <= mean:
            high -= 1
        skew = len(counts[high]) - len(counts[low])
        number = min(
            ceil(len(counts[high]) - mean), ceil(mean - len(counts[low])), ceil((skew - max_skew) / 2)
        )
        if skew <= max_skew or number <= 0:
            low += 1
            continue
        moved = counts[high][-number:]
        leaving += [pod for pod in reversed(moved) if fits(pod, below)]
        del counts[high][-number:]
        counts[low] += moved
    return leaving


def _above(
    places: Sequence[tuple[Domain, Sequence[Pod]]],
    most: int,
    fits: Callable[[Pod, Collection[Domain]], bool],
) -> list[Pod]:
    """The pods above the `most` that a domain may have, as far as others have room for them below it, the fullest first."""
    below = [name for name, pods in places if len(pods) < most]
    room = sum(most - len(pods) for _, pods in places if len(pods) < most)
    leaving: list[Pod] = []
    for _, pods in reversed(places):
        number = min(len(pods) - most, room)
        if number <= 0:
            break
        leaving += [pod for pod in reversed(pods[-number:]) if fits(pod, below)]
        room -= number
    return leaving
