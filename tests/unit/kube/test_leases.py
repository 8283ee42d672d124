"""The rules of leader election, without time passing."""

from typing import Any

import pytest

from koordpolicy.kube.leases import LeaseTerms, claim, first_claim, handed_back, look, may_claim, micro_time

WALL = 1_750_000_000_123_456_789
LATER = WALL + 60 * 10**9
TERMS = LeaseTerms()


def lease(holder: str, **spec: Any) -> dict[str, Any]:
    made = first_claim("ns", "one", holder, TERMS, WALL)
    made["spec"].update(spec)
    return made


def test_the_first_claim_says_everything() -> None:
    made = first_claim("ns", "one", "a", LeaseTerms(duration=1.5, renew_deadline=1.0, retry=0.2), WALL)
    assert made["metadata"] == {"namespace": "ns", "name": "one"}
    assert made["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 2,
        "acquireTime": "2025-06-15T15:06:40.123456Z",
        "renewTime": "2025-06-15T15:06:40.123456Z",
        "leaseTransitions": 0,
    }


def test_a_record_ages_from_when_it_was_first_seen() -> None:
    first = look(None, lease("b"), 100.0)
    assert look(first, lease("b"), 110.0) is first
    renewed = look(first, claim(lease("b"), "b", TERMS, LATER), 110.0)
    assert (renewed.holder, renewed.at) == ("b", 110.0)


@pytest.mark.parametrize(
    ("record", "now", "expected"),
    [
        (lease("a"), 100.0, True),
        (lease("b"), 100.0, False),
        (lease("b"), 114.9, False),
        (lease("b"), 115.0, True),
        (lease("b", leaseDurationSeconds=60), 115.0, False),
        (lease("b", leaseDurationSeconds=60), 160.0, True),
        (lease("b", leaseDurationSeconds=None), 114.9, False),
        (lease("b", leaseDurationSeconds=None), 115.0, True),
        (lease("b", renewTime="1999-01-01T00:00:00.000000Z"), 114.9, False),
        (handed_back(lease("b"), WALL), 100.0, True),
        ({"metadata": {}}, 100.0, True),
        ({"metadata": {}, "spec": None}, 100.0, True),
    ],
)
def test_who_may_claim_when(record: dict[str, Any], now: float, expected: bool) -> None:
    assert may_claim(look(None, record, 100.0), "a", TERMS, now) is expected


def test_renewing_changes_only_the_time() -> None:
    before = lease("a", leaseTransitions=3)
    after = claim(before, "a", TERMS, LATER)
    assert after["spec"] == {**before["spec"], "renewTime": micro_time(LATER)}
    assert before["spec"]["renewTime"] == micro_time(WALL), "what was read is left alone"


def test_taking_over_is_counted_and_keeps_what_others_wrote() -> None:
    before = lease("b", leaseTransitions=3, strategy="OldestEmulationVersion")
    after = claim(before, "a", TERMS, LATER)["spec"]
    assert after["holderIdentity"] == "a"
    assert after["leaseTransitions"] == 4
    assert after["acquireTime"] == after["renewTime"] == micro_time(LATER)
    assert after["strategy"] == "OldestEmulationVersion"


def test_what_is_handed_back_has_no_holder_but_keeps_its_count() -> None:
    back = handed_back(lease("b", leaseTransitions=3), LATER)["spec"]
    assert (back["holderIdentity"], back["leaseDurationSeconds"], back["leaseTransitions"]) == ("", 1, 3)


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2.4, 2), (15, 10, 0), (15, 10, -1), (-1, 10, 2)])
def test_times_that_cannot_work_are_refused(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be longer"):
        LeaseTerms(*times)


def test_a_pause_stays_near_the_retry_period() -> None:
    assert LeaseTerms().pause(0.0) == 2.0
    assert LeaseTerms().pause(0.999) <= 2.4
