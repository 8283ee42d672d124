"""Nodes as the agent sees them, for its tests."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.agent.facts import agent_record
from koordpolicy.agent.strategies.suppression import CPUSuppression, Suppression
from koordpolicy.agent.strategies.suppression_plan import BestEffortGroup
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import QOS_CLASS
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.topology import Processor

NOW = 1_800_000_000 * NANOSECONDS

PROCESSORS = tuple(Processor(cpu, cpu // 2, 0, cpu // 10) for cpu in range(20))
"""Twenty CPUs: ten cores, two NUMA nodes."""

ALL = frozenset(range(20))


def sight(used: int = 12_000, web: int = 8_000, age: int = 0, **node: Any) -> NodeSight:
    """A node of 20 CPUs that uses so many millicores, of them an LS pod so many; measured `age` seconds ago."""
    web_pod = Pod("web", labels={QOS_CLASS: "LS"}, kubernetes_qos="Burstable", phase="Running")
    pods = [web_pod, Pod("crawl", labels={QOS_CLASS: "BE"})]
    metric = NodeMetric(
        "n",
        updated_at=NOW - age * NANOSECONDS,
        node_usage={"cpu": used},
        pods=(PodMetric("default", "web", {"cpu": web}), PodMetric("default", "crawl", {"cpu": 2_000})),
    )
    capacity = {"cpu": 20_000, "memory": 2**36}
    return NodeSight(Node("n", capacity=capacity, allocatable=capacity, **node), pods, metric)


def record(graph: RuleGraph, seen: NodeSight) -> Record:
    """The node's facts."""
    return agent_record(graph, CPUSuppression(graph), seen, NOW)


def decision(graph: RuleGraph, seen: NodeSight) -> Suppression:
    """What policy wants on the node."""
    suppression = CPUSuppression(graph)
    return suppression.decide(agent_record(graph, suppression, seen, NOW), NOW)


def group(**said: Any) -> BestEffortGroup:
    """Best-effort pods on all CPUs, without a quota."""
    facts: Mapping[str, Any] = {"current": ALL, "quota": -1, **said}
    return BestEffortGroup(PROCESSORS, 20_000, **facts)
