"""What is another of a node's facts where it offers other amounts is what all of its facts, made anew, say."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.facts.node import NodeDemand, node_facts, offer_facts
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import (
    BATCH_CPU,
    BATCH_MEMORY,
    CPU,
    MEMORY,
    MID_CPU,
    NODE_RESERVATION,
    ORIGIN_EXTENDED_ALLOCATABLE,
    PODS,
    RAW_ALLOCATABLE,
    RESOURCE_AMPLIFICATION_RATIO,
)

_OFFERED = st.dictionaries(
    st.sampled_from([BATCH_CPU, BATCH_MEMORY, MID_CPU, "example.com/gpu"]), st.integers(0, 2**63 - 1)
)
_DEMAND = st.builds(
    NodeDemand, st.dictionaries(st.sampled_from([CPU, BATCH_CPU, MID_CPU]), st.integers(0, 2**70))
)
_SAID = st.sampled_from([{}, {ORIGIN_EXTENDED_ALLOCATABLE: "1"}, {ORIGIN_EXTENDED_ALLOCATABLE: "2"}])
MACHINE = {CPU: 8000, MEMORY: 1 << 33, PODS: 110}
BEFORE = Node("n", {"a": "b"}, {"x": "y"}, MACHINE, MACHINE)


@given(_OFFERED, _OFFERED, _OFFERED, _OFFERED, _SAID, _SAID, _DEMAND)
def test_the_rest_is_as_it_was(
    had: dict[str, int],
    offered: dict[str, int],
    has: dict[str, int],
    offers: dict[str, int],
    said: dict[str, str],
    says: dict[str, str],
    demand: NodeDemand,
) -> None:
    before = replace(
        BEFORE,
        capacity={**MACHINE, **had},
        allocatable={**MACHINE, **offered},
        annotations={"x": "y", **said},
    )
    after = replace(
        BEFORE, capacity={**MACHINE, **has}, allocatable={**MACHINE, **offers}, annotations={"x": "y", **says}
    )
    found = offer_facts(before, after, demand)
    assert found is not None
    assert {**node_facts(before, demand), **found} == node_facts(after, demand)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"a": "c"}},
        {"unschedulable": True},
        {"annotations": {"x": "z"}},
        {"annotations": {"x": "y", RESOURCE_AMPLIFICATION_RATIO: '{"cpu": 2}'}},
        {"allocatable": {**MACHINE, CPU: 7000}},
        {"capacity": {**MACHINE, MEMORY: 5}},
        {"allocatable": {CPU: 8000, MEMORY: 1 << 33}},
    ],
)
def test_more_may_follow_from_a_change_of_more(change: dict[str, Any]) -> None:
    assert offer_facts(BEFORE, replace(BEFORE, **change), NodeDemand()) is None


@pytest.mark.parametrize("annotation", [RAW_ALLOCATABLE, NODE_RESERVATION])
def test_annotations_may_make_other_amounts_of_those_that_are_offered(annotation: str) -> None:
    before = replace(BEFORE, annotations={annotation: "{}"})
    assert offer_facts(before, replace(before, allocatable={**MACHINE, BATCH_CPU: 1}), NodeDemand()) is None
