"""How rows are read follows their number alone, from one by one to all."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.table.access_path import AccessPath, access_path

ORDER = list(AccessPath)
TOTALS = st.one_of(st.none(), st.integers(1, 100_000))


@given(st.integers(0, 5_000), st.integers(0, 5_000), TOTALS, st.booleans())
def test_more_rows_are_never_read_more_singly(few: int, more: int, total: int | None, ready: bool) -> None:
    one, other = sorted((few, more))
    paths = [access_path(rows, total, ready=ready) for rows in (one, other)]
    assert sorted(paths, key=ORDER.index) == paths


@given(st.integers(0, 5_000), TOTALS)
def test_who_is_ready_reads_no_fewer_rows_one_by_one(rows: int, total: int | None) -> None:
    if access_path(rows, total) is AccessPath.ONE_BY_ONE:
        assert access_path(rows, total, ready=True) is AccessPath.ONE_BY_ONE


@given(st.integers(0, 100_000))
def test_all_are_read_only_where_that_answers_the_question(rows: int) -> None:
    assert access_path(rows) is not AccessPath.ALL
    assert access_path(max(rows, 40), max(rows, 40)) is AccessPath.ALL
    assert access_path(1, max(rows, 1)) is AccessPath.ONE_BY_ONE
