"""Every place where objects of a cluster enter, component by resource, with hostile ones: a value or a reason, no exception.

The scheduler has a test of its own (`unit/scheduler/test_hostile_objects.py`), with what its answers are then.
"""

import asyncio
import copy
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cli.snapshot_facts import SnapshotFacts
from koordpolicy.cluster.event_handlers import EVENT_HANDLERS, EventHandlers, handle
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import EventType, KubeError, WatchEvent, resources
from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.event_correlator import reference_to
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.memory.store import finish
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.controllers.controller import OvercommitController
from koordpolicy.manager.process import WATCHED
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.profiles import ColocationProfileError
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.strategic_merge import PatchError
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.model.unreadable_pod import readable_part
from koordpolicy.runtime.http import Request
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.manifest import manifest
from koordpolicy.runtime.reports.unreadable import unreadable_objects, unreadable_status
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.extender.server import ExtenderServer
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Workload
from tests.hostile.objects import NODE, REAL, each_spoiled, node, pod, spoiled, spoiled_object
from tests.unit.scheduler.world import START, World, policies


@cache
def graph() -> RuleGraph:
    """The built-in pack's."""
    return policies({})


class Manager:
    """The overcommit controller over mirrors of real objects, and what it could not read."""

    def __init__(self) -> None:
        self.found: list[Unreadable] = []
        self.unreadable = UnreadableObjects(lambda _, __, why: self.found.append(why))
        objects = ClusterObjects()
        self.mirrors = EventHandlers(objects, unreadable=self.unreadable, wanted=WATCHED).mirrors
        self.controller = OvercommitController(lambda _, __: graph(), objects, lambda: START)
        for resource in WATCHED:
            self.hear(resource, REAL[str(resource)])
        self.hear(resources.NODES, node("n2"))

    def hear(self, resource: Resource, obj: Any) -> None:
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(len(self.found) + id(obj))
        self.mirrors[resource].apply(WatchEvent(EventType.MODIFIED, obj))

    def decide(self) -> None:
        """Every node is decided on, or is one that cannot be read."""
        for name in (NODE, "n2"):
            decided = self.controller.decide(name)
            unreadable = {key for resource, key, _ in self.unreadable if resource is resources.NODES}
            assert (decided is None) == (("", name) in unreadable)
            if decided is not None:
                assert all(one.cause is None for one in decided.calculations)
                for write in decided.writes:
                    json.dumps(write.patch.body)
        assert all(why.cause is None for why in self.found), self.found


@pytest.mark.parametrize("resource", sorted(WATCHED, key=str), ids=str)
def test_the_manager_decides_on_every_node_whatever_one_object_holds(resource: Resource) -> None:
    manager = Manager()
    assert not manager.found
    for _, obj in each_spoiled(REAL[str(resource)]):
        manager.hear(resource, obj)
        manager.decide()
    assert manager.found


def test_a_pod_that_cannot_be_read_frees_nothing_for_batch_work() -> None:
    def offered(spoil: Callable[[Any], None]) -> int:
        manager = Manager()
        report = copy.deepcopy(REAL["nodemetrics.slo.koordinator.sh"])
        report["status"]["podsMetric"] = []
        report["status"]["updateTime"] = "2023-11-14T22:13:20Z"
        manager.hear(resources.NODE_METRICS, report)
        one = pod()
        spoil(one)
        manager.hear(resources.PODS, one)
        decided = manager.controller.decide(NODE)
        assert decided is not None
        return next(each.whole.cpu for each in decided.calculations if each.resource == "batch")

    as_it_is = offered(lambda one: None)
    assert offered(lambda one: one["spec"].update(priority="high")) <= as_it_is
    assert offered(lambda one: one["spec"].update(containers="all")) == 0


# --- webhooks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """What a mirror may hold: objects under their names, whatever else stands in them."""

    namespace: Any

    def find(self, resource: Any, name: str, *, namespace: str | None = None) -> Any:
        known = {
            (resources.NAMESPACES, "team"): self.namespace,
            (resources.PRIORITY_CLASSES, "koord-batch"): {"value": 5500},
        }
        return known.get((resource, name))

    def every(self, resource: Any) -> tuple[Any, ...]:
        return ()

    def follow(self, resource: Any, handler: Any) -> None:
        pass


def _handlers(namespace: Any) -> list[Any]:
    context = WebhookContext(graph, _Known(namespace), lambda: START, lambda: 1.0)
    return [one.handler(context) for one in WEBHOOKS if resources.PODS in one.resources]


@given(spoiled_object(pod(node="")), st.one_of(st.just(REAL["namespaces"]), spoiled("namespaces")))
def test_webhooks_answer_or_say_what_is_wrong(obj: Any, namespace: Any) -> None:
    """What is raised here fails the request, closed or open as the hook says: it is one that was foreseen."""
    handlers = _handlers(namespace)
    for operation in (Operation.CREATE, Operation.UPDATE):
        request = AdmissionRequest(operation, resources.PODS, "", "team", "p1", obj, None)
        for handler in handlers:
            try:
                answer = handler(request)
                if inspect.iscoroutine(answer):
                    finish(answer)
            except (ObjectError, PatchError, ColocationProfileError, CelError):
                continue


# --- files and snapshots --------------------------------------------------------------------------


@given(st.data())
def test_a_snapshot_is_asked_about_whatever_its_objects_hold(data: st.DataObject) -> None:
    objects = {name: [copy.deepcopy(real)] for name, real in REAL.items()}
    objects["nodes"].append(node("n2"))
    for name in data.draw(st.lists(st.sampled_from(sorted(REAL)), min_size=1, max_size=3)):
        objects[name].append(data.draw(spoiled(name)))
        objects[name].reverse()
    facts = SnapshotFacts(Snapshot(START, objects))
    for target in ("Overcommit/batch", "SchedulingProfile/koord-scheduler", "CPUSuppress/cluster"):
        assert "n2" in dict(facts.nodes(graph(), target))
        list(facts.placements(graph(), target))
        list(facts.zones(graph(), target))
    list(facts.containers(graph(), "AdmissionRule/x"))
    assert not any("internal error" in reason for reason in facts.unreadable.values()), facts.unreadable


@settings(max_examples=15)
@given(st.lists(spoiled_object(pod(node="")), min_size=1, max_size=3))
def test_a_simulation_goes_on_whatever_a_pod_holds(pods: list[Any]) -> None:
    plain = pod("plain", node="")
    plain["spec"] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    arrivals = tuple(Arrival(0, one) for one in (*pods, plain))
    workload = Workload((node(), node("n2")), arrivals, span=10 * 10**9)
    five = SimulationSettings(5 * 10**9, agents=True)
    journal = Simulation(graph(), workload, five, np.random.default_rng(1)).run()
    assert journal.arrived == len(arrivals)
    assert ("team", "plain") in journal.scheduled


@pytest.mark.parametrize("cpu", ["8E", "1e60", str(2**63 - 1)])
def test_a_simulated_machine_has_no_more_processors_than_there_are(cpu: str) -> None:
    large = node()
    large["status"]["capacity"]["cpu"] = cpu
    Simulation(
        graph(), Workload((large,), (), span=10**9), SimulationSettings(), np.random.default_rng(1)
    ).run()


@given(
    spoiled_object(
        {
            "apiVersion": "v",
            "kind": "k",
            "metadata": {**REAL["nodes"]["metadata"]},
            "spec": REAL["nodes"]["spec"],
        }
    )
)
def test_a_policy_object_has_a_text_or_a_reason_why_not(obj: Any) -> None:
    found = readable(manifest, obj)
    assert not (isinstance(found, Unreadable) and found.cause is not None), found


# --- what is asked over HTTP ----------------------------------------------------------------------


@given(spoiled_object(pod(node="")), st.sampled_from(["filter", "prioritize", "preempt", "bind"]))
def test_the_extender_answers_or_says_what_is_wrong(obj: Any, verb: str) -> None:
    world = World(graph())
    world.build({"nodes": {"a": {}}})
    metrics = Metrics("scheduler")
    answering = ExtenderServer(
        world.scheduler, lambda *_: obj, MemoryCluster(Store(lambda: START // 10**9)), metrics, 0.0
    )
    answering.ready = True
    asked = {
        "Pod": obj,
        "NodeNames": ["a"],
        "NodeNameToMetaVictims": {"a": {"Pods": [], "NumPDBViolations": 0}},
        "PodNamespace": "team",
        "PodName": "p1",
        "PodUID": "uid-p1",
        "Node": "a",
    }
    (route,) = [one for one in answering.routes() if one.path == f"/{verb}"]
    body = json.dumps(asked, default=str).encode("utf-8", "replace")

    async def ask() -> int:
        return (await route.answer(Request("POST", f"/{verb}", {}, {}, body))).status

    assert asyncio.run(ask()) in (200, 400, 404, 500)
    assert not metrics.value("koordpolicy_internal_errors_total", place="extender")


# --- pods that wait -------------------------------------------------------------------------------


@given(spoiled_object(pod(node="")))
def test_a_pod_that_waits_is_decided_on_whatever_it_holds(obj: Any) -> None:
    scheduler = Scheduler(graph(), lambda: START)
    for handler in EVENT_HANDLERS:
        if handler.resource is not resources.PODS:
            assert handle(handler, scheduler, copy.deepcopy(REAL[str(handler.resource)])) is None
    handler = next(one for one in EVENT_HANDLERS if one.resource is resources.PODS)
    why = handle(handler, scheduler, obj)
    assert why is None or why.cause is None, why
    for _ in range(3):
        decision = scheduler.schedule_one()
        if decision is None:
            break
        assert decision.failure is None or decision.failure.cause is None, decision.failure


@given(spoiled("pods"))
def test_some_of_every_pod_can_be_read(obj: Any) -> None:
    part = readable_part(obj)
    assert (part.namespace, part.name) == ("team", "p1")
    for amounts in (part.overhead, *(one.requests for one in (*part.containers, *part.init_containers))):
        assert all(0 <= number < 2**63 for number in amounts.values())


# --- what is told -----------------------------------------------------------------------------------


@given(spoiled("pods"), st.text(max_size=20))
def test_an_event_is_recorded_about_anything(obj: Any, message: str) -> None:
    recorder, _ = _recorder()
    recorder.record(obj, "Unreadable", message, type="Warning")
    recorder.record({"metadata": obj.get("spec")}, "Unreadable", message)
    assert all(isinstance(value, str) for value in reference_to(obj).values())


def _recorder() -> tuple[Recorder, Store]:
    store = Store(lambda: START // 10**9)
    made = Recorder(
        MemoryCluster(store), component="c", instance="i", now_ns=lambda: START, backoff=Backoff(lambda: 0.0)
    )
    return made, store


def test_an_event_that_cannot_be_written_does_not_keep_others_back() -> None:
    async def story() -> list[str]:
        recorder, store = _recorder()
        work = asyncio.create_task(recorder.run())
        for name in ("a\x00" * 5, "\ud800", "fine"):
            recorder.record(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}, "R", f"of {name}"
            )
        async with asyncio.timeout(10):
            await recorder.flush()
        work.cancel()
        return [event["message"] for event in store.list(resources.EVENTS).items]

    assert "of fine" in asyncio.run(story())


def test_an_unreadable_object_is_told_of_in_metrics_status_and_events() -> None:
    metrics = Metrics("scheduler")
    recorder, store = _recorder()
    store.create(resources.NAMESPACES, {"metadata": {"name": "team"}})
    leads = False
    noted = unreadable_objects(metrics, recorder, lambda: leads)
    why = Unreadable("spec.priority: expected a whole number, found text")

    def find(name: str, reason: Unreadable = why) -> None:
        noted.found(resources.PODS, ("team", name), pod(name), reason)

    find("a")
    assert unreadable_status(noted) == {
        "unreadable": {"count": 1, "objects": [{"resource": "pods", "name": "team/a", "reason": why.reason}]}
    }
    leads = True
    noted.again()
    find("a")
    find("b", Unreadable("other"))
    assert metrics.value("koordpolicy_unreadable_objects", resource="pods") == 2
    noted.gone(resources.PODS, ("team", "a"))
    noted.gone(resources.PODS, ("team", "b"))
    assert unreadable_status(noted) == {}

    async def written() -> None:
        work = asyncio.create_task(recorder.run())
        async with asyncio.timeout(10):
            await recorder.flush()
        work.cancel()

    asyncio.run(written())
    said = sorted((one["involvedObject"]["name"], one["count"]) for one in store.list(resources.EVENTS).items)
    assert said == [("a", 1), ("b", 1)]


def test_the_errors_of_a_cluster_stay_its_own() -> None:
    """A door for objects is none for what a cluster refuses."""
    with pytest.raises(KubeError):
        Store(lambda: 0).create(resources.PODS, {"metadata": {"name": "!"}}, namespace="default")
