"""Who lends to whom: sums that hold whatever the quotas, and cases in which it is plain."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.quota_lending import QuotaLoan, lending
from koordpolicy.algorithms.quota_split import QuotaShare

AMOUNT = st.integers(0, 10**6)


def share(name: str, floor: int, *, lends: bool = True) -> QuotaShare:
    return QuotaShare(name, 0, floor, 1, lends)


def test_what_nobody_is_guaranteed_goes_first_and_one_lender_is_named() -> None:
    found = lending(100, [share("a", 40), share("b", 40)], {"a": 5, "b": 75})
    assert found.free == {"b": 20}
    assert found.loans == (QuotaLoan("a", "b", 15),)
    assert found.beyond == {}


def test_nothing_is_lent_while_there_is_enough_for_all_floors() -> None:
    found = lending(200, [share("a", 40), share("b", 40)], {"a": 5, "b": 75})
    assert (found.loans, found.free) == ((), {"b": 35})


def test_several_share_in_proportion() -> None:
    shares = [share("a", 30), share("b", 10), share("c", 10), share("d", 10)]
    found = lending(60, shares, {"c": 20, "d": 40})
    assert found.loans == (
        QuotaLoan("a", "c", 8),
        QuotaLoan("a", "d", 22),
        QuotaLoan("b", "c", 2),
        QuotaLoan("b", "d", 8),
    )


def test_a_floor_that_is_kept_is_not_lent() -> None:
    found = lending(80, [share("a", 40, lends=False), share("b", 40)], {"a": 5, "b": 75})
    assert (found.loans, found.beyond) == ((), {"b": 35})


def test_pods_of_the_parent_itself_leave_less_that_is_free() -> None:
    found = lending(100, [share("a", 40), share("b", 40)], {"a": 5, "b": 75}, own=15)
    assert (found.free, found.loans) == ({"b": 5}, (QuotaLoan("a", "b", 30),))


@given(
    AMOUNT,
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(AMOUNT, AMOUNT, st.booleans()), max_size=6),
)
def test_sums_hold(total: int, quotas: dict[str, tuple[int, int, bool]]) -> None:
    shares = [share(name, floor, lends=lends) for name, (floor, _, lends) in quotas.items()]
    used = {name: use for name, (_, use, _) in quotas.items()}
    found = lending(total, shares, used)
    assert all(one.amount > 0 for one in found.loans)
    free = max(0, total - sum(one.floor for one in shares))
    assert sum(found.free.values()) <= free
    for one in shares:
        had = sum(loan.amount for loan in found.loans if loan.borrower == one.name)
        gave = sum(loan.amount for loan in found.loans if loan.lender == one.name)
        parts = (found.free.get(one.name, 0), had, found.beyond.get(one.name, 0))
        assert sum(parts) == max(0, used[one.name] - one.floor)
        assert gave <= max(0, one.floor - used[one.name])
        assert not gave or one.lends
    if found.loans:
        assert sum(found.free.values()) == free
