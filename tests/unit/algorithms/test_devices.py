"""Devices: what holds of any request and of any cards."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.device_columns import DeviceColumns
from koordpolicy.algorithms.device_need import DeviceNeed, DeviceRequestError, DeviceWords, device_need
from koordpolicy.algorithms.device_partition import Partition, best_partitions
from koordpolicy.algorithms.device_pick import Card, Scope, Unpicked, pick, pick_by_topology
from koordpolicy.algorithms.device_score import FillStrategy, fill_score

WORDS = DeviceWords(
    frozenset({frozenset({"card"}), frozenset({"part"}), frozenset({"spread", "part"})}),
    converts={"card": {"part": 100}},
    percents=frozenset({"part"}),
    counter="spread",
    measured="part",
)

CARDS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1)), min_size=1, max_size=8).map(
    lambda found: [
        Card(minor, {"part": 100}, {"part": free}, at // 2, f"{at // 2}-{at}")
        for minor, (free, at) in enumerate(found)
    ]
)
NEEDS = st.one_of(
    st.builds(lambda share: DeviceNeed(1, {"part": share}, True, {}), st.integers(1, 99)),
    st.builds(lambda count: DeviceNeed(count, {"part": 100}, False, {}), st.integers(1, 8)),
)


@given(st.dictionaries(st.sampled_from(["card", "part", "spread"]), st.integers(0, 900)))
def test_what_is_asked_of_each_device_is_no_more_than_one_and_all_of_it_together(
    request: dict[str, int],
) -> None:
    try:
        need = device_need(request, WORDS)
    except DeviceRequestError:
        return
    if need is None:
        assert not any(request.values())
        return
    assert 0 <= need.each["part"] <= 100
    assert need.each["part"] * need.count == need.asked["part"]
    assert need.shared == (need.each["part"] < 100)


@given(CARDS, NEEDS)
def test_only_cards_that_are_free_enough_are_taken_and_none_is_refused_that_would_do(
    cards: list[Card], need: DeviceNeed
) -> None:
    able = [card for card in cards if card.free["part"] >= need.each["part"]]
    found = pick(cards, need, lambda card: card.free["part"])
    assert bool(found) == (len(able) >= need.count)
    assert len(set(found)) == len(found)
    by_minor = {card.minor: card for card in cards}
    assert all(by_minor[minor] in able for minor in found)
    assert all(by_minor[a].free["part"] <= by_minor[b].free["part"] for a, b in pairwise(found))
    try:
        scoped = pick_by_topology(cards, need, lambda card: 0)
    except Unpicked:
        assert len(able) < need.count
    else:
        assert len(scoped) == need.count
        assert all(by_minor[minor] in able for minor in scoped)


@given(CARDS, NEEDS)
def test_devices_of_a_required_scope_share_their_switch(cards: list[Card], need: DeviceNeed) -> None:
    try:
        found = pick_by_topology(cards, need, lambda card: 0, Scope.PCIE)
    except Unpicked:
        return
    assert len({card.pcie for card in cards if card.minor in found}) == 1


@given(st.sets(st.integers(0, 7)), st.sampled_from([1, 2, 4, 8]))
def test_a_partition_is_free_and_the_one_that_leaves_most(used: set[int], size: int) -> None:
    table = {n: [Partition(frozenset(range(at, at + n))) for at in range(0, 8, n)] for n in (1, 2, 4, 8)}
    try:
        found = best_partitions(table, size, used, range(8), {8: 10_000, 4: 100, 2: 1})
    except Unpicked:
        assert all(one.minors & used for one in table[size])
        return
    for minors in found:
        assert len(minors) == size
        assert not used & set(minors)
    # Half a pair that is taken already goes before one of a pair that is whole.
    if size == 1 and any((at in used) != (at ^ 1 in used) for at in range(8)):
        assert all((minors[0] ^ 1) in used for minors in found)


@pytest.mark.parametrize("strategy", list(FillStrategy))
@given(total=st.integers(1, 1000), data=st.data())
def test_scores_stay_within_bounds_and_follow_what_is_free(
    strategy: str, total: int, data: st.DataObject
) -> None:
    free, request = data.draw(st.integers(0, total)), data.draw(st.integers(0, 1000))
    found = fill_score(total, free, request, strategy)
    assert 0 <= found <= 100
    emptier = fill_score(total, min(total, free + 1), request, strategy)
    assert emptier >= found if strategy == FillStrategy.LEAST_ALLOCATED else emptier <= found


AMOUNT = st.sampled_from([0, 30, 50, 100])


@given(
    st.lists(
        st.lists(st.tuples(AMOUNT, AMOUNT, st.booleans(), st.sampled_from([0, 100, 1 << 40])), max_size=4),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 5),
    st.dictionaries(st.sampled_from(["core", "ratio", "memory", "unknown"]), AMOUNT, max_size=3),
)
def test_nodes_that_lack_devices_are_those_on_which_too_few_are_free_enough(
    nodes: list[list[tuple[int, int, bool, int]]], count: int, each: dict[str, int]
) -> None:
    most = {"core": 100, "ratio": 100, "memory": 1 << 40}
    columns = DeviceColumns.of(len(nodes), 4, most)
    for again in (False, True):  # rows are written over as well
        for row, devices in enumerate(nodes if again else reversed(nodes)):
            cards = []
            for minor, (core, ratio, healthy, memory) in enumerate(devices):
                total = {"core": 100, "ratio": 100, **({"memory": memory} if memory else {})}
                free = {"core": core, "ratio": ratio, **({"memory": memory} if memory else {})}
                cards.append(Card(minor, total, free) if healthy else Card(minor))
            assert columns.put(row, cards, "")
    few = columns.fitting(each) < count
    assert columns.lacking(each, count).tolist() == few.tolist()
    rows = np.arange(0, len(nodes), 2)
    assert columns.lacking(each, count, rows).tolist() == few[rows].tolist()
    for strategy in FillStrategy:
        by_rows = columns.filled(each, {"ratio": 1, "memory": 2}, strategy, rows)
        anew = DeviceColumns.of(len(nodes), 4, most)
        for row, listed in enumerate(columns.written.values()):
            left = [
                {name: int(columns.free[name][row, at]) for name in card.total}
                for at, card in enumerate(listed)
            ]
            anew.put(row, [Card(at, card.total, left[at]) for at, card in enumerate(listed)], "")
        assert columns.filled(each, {"ratio": 1, "memory": 2}, strategy).tolist() == (
            anew.filled(each, {"ratio": 1, "memory": 2}, strategy).tolist()
        )
        assert by_rows.tolist() == columns.filled(each, {"ratio": 1, "memory": 2}, strategy)[rows].tolist()
