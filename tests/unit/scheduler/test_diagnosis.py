"""What is found out about pods that wait: that it follows what changes, is shared, bounded, and never in the way."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.diagnosis import Allowance
from tests.unit.scheduler.world import World, metric, node, policies

LOADED: dict[str, Any] = {"parameters": {"usageThresholds": {"value": {"cpu": "2%", "memory": "95%"}}}}
NEVER: dict[str, Any] = {"preemption": {"policy": "Never"}}


def loaded(nodes: int, **diagnosis: Any) -> World:
    """Nodes above the limit, each with other load."""
    world = World(policies(LOADED, NEVER, {"diagnosis": diagnosis}), diagnosing=True)
    world.build(
        {
            "nodes": {
                f"n{at}": {"metric": {"usage": {"cpu": 1 + at % 7, "memory": "1Gi"}}} for at in range(nodes)
            }
        }
    )
    return world


def last(world: World, name: str) -> PodDecision:
    found = world.scheduler.last_decision(("default", name))
    assert found is not None
    return found


# --- advice --------------------------------------------------------------------------------------------


def test_equal_pods_share_their_advice() -> None:
    world = loaded(30)
    for at in range(40):
        assert not world.place(f"p{at}").placed
    assert world.scheduler.diagnosis.evaluations == 0, "decisions wait for none of it"
    told = world.diagnose()
    assert len(told) == 40
    assert len({one.advice for one in told}) == 1
    assert "would take it with usageThresholds.cpu" in told[0].message
    one = world.scheduler.diagnosis.evaluations
    assert 0 < one < 200
    world.submit("other", {"request": {"cpu": "3", "memory": "1Gi"}})
    world.names()
    world.diagnose()
    assert world.scheduler.diagnosis.evaluations > one, "another pod is another cycle"


def test_pods_of_which_others_keep_them_apart_are_not_equal() -> None:
    world = World(policies(NEVER), diagnosing=True)
    world.build({"nodes": {"a": {"labels": {"h": "a"}, "pods": {"x": {"labels": {"app": "x"}}}}, "b": {"labels": {"h": "b"}, "pods": {"y": {"labels": {"app": "y"}, "request": {"cpu": 9}}}}}})  # fmt: skip
    for app in "xy":
        apart = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "h"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        assert not world.place(f"from-{app}", {"affinity": affinity, "request": {"cpu": "9500m"}}).placed
    world.diagnose()
    assert last(world, "from-x").advice != last(world, "from-y").advice


@pytest.mark.parametrize("most", [1, 7, 60])
def test_advice_says_when_not_all_was_tried(most: int) -> None:
    world = loaded(5, evaluations=most)
    world.place("pod")
    (told,) = world.diagnose()
    assert world.scheduler.diagnosis.evaluations <= most
    assert (
        told.message.endswith("; not all was tried that might help.") or "threshold: not all" in told.message
    )
    (advice,) = world.scheduler.framework.advise(world.scheduler._waitlist.pods["default", "pod"])
    assert advice.cut


def test_advice_is_not_cut_where_it_need_not_be() -> None:
    world = loaded(5)
    world.place("pod")
    (advice,) = world.scheduler.framework.advise(world.scheduler._waitlist.pods["default", "pod"])
    assert not advice.cut


def test_it_is_done_in_pieces_of_an_evaluation_at_most() -> None:
    world = loaded(30)
    for at in range(5):
        world.place(f"p{at}")
    diagnosis = world.scheduler.diagnosis
    before, pieces = 0, 0
    while True:
        found = diagnosis.some(lambda: True)
        assert diagnosis.evaluations - before <= 1
        before = diagnosis.evaluations
        pieces += 1
        if not found.more:
            break
    assert pieces > before > 50


def test_what_was_found_out_is_said_again_as_long_as_the_same_refuses_the_pod() -> None:
    world = loaded(5)
    world.place("pod")
    (told,) = world.diagnose()
    world.scheduler.set_metric(metric("n0", {"usage": {"cpu": 8, "memory": "1Gi"}}, world.now))
    again = world.scheduler.schedule_one()
    assert again is not None
    assert again.advice == told.advice
    for at in range(5):
        world.scheduler.set_node(node(f"n{at}", {"unschedulable": True}))
    world.pass_time(400)
    assert [one.advice for one in (world.scheduler.schedule_one(),) if one] == [()], "cordoned by now"


def test_advice_begins_anew_when_nodes_come_and_go() -> None:
    world = loaded(30)
    world.place("pod")
    for _ in range(10):
        assert world.scheduler.diagnosis.some(lambda: True).more
    for name in ("n0", "n3"):
        world.scheduler.remove_node(name)
    world.diagnose()
    assert last(world, "pod").advice[0].startswith("28 nodes: ")


def test_a_pod_goes_without_where_nodes_come_all_the_time() -> None:
    world = loaded(5)
    world.place("pod")
    for at in range(200):
        world.build({"nodes": {f"more{at}": {"metric": {"usage": {"cpu": 9, "memory": "1Gi"}}}}})
        world.scheduler.diagnosis.some(lambda: True)
        world.pass_time(0.01)
        world.names()
    assert world.scheduler.diagnosis.evaluations <= 200


def test_without_a_share_nothing_is_found_out() -> None:
    world = loaded(3, share="0%")
    world.place("pod")
    assert world.diagnose() == []
    world.pass_time(600)
    assert world.diagnose() == []


def test_advice_can_be_left_out() -> None:
    world = loaded(3, advice=False)
    world.place("pod")
    assert world.diagnose() == []
    assert world.scheduler.diagnosis.evaluations == 0


def test_an_error_takes_one_pod(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    world = loaded(3)
    world.place("pod")
    pieces = world.scheduler.framework.adviser.pieces
    monkeypatch.setattr(world.scheduler.framework.adviser, "pieces", lambda *_: 1 / 0)
    assert world.diagnose() == []
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.setattr(world.scheduler.framework.adviser, "pieces", pieces)
    world.place("other")
    assert [one.pod[1] for one in world.diagnose()] == ["other"]


# --- conditions that follow what changes -----------------------------------------------------------------


def tainted() -> World:
    """A pod that lacks CPU and a GPU, on nodes that are tainted, too."""
    world = World(policies(NEVER, {"diagnosis": {"renewAfter": "15s", "podsPerSecond": 1}}), diagnosing=True)
    for name in ("a", "b", "c"):
        world.build({"nodes": {name: {"taints": ["key=x:NoSchedule"]}}})
    return world


GPU = {"request": {"cpu": "99", "memory": "1Gi", "nvidia.com/gpu": "1"}}


def test_a_pod_that_nothing_helps_does_not_go_on_telling_of_taints() -> None:
    world = tainted()
    assert "taint" in world.place("pod", GPU).message
    world.diagnose()
    world.pass_time(10)
    for name in ("a", "b", "c"):
        world.scheduler.set_node(node(name, {}))
    assert world.names() == [], "there is no room for it, taints or not"
    world.diagnose()
    assert world.names() == [], "it was looked at not long ago"
    world.pass_time(6)
    world.diagnose()
    assert world.names() == ["pod"]
    world.diagnose()
    message = last(world, "pod").message
    assert "taint" not in message
    assert message.startswith("0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient nvidia.com/gpu.")


def test_a_pod_that_is_refused_as_before_is_left_alone() -> None:
    world = tainted()
    before = world.place("pod", GPU)
    for _ in range(10):
        world.pass_time(16)
        told = world.diagnose()
        # The cluster does not show what was said of it: that is said again.
        assert {one.pod[1] for one in told} == {"pod"}
        assert world.names() == []
    assert last(world, "pod").refusals == before.refusals
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    world.submit("pod", {**GPU, "conditions": [{**condition, "message": last(world, "pod").message}]})
    world.pass_time(16)
    assert world.diagnose() == []


def test_a_lost_condition_is_written_again() -> None:
    world = tainted()
    world.place("pod", GPU)
    world.diagnose()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "of old"}
    world.submit("pod", {**GPU, "conditions": [condition]})
    world.pass_time(16)
    assert [one.message for one in world.diagnose()] == [last(world, "pod").message]


def test_of_many_pods_some_are_brought_up_to_date_a_second() -> None:
    world = tainted()
    for at in range(50):
        world.place(f"p{at}", GPU)
    world.pass_time(16)
    for name in ("a", "b", "c"):
        world.scheduler.set_node(node(name, {}))
    tried = []
    for _ in range(60):
        world.diagnose()
        tried.append(len(world.names()))
        world.pass_time(1)
    assert max(tried) <= 11, "what was saved up in ten seconds"
    assert sum(tried[:20]) <= 31
    assert not any("taint" in last(world, f"p{at}").message for at in range(50))


def test_measurements_that_grow_old_are_told_of_though_nothing_happens() -> None:
    world = World(policies(NEVER), diagnosing=True)
    world.build({"nodes": {"a": {"metric": {"usage": {"cpu": 9, "memory": "1Gi"}}}}})
    assert "usage exceed threshold" in world.place("pod").message
    world.pass_time(200)
    world.diagnose()
    assert world.names() == ["pod"]
    assert "nodeMetric expired" in last(world, "pod").message


def test_a_pod_that_would_fit_is_tried_though_no_event_told_so() -> None:
    world = World(policies(NEVER, {"filters": [{"name": "late", "require": {"cel": "now > timestamp('2023-11-14T22:20:00Z')"}}]}), diagnosing=True)  # fmt: skip
    world.build({"nodes": {"a": {}}})
    assert not world.place("pod").placed
    world.pass_time(20)
    world.diagnose()
    assert world.names() == []
    world.pass_time(600 - 20)
    world.scheduler.set_metric(metric("b", {"usage": {"cpu": 1, "memory": "1Gi"}}, world.now))
    world.diagnose()
    assert world.names() == ["pod"]
    assert world.scheduler.cache.pod_count == 1


# --- bounds ------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 3_000), st.booleans()), max_size=100))
def test_allowances_are_bounded(per_second: int, steps: list[tuple[int, bool]]) -> None:
    now, taken = [0], 0
    allowance = Allowance(per_second, lambda: now[0])
    for milliseconds, wants in steps:
        now[0] += milliseconds * 10**6
        if wants:
            while allowance.left:
                allowance.spend()
                taken += 1
        assert taken <= per_second * (10 + now[0] / 1e9)


def test_pods_that_are_gone_are_forgotten() -> None:
    world = World(policies(NEVER), diagnosing=True)
    world.build({"nodes": {"a": {"unschedulable": True}}})
    for at in range(3_000):
        world.place(f"p{at}")
        world.scheduler.remove_pod(("default", f"p{at}"))
    assert world.scheduler.diagnosis.waiting <= 1_100
    assert world.diagnose() == []
    assert world.scheduler.diagnosis.waiting == 0
