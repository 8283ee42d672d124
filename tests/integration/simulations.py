"""Small workloads and what simulating them gives."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from koordpolicy import resources
from koordpolicy.graph import Layer, RuleGraph
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave, Workload

MINUTE = 60 * 10**9
_COMPILER = pack_remembering()


def graph_with(*documents: str, replacing: Mapping[str, str] | None = None) -> RuleGraph:
    """The built-in pack, the example's profiles with some words replaced by others, and these documents."""
    profiles = (resources.examples() / "01-colocated-day" / "policies" / "batch.yaml").read_text(
        encoding="utf-8"
    )
    for old, new in (replacing or {}).items():
        profiles = profiles.replace(old, new)
    files = {"profiles.yaml": profiles} | {f"{number}.yaml": text for number, text in enumerate(documents)}
    compilation = _COMPILER.compile(Layer("bundle", files))
    assert compilation.graph is not None, [one.message for one in compilation.found]
    return compilation.graph


def node(name: str, cpu: int = 16, **labels: str) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name: str, cpu: str, memory: str = "1Gi", **labels: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


def job(name: str, cpu: str, minutes: int = 30, at: int = 5) -> Arrival:
    return Arrival(at * MINUTE, pod(name, cpu, workload="batch"), minutes * MINUTE, Wave(1.0, 1.0))


def service(name: str, cpu: str, use: float) -> Arrival:
    return Arrival(0, pod(name, cpu), None, Wave(use, use))


def workload(
    arrivals: Sequence[Arrival], nodes: Sequence[Mapping[str, Any]] = (), minutes: int = 60
) -> Workload:
    ordered = tuple(sorted(arrivals, key=lambda one: one.time))
    return Workload(tuple(nodes) or (node("a"), node("b")), ordered, span=minutes * MINUTE)


def simulated(graph: RuleGraph, given: Workload, seed: int = 1, **settings: Any) -> dict[str, Any]:
    simulation = Simulation(
        graph, given, SimulationSettings(5 * MINUTE, **settings), np.random.default_rng(seed)
    )
    simulation.run()
    return report(simulation)
