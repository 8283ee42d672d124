"""Whether pods would end better elsewhere, as the scheduler says: asked of a cluster that is as before afterwards."""

from typing import Any

import pytest

from koordpolicy.cluster.relocation import Relocation
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import Object
from koordpolicy.model.metric import read_node_metric
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.scheduler.relocation import SchedulerRelocations
from tests.unit.descheduler.clusters import NOW, node, pod, report
from tests.vectors.policies import document, graph_of

PACK = frozenset({"classes", "scheduling", "quota", "devices"})


def profile(**parameters: Any) -> RuleGraph:
    said = {name: {"value": value} for name, value in parameters.items()}
    return graph_of(
        PACK,
        document(
            "SchedulingProfile", "koord-scheduler", {"schedulerName": "koord-scheduler", "parameters": said}
        ),
    )


def relocations(
    graph: RuleGraph, nodes: list[Object], pods: list[Object], reports: list[Object]
) -> SchedulerRelocations:
    found = SchedulerRelocations(graph, lambda: NOW)
    for one in nodes:
        found.set_node(read_node(one))
    for one in reports:
        found.set_metric(read_node_metric(one))
    for one in pods:
        found.set_pod(read_pod(one))
    return found


def full_and_empty(graph: RuleGraph | None = None) -> SchedulerRelocations:
    names = ("a", "b", "c")
    return relocations(
        graph or profile(),
        [node("full"), node("empty")],
        [pod(name, "full", "2") for name in names],
        [report("full", dict.fromkeys(names, "2"), system="6"), report("empty", {})],
    )


def of(found: SchedulerRelocations, name: str = "a", on: str = "full", **more: Any) -> Relocation:
    return found.of(_pod(name, on, **more))


def _pod(name: str, on: str, cpu: str = "2", **more: Any) -> Pod:
    return read_pod(pod(name, on, cpu, **more))


def test_a_pod_ends_better_where_the_profile_counts_more() -> None:
    found = of(full_and_empty())
    assert found.node == "empty"
    assert found.gain is not None
    assert found.gain > 0


def test_a_profile_that_fills_nodes_would_have_it_stay() -> None:
    assert of(full_and_empty(profile(fitStrategy="MostAllocated", balancedResources=[]))).node in (
        "full",
        "empty",
    )
    stacked = graph_of(
        PACK,
        document(
            "SchedulingProfile",
            "koord-scheduler",
            {
                "schedulerName": "koord-scheduler",
                "scores": [
                    {"name": "stack", "weight": 1000, "value": {"cel": "node.name == 'full' ? 100 : 0"}}
                ],
            },
        ),
    )
    assert of(full_and_empty(stacked)) == Relocation("full", 0.0)


def test_its_node_does_not_take_it_again() -> None:
    cordoned = relocations(
        profile(),
        [node("full", taints=[{"key": "gone", "value": "", "effect": "NoSchedule"}]), node("empty")],
        [pod("a", "full", "2")],
        [],
    )
    assert of(cordoned) == Relocation("empty", None)


def test_it_would_find_no_node() -> None:
    small = relocations(
        profile(),
        [node("full", unschedulable=True), node("empty", "1")],
        [pod("a", "full", "2")],
        [],
    )
    found = of(small)
    assert found.node == ""
    assert "Insufficient cpu" in found.why


def test_a_pod_that_nobody_knows_is_nowhere() -> None:
    assert of(full_and_empty(), "other").node == ""


def test_what_a_pod_uses_does_not_count_against_its_node() -> None:
    # Alone on its node, it is as well off there as on the other one.
    alone = relocations(
        profile(),
        [node("one"), node("other")],
        [pod("a", "one", "2")],
        [report("one", {"a": "2"}, system="2"), report("other", {})],
    )
    found = of(alone, "a", "one")
    assert found.node == "one" or found.gain == pytest.approx(0.0)


def test_the_next_pod_is_asked_about_beside_those_that_go() -> None:
    names = ("a", "b")
    here = relocations(
        profile(),
        [node("one"), node("other")],
        [pod(name, "one", "4") for name in names],
        [],
    )
    assert of(here, "b", "one", cpu="4").node == "other"
    here.begin()
    here.goes(_pod("a", "one", "4"), "other")
    found = of(here, "b", "one", cpu="4")
    assert found.node == "one" or found.gain == pytest.approx(0.0)
    here.end()
    assert of(here, "b", "one", cpu="4").node == "other"


def test_asking_and_trying_leave_nothing_behind() -> None:
    found = full_and_empty()
    (scheduler,) = found._schedulers.values()
    table = scheduler.cache.table

    def rows() -> list[dict[str, Any]]:
        return [
            {path: _without_zeros(value) for path, value in table.row(table.index(name)).items()}
            for name in ("full", "empty")
        ]

    before = rows()
    of(found)
    assert rows() == before
    found.begin()
    found.goes(_pod("a", "full"), "empty")
    found.goes(_pod("b", "full"), "empty")
    assert rows() != before
    found.end()
    assert rows() == before


def test_news_of_a_pod_in_a_round_hold_afterwards() -> None:
    found = full_and_empty()
    found.begin()
    found.goes(_pod("a", "full"), "empty")
    found.remove_pod(("default", "a"))
    found.goes(_pod("b", "full"), "empty")
    found.set_pod(_pod("b", "full"))
    found.set_metric(read_node_metric(report("full", {"c": "1"}, system="1")))
    found.end()
    (scheduler,) = found._schedulers.values()
    assert scheduler.cache.node_of(("default", "a")) is None
    assert scheduler.cache.node_of(("default", "b")) == "full"
    metric = scheduler.cache.metric("full")
    assert metric is not None
    assert [one.name for one in metric.pods] == ["c"]


def test_without_a_profile_it_says_so() -> None:
    found = SchedulerRelocations(graph_of(frozenset({"classes"})), lambda: NOW)
    found.set_pod(_pod("a", "full"))
    assert "SchedulingProfile" in of(found).why


def test_another_revision_answers_from_its_coming_on() -> None:
    found = full_and_empty()
    stacked = graph_of(
        PACK,
        document(
            "SchedulingProfile",
            "koord-scheduler",
            {
                "schedulerName": "koord-scheduler",
                "scores": [
                    {"name": "stack", "weight": 1000, "value": {"cel": "node.name == 'full' ? 100 : 0"}}
                ],
            },
        ),
    )
    assert found.follow(stacked)
    assert of(found).node == "full"
    assert not found.follow(graph_of(frozenset({"classes"})))


def _without_zeros(value: Any) -> Any:
    """Nothing of a resource is as good as no word of it."""
    return (
        {name: one for name, one in value.items() if one != 0} if isinstance(value, dict) else value or None
    )
