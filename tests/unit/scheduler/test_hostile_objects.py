"""Whatever an object of any resource holds, the scheduler reads it or says why not, and goes on."""

import copy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, EventHandlers
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import EventType, Resource, WatchEvent
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.quantity import INT64_MAX
from koordpolicy.model.unreadable import Unreadable
from koordpolicy.scheduler import PodDecision, Scheduler
from tests.hostile.objects import NAMELESS, NODE, REAL, each_spoiled, node, pod, spoiled
from tests.unit.scheduler.world import START, policies

_DEADLINE: Final = {"cel": "timestamp(pod.annotations[?'until'].orValue('2999-12-31T00:00:00Z')) > now"}

GRAPH: RuleGraph = policies({}, {"filters": [{"name": "Until", "require": _DEADLINE}]})
RESOURCES: Final = {str(resource): resource for resource in EVERY_RESOURCE}


class World:
    """A scheduler that hears of a real object of every resource, and notes what it cannot read."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(GRAPH, lambda: START)
        self.found: list[tuple[Resource, Any, Unreadable]] = []
        self.unreadable = UnreadableObjects(lambda *found: self.found.append(found))
        self.handlers = EventHandlers(self.scheduler, unreadable=self.unreadable)
        self._version = 7
        for name, obj in REAL.items():
            if name in RESOURCES:
                self.hear(name, copy.deepcopy(obj))
        other = node("n2")
        other["metadata"]["annotations"] = {}
        self.hear("nodes", other)
        assert not self.found, "real objects are read"

    def hear(self, resource: str, obj: Any, kind: EventType = EventType.MODIFIED) -> None:
        self._version += 1
        if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
            obj["metadata"]["resourceVersion"] = str(self._version)
        self.handlers.mirrors[RESOURCES[resource]].apply(WatchEvent(kind, obj))

    def decide(self) -> PodDecision:
        """A plain pod is decided on as ever: with a decision, and without a problem."""
        plain = pod("asking", node="")
        plain["metadata"]["annotations"] = {}
        plain["spec"] = {
            key: plain["spec"][key] for key in ("schedulerName", "priority", "containers", "preemptionPolicy")
        }
        for container in plain["spec"]["containers"]:
            container["ports"] = []
        plain["status"] = {"phase": "Pending"}
        self.hear("pods", plain, EventType.ADDED)
        decision = None
        for _ in range(5):
            decision = self.scheduler.schedule_one()
            if decision is None or decision.pod[1] == "asking":
                break
        assert decision is not None
        assert decision.pod[1] == "asking"
        assert not decision.problem
        return decision


def test_the_samples_are_of_every_resource_that_is_heard_of() -> None:
    assert RESOURCES.keys() <= REAL.keys()


@given(st.data())
def test_an_object_is_read_or_unreadable_and_nothing_else(data: st.DataObject) -> None:
    world = World()
    spoilt = data.draw(
        st.lists(st.sampled_from(sorted(RESOURCES)).flatmap(lambda name: st.tuples(st.just(name), spoiled(name))),
                 min_size=1, max_size=4)
    )  # fmt: skip
    for resource, obj in spoilt:
        world.hear(resource, obj)
    assert [why.cause for _, _, why in world.found] == [None] * len(world.found), world.found
    for _, _, why in world.found:
        assert why.reason.isprintable()
        why.reason.encode()
    world.decide()


@pytest.mark.parametrize("resource", sorted(RESOURCES))
def test_every_place_of_every_resource_may_hold_anything(resource: str) -> None:
    """One place after the other, one scheduler for all of them."""
    world = World()
    for what, obj in each_spoiled(REAL[resource]):
        before = len(world.found)
        world.hear(resource, obj)
        unforeseen = [why for _, _, why in world.found[before:] if why.cause is not None]
        assert not unforeseen, what
    world.hear(resource, copy.deepcopy(REAL[resource]))
    assert not len(world.unreadable), "the object that can be read again is none that cannot"
    world.decide()


@pytest.mark.parametrize("resource", sorted(RESOURCES))
@pytest.mark.parametrize("obj", NAMELESS, ids=repr)
def test_what_has_no_name_is_told_of_and_left_out(resource: str, obj: Any) -> None:
    world = World()
    world.hear(resource, copy.deepcopy(obj))
    ((found, _, why),) = world.found
    assert (str(found), why.cause) == (resource, None)
    world.decide()


@given(spoiled("pods"))
def test_a_bound_pod_takes_what_it_asks_for_however_it_is_spoilt(obj: Any) -> None:
    """Nothing of it is given away: each amount that can be read counts, and all there is where one cannot."""
    world = World()
    cache = world.scheduler.cache
    requested = dict(cache.table.row(cache.table.index(NODE))["resources.requested"])  # type: ignore[call-overload]
    world.hear("pods", obj)
    bound = obj.get("spec")
    over = isinstance(obj.get("status"), dict) and obj["status"].get("phase") == "Succeeded"
    if not isinstance(bound, dict) or bound.get("nodeName") != NODE or over or not world.found:
        return
    row = cache.table.row(cache.table.index(NODE))
    now: Any = row["resources.requested"]
    assert now["pods"] == 1
    same = all(bound.get(field) == REAL["pods"]["spec"][field] for field in ("resources", "overhead"))
    assert now["cpu"] >= requested["cpu"] or not same
    if bound.get("containers") == REAL["pods"]["spec"]["containers"]:
        assert now["memory"] >= requested["memory"] or "resources" in bound


@pytest.mark.parametrize("amount", ["much", {"a": 1}, -1, "9e999"])
def test_an_amount_that_cannot_be_read_fills_the_node(amount: Any) -> None:
    world = World()
    spoilt = pod()
    spoilt["spec"].pop("resources")
    spoilt["spec"]["containers"][0]["resources"]["requests"]["memory"] = amount
    world.hear("pods", spoilt)
    cache = world.scheduler.cache
    assert cache.table.row(cache.table.index(NODE))["requested.memory"] == INT64_MAX
    assert world.decide().node == "n2"
    world.hear("pods", spoilt, EventType.DELETED)
    assert cache.table.row(cache.table.index(NODE))["requested.memory"] == 0
    assert not len(world.unreadable)


def test_a_node_that_cannot_be_read_is_no_candidate_until_it_can() -> None:
    world = World()
    spoilt = node()
    spoilt["status"]["allocatable"]["cpu"] = ["16"]
    world.hear("nodes", spoilt)
    assert world.decide().node == "n2"
    assert [(str(resource), key) for resource, key, _ in world.unreadable] == [("nodes", ("", NODE))]
    gone = node("n2")
    world.hear("nodes", gone, EventType.DELETED)
    world.hear("nodes", node())
    assert not len(world.unreadable)
    row = world.scheduler.cache.table.row(world.scheduler.cache.table.index(NODE))
    assert row["requested.pods"] == 1, "the pod on it counts as before"


def test_a_pod_that_waits_and_cannot_be_read_is_not_tried_until_it_can() -> None:
    world = World()
    waits = pod("waits", node="")
    waits["spec"]["tolerations"] = []
    spoilt = copy.deepcopy(waits)
    spoilt["spec"]["priority"] = "high"
    world.hear("pods", waits, EventType.ADDED)
    world.hear("pods", spoilt)
    assert world.scheduler.schedule_one() is None
    world.hear("pods", copy.deepcopy(waits))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.pod == ("team", "waits")


def test_each_object_is_told_of_once_for_each_reason() -> None:
    world = World()
    for reason in ("high", "high", "low", ["low"], ["low"]):
        spoilt = pod()
        spoilt["spec"]["priority"] = reason
        world.hear("pods", spoilt)
    assert [why.reason for _, _, why in world.found] == [
        "spec.priority: expected a whole number, found text",
        "spec.priority: expected a whole number, found a list",
    ]


@pytest.mark.parametrize("resource", [NODES, PODS], ids=str)
def test_a_list_with_hostile_objects_shows_the_others(resource: Resource) -> None:
    world = World()
    real = {"nodes": node, "pods": pod}[str(resource)]
    items = [*NAMELESS, *(obj for _, obj in each_spoiled(real("spoilt"))), real("last")]
    world.handlers.mirrors[resource].replace(items, "99")
    assert all(why.cause is None for _, _, why in world.found)
    assert ("", "last") in world.handlers.mirrors[resource].objects or (
        "team",
        "last",
    ) in world.handlers.mirrors[resource].objects
    if resource is NODES:
        assert "last" in world.scheduler.cache
    else:
        assert world.scheduler.cache.node_of(("team", "last")) == NODE
