"""What would help: cases as data (see `advice.yaml`), and that it does help."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.algorithms.work import finished
from koordpolicy.language.cel.types import BOOL, CPU, DURATION, INT, PERCENT, Type
from koordpolicy.language.cel.values import Duration
from koordpolicy.scheduler.advice.steps import nearest_value
from tests.unit.scheduler.world import World, policies

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("advice.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_what_would_help(case: dict[str, Any]) -> None:
    world = World(policies(*case.get("policies", ())), diagnosing=True)
    world.build(case)
    decision = world.place("pod", case.get("pod", {"preemptionPolicy": "Never"}))
    assert not decision.placed
    assert "\n" not in decision.message, "decisions do not wait for it"
    (decision,) = world.diagnose() or (decision,)
    assert world.scheduler.last_decision(decision.pod) is decision
    first, *lines = decision.message.split("\n")
    assert first.startswith(f"0/{len(case['nodes'])} nodes are available: ")
    assert lines == [" ".join(line.split()) for line in case["lines"]]


def test_a_higher_limit_helps_as_it_is_said_to() -> None:
    nodes = {f"n{use}": {"metric": {"usage": {"cpu": use, "memory": "1Gi"}}} for use in (6, 7, 7, 8)}
    for limit, feasible in (("68%", 0), ("69%", 1), ("78%", 1), ("79%", 2)):
        world = World(policies({"parameters": {"usageThresholds": {"value": {"cpu": limit}}}}))
        world.build({"nodes": nodes})
        assert world.place("pod").feasible == feasible


def test_without_being_asked_for_there_is_none() -> None:
    world = World()
    world.build({"nodes": {"a": {"unschedulable": True}}})
    assert "\n" not in world.place("pod").message
    (advice,) = world.scheduler.framework.advise(world.scheduler._waitlist.pods["default", "pod"])
    assert (advice.filter, advice.nodes) == ("NodeUnschedulable", 1)


@given(now=st.integers(1, 99), edge=st.integers(1, 100), rising=st.booleans())
def test_percentages_are_found_to_the_percent(now: int, edge: int, rising: bool) -> None:
    def works(value: float) -> bool:
        return value >= edge if rising else value <= edge

    found = finished(nearest_value(PERCENT, float(now), works))
    if not works(now):
        assert found == float(edge)


@given(type=st.sampled_from([INT, CPU]), now=st.integers(0, 10_000), more=st.integers(1, 100_000))
def test_amounts_are_found_to_the_hundredth(type: Type, now: int, more: int) -> None:
    edge = now + more
    found = finished(nearest_value(type, now, lambda value: value >= edge))
    assert edge <= found <= edge + max(1, edge // 100)


def test_other_values() -> None:
    assert finished(nearest_value(BOOL, True, lambda value: not value)) is False
    assert finished(nearest_value(BOOL, True, lambda value: False)) is None
    minute = Duration(60 * 10**9)
    assert finished(nearest_value(DURATION, minute, lambda value: value.ns > 90 * 10**9)) == Duration(
        120 * 10**9
    )
    longer = finished(nearest_value(DURATION, minute, lambda value: value.ns > 91 * 10**9))
    assert longer == Duration(120 * 10**9), "the same as an age goes on"
    assert finished(nearest_value(DURATION, minute, lambda value: value.ns < 50 * 10**9)) == Duration(
        45 * 10**9
    )
    assert finished(nearest_value(DURATION, minute, lambda value: value.ns == 0)) == Duration(0)
    assert finished(nearest_value(INT, 5, lambda value: False)) is None
