"""A state that turns late, and only for what lasts."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.hysteresis import WELL, Standing

STEPS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=40)
WAITS = st.tuples(st.integers(0, 30), st.integers(0, 30))


@given(STEPS, WAITS)
def test_it_turns_after_what_lasted_and_never_sooner(
    steps: list[tuple[int, bool]], waits: tuple[int, int]
) -> None:
    standing, now, began, last = WELL, 0, 0, False
    for pause, holds in steps:
        now += pause
        if holds != last:
            began, last = now, holds
        before, standing = standing, standing.after(holds, now, *waits)
        lasted = now - began
        needed = waits[0] if holds else waits[1]
        assert standing.abnormal == (holds if lasted >= needed else before.abnormal)
        turns = standing.turns_in(now, *waits)
        assert (turns is None) == (standing.abnormal == holds)
        if turns is not None:
            assert turns == needed - lasted > 0
            assert standing.after(holds, now + turns - 1, *waits).abnormal == standing.abnormal
            assert standing.after(holds, now + turns, *waits).abnormal == holds


def test_what_is_interrupted_begins_anew() -> None:
    hot = Standing().after(True, 0, 10, 10)
    assert not hot.after(False, 9, 10, 10).after(True, 10, 10, 10).after(True, 19, 10, 10).abnormal
