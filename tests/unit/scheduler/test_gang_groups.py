"""Gangs that are placed together: how many they may be, what that costs, and what is told of them."""

import json
from typing import Any, Final

import pytest

from koordpolicy.cli.console_questions import questions_by
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.model.gang import declared_by_pod, read_pod_group
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import embedded
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from tests.unit.scheduler.test_gangs import Ganged, pod_group
from tests.unit.scheduler.world import node
from tests.vectors.policies import graph

_DOMAIN: Final = "gang.scheduling.koordinator.sh/"


def names(count: int) -> list[str]:
    return [f"default/g{at}" for at in range(count)]


def of_gang(name: str, groups: list[str], minimum: int = 1) -> dict[str, Any]:
    """What a pod says of its gang and those that are placed together with it, in a text of its own."""
    said = {"name": name, "min-available": str(minimum), "groups": json.dumps(groups)}
    return {"annotations": {f"{_DOMAIN}{key}": value for key, value in said.items()}}


def roomy(**own: Any) -> Ganged:
    world = Ganged(own)
    world.scheduler.set_node(node("n0", {"allocatable": {"cpu": "500", "memory": "500Gi"}}))
    return world


def test_a_gang_that_names_too_many_others_is_not_tried_and_says_what_to_do() -> None:
    world = roomy()
    world.come("a", of_gang("g0", names(14_000)))
    world.come("b", of_gang("alone", []))
    assert world.run() == ["b"]
    assert (
        "gang default/g0 names 14,000 gangs to be placed together, and GangScheduling.mostTogether allows 200: name fewer in the "
        "annotation gang.scheduling.koordinator.sh/groups, or raise mostTogether" in world.messages["a"]
    )


def test_policy_says_how_many_are_too_many() -> None:
    for most, bound in ((2, []), (3, ["a0", "a1", "a2"])):
        world = roomy(mostTogether=most)
        for at in range(3):
            world.come(f"a{at}", of_gang(f"g{at}", names(3)))
        assert world.run() == bound


def test_the_same_holds_of_pod_groups_until_they_name_fewer() -> None:
    world = roomy(mostTogether=2)
    world.group("g0", {"minMember": 1, "groups": names(3)})
    world.come("a", "g0")
    assert world.run() == []
    assert "gang default/g0 names 3 gangs to be placed together" in world.messages["a"]
    gangs = world.scheduler.gangs
    assert gangs is not None
    assert "names 3 gangs" in gangs.does_not_fit("default/g0"), "its status says so, too"
    world.group("g0", {"minMember": 1, "groups": names(1)})
    world.pass_time(1)
    assert world.run() == ["a"]
    assert gangs.does_not_fit("default/g0") == ""


def test_pods_of_a_gang_that_cannot_be_read_do_not_have_all_others_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    ordinary = Gangs._ask_again

    def counted(self: Gangs, pods: Any) -> None:
        found = tuple(pods)
        asked.append(len(found))
        ordinary(self, found)

    monkeypatch.setattr(Gangs, "_ask_again", counted)
    world = roomy(mostTogether=2)
    for at in range(50):
        world.come(f"a{at}", of_gang("g0", names(3)))
    assert world.run() == []
    assert len([name for name in world.messages if "names 3 gangs" in world.messages[name]]) == 50
    assert sum(asked) <= 100


def test_what_many_pods_say_alike_is_read_once_and_held_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(source: str, at: str) -> object:
        read.append(at)
        return embedded(source, at)

    monkeypatch.setattr("koordpolicy.model.gang.embedded", counted)
    group = ["read-once/a", "read-once/b"]
    declared = [
        declared_by_pod(
            read_pod({"metadata": {"name": f"p{at}", "namespace": "default", **of_gang("a", group)}}), "a"
        )
        for at in range(20)
    ]
    declared += [
        read_pod_group(pod_group("a", {"minMember": 1, "groups": group})).declaration for _ in range(20)
    ]
    assert not read, "only where it is asked for"
    assert [list(one.groups) for one in declared] == [group] * 40
    assert len(read) == 1


def test_texts_name_a_few_gangs_and_count_the_others() -> None:
    world = roomy()
    world.come("a", of_gang("g0", names(200)))
    world.run()
    assert world.messages["a"].endswith("gang default/g101 is not there and 195 more.")
    for at in range(1, 199):
        world.come(f"a{at}", of_gang(f"g{at}", names(200)))
    world.run()
    assert world.messages["a198"].endswith("Coscheduling: gang default/g199 is not there.")


def test_long_names_of_gangs_are_cut_in_texts() -> None:
    world = roomy()
    world.come("a", of_gang("g" * 200_000, [], minimum=2))
    world.run()
    assert "does not have its 2 pods yet" in world.messages["a"]
    assert len(world.messages["a"]) < 1024


def test_the_console_lists_some_gangs_and_pods_and_counts_the_others() -> None:
    pods: list[dict[str, Any]] = [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"p{at}", "namespace": "default", "uid": f"u{at}", **of_gang(f"g{at % 700}", [], at // 700 + 1)},
            "spec": {"schedulerName": "koord-scheduler", "containers": [{"name": "c"}]}, "status": {"phase": "Pending"},
        }
        for at in range(700)
    ]  # fmt: skip
    pods += [
        {**pods[0], "metadata": {**pods[0]["metadata"], "name": f"q{at}", "uid": f"q{at}"}}
        for at in range(600)
    ]
    asked = questions_by("")(graph())
    picture = Snapshot(0, {"pods": pods, "nodes": []})
    found = asked.gangs(picture)
    assert (found["count"], len(found["gangs"])) == (700, 500)
    found = asked.gang(picture, "g0")
    assert (found["count"], len(found["members"])) == (601, 500)
