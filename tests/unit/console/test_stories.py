"""Stories of pods: where there is nothing to tell, and what Events add to them."""

from typing import Any

import pytest

from koordpolicy.agent.carrying_out import EVICTED
from koordpolicy.console.stories import story_of
from koordpolicy.console.worlds.world import CannotAnswer, PodBackground, ToldEvent
from koordpolicy.kube.snapshot import Snapshot

NOTHING = PodBackground(events=())


class Nobody:
    """Asked for a migration alone, which may be all that is left of a pod."""

    def migration(self, picture: Snapshot, name: str) -> None:
        return None

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


class Rules(Nobody):
    """Knows the rules behind reasons, and no pod."""

    def behind(self, reason: str) -> list[dict[str, Any]]:
        return [{"decision": reason, "at": "a.yaml:1:1"}]

    def pod(self, picture: Snapshot, name: str) -> dict[str, Any]:
        raise CannotAnswer("there is no such pod")


def told(component: str, reason: str, message: str, about: str = "Pod default/gone") -> ToldEvent:
    return ToldEvent(about, component, reason, message, True, 1, 5.0, 5.0)


def story(*events: ToldEvent) -> dict[str, Any]:
    return story_of(Rules(), Snapshot(0, {}), "default/gone", [], None, PodBackground(events))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["default/gone", "default/a/b"])
def test_a_pod_that_nobody_has_heard_of_has_no_story(name: str) -> None:
    with pytest.raises(CannotAnswer, match=f"there is no pod `{name}`"):
        story_of(Nobody(), Snapshot(0, {}), name, [], None, NOTHING)  # type: ignore[arg-type]


def test_events_of_others_make_no_pod_known() -> None:
    with pytest.raises(CannotAnswer, match="there is no pod"):
        story(told("koordpolicy-agent", "KernelWriteFailed", "full", about="Node n"))


@pytest.mark.parametrize(
    ("component", "reason", "message", "outcome"),
    [
        ("koordpolicy-agent", EVICTED, "evicted for BEMemoryEvict", "evicted"),
        ("koordpolicy-descheduler", "Descheduled", "Pod evicted from node", "moved"),
        ("koordpolicy-scheduler", "Preempted", "Preempted by pod x", "preempted"),
        ("kubelet", EVICTED, "evicted for BEMemoryEvict", None),
    ],
)
def test_how_a_pod_ended_that_only_events_know(
    component: str, reason: str, message: str, outcome: str | None
) -> None:
    found = story(told(component, reason, message))
    assert (found["ended"] and found["ended"]["outcome"]) == outcome
    assert found["scheduling"] == {"unknown": "there is no such pod"}
    assert "admitted" not in found
    assert found["events"]["told"][0]["message"] == message


def test_an_event_of_an_agent_is_told_with_the_rules_behind_it() -> None:
    combined = "(combined from similar events): evicted for BEMemoryEvict"
    suffers = "held up by others on its node: Interference/slow-web, SuppressBestEffort"
    found = story(
        told("koordpolicy-agent", EVICTED, combined),
        told("koordpolicy-agent", "Interference", suffers),
        told("kubelet", "BackOff", "evicted for nothing"),
    )
    rules = [[rule["decision"] for rule in one["rules"]] for one in found["events"]["told"]]
    assert rules == [["BEMemoryEvict"], ["Interference/slow-web"], []]
