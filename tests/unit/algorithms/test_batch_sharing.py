"""Batch resources shared with a scheduler outside Kubernetes: nothing is given twice, whoever acts when."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.batch_sharing import BatchAmounts, Sharing, SharingStep, Units, next_step

GI = 1 << 30
UNITS = Units(1000, 1 << 20)
NOTHING = BatchAmounts()
WHOLE = BatchAmounts(40_000, 80 * GI)


def sharing(**said: BatchAmounts) -> Sharing:
    usual = dict.fromkeys(("requested", "others", "claim", "offered", "used"), NOTHING)
    return Sharing(**{"total": WHOLE, "allocatable": WHOLE, **usual, **said})


def step(now: Sharing, wanted: BatchAmounts, share: float = 0.1, *, claim_offers: bool = True) -> SharingStep:
    return next_step(now, wanted, UNITS, share, claim_offers=claim_offers)


TEN = BatchAmounts(10_000, 20 * GI)
THIRTY = BatchAmounts(30_000, 60 * GI)


@pytest.mark.parametrize(
    ("now", "wanted", "expected"),
    [
        pytest.param(sharing(), TEN, SharingStep(claim=TEN), id="claimed first"),
        pytest.param(sharing(claim=TEN), TEN, SharingStep(), id="pods may request it still"),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY),
            TEN,
            SharingStep(offer=TEN),
            id="offered once it is deducted",
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, offered=TEN), TEN, SharingStep(), id="as it should be"
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, offered=TEN),
            BatchAmounts(12_000, 22 * GI),
            SharingStep(),
            id="small changes wait",
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, offered=TEN, used=TEN),
            NOTHING,
            SharingStep(offer=NOTHING),
            id="taken back: the claim stays",
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, used=BatchAmounts(2_000, GI)),
            NOTHING,
            SharingStep(claim=BatchAmounts(2_000, GI)),
            id="what containers still have stays claimed",
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY), NOTHING, SharingStep(claim=NOTHING), id="and then nothing"
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, offered=TEN, requested=BatchAmounts(31_000, GI)),
            TEN,
            SharingStep(offer=BatchAmounts(9_000, 20 * GI)),
            id="however little it is more than there is",
        ),
        pytest.param(
            sharing(offered=TEN, used=TEN),
            TEN,
            SharingStep(claim=TEN),
            id="what it has when we come is claimed",
        ),
        pytest.param(
            sharing(offered=THIRTY, used=TEN),
            TEN,
            SharingStep(claim=THIRTY, offer=TEN),
            id="and what it does not use is taken back until it is deducted",
        ),
        pytest.param(
            sharing(claim=TEN, allocatable=THIRTY, unsure=TEN),
            NOTHING,
            SharingStep(offer=NOTHING),
            id="what may have been offered stays claimed until that is settled",
        ),
        pytest.param(
            sharing(), BatchAmounts(10_999, 20 * GI + 7), SharingStep(claim=TEN), id="in whole units"
        ),
        pytest.param(
            sharing(others=THIRTY, requested=BatchAmounts(5_000, 10 * GI)),
            TEN,
            SharingStep(claim=BatchAmounts(5_000, 10 * GI)),
            id="others hold the rest",
        ),
    ],
)
def test_one_step(now: Sharing, wanted: BatchAmounts, expected: SharingStep) -> None:
    assert step(now, wanted) == expected


def test_what_is_used_alone_is_claimed_where_policy_says_so() -> None:
    now = sharing(used=BatchAmounts(2_000, GI), offered=BatchAmounts(2_000, GI))
    assert step(now, TEN, claim_offers=False) == SharingStep(BatchAmounts(2_000, GI), TEN)


amounts = st.builds(BatchAmounts, st.integers(0, 60_000), st.integers(0, 100 * GI))


@given(st.builds(Sharing, *[amounts] * 8), amounts, st.floats(0, 1), st.booleans())
def test_an_offer_is_never_more_than_what_is_free(
    now: Sharing, wanted: BatchAmounts, share: float, claim_offers: bool
) -> None:
    found = step(now, wanted, share, claim_offers=claim_offers)
    after = now.offered if found.offer is None else found.offer
    assert after.within(now.free)
    claim = now.claim if found.claim is None else found.claim
    assert now.used.within(claim)
    if claim_offers:
        assert now.offered.within(claim) and after.within(claim) and now.unsure.within(claim)


EVENTS = ("pod", "end", "run", "stop", "publish", "look", "look", "answer")
ONES = Units(1, 1)


@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 0.1, 0.4]))
def test_nothing_is_given_twice_in_any_order(chance: Random, share: float) -> None:
    """Pods and containers come and go by what each side shows, and our requests arrive late."""
    requested = used = claim = offered = NOTHING
    total = allocatable = BatchAmounts(10, 12)
    under_way: list[BatchAmounts] = []
    for _ in range(200):
        event = chance.choice(EVENTS)
        size = BatchAmounts(chance.randint(0, 6), chance.randint(0, 6))
        if event == "pod" and requested.plus(size).within(allocatable):
            requested = requested.plus(size)
        elif event == "end":
            requested = requested.less(size)
        elif event == "run" and used.plus(size).within(offered):
            used = used.plus(size)
        elif event == "stop":
            used = used.less(size)
        elif event == "publish":
            allocatable = total.less(claim)
        elif event == "answer" and under_way:
            offered = under_way.pop(0)
        elif event == "look":
            unsure = NOTHING
            for one in under_way:
                unsure = unsure.most(one)
            now = Sharing(total, requested, NOTHING, allocatable, claim, offered, used, unsure)
            found = next_step(now, size, ONES, share, claim_offers=True)
            claim = claim if found.claim is None else found.claim
            if found.offer is not None:
                under_way.append(found.offer)
        assert requested.plus(offered.most(used)).within(total), event
