"""How busy the CPUs are that containers share, by the classes that policy declares."""

from collections.abc import Iterable, Mapping
from typing import Final

from koordpolicy.algorithms.cpu_burst import PoolState, PoolUse, pool_state
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts

EXCLUSIVE: Final = "Exclusive"
BOUND: Final = "Bound"
SHARED: Final = "Shared"


def cpu_bindings(graph: RuleGraph) -> Mapping[str, str]:
    """How the pods of each QoS class are bound to CPUs, by the class's value; pods without a class share them."""
    return graph.once(
        "cpu bindings",
        lambda: {
            str(said.get("value", name)): str(said.get("cpuBinding", SHARED))
            for name, said in graph.classes.qos.items()
        },
    )


def classes_bound(graph: RuleGraph, binding: str) -> frozenset[str]:
    """The classes whose pods are bound so."""
    return frozenset(name for name, found in cpu_bindings(graph).items() if found == binding)


def shared_pool_state(
    graph: RuleGraph,
    processors: int,
    node_used: int | None,
    pods: Iterable[Facts],
    threshold: float,
    cooling: float,
) -> PoolState:
    """How busy the pool is, of a node with so many CPUs and that use (None: not measured lately)."""
    bindings = cpu_bindings(graph)
    found = []
    for pod in pods:
        binding = bindings.get(str(pod["qosLabel"]), SHARED)
        found.append(
            PoolUse(
                int(pod["request.cpu"]),
                pod.get("usage.cpu"),
                apart=binding in (EXCLUSIVE, BOUND),
                ignored=binding != SHARED,
            )
        )
    return pool_state(processors * 1000, node_used, found, threshold, cooling)
