"""The policies that a NodeSLO object stands for."""

from typing import Any

import pytest

from koordpolicy.graph import Layer, RuleGraph
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.policies.node_slo import configuration_of, revision_of
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import OWN

NODE = {"node": {"labels": {}, "annotations": {}, "name": "n", "capacity.cpu": 20_000}}


def graph_of(spec: dict[str, Any]) -> RuleGraph:
    compiler = pack_remembering()
    revision = revision_of({"metadata": {"name": "n"}, "spec": spec}, compiler)
    graph = compiler.compile(Layer(OWN, revision.files)).graph
    assert graph is not None
    return graph


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"CPUSuppress.enabled": False, "MemoryEviction.enabled": False}),
    (
        {
            "resourceUsedThresholdWithBE": {
                "enable": True,
                "cpuSuppressThresholdPercent": 55,
                "cpuSuppressPolicy": "cfsQuota",
                "memoryEvictThresholdPercent": 80,
                "memoryEvictLowerPercent": 70,
            }
        },
        {
            "CPUSuppress.enabled": True,
            "CPUSuppress.mechanism": "cfsQuota",
            "CPUSuppress.parameters.threshold": 55.0,
            # As koordlet's gates are, evictions are off until somebody switches them on by policy.
            "MemoryEviction.enabled": False,
            "MemoryEviction.threshold": 80.0,
            "MemoryEviction.lower": 70.0,
        },
    ),
    (
        {"cpuBurstStrategy": {"policy": "auto", "cpuBurstPercent": 500, "cfsQuotaBurstPercent": 200}},
        {"CPUBurst.policy": "auto", "CPUBurst.burst": 500.0, "CPUBurst.quota.ceiling": 200.0},
    ),
    ({"cpuBurstStrategy": {}, "extensions": {"other": 1}}, {"CPUBurst.policy": "none"}),
    # What Koordinator would refuse is left out; what stands beside it counts.
    (
        {"resourceUsedThresholdWithBE": {"enable": True, "cpuSuppressThresholdPercent": 101}},
        {"CPUSuppress.enabled": True, "CPUSuppress.parameters.threshold": 65.0},
    ),
]


@pytest.mark.parametrize(("spec", "expected"), CASES)
def test_fields_of_the_object_decide(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    graph = graph_of(spec)
    assert {name: graph.ask(name, **NODE).value for name in expected} == expected


def test_what_is_no_such_object_is_told_of() -> None:
    specs: list[Any] = [[], {"resourceUsedThresholdWithBE": []}, {"hostApplications": {"a": 1}}]
    for spec in specs:
        with pytest.raises(ObjectError):
            configuration_of({"metadata": {"name": "n"}, "spec": spec})
