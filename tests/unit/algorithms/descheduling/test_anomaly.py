"""Nodes that are over their thresholds, and how long until that counts."""

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.descheduling.anomaly import AnomalyCondition, Detectors

COUNTS = st.integers(2, 6)
CONDITIONS = st.builds(
    AnomalyCondition, COUNTS, COUNTS, timeout=st.integers(1, 60), forgotten_after=st.integers(1, 90)
)


@given(CONDITIONS, st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["over", "normal", "reset"]))))
def test_no_anomaly_before_so_many_marks_or_after_its_time(
    condition: AnomalyCondition, marks: list[tuple[int, str]]
) -> None:
    detectors, now, overs, began = Detectors(), 0, 0, None
    for pause, mark in marks:
        now += pause
        if mark == "over":
            overs += 1
            if detectors.mark_over("node", condition, now):
                if began is None or now > began + condition.timeout:
                    assert overs > condition.consecutive_abnormalities
                    began = now
                overs = 0
            else:
                began = None
        elif mark == "normal":
            if not detectors.mark_normal("node", now):
                began = None
        else:
            detectors.reset("node", now)
            began = None
            found = detectors.get("node", now)
            assert found is None or not found.abnormal


@given(CONDITIONS, st.integers(0, 30))
def test_steady_excess_becomes_an_anomaly_at_the_mark_after_the_last_allowed(
    condition: AnomalyCondition, start: int
) -> None:
    detectors = Detectors()
    found = [
        detectors.mark_over("node", condition, start) for _ in range(condition.consecutive_abnormalities + 1)
    ]
    assert found == [False] * condition.consecutive_abnormalities + [True]


@given(CONDITIONS)
def test_counts_are_dropped_after_their_time_and_not_sooner(condition: AnomalyCondition) -> None:
    detectors = Detectors()
    detectors.mark_over("node", condition, 0)
    assert detectors.get("node", condition.forgotten_after) is not None
    assert detectors.get("node", condition.forgotten_after + 1) is None
    detectors.forget(condition.forgotten_after + 1)
    assert not detectors.reset("node", 0)


def test_without_a_condition_every_excess_counts_and_nothing_is_kept() -> None:
    detectors = Detectors()
    assert detectors.mark_over("node", None, 0)
    assert detectors.get("node", 0) is None
