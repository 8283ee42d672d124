"""Runners of what the scheduler looks at beyond common room: strategies a resource, scarce kinds, amplified CPU."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.cluster.nodes import KINDS, TAINTS, kinds_text, node_schema
from koordpolicy.cluster.pods import view_of
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import NodeDemand, node_facts
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import QOS_CLASS, RESOURCE_AMPLIFICATION_RATIO
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import evaluate
from koordpolicy.scheduler.profile import profile_of, records_for
from tests.vectors import inputs
from tests.vectors.runners.answers import filtered, scored
from tests.vectors.runners.runner import Runner
from tests.vectors.runners.scheduler_core import PROFILE, overlay

Given = Mapping[str, Any]


def _asked(parameters: Given, pod: Pod, node: Node, demand: NodeDemand, facts: Record) -> Any:
    """The profile, and what it says of one node."""
    compiled = overlay(parameters)
    profile = profile_of(compiled, PROFILE)
    table = NodeTable(node_schema())
    row = {
        TAINTS: "",
        KINDS: kinds_text(node.allocatable),
        "metric.known": False,
        "ownedCPU": 0,
    }
    table.put(node.name, {**node_facts(node, demand), **row, **facts})
    view = view_of(pod, compiled.catalogue, lambda _facts: None)
    return profile, evaluate(Cycle(profile, view, records_for(view.facts, {}, {}, 0)), table)


def _score(name: str, parameters: Given, given: Given) -> Given:
    node = given["node"]
    demand = NodeDemand(
        inputs.resources(node.get("requested")), inputs.resources(node.get("nonzero_requested"))
    )
    made = Node("node", allocatable=inputs.resources(node["allocatable"]))
    _, evaluation = _asked(parameters, inputs.pod(given["pod"]), made, demand, {})
    scores = scored(evaluation, name).scores
    assert scores is not None
    return {"score": int(scores[0])}


def fitplus_score(given: Given) -> Given:
    args = {inputs.full_name(name): said for name, said in given["args"].items()}
    parameters = {
        "fitPlusStrategies": {name: said["type"] for name, said in args.items()},
        "fitPlusWeights": {name: said["weight"] for name, said in args.items()},
    }
    return _score("NodeResourcesFitPlus", parameters, given)


def scarce_score(given: Given) -> Given:
    named = [inputs.full_name(name) for name in given["args"]["resources"]]
    return _score("ScarceResourceAvoidance", {"scarceResources": named}, given)


def amplified_cpu_filter(given: Given) -> Given:
    pod = Pod(
        "pod",
        labels={QOS_CLASS: "LSR" if given["cpu_bind"] else "LS"},
        containers=(Container("main", requests={"cpu": given["pod_cpu"]}),),
    )
    ratios = json.dumps({"cpu": given["ratio"]})
    node = Node(
        "node",
        annotations={RESOURCE_AMPLIFICATION_RATIO: ratios},
        allocatable={"cpu": given["node_allocatable_cpu"]},
    )
    demand = NodeDemand({"cpu": given["node_requested_cpu"]})
    owned = {"ownedCPU": 1000 * given["cpuset_cpus_in_use"]}
    _, evaluation = _asked({}, pod, node, demand, owned)
    verdicts = filtered(evaluation, "AmplifiedCPU").verdicts
    assert verdicts is not None
    return {"pass": not verdicts.refused.any()}


RUNNERS: Mapping[str, Runner] = {
    "fitplus_score": Runner(fitplus_score),
    "scarce_score": Runner(scarce_score),
    "amplified_cpu_filter": Runner(amplified_cpu_filter),
}
