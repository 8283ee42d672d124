"""What anybody who may create pods can put into one, on a real API server: the scheduler goes on."""

from typing import Any

import pytest

from koordpolicy.model.protocol import ESTIMATED_SCALING_FACTORS, RESOURCE_STATUS
from tests.integration.scheduler.sites import Site, profile

_UNTIL = profile(
    {
        "filters": [
            {"name": "Until", "require": {"cel": "timestamp(pod.annotations[?'until'].orValue('2999-12-31T00:00:00Z')) > now"}}
        ]
    }
)  # fmt: skip
_BY_TEAM = profile({"filters": [{"name": "Team", "require": {"cel": "pod.labels['team'] == 'a'"}}]})

_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
_SLOW = profile(
    {
        "filters": [
            {
                "name": "Slow",
                "require": {
                    "cel": f"{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, {_TEN}.all(d, a * b * c * d * size(node.name) > 0))))"
                },
            }
        ],
        "diagnosis": {"slowDecision": "1us"},
    }
)


def _container(name: str, memory: str) -> dict[str, Any]:
    return {"name": name, "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": memory}}}


def _hostile(site: Site, node: str) -> None:
    """Bound pods with amounts, dates and annotations beyond all measure."""
    until = {"annotations": {"until": "9999-12-31T23:59:59Z"}}
    said = {
        ESTIMATED_SCALING_FACTORS: '{"cpu": ' + "9" * 400 + "}",
        RESOURCE_STATUS: '{"cpuset": "0-65535", "numaNodeResources": [{"node": ' + "7" * 30 + "}]}",
    }
    site.pod("large", nodeName=node, containers=[_container("main", "8Ei")])
    site.pod("twice", nodeName=node, containers=[_container("one", "5Ei"), _container("two", "5Ei")])
    site.pod("decimal", nodeName=node, containers=[_container("main", "9223372036854775807")])
    site.pod("late", nodeName=node, metadata=until)
    site.pod("said", nodeName=node, metadata={"annotations": said})
    site.pod("far", metadata=until)
    site.pod("said-too", metadata={"annotations": said})


def test_amounts_and_dates_beyond_measure_end_no_scheduler(site: Site) -> None:
    site.write("own.yaml", _UNTIL)
    site.node("n1")
    site.node("n2")
    with site.scheduler("one") as one:
        site.pod("first", nodeName="n1")
        _hostile(site, "n1")
        site.eventually(
            lambda: {"far", "said-too"} <= site.where().keys(), "what was hostile is placed as any other"
        )
        for name in ("a", "b", "c"):
            site.pod(name)
        site.eventually(lambda: {"a", "b", "c"} <= site.where().keys(), "others are placed")
        where = site.where()
        assert {where[name] for name in ("far", "said-too", "a", "b", "c")} == {"n2"}, "n1 is full of 8Ei"
        assert one.metric('koordpolicy_internal_errors_total{place="object"}') == 0
        for name in ("large", "twice", "decimal"):
            site.gone(name)
        for number in range(4):
            site.pod(f"more-{number}")
        site.eventually(
            lambda: "n1" in {node for name, node in site.where().items() if name.startswith("more")},
            "the room is free again",
        )
        assert one.running.running
    with site.scheduler("two"):
        site.pod("after", cpu="100m")
        site.eventually(lambda: "after" in site.where(), "it starts again, too")


@pytest.mark.parametrize("pods", [30])
def test_a_rule_that_fails_for_all_pods_is_one_trouble(site: Site, pods: int) -> None:
    site.write("own.yaml", _BY_TEAM)
    site.node("n1")
    with site.scheduler("one") as one:
        for number in range(pods):
            site.pod(f"p{number}")

        def troubles() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = one.status.get("troubles", [])
            return found

        site.eventually(lambda: sum(each["count"] for each in troubles()) >= pods, "each pod was tried")
        (trouble,) = troubles()
        assert trouble["rule"] == "filter:Team"
        assert trouble["place"].startswith("own.yaml:")
        assert "no such key" in trouble["message"]
        reason, message = site.refusal("p1")
        assert reason == "Unschedulable"
        assert "no such key" in message

        def events() -> list[dict[str, Any]]:
            everything = site.do("GET", "/api/v1/namespaces/default/events")["items"]
            return [each for each in everything if each["reason"] == "DecisionsFail"]

        site.eventually(lambda: bool(events()), "the revision has an Event")
        (event,) = events()
        assert event["involvedObject"]["kind"] == "PolicyRevision"
        said = [line for line in one.running.log.read_text().splitlines() if "cannot be decided" in line]
        assert 1 <= len(said) <= 3, said


def test_a_rule_that_makes_decisions_slow_is_told_of(site: Site) -> None:
    site.write("own.yaml", _SLOW)
    site.node("n1")
    with site.scheduler("one") as one:
        for name in (
            "first",
            "later",
        ):  # a framework's first decision also makes what later ones find: it is not judged
            site.pod(name)
            site.eventually(lambda name=name: name in site.where(), "it is slow, and that is all")  # type: ignore[misc]

        def events() -> list[dict[str, Any]]:
            everything = site.do("GET", "/api/v1/namespaces/default/events")["items"]
            slow = [each for each in everything if each["reason"] == "DecisionsSlow"]
            return [each for each in slow if "filter `Slow` (own.yaml:" in each["message"]]

        site.eventually(lambda: bool(events()), "the revision has an Event")
        assert {each["involvedObject"]["kind"] for each in events()} == {"PolicyRevision"}
        troubles = {each["rule"]: each for each in one.status["troubles"]}
        assert "ms of a decision on 1 node" in troubles["filter:Slow"]["message"]
        assert "is decided slowly" in one.running.log.read_text()
