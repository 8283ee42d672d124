"""What a pod with very many terms about other pods may cost, in calls of functions: no figure of this is a time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from koordpolicy.scheduler import PodDecision
from tests.unit.scheduler.world import World

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def terms(count: int) -> list[dict[str, Any]]:
    return [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"a{at}"}}} for at in range(count)]


def apart(count: int) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms(count)}}}


def both(count: int) -> dict[str, Any]:
    return {
        "affinity": {
            "podAntiAffinity": {REQUIRED: terms(count // 2)},
            "podAffinity": {
                PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in terms(count - count // 2)]
            },
        }
    }


def calls(work: Callable[[], object]) -> int:
    """How many functions were called, Python's own included."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def built() -> World:
    world = World()
    world.build({"nodes": {f"n{at}": {"labels": {ZONE: f"z{at % 3}"}} for at in range(20)}})
    return world


def again(world: World) -> PodDecision:
    world.now += 400 * 10**9
    world.scheduler.remove_node("n19")
    decision = world.scheduler.schedule_one()
    assert decision is not None
    return decision


@pytest.mark.parametrize("said", [apart, both], ids=["one list", "several lists"])
def test_a_pod_with_too_many_terms_is_refused_with_the_reason_and_read_no_more(said: Any) -> None:
    world = built()
    decision = world.place("p", said(2_000))
    assert not decision.placed
    assert (
        "spec: 2,000 terms about other pods and 0 spread constraints, more than 128 in all"
        in decision.message
    )
    few = built()
    few.place("p", {"request": {"cpu": "99"}})
    plain = calls(lambda: again(few))
    assert calls(lambda: again(world)) < plain + 500


def test_the_next_attempt_reads_no_term_and_goes_once_over_the_nodes_of_a_label() -> None:
    def attempt(count: int) -> int:
        world = built()
        asked = {**apart(count), "request": {"cpu": "99"}}
        assert not world.place("p", asked).placed
        return calls(lambda: again(world))

    few, many = attempt(10), attempt(128)
    assert (many - few) / 118 < 25


def test_pods_on_nodes_that_speak_of_others_cost_a_little_each() -> None:
    def attempt(count: int) -> int:
        world = built()
        for at in range(count):
            asked = {
                "affinity": {
                    "podAntiAffinity": {REQUIRED: [{**terms(1)[0], "namespaces": [f"s{at}", "default"]}]}
                }
            }
            assert world.place(f"p{at}", {**asked, "request": {"cpu": "1m"}}).placed
        return calls(lambda: world.place("q", {"labels": {"app": "a0"}, "request": {"cpu": "99"}}))

    few, many = attempt(10), attempt(110)
    assert (many - few) / 100 < 20


def test_a_search_for_room_costs_no_more_for_many_terms() -> None:
    def attempt(count: int) -> int:
        world = World()
        pods = {
            f"{{node}}-{at}": {"priority": 10, "request": {"cpu": "10m"}, "labels": {"app": f"a{at}"}}
            for at in range(5)
        }
        for node in (f"n{at}" for at in range(10)):
            there = {name.format(node=node): said for name, said in pods.items()}
            world.build({"nodes": {node: {"labels": {ZONE: node}, "pods": there}}})
        world.submit("p", apart(count))
        found: list[PodDecision | None] = []
        spent = calls(lambda: found.append(world.scheduler.schedule_one()))
        assert found[0] is not None
        assert found[0].preemption is not None
        assert len(found[0].preemption.victims) == 5
        return spent

    few, many = attempt(5), attempt(128)
    assert (many - few) / 123 < 150, "read once, and not for each node and each pod on it"


def test_a_search_for_room_costs_no_more_for_many_terms_of_those_who_may_go() -> None:
    def attempt(count: int) -> int:
        world = World()
        for at in range(10):
            about = [
                {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [
                    {"key": "app", "operator": "Exists"}, {"key": f"k{term}", "operator": "DoesNotExist"}]}}
                for term in range(count)
            ]  # fmt: skip
            pods = {f"n{at}-{one}": {"priority": 10, "request": {"cpu": "10m"}} for one in range(5)}
            pods[f"n{at}-0"]["affinity"] = {"podAntiAffinity": {REQUIRED: about}}
            world.build({"nodes": {f"n{at}": {"labels": {ZONE: f"z{at}"}, "pods": pods}}})
        world.submit("p", {"labels": {"app": "a0"}})
        found: list[PodDecision | None] = []
        spent = calls(lambda: found.append(world.scheduler.schedule_one()))
        assert found[0] is not None
        assert found[0].preemption is not None
        return spent

    few, many = attempt(5), attempt(128)
    assert (many - few) / 123 / 10 < 130, "for each node and term, but not for each pod on a node"
