"""Why an expression refuses nodes, counted, by groups and one by one: the same reasons each time."""

import numpy as np
import pytest

from koordpolicy.scheduler.evaluation.refusals import reasons_of
from tests.unit.scheduler.world import World, pod, policies

NODES = {"a": {"zone": "z1"}, "b": {"zone": "z2"}, "c": {"zone": "z1"}, "d": {}, "e": {"zone": ""}}
SILENT = "node(s) didn't pass the filter own"
CASES = (
    ("", [SILENT] * 5),
    ("'never'", ["never"] * 5),
    ("node.labels[?'zone'].orValue('no zone')", ["z1", "z2", "z1", "no zone", SILENT]),
    ("node.labels.zone", ["z1", "z2", "z1", SILENT, SILENT]),
    ("node.name == 'e' ? \"node(s) didn't pass the filter own\" : ''", [SILENT] * 5),
)
"""What policy says, and of each node; a node that it gives no reason for stands with others like it."""


@pytest.mark.parametrize(("says", "expected"), CASES)
def test_reasons_are_the_same_in_each_form(says: str, expected: list[str]) -> None:
    more = {"reason": {"cel": says}} if says else {}
    world = World(policies({"filters": [{"name": "own", "require": {"cel": "false"}, **more}]}))
    world.build({"nodes": {name: {"labels": labels} for name, labels in NODES.items()}})
    table, cycle = world.scheduler.cache.table, world.scheduler.framework.cycle(pod("p"))
    step = next(step for step in cycle.profile.filters if step.name == "own")
    rows = np.array([table.index(name) for name in NODES])
    found = reasons_of(cycle, step, rows, table)
    assert found.each() == expected
    assert found.counts() == {text: expected.count(text) for text in expected}
    assert {text: some.tolist() for text, some in found.groups(rows)} == {
        text: [int(row) for row, other in zip(rows, expected, strict=True) if other == text]
        for text in expected
    }


def test_pods_that_are_alike_are_refused_alike_until_a_node_changes() -> None:
    says = {"cel": "node.labels[?'zone'].orValue('no zone')"}
    world = World(policies({"filters": [{"name": "own", "require": {"cel": "false"}, "reason": says}]}))
    world.build({"nodes": {name: {"labels": labels} for name, labels in NODES.items()}})
    shown = [world.place(f"p{at}").refusals for at in range(4)]
    assert shown[1] is shown[2] is shown[3], "worked out once for a kind of pods that has come before"
    assert shown[0] == shown[3]
    world.build({"nodes": {"a": {"labels": {"zone": "z3"}}}})
    counts = {one.reason: one.nodes for one in world.place("after").refusals}
    assert counts == {"z1": 1, "z2": 1, "z3": 1, "no zone": 1, SILENT: 1}
    larger = world.place("larger", {"request": {"cpu": 64}}).refusals
    assert {one.filter for one in larger} >= {"NodeResourcesFit"}
