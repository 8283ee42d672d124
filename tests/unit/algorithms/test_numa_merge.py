"""Merging hints: against all combinations, one by one."""

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as some

from koordpolicy.algorithms.numa_merge import (
    ANYWHERE,
    Exclusive,
    Hint,
    NUMAPolicy,
    Zones,
    ZoneUse,
    merge,
    zone_sets,
    zones_of,
)

HINTS = some.lists(
    some.builds(Hint, some.integers(1, 7), some.booleans(), some.integers(0, 100)), min_size=1, max_size=4
)


def best_of_all(zones: Zones, lists: Sequence[Sequence[Hint]]) -> tuple[int, bool, int]:
    """The best of all combinations: preferred before others, then narrow, then by score, then the lowest zones."""
    found = [(True, zones.all.bit_count(), 0, zones.all)]
    for combination in product(*lists):
        merged = zones.all
        for hint in combination:
            merged &= zones.all if hint.zones is None else hint.zones
        if not merged:
            continue
        different = {hint.zones for hint in combination if hint.zones is not None}
        unwanted = ZoneUse.SINGLE if merged.bit_count() > 1 else ZoneUse.SHARED
        apart = zones.exclusive is not Exclusive.REQUIRED or unwanted not in {
            zones.uses[zone] for zone in zones_of(merged)
        }
        preferred = all(hint.preferred for hint in combination) and len(different) < 2 and apart
        score = sum(hint.score for hint in combination if hint.zones == merged)
        found.append((not preferred, merged.bit_count(), -score, merged))
    disliked, _, negative, mask = min(found)
    return mask, not disliked, -negative


@given(
    some.lists(some.one_of(HINTS, some.just([ANYWHERE])), min_size=1, max_size=3),
    some.sampled_from(Exclusive),
    some.lists(some.sampled_from(ZoneUse), min_size=3, max_size=3),
)
def test_the_best_of_all_combinations_is_found(
    lists: list[list[Hint]], exclusive: Exclusive, uses: list[ZoneUse]
) -> None:
    zones = Zones(7, dict(enumerate(uses)), exclusive)
    hints = [{str(index): None if one == [ANYWHERE] else one} for index, one in enumerate(lists)]
    found = merge(NUMAPolicy.RESTRICTED, zones, hints)
    assert (found.zones, found.preferred, found.score) == best_of_all(zones, lists)
    assert found.admitted is found.preferred
    assert bool(found.reason) is not found.admitted


def test_a_refusal_says_what_was_wanted_and_what_there_was() -> None:
    zones = Zones(3, {})
    cpu, gpu = [Hint(1, True), Hint(3, False)], [Hint(2, True)]
    found = merge(NUMAPolicy.SINGLE_NUMA_NODE, zones, [{"cpu": cpu}, {"gpu": gpu}])
    assert (found.admitted, found.reason) == (
        False,
        "Unaligned NUMA Hint cause cpu prefer [0] among [0, 0+1],gpu prefer [1] among [1]",
    )


def test_sets_of_zones_begin_with_single_ones() -> None:
    assert zone_sets([0, 2, 3]) == [1, 4, 8, 5, 9, 12, 13]
