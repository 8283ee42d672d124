"""Migrations step by step over a cluster in memory: what is written, what holds them up, and that any step may be the last of a process."""

import json
from typing import Any

import pytest

from koordpolicy.descheduler.migration.job import MigrationJob, read_job
from koordpolicy.descheduler.rules import Stays
from koordpolicy.kube import resources, thaw
from koordpolicy.kube.port import MergePatch
from koordpolicy.model.protocol import SOFT_EVICTION
from koordpolicy.model.unreadable import Unreadable, readable
from tests.hostile.objects import each_spoiled
from tests.unit.descheduler.migrations import World, migrating

OFTEN: dict[str, Any] = {"frequency": {"workload": {"period": "0s"}}}


@pytest.fixture
def world() -> World:
    return World(migrating(**OFTEN))


def test_room_is_kept_before_the_pod_goes_and_taken_by_who_comes_for_it(world: World) -> None:
    made = world.migrate("web-0")
    assert isinstance(made, MigrationJob)
    world.look()
    (room,) = world.rooms()
    assert room["metadata"]["name"] == world.only().uid
    spec = room["spec"]
    assert "nodeName" not in spec["template"]["spec"]
    terms = spec["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert terms["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["full"]}]}
    ]
    assert spec["owners"][0]["controller"]["name"] == "web-1"
    assert (spec["allocateOnce"], spec["ttl"]) == (True, "300s")
    world.look(3)
    assert "web-0" in world.names(), "nobody goes while no room is there"
    world.reserved(room)
    world.look()
    assert "web-0" not in world.names()
    assert world.only().node == "empty"
    world.look(2)
    assert world.only().conditions["PodBoundReservation"].reason == "WaitForPodBindReservation"
    world.pod("web-new", "empty", ready=False)
    (room,) = world.rooms()
    world.taken(room, "web-new")
    world.look()
    assert world.only().conditions["BoundPodReady"].reason == "WaitForBoundPodReady"
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    world.set_status(resources.PODS, "web-new", status, namespace="default")
    world.look()
    job = world.only()
    assert (job.phase, job.status) == ("Succeeded", "Complete")
    assert job.raw["status"]["podRef"]["name"] == "web-new"
    assert [reason for reason, bad in world.told if bad] == []
    assert world.told[-1] == ("Complete", False)


def test_any_look_may_be_the_last_of_a_process(world: World) -> None:
    """A new process each time, which may find that nothing of what was begun was done."""
    world.migrate("web-0")
    for _ in range(3):
        world.restart()
        world.look()
    (room,) = world.rooms()
    world.reserved(room)
    world.watch()
    # The process says that the pod is to go, and is killed before it lets it go.
    refuse = {
        "conditions": [{"type": "Eviction", "status": "False", "reason": "Evicting"}],
        "status": "Eviction",
    }
    before = dict(world.only().raw["status"])
    refuse["conditions"] = [*before.get("conditions", ()), *refuse["conditions"]]
    world.set_status(resources.POD_MIGRATION_JOBS, world.only().name, refuse)
    world.restart()
    assert "web-0" in world.names()
    world.look()
    assert "web-0" not in world.names(), "it goes all the same"
    world.restart()
    world.look()
    assert world.only().conditions["Eviction"].reason == "EvictComplete", "and it is known why it went"
    assert len(world.rooms()) == 1


def test_a_pod_is_not_migrated_twice(world: World) -> None:
    assert isinstance(world.migrate("web-0"), MigrationJob)
    again = world.migrate("web-0")
    assert isinstance(again, Stays)
    assert again.condition == "migrating"


def test_at_most_so_many_pods_of_a_workload_migrate_at_once(world: World) -> None:
    for number in range(4):
        world.job(f"by-user-{number}", f"web-{number}", mode="EvictDirectly")
        world.seconds += 1
    world.look()
    passed = [one for one in world.jobs.every() if one.passed]
    assert len(passed) == 2, "of six replicas two"
    world.look(3)
    assert len(world.names()) == 4
    world.look(3)
    assert len(world.names()) == 4, "who went and is not there anew is away"
    world.pod("web-new", "empty")
    world.look(2)
    assert len(world.names()) == 4, "one came, and one goes"


@pytest.mark.parametrize(("evictor", "gone"), [("Eviction", True), ("Delete", True), ("SoftEviction", False)])
def test_a_pod_goes_as_policy_says(evictor: str, gone: bool) -> None:
    world = World(migrating(**OFTEN, evictor=evictor))
    world.job("by-user", "web-0", mode="EvictDirectly", deleteOptions={"gracePeriodSeconds": 7})
    world.look(2)
    pod = world.store.get(resources.PODS, "web-0", namespace="default")
    assert pod["metadata"].get("deletionGracePeriodSeconds") == (7 if gone else None)
    if not gone:
        assert '"gracePeriodSeconds":7' in pod["metadata"]["annotations"][SOFT_EVICTION]
        assert world.only().conditions["Eviction"].reason == "Evicting"


def test_a_budget_holds_a_pod_until_its_time_is_over(world: World) -> None:
    spec = {"minAvailable": 6, "selector": {"matchLabels": {"app": "web"}}}
    world.store.create(
        resources.POD_DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": spec}, namespace="default"
    )
    world.migrate("web-0")
    world.look()
    (room,) = world.rooms()
    world.reserved(room)
    for _ in range(3):
        world.look()
        world.seconds += 4
    assert "web-0" in world.names()
    assert world.only().conditions["Eviction"].reason == "FailedEvict"
    assert ("FailedEvict", True) in world.told
    world.seconds = 301
    world.look(2)
    assert (world.only().phase, world.only().reason) == ("Failed", "Timeout")
    assert not world.rooms(), "nothing stays of it"
    world.seconds = 601
    world.look(2)
    assert not world.jobs.every(), "and it is forgotten later"
    assert isinstance(world.migrate("web-0"), MigrationJob), "the pod may be moved again"


def test_what_a_user_stops_stays_as_it_is(world: World) -> None:
    world.job("by-user", "web-0", paused=True, ttl="1m")
    world.look()
    world.seconds = 120
    world.look()
    assert world.only().phase == "", "time does not count while it is paused"
    world.store.patch(
        resources.POD_MIGRATION_JOBS, "by-user", MergePatch({"spec": {"paused": False, "ttl": "1h"}})
    )
    world.look(2)
    assert world.only().phase == "Running"
    (room,) = world.rooms()
    world.set_status(resources.POD_MIGRATION_JOBS, "by-user", {"phase": "Aborted"})
    world.reserved(room)
    world.look(3)
    assert "web-0" in world.names()
    assert not world.rooms(), "an aborted migration keeps no room"


def test_what_another_controller_made_is_left_to_it(world: World) -> None:
    about = {"annotations": {"koordinator.sh/job-created-by": "5c5ad1d0"}, "name": "theirs"}
    spec = {"podRef": {"namespace": "default", "name": "web-0"}, "mode": "EvictDirectly"}
    world.store.create(resources.POD_MIGRATION_JOBS, {"metadata": about, "spec": spec})
    world.look(3)
    assert not world.only().passed
    assert "web-0" in world.names()


@pytest.mark.parametrize(
    ("replicas", "spec", "condition"),
    [
        (1, {}, "replicas"),
        (6, {"reservable": {"cel": "pod.schedulerName == 'other'"}}, "reservable"),
        (6, {"workload": {"migrating": 6}}, "replicas"),
    ],
)
def test_a_pod_stays_where_policy_or_its_workload_says_so(
    replicas: int, spec: dict[str, Any], condition: str
) -> None:
    found = World(migrating(**OFTEN, **spec), replicas).migrate("web-0")
    assert isinstance(found, Stays)
    assert found.condition == condition


def test_a_user_s_job_fails_where_the_pod_must_not_be_moved(world: World) -> None:
    cost = {"scheduling.koordinator.sh/eviction-cost": "2147483647"}
    world.pod("dear", "full", annotations=cost)
    world.job("by-user", "dear")
    world.look()
    assert (world.only().phase, world.only().reason) == ("Failed", "ForbiddenMigratePod")
    assert world.only().message.endswith("its annotation forbids it")


def test_room_on_the_node_that_is_left_is_none(world: World) -> None:
    world.migrate("web-0")
    world.look()
    world.reserved(world.rooms()[0], on="full")
    world.look(2)
    assert world.only().reason == "ForbiddenMigratePod"
    assert not world.rooms()
    assert "web-0" in world.names()


def test_pods_of_a_workload_go_as_often_as_policy_says_over_restarts() -> None:
    world = World(migrating(frequency={"workload": {"period": "10s", "most": 1}}))
    world.job("first", "web-0", mode="EvictDirectly")
    world.look(3)
    assert "web-0" not in world.names()
    world.pod("web-new", "empty")
    world.restart()
    world.job("second", "web-1", mode="EvictDirectly")
    world.look(3)
    assert "web-1" in world.names()
    world.seconds += 11
    world.look(3)
    assert "web-1" not in world.names()


def test_a_spoiled_job_is_a_value_or_a_reason(world: World) -> None:
    world.migrate("web-0")
    world.look()
    world.reserved(world.rooms()[0])
    world.look(2)
    real = json.loads(json.dumps(thaw(world.only().raw)))
    for what, spoiled in each_spoiled(real):
        found = readable(read_job, spoiled)
        assert not isinstance(found, Unreadable) or found.cause is None, what
