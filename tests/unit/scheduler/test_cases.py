"""Where a pod goes and why, on small clusters: cases as data, see `cases.yaml`."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.scheduler import Refusals
from tests.unit.scheduler.world import World, policies

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("cases.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_where_a_pod_goes(case: dict[str, Any]) -> None:
    world = World(policies(*case.get("policies", ())))
    world.build(case)
    decision = world.place("pod", case.get("pod"))
    expected = case["expect"]
    assert decision.node == expected.get("node", ""), decision
    if "begins" in expected:
        assert decision.message.startswith(expected["begins"])
    if "message" in expected:
        assert decision.message == " ".join(expected["message"].split())
    if "refusals" in expected:
        assert [_shown(one) for one in decision.refusals] == expected["refusals"]
    assert decision.nodes == len(case["nodes"])
    assert (decision.feasible > 0) == decision.placed
    assert bool(decision.message) == (not decision.placed)


def _shown(refusals: Refusals) -> str:
    return f"{refusals.filter}: {refusals.reason}: {refusals.nodes}" + (
        "" if refusals.resolvable else " for good"
    )
