"""The queue: order, back-off, events, and that a pod is never in two places or none."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from koordpolicy.cluster.events import EVERY_EVENT, Event
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.queue import SchedulingQueue, Waiting
from tests.unit.scheduler.world import World, metric, node, policies


def waiting(name: str, order: int = 0, **more: object) -> Waiting:
    return Waiting(("default", name), (order,), **more)  # type: ignore[arg-type]


def drained(queue: SchedulingQueue, now: int = 0) -> list[str]:
    found = []
    while (pod := queue.pop(now)) is not None:
        found.append(pod.key[1])
    return found


def test_the_smallest_key_is_next_and_equal_keys_keep_their_order() -> None:
    queue = SchedulingQueue()
    for name, order in (("c", 2), ("a", 1), ("b", 1)):
        queue.add(waiting(name, order))
    assert drained(queue) == ["a", "b", "c"]
    assert len(queue) == 0


def test_a_pod_backs_off_and_then_waits_for_what_can_help_it() -> None:
    queue = SchedulingQueue()
    pod = waiting("a", helped_by=frozenset({Event.POD_GONE}), ready_at=10, retry_at=300)
    queue.put_back(pod, 0)
    assert queue.pop(20) is None, "nothing has happened"
    assert queue.next_time() == 300
    queue.happened(Event.METRIC_CHANGED, 5)
    assert queue.pop(20) is None, "that cannot help"
    queue.happened(Event.POD_GONE, 5)
    assert queue.pop(9) is None, "still backing off"
    assert queue.next_time() == 10
    assert queue.pop(10) is pod
    assert queue.next_time() is None


def test_a_pod_that_nothing_can_help_is_tried_again_in_time() -> None:
    queue = SchedulingQueue()
    queue.put_back(waiting("a", helped_by=frozenset({Event.NODE_ADDED}), ready_at=1, retry_at=300), 0)
    assert drained(queue, 299) == []
    assert drained(queue, 300) == ["a"]


def test_after_a_problem_a_pod_only_backs_off() -> None:
    queue = SchedulingQueue()
    queue.put_back(waiting("a", ready_at=4, retry_at=300), 0)
    assert drained(queue, 3) == []
    assert drained(queue, 4) == ["a"]


def backing_off(name: str, ready_at: float, order: int = 0) -> Waiting:
    """A pod that may be tried early. Times in seconds."""
    return waiting(name, order, ready_at=int(ready_at * NANOSECONDS), when_idle=True)


def test_when_no_pod_is_active_those_that_back_off_come_early() -> None:
    queue = SchedulingQueue()
    queue.put_back(waiting("after-a-problem", ready_at=NANOSECONDS), 0)
    for name, ready_at, order in (("late", 2.0, 0), ("third", 1.9, 3), ("first", 1.8, 1), ("second", 1.1, 2)):
        queue.put_back(backing_off(name, ready_at, order), 0)
    queue.add(waiting("active", 9))
    assert drained(queue) == ["active", "first", "second", "third", "late"], (
        "in the order of seconds, then of pods"
    )
    assert drained(queue, NANOSECONDS) == ["after-a-problem"]
    assert queue.next_time() is None


def test_a_pod_whose_back_off_ended_comes_once() -> None:
    queue = SchedulingQueue()
    queue.put_back(backing_off("a", 1), 0)
    queue.tick(2 * NANOSECONDS)
    queue.put_back(backing_off("b", 5), 0)
    assert drained(queue, 2 * NANOSECONDS) == ["a", "b"]
    queue.put_back(backing_off("c", 9), 0)
    queue.remove(("default", "c"))
    assert drained(queue, 10 * NANOSECONDS) == []


def test_a_removed_pod_never_comes() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("active"))
    queue.put_back(waiting("backing-off", ready_at=5), 0)
    queue.put_back(waiting("stuck", helped_by=EVERY_EVENT, retry_at=9), 0)
    for name in ("active", "backing-off", "stuck", "never-there"):
        queue.remove(("default", name))
    queue.happened(Event.NODE_ADDED, 0)
    assert drained(queue, 1_000) == []
    assert queue.next_time() is None


class Machine(RuleBasedStateMachine):
    """Whatever happens, each pod that was put in and not taken out comes exactly once."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SchedulingQueue()
        self.inside: set[str] = set()
        self.now = 0

    @rule(name=st.sampled_from("abcdef"), order=st.integers(0, 3))
    def add(self, name: str, order: int) -> None:
        self.queue.add(waiting(name, order))
        self.inside.add(name)

    @rule(
        name=st.sampled_from("abcdef"),
        events=st.frozensets(st.sampled_from(Event)),
        wait=st.integers(0, 5),
        retry=st.integers(0, 9),
        early=st.booleans(),
    )
    def put_back(self, name: str, events: frozenset[Event], wait: int, retry: int, early: bool) -> None:
        times = {"ready_at": self.now + wait, "retry_at": self.now + retry}
        pod = waiting(name, helped_by=events, when_idle=early, **times)
        self.queue.put_back(pod, self.now)
        self.inside.add(name)

    @rule(name=st.sampled_from("abcdef"))
    def remove(self, name: str) -> None:
        self.queue.remove(("default", name))
        self.inside.discard(name)

    @rule(event=st.sampled_from(Event))
    def happen(self, event: Event) -> None:
        self.queue.happened(event, self.now)

    @rule(seconds=st.integers(0, 4))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def pop(self) -> None:
        pod = self.queue.pop(self.now)
        if pod is not None:
            assert pod.key[1] in self.inside
            self.inside.remove(pod.key[1])

    @invariant()
    def everybody_is_known(self) -> None:
        assert {key[1] for key in self.queue.pods} == self.inside

    @precondition(lambda self: self.inside)
    @rule()
    def all_come_in_the_end(self) -> None:
        self.now += 1_000
        assert sorted(drained(self.queue, self.now)) == sorted(self.inside)
        self.inside.clear()


TestMachine = Machine.TestCase


# --- through the scheduler -------------------------------------------------------------------------

PATIENT = {"queue": {"tryWhenIdle": False}}


def test_higher_priority_then_sub_priority_then_age() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.submit("old", {"priority": 9000})
    world.pass_time(1)
    world.submit("young", {"priority": 9000})
    world.submit("dear", {"priority": 9900})
    world.submit("preferred", {"priority": 9000, "labels": {"koordinator.sh/priority": "5"}})
    world.submit("without", {"priority": None})
    assert world.names() == ["dear", "preferred", "old", "young", "without"]


def test_the_order_is_policy() -> None:
    world = World(policies({"queue": {"order": [{"cel": "pod.name"}]}}))
    for name in ("c", "a", "b"):
        world.submit(name)
    assert world.names() == ["a", "b", "c"]


def test_keys_of_different_types_and_failing_keys_compare() -> None:
    world = World(
        policies(
            {
                "queue": {
                    "order": [
                        {
                            "cel": "pod.name == 'a' ? dyn('text') : pod.name == 'b' ? dyn(1) : dyn(pod.usage.cpu)"
                        }
                    ]
                }
            }
        )
    )
    for name in ("d", "c", "a", "b"):
        world.submit(name)
    assert world.names() == ["b", "a", "d", "c"], "numbers, texts, and what cannot be computed, in order"


def test_attempts_back_off_longer_and_longer() -> None:
    world = World(policies({"queue": {"initialBackoff": "2s", "maximumBackoff": "5s"}}))
    world.build({"nodes": {"a": {"unschedulable": True}}})
    world.place("pod")
    waits = []
    for number in range(4):
        world.build({"nodes": {f"n{number}": {"unschedulable": True}}})  # an event that may help
        next_time = world.scheduler.next_time()
        assert next_time is not None
        waits.append((next_time - world.now) / 1e9)
        world.now = next_time
        assert world.names() == ["pod"]
    assert waits == [2, 4, 5, 5]


def test_a_refused_pod_is_tried_early_when_no_other_waits() -> None:
    world = World()
    world.build({"nodes": {"a": {"unschedulable": True}}})
    world.place("pod")
    assert world.names() == [], "nothing has happened that could help"
    world.build({"nodes": {"b": {"unschedulable": True}}})
    world.submit("other")
    assert world.names() == ["other", "pod"]


def test_whether_pods_are_tried_early_is_policy() -> None:
    rule = {"cel": "pod.name == 'hasty'"}
    world = World(policies({"queue": {"tryWhenIdle": rule}}))
    world.build({"nodes": {"a": {"unschedulable": True}}})
    world.place("calm")
    world.place("hasty")
    world.build({"nodes": {"b": {"unschedulable": True}}})
    assert world.names() == ["hasty"]
    world.pass_time(1)
    assert world.names() == ["calm"]


def test_after_a_problem_no_pod_is_tried_early() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    assert world.place("pod").node == "a"
    view = world.scheduler.cache.view(("default", "pod"))
    assert view is not None
    world.scheduler.forget(view.pod)
    assert world.names() == []
    world.pass_time(1)
    assert world.names() == ["pod"]


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.submit("pod", {"schedulingGates": [{"name": "quota"}]})
    assert world.names() == []
    world.submit("pod", {"schedulingGates": []})
    assert world.names() == ["pod"]


def test_pods_of_other_schedulers_and_dying_pods_are_left_alone() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.submit("other", {"schedulerName": "default-scheduler"})
    world.submit("label", {"labels": {"scheduling.koordinator.sh/scheduler-name": "default-scheduler"}})
    world.submit(
        "mine",
        {
            "schedulerName": "default-scheduler",
            "labels": {"scheduling.koordinator.sh/scheduler-name": "koord-scheduler"},
        },
    )
    world.submit("over", {"phase": "Failed"})
    assert world.names() == ["mine"]


def test_an_update_keeps_a_pod_s_place_and_its_back_off() -> None:
    world = World(policies(PATIENT))
    world.build({"nodes": {"a": {"unschedulable": True}}})
    world.submit("first")
    world.pass_time(1)
    world.submit("second")
    world.submit("first", {"labels": {"app": "web"}})
    assert world.names() == ["first", "second"]
    world.submit("first", {"labels": {"app": "db"}})
    assert world.names() == [], "it still backs off"
    world.pass_time(1)
    assert world.names() == ["first"], "and what changed may help; the other one waits for an event"


def test_a_change_of_status_alone_brings_no_pod_back() -> None:
    world = World()
    world.build({"nodes": {"a": {"unschedulable": True}}})
    world.place("pod")
    world.pass_time(60)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    world.submit("pod", {"conditions": [condition]})
    assert world.names() == []


# --- what can help -----------------------------------------------------------------------------------


def refused(asked: Any, nodes: Any, *specs: Any) -> World:
    """A world in which a pod waits that was refused, its back-off over."""
    world = World(policies(*specs, {"preemption": {"policy": "Never"}}))
    world.build({"nodes": nodes})
    assert not world.place("pod", asked).placed
    world.pass_time(20)
    assert world.names() == []
    return world


LARGE = {"request": {"cpu": 6}}
FULL = {
    "a": {"pods": {"x": {"request": {"cpu": 5}}, "y": {"request": {"cpu": 4}}}},
    "b": {"allocatable": {"cpu": 2}},
}


def test_a_node_that_grows_enough_helps() -> None:
    world = refused(LARGE, FULL)
    world.scheduler.set_node(node("b", {"allocatable": {"cpu": 4, "memory": "10Gi"}}))
    assert world.names() == [], "there is still no room on it"
    world.scheduler.set_node(node("b", {"allocatable": {"cpu": 8, "memory": "10Gi"}}))
    assert world.names() == ["pod"]


def test_what_a_filter_does_not_read_helps_nobody_it_refused() -> None:
    world = refused(LARGE, FULL)
    world.scheduler.set_node(node("b", {"allocatable": {"cpu": 2}, "labels": {"zone": "z"}}))
    world.scheduler.set_node(node("b", {"allocatable": {"cpu": 2}, "labels": {"zone": "z"}}))
    world.scheduler.set_metric(metric("b", {"usage": {"cpu": 1, "memory": "1Gi"}}, world.now))
    assert world.names() == []


def test_a_label_helps_a_pod_that_wants_it() -> None:
    world = refused({"nodeSelector": {"zone": "z"}}, {"a": {}})
    world.scheduler.set_node(node("a", {"taints": ["x:PreferNoSchedule"]}))
    assert world.names() == []
    world.scheduler.set_node(node("a", {"labels": {"zone": "z"}}))
    assert world.names() == ["pod"]


def test_a_pod_that_leaves_helps_once_there_is_room() -> None:
    world = refused(LARGE, FULL)
    world.scheduler.remove_pod(("default", "y"))
    assert world.names() == [], "five of ten CPUs are still taken"
    world.scheduler.remove_pod(("default", "x"))
    assert world.names() == ["pod"]


def test_less_load_helps_a_pod_that_load_kept_away() -> None:
    world = refused({}, {"a": {"metric": {"usage": {"cpu": 9, "memory": "1Gi"}}}})
    world.scheduler.set_metric(metric("a", {"usage": {"cpu": 1, "memory": "1Gi"}}, world.now))
    assert world.names() == ["pod"]


def test_a_larger_node_helps_a_pod_that_may_displace_others() -> None:
    world = World()
    world.build(
        {"nodes": {"a": {"pods": {"x": {"priority": 10, "request": {"cpu": 5}}}, "unschedulable": True}}}
    )
    assert not world.place("pod", LARGE).placed
    world.pass_time(20)
    world.scheduler.set_node(node("a", {}))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.preemption is not None, "there is no room, but it can be made"


def test_how_many_pods_wait_for_what() -> None:
    world = World()
    world.submit("stuck")
    assert world.scheduler.waiting == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0}
    world.names()
    world.submit("gated", {"schedulingGates": [{"name": "quota"}]})
    assert world.scheduler.waiting == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}
    world.build({"nodes": {"a": {"unschedulable": True}}})
    assert world.scheduler.waiting == {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 1}


def test_a_pod_that_the_cluster_does_not_confirm_is_taken_back() -> None:
    world = World(policies({"queue": {"confirmWithin": "30s"}}))
    world.build({"nodes": {"a": {}, "b": {}}})
    assert world.place("kept").placed
    assert world.place("lost").placed
    world.submit("kept", {"node": "a", "phase": "Running"})
    assert world.scheduler.next_time() == world.now + 30 * 10**9
    world.pass_time(29)
    assert world.names() == []
    assert world.scheduler.cache.pod_count == 2
    world.pass_time(1)
    assert world.names() == []
    assert world.scheduler.cache.pod_count == 1, "it backs off first"
    world.pass_time(1)
    assert world.names() == ["lost"]


# --- events that come one after another ---------------------------------------------------------------


def storm(world: World, changes: int, seconds: float) -> list[float]:
    """When a pod that nothing helps is tried, in seconds, while a node's taints change all the time."""
    begin, attempts = world.now, []
    for at in range(changes):
        world.build({"nodes": {"a": {"taints": [f"key{at % 2}=x:NoSchedule"]}}})
        attempts += [(world.now - begin) / NANOSECONDS for _ in world.names()]
        world.pass_time(seconds / changes)
    return attempts


def test_events_one_after_another_do_not_bring_a_pod_back_before_its_back_off_ends() -> None:
    world = World()
    world.build({"nodes": {"a": {"taints": ["key1=x:NoSchedule"]}}})
    world.place("pod")
    attempts = storm(world, 200, 6.5)
    # The first change at once, since nothing else waits; then back-off counts: 2 s and 4 s, one early in between.
    assert [round(at, 1) for at in attempts] == [0.0, 2.0, 2.0]


@given(first=st.integers(1, 4), longest=st.integers(1, 12), idle=st.booleans(), changes=st.integers(1, 300))
@settings(max_examples=15, deadline=None)
def test_attempts_are_bounded_by_back_off_whatever_happens(
    first: int, longest: int, idle: bool, changes: int
) -> None:
    queue = {"initialBackoff": f"{first}s", "maximumBackoff": f"{longest}s", "tryWhenIdle": idle}
    world = World(policies({"queue": queue}))
    world.build({"nodes": {"a": {"taints": ["key1=x:NoSchedule"]}}})
    world.place("pod")
    seconds = 30.0
    attempts = storm(world, changes, seconds)
    assert len(attempts) <= (2 if idle else 1) * (seconds / min(first, longest) + 1)
    times = [0.0, *attempts]
    for number, (one, other) in enumerate(itertools.pairwise(times)):
        assert idle or other - one >= min(first * 2**number, longest) - 0.001
    for one, other in zip(times, times[2:], strict=False):
        assert other - one >= min(first * 2, longest) - 0.001, "of two attempts one is early at most"
