"""Many quotas in columns: what each gets is what it gets where they are split one by one, whatever came before."""

from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.quota_columns import QuotaColumns, QuotaPart
from koordpolicy.algorithms.quota_level import MANY, QuotaLevel
from koordpolicy.algorithms.quota_split import QuotaShare, scaled_mins, split

NAMES = tuple("abcdefghijkl")

numbers = st.one_of(st.integers(0, 9), st.integers(0, 2**53), st.just(2**53 // 3))
parts = st.builds(QuotaPart, numbers, numbers, st.one_of(st.just(0), numbers), numbers, st.booleans(), st.booleans())  # fmt: skip
Change: TypeAlias = tuple[str, QuotaPart | None]


def one_by_one(parts: dict[str, QuotaPart], total: int, *, scaled: bool) -> dict[str, int]:
    mins = {name: part.min for name, part in parts.items()}
    if scaled:
        mins = scaled_mins(total, mins, {name for name, part in parts.items() if not part.scales})
    shares = [
        QuotaShare(name, part.request, max(mins[name], part.guaranteed), part.weight, part.lends)
        for name, part in parts.items()
    ]
    return dict(split(total, shares).runtime)


@given(
    st.dictionaries(st.sampled_from(NAMES), parts, min_size=1),
    st.lists(st.tuples(st.sampled_from(NAMES), st.one_of(st.none(), parts)), max_size=12),
    st.one_of(st.integers(0, 60), st.integers(0, 2**54)),
)
def test_columns_split_to_the_unit(known: dict[str, QuotaPart], changes: list[Change], total: int) -> None:
    columns = QuotaColumns(known)
    for name, now in changes:
        before = known.get(name)
        if before is None and now is None:
            continue
        columns.put(name, before, now)
        if now is None:
            del known[name]
        else:
            known[name] = now
        for scaled in (False, total < sum(part.min for part in known.values())):
            expected = one_by_one(known, total, scaled=scaled)
            assert {one: columns.runtime(total, one, scaled=scaled) for one in known} == expected


@pytest.mark.parametrize("equal", [False, True])
def test_many_below_one_parent_get_what_few_columns_say(equal: bool) -> None:
    draw, level, known = Random(1), QuotaLevel(), dict[str, QuotaPart]()
    for step in range(4 * MANY):
        name = f"q{draw.randrange(2 * MANY)}"
        weight = 7 if equal else draw.randrange(100)
        now = QuotaPart(draw.randrange(5000), draw.randrange(50), 0, weight, draw.random() < 0.9, True)
        before = known.get(name)
        level.put(name, {"cpu": now}, {} if before is None else {"cpu": before})
        known[name] = now
        if step % 16 == 0:
            for total in (500, 50_000, 10**9):
                scaled = total < sum(part.min for part in known.values())
                expected = one_by_one(known, total, scaled=scaled)
                assert {one: level.runtime("cpu", total, one) for one in known} == expected
                mins = scaled_mins(total, {one: part.min for one, part in known.items()})
                assert {one: level.least("cpu", total, one) for one in known} == mins


def test_what_columns_cannot_tell_apart_is_left_to_numbers_without_bounds() -> None:
    wide = QuotaPart(2**62, 0, 0, 2**62, lends=True, scales=True)
    columns = QuotaColumns({"a": wide, "b": wide})
    assert columns.runtime(9, "a", scaled=False) is None
    columns.put("a", wide, QuotaPart(7, 0, 0, 1, lends=True, scales=True))
    columns.put("b", wide, QuotaPart(7, 0, 0, 2, lends=True, scales=True))
    assert [columns.runtime(9, name, scaled=False) for name in "ab"] == [3, 6]
    level = QuotaLevel()
    for at in range(MANY):
        level.put(f"q{at:03}", {"memory": wide}, {})
    assert level.runtime("memory", 2**62 + 1, "q000") == 2**62 // MANY + 1
