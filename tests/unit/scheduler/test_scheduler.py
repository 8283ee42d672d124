"""The scheduler as a whole: what it assumes, what it forgets, what it remembers."""

from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.profile import ProfileError
from tests.unit.scheduler.world import PROFILE, World, metric, node, pod, policies
from tests.vectors.policies import graph_with_line


def test_a_placed_pod_takes_its_room_at_once() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    assert world.place("x", {"request": {"cpu": "6"}}).node == "a"
    decision = world.place("y", {"request": {"cpu": "6"}})
    assert [one.reason for one in decision.refusals] == ["Insufficient cpu"]
    assert world.scheduler.last_decision(("default", "y")) == decision
    assert list(world.scheduler.pending) == [("default", "y")]


def test_a_confirmed_pod_counts_once() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.place("x", {"request": {"cpu": "6"}})
    world.submit("x", {"request": {"cpu": "6"}, "node": "a", "phase": "Running"})
    assert world.place("y", {"request": {"cpu": "4"}}).node == "a"
    assert world.scheduler.cache.pod_count == 2


def test_news_from_before_the_decision_change_nothing() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.place("x", {"request": {"cpu": "6"}})
    world.submit("x", {"request": {"cpu": "6"}})
    assert world.scheduler.schedule_one() is None


def test_a_pod_that_could_not_be_bound_comes_back() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    decision = world.place("x", {"request": {"cpu": "6"}})
    assert decision.placed
    world.scheduler.forget(pod("x", {"request": {"cpu": "6"}}))
    assert world.scheduler.schedule_one() is None, "it backs off first"
    assert world.place("y", {"request": {"cpu": "10"}}).node == "a", "its room is free"
    world.pass_time(2)
    again = world.scheduler.schedule_one()
    assert again is not None
    assert (again.pod, again.node) == (("default", "x"), "")


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda world: world.scheduler.remove_pod(("default", "x")), id="deleted"),
        pytest.param(lambda world: world.submit("x", {"node": "a", "phase": "Succeeded"}), id="over"),
        pytest.param(
            lambda world: world.submit("x", {"node": "a", "phase": "Running", "request": {"cpu": "4"}}),
            id="resized",
        ),
    ],
)
def test_a_pod_that_ends_or_shrinks_makes_room_for_one_that_waits(end: Any) -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.place("x", {"request": {"cpu": "6"}})
    assert not world.place("y", {"request": {"cpu": "6"}}).placed
    world.pass_time(60)
    assert world.names() == [], "time alone does not help before long"
    end(world)
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "a"


def test_a_bound_pod_counts_whoever_bound_it_and_before_its_node_is_known() -> None:
    world = World()
    world.submit("x", {"schedulerName": "other", "node": "a", "request": {"cpu": "9"}})
    world.build({"nodes": {"a": {}}})
    assert not world.place("y", {"request": {"cpu": "2"}}).placed
    world.scheduler.remove_node("a")
    world.build({"nodes": {"a": {}}})
    assert not world.place("z", {"request": {"cpu": "2"}}).placed, "the node came back with its pod"


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    world.submit("x", {"request": {"cpu": "9"}, "node": "a", "phase": "Running"})
    successor = replace(pod("x", {"request": {"cpu": "8"}}), uid="another")
    world.scheduler.set_pod(successor)
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert (decision.uid, decision.node) == ("another", "a")


def test_a_new_node_helps() -> None:
    world = World()
    assert not world.place("x").placed
    world.pass_time(60)
    world.build({"nodes": {"a": {}}})
    assert world.names() == ["x"]


def test_a_pod_refused_for_load_waits_for_a_report_and_not_for_labels() -> None:
    world = World()
    world.build({"nodes": {"a": {"metric": {"usage": {"cpu": 9, "memory": "1Gi"}}}}})
    assert not world.place("x").placed
    world.pass_time(60)
    world.scheduler.set_metric(metric("a", {"usage": {"cpu": 1, "memory": "1Gi"}}, world.now))
    assert world.names() == ["x"]


def test_metrics_grow_old_while_nothing_happens() -> None:
    world = World()
    world.build({"nodes": {"a": {"metric": {"usage": {"cpu": 1, "memory": "1Gi"}}}}})
    assert world.place("x").placed
    world.pass_time(179)
    assert world.place("y").placed
    world.pass_time(1)
    assert [one.reason for one in world.place("z").refusals] == ["node(s) nodeMetric expired"]


def test_deciding_again_is_free_of_effects() -> None:
    world = World()
    world.build({"nodes": {"a": {}, "b": {}}})
    asked = pod("x", {"request": {"cpu": "6"}})
    assert world.scheduler.framework.decide(asked) == world.scheduler.framework.decide(asked)
    assert world.scheduler.cache.pod_count == 0


def test_ports_that_change_change_what_is_remembered_of_the_node() -> None:
    def with_port(port: int) -> dict[str, Any]:
        container = {
            "name": "init",
            "ports": [{"containerPort": 80, "hostPort": port}],
            "restartPolicy": "Always",
        }
        return {"initContainers": [container]}

    world = World(explained=0, refusals=False)
    world.build({"nodes": {name: {} for name in "abc"}})
    there = {"node": "a", "phase": "Running"}
    world.submit("x", {**with_port(8080), **there})
    asked = [pod(f"y{number}", with_port(9090)) for number in range(4)]
    assert [world.scheduler.framework.decide(one).feasible for one in asked[:3]] == [3, 3, 3]
    world.submit("x", {**with_port(9090), **there})
    assert world.scheduler.framework.decide(asked[3]).feasible == 2


def test_ties_go_where_policy_says() -> None:
    nodes: dict[str, Any] = {"nodes": {"c": {}, "a": {}, "b": {}}}
    drawn = World(draw=lambda count: count - 1)
    drawn.build(nodes)
    assert drawn.place("x").node == "b", "the last of them as they came"
    first = World(policies({"ties": "First"}), draw=lambda count: count - 1)
    first.build(nodes)
    assert first.place("x").node == "a"


def test_the_best_nodes_are_listed_score_by_score() -> None:
    world = World(explained=2)
    world.build({"nodes": {"a": {}, "b": {"pods": {"x": {}}}, "c": {"pods": {"y": {"request": {"cpu": 5}}}}}})
    decision = world.place("pod")
    assert [one.node for one in decision.best] == ["a", "b"]
    assert dict(decision.best[0].parts) == {
        "LoadAwareScheduling": 0,
        "NodeResourcesFit": 90,
        "NodeResourcesBalancedAllocation": 100,
        "TaintToleration": 300,
    }
    assert decision.best[0].total == 490


def test_refusals_of_a_placed_pod_are_an_option() -> None:
    cluster = {"nodes": {"a": {}, "b": {"unschedulable": True}}}
    for wanted in (True, False):
        world = World(refusals=wanted)
        world.build(cluster)
        assert [one.nodes for one in world.place("x").refusals] == ([1] if wanted else [])


def test_sampling_ends_the_search_early_and_goes_round() -> None:
    world = World(policies({"sampling": "1%", "ties": "First"}))
    for number in range(250):
        world.scheduler.set_node(node(f"n{number:03}", {}))
    chosen = [world.place(f"x{number}", {"request": {"cpu": "10"}}).node for number in range(3)]
    assert chosen == ["n000", "n100", "n001"], "the third search goes on from n200 round the end"


def test_another_revision_takes_over_what_is_known() -> None:
    world = World()
    world.build({"nodes": {"a": {"metric": {"usage": {"cpu": 6, "memory": "1Gi"}}}, "b": {}}})
    world.place("x", {"request": {"cpu": "8"}})
    assert world.scheduler.cache.node_of(("default", "x")) == "b"
    world.submit("stuck", {"request": {"cpu": "3"}})
    assert world.names() == ["stuck"]
    world.scheduler.replace_graph(policies({"parameters": {"usageThresholds": {"value": {"cpu": "95%"}}}}))
    assert world.scheduler.ledger.assumed(("default", "x"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert (decision.pod[1], decision.node) == ("stuck", "a")


def test_a_revision_without_the_profile_is_refused_and_the_old_one_stays() -> None:
    world = World()
    world.build({"nodes": {"a": {}}})
    with pytest.raises(ProfileError, match=r"no scheduling profile `mine`; there is `koord-scheduler`"):
        World(profile="mine")
    assert world.place("x").placed


def test_namespaces_are_facts() -> None:
    require = {"cel": "namespaceObject.labels[?'team'] == node.labels[?'team']"}
    world = World(policies({"filters": [{"name": "team", "require": require}]}))
    world.scheduler.cache.state.set_namespace({"name": "default", "labels": {"team": "t1"}})
    world.build({"nodes": {"a": {"labels": {"team": "t2"}}, "b": {"labels": {"team": "t1"}}}})
    assert world.place("x").node == "b"


def test_pods_of_a_node_are_facts() -> None:
    require = {"cel": "!node.pods.exists(p, p.labels[?'app'] == pod.labels[?'app'])"}
    world = World(policies({"filters": [{"name": "spread", "require": require}]}))
    world.build({"nodes": {"a": {}, "b": {}}})
    app = {"labels": {"app": "web"}}
    assert {world.place(f"x{number}", app).node for number in range(2)} == {"a", "b"}
    assert not world.place("x3", app).placed


def test_the_cluster_is_a_fact() -> None:
    require = {"cel": "cluster.requested.cpu + pod.request.cpu <= cluster.allocatable.cpu * percent(50)"}
    world = World(policies({"filters": [{"name": "half", "require": require}]}))
    world.build({"nodes": {"a": {}, "b": {}}})
    assert [world.place(f"x{number}", {"request": {"cpu": "5"}}).placed for number in range(3)] == [
        True,
        True,
        False,
    ]


LINES = [
    pytest.param("value: {cpu: 65%, memory: 95%}", "value: {cpu: 70%, memory: 95%}", id="a threshold"),
    pytest.param(
        'value: LeastAllocated\n      description: "`LeastAllocated`, `',
        'value: MostAllocated\n      description: "`LeastAllocated`, `',
        id="a strategy",
    ),
    pytest.param("value: {cpu: 85%, memory: 70%}", "value: {cpu: 1%, memory: 1%}", id="an estimate"),
]


@pytest.mark.parametrize(("old", "new"), LINES)
def test_changing_one_line_of_the_pack_changes_the_node(old: str, new: str) -> None:
    chosen = set()
    for compiled in (policies(), graph_with_line("scheduling/koord-scheduler.yaml", old, new)):
        world = World(compiled)
        world.build(
            {
                "nodes": {
                    "a": {"metric": {"usage": {"cpu": "5.8", "memory": "1Gi"}}},
                    "b": {
                        "metric": {"usage": {"cpu": 4, "memory": "5Gi"}},
                        "pods": {"x": {"request": {"cpu": 8, "memory": "8Gi"}, "priority": 3500}},
                    },
                    "c": {
                        "metric": {"usage": {"cpu": 4, "memory": "5Gi"}},
                        "pods": {"y": {"request": {"cpu": 7, "memory": "7Gi"}, "priority": 3500}},
                    },
                }
            }
        )
        chosen.add(world.place("pod").node)
    assert len(chosen) == 2, chosen


def test_the_clock_is_read_in_whole_seconds() -> None:
    require = {"cel": "now == timestamp('2023-11-14T22:13:20Z')"}
    world = World(policies({"filters": [{"name": "now", "require": require}]}))
    world.build({"nodes": {"a": {}}})
    world.now += NANOSECONDS // 2
    assert world.place("x").placed
    assert world.scheduler.profile.name == PROFILE
