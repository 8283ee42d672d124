"""What pods ask for and do not get yet is said on them."""

from collections.abc import Mapping
from typing import Any

import pytest

from koordpolicy.model.pod import read_pod
from koordpolicy.scheduler.driver import Settled
from koordpolicy.simulator.events import CollectedEvents, SimulatedReports
from tests.unit.scheduler.world import PROFILE, World, policies

CASES: list[tuple[Mapping[str, Any], str]] = [
    ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
     "a place together with its gang (label pod-group.scheduling.sigs.k8s.io)"),
    ({"labels": {"koordinator.sh/qosClass": "LSR"}}, "CPUs of its own (label koordinator.sh/qosClass=LSR)"),
    ({"annotations": {"gang.scheduling.koordinator.sh/name": "g"}},
     "a place together with its gang (annotation gang.scheduling.koordinator.sh/name)"),
    ({"annotations": {"scheduling.koordinator.sh/numa-topology-spec": "{}"}},
     "its NUMA topology (annotation scheduling.koordinator.sh/numa-topology-spec)"),
    ({"requests": {"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50}},
     "devices of its own (koordinator.sh/gpu-core), devices of its own (koordinator.sh/gpu-memory-ratio)"),
    ({"labels": {"koordinator.sh/qosClass": "LS"}, "annotations": {"gang.scheduling.koordinator.sh/name": ""}}, ""),
    ({"requests": {"cpu": 1}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), CASES)
def test_a_pod_is_told_what_it_is_placed_without(given: Mapping[str, Any], said: str) -> None:
    world = World(policies({"filters": [{"name": "Coscheduling", "enabled": False}]}))
    assert world.scheduler.gangs is None
    amounts = {
        "cpu": 64,
        "memory": "64Gi",
        "koordinator.sh/gpu-core": 100,
        "koordinator.sh/gpu-memory-ratio": 100,
    }
    world.build({"nodes": {"n": {"allocatable": {**amounts, "pods": 110}}}})
    pod = read_pod(
        {
            "metadata": {
                "name": "p", "namespace": "default", "uid": "u",
                "labels": given.get("labels", {}), "annotations": given.get("annotations", {}),
            },
            "spec": {
                "schedulerName": PROFILE,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": given.get("requests", {})}}],
            },
        }
    )  # fmt: skip
    world.scheduler.set_pod(pod)
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "n"
    events = CollectedEvents(lambda: 0)
    SimulatedReports(policies(), events, lambda: 0).reporter_of(PROFILE, keeps_gangs=False).settled(
        Settled(decision, pod, None)
    )
    told = events.reasons.get("NotEnforced")
    found = "" if told is None else told.latest.message
    assert found == (said and f"Placed without what is not yet enforced: {said}")
