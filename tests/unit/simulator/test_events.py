"""What a simulation keeps of its Events: numbers and examples, however many there are."""

from koordpolicy.kube.event_correlator import EventLimits
from koordpolicy.simulator.events import CollectedEvents

MINUTE = 60 * 10**9


def pod(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name}}


def test_each_reason_is_counted_with_its_latest() -> None:
    events = CollectedEvents(lambda: 0)
    for number in range(5_000):
        events.record(pod(f"p{number}"), "Scheduled", f"to n{number}", action="Binding")
    events.record(pod("q"), "FailedScheduling", "no room", type="Warning")
    found = {reason: (one.count, one.latest.message) for reason, one in events.reasons.items()}
    assert found == {"Scheduled": (5_000, "to n4999"), "FailedScheduling": (1, "no room")}
    assert events.dropped == 0


def test_one_pod_is_heard_as_often_as_on_a_cluster() -> None:
    now, limits = [0], EventLimits()
    events = CollectedEvents(lambda: now[0])
    for number in range(100):
        events.record(pod("p"), "FailedScheduling", f"no room for {number}", type="Warning")
    assert (events.reasons["FailedScheduling"].count, events.dropped) == (limits.burst, 100 - limits.burst)
    assert events.reasons["FailedScheduling"].latest.message.startswith("(combined from similar events): ")
    now[0] += 5 * MINUTE
    events.record(pod("p"), "FailedScheduling", "still none", type="Warning")
    assert events.reasons["FailedScheduling"].count == limits.burst + 1


def test_a_pod_that_waited_long_is_told_of_at_last() -> None:
    events, limits = CollectedEvents(lambda: 0), EventLimits()
    for number in range(limits.burst):
        events.record(pod("p"), "FailedScheduling", f"no room for {number}", type="Warning")
    for reason in ("Scheduled", "Preempted", "NotEnforced"):
        events.record(pod("p"), reason, "so it is")
    assert events.reasons.keys() == {"FailedScheduling", "Scheduled", "Preempted"}
    assert events.dropped == 1
