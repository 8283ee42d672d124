"""Runners of what depends on other pods and nodes: ports, topology spread, inter-pod affinity, images.

Each vector becomes a small cluster that a scheduler hears of as it would of a real one, and one cycle.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from koordpolicy.algorithms.interpod import NOT_APART, NOT_NEAR, OTHERS_OBJECT
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import evaluate
from koordpolicy.scheduler.evaluation.evaluate import rank
from koordpolicy.scheduler.plugins import Parameters
from koordpolicy.scheduler.plugins.interpod import interpod_wishes
from koordpolicy.scheduler.plugins.spread import spread_crowding
from tests.vectors.runners.answers import filtered
from tests.vectors.runners.runner import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE, Runner
from tests.vectors.runners.scheduler_core import PROFILE, overlay

Given = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# --- a cluster of the vector ---------------------------------------------------------------------


def _scheduler(given: Given, parameters: Given | None = None) -> Scheduler:
    scheduler = Scheduler(overlay(parameters or {}), lambda: 0, profile=PROFILE)
    for name, labels in (given.get("namespace_labels") or {}).items():
        scheduler.cache.state.set_namespace(namespace_facts({"metadata": {"name": name, "labels": labels}}))
    for node in given["nodes"]:
        scheduler.set_node(
            read_node(
                {
                    "metadata": {"name": node["name"], "labels": node.get("labels")},
                    "spec": {"taints": node.get("taints")},
                    "status": {"allocatable": {"pods": 1000}, "images": node.get("images")},
                }
            )
        )
        for number, pod in enumerate(node.get("pods", ())):
            scheduler.set_pod(read_pod(_pod(pod, f"{node['name']}-{number}", node["name"])))
    return scheduler


def _pod(given: Given, name: str, node: str = "") -> dict[str, Any]:
    """The JSON of a pod, in the words of the vectors or of the API."""
    affinity = {
        kind: {key: terms for key, terms in said.items() if terms}
        for kind, said in (
            (
                "podAffinity",
                {_REQUIRED: given.get("affinity"), _PREFERRED: _weighted(given.get("preferred_affinity"))},
            ),
            (
                "podAntiAffinity",
                {
                    _REQUIRED: given.get("anti_affinity"),
                    _PREFERRED: _weighted(given.get("preferred_anti_affinity")),
                },
            ),
        )
    }
    node_affinity = {}
    if "required" in given:
        node_affinity["nodeAffinity"] = {_REQUIRED: {"nodeSelectorTerms": given["required"]}}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "namespace": given.get("namespace", "default"),
            "labels": given.get("labels"),
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if given.get("terminating") else {}),
        },
        "spec": {
            "schedulerName": PROFILE,
            "nodeName": node,
            "affinity": {**affinity, **node_affinity},
            "nodeSelector": given.get("nodeSelector"),
            "tolerations": given.get("tolerations"),
            "topologySpreadConstraints": given.get("constraints"),
            "containers": given.get("containers") or [{"name": "main"}],
        },
    }


def _weighted(terms: Sequence[Given] | None) -> list[Given] | None:
    return terms and [{"weight": term["weight"], "podAffinityTerm": term} for term in terms]  # type: ignore[return-value]


# --- answers -------------------------------------------------------------------------------------


def _refused(scheduler: Scheduler, cycle: Cycle, name: str) -> dict[str, tuple[str, str]]:
    """The reason and status of the filter of a name about each node; those it refuses only."""
    table = scheduler.cache.table
    verdicts = filtered(evaluate(cycle, table), name).verdicts
    if verdicts is None:
        return {}
    found = {}
    for reason, refused in zip(verdicts.reasons, verdicts.refused, strict=True):
        for row in np.flatnonzero(refused):
            status = UNRESOLVABLE if verdicts.unresolvable[row] else UNSCHEDULABLE
            found[table.name(int(row))] = (reason, status)
    return found


def _scores(scheduler: Scheduler, cycle: Cycle, name: str, nodes: Sequence[str]) -> dict[str, int]:
    """The score of a name of each of some feasible nodes; 0 where it has nothing to say."""
    table, profile = scheduler.cache.table, cycle.profile
    at = [one.name for one in profile.scores].index(name)
    evaluation = evaluate(cycle, table)
    found: Any = evaluation.scores[at].scores
    rows = np.array([table.index(node) for node in nodes])
    step = profile.scores[at]
    if f"score:{name}" not in evaluation.cache_keys:
        found = None
    elif step.plugin is not None and step.plugin.rank is not None:
        found = rank(step, cycle, table, rows)
    else:
        found = found[rows]
    return {node: 0 if found is None else int(found[place]) for place, node in enumerate(nodes)}


def host_ports(given: Given) -> Given:
    containers = {name: [{"name": "main", "ports": given[name]}] for name in ("pod_ports", "used_ports")}
    cluster = {"nodes": [{"name": "n1", "pods": [{"containers": containers["used_ports"]}]}]}
    scheduler = _scheduler(cluster)
    cycle = scheduler.framework.cycle(read_pod(_pod({"containers": containers["pod_ports"]}, "pod")))
    return {"pass": not _refused(scheduler, cycle, "NodePorts")}


def spread_filter(given: Given) -> Given:
    scheduler = _scheduler(given)
    cycle = scheduler.framework.cycle(read_pod(_pod(given["pod"], "pod")))
    refused = _refused(scheduler, cycle, "PodTopologySpread")
    names = [node["name"] for node in given["nodes"]]
    return {"nodes": {name: refused.get(name, ("", SUCCESS))[1] for name in names}}


def spread_score(given: Given) -> Given:
    scheduler = _scheduler(given)
    cycle = scheduler.framework.cycle(read_pod(_pod(given["pod"], "pod")))
    table, candidates = scheduler.cache.table, given["candidates"]
    rows = np.array([table.index(name) for name in candidates])
    raw, ignored = spread_crowding(cycle.view, NodeView(table, None, cycle.state), rows, Parameters({}))
    return {
        "raw": {name: int(raw[at]) for at, name in enumerate(candidates) if not ignored[at]},
        "scores": _scores(scheduler, cycle, "PodTopologySpread", candidates),
    }


_RULES = {NOT_NEAR: "affinity", NOT_APART: "anti_affinity", OTHERS_OBJECT: "existing_anti_affinity"}


def interpod_filter(given: Given) -> Given:
    scheduler = _scheduler(given)
    cycle = scheduler.framework.cycle(read_pod(_pod(given["pod"], "pod")))
    refused = _refused(scheduler, cycle, "InterPodAffinity")
    names = [node["name"] for node in given["nodes"]]
    return {"nodes": {name: _RULES[refused[name][0]] if name in refused else "Success" for name in names}}


def interpod_score(given: Given) -> Given:
    parameters = {"hardPodAffinityWeight": given.get("hardPodAffinityWeight")}
    scheduler = _scheduler(given, parameters)
    cycle = scheduler.framework.cycle(read_pod(_pod(given["pod"], "pod")))
    names = [node["name"] for node in given["nodes"]]
    nodes = NodeView(scheduler.cache.table, None, cycle.state)
    said = Parameters({name: value for name, value in parameters.items() if value is not None})
    raw = interpod_wishes(cycle.view, nodes, said)
    return {
        "raw": {name: int(raw[at]) for at, name in enumerate(names)},
        "scores": _scores(scheduler, cycle, "InterPodAffinity", names),
    }


def image_locality(given: Given) -> Given:
    present, total = given["images_present"], given["total_nodes"]
    nodes = [
        {
            "name": f"n{number}",
            "images": [
                {"names": [f"image-{at}:latest"], "sizeBytes": image["size"]}
                for at, image in enumerate(present)
                if number < image["num_nodes"]
            ],
        }
        for number in range(total)
    ]
    scheduler = _scheduler({"nodes": nodes})
    containers = [
        {"name": f"c{at}", "image": f"image-{at}" if at < len(present) else "another"}
        for at in range(given["container_count"])
    ]
    cycle = scheduler.framework.cycle(read_pod(_pod({"containers": containers}, "pod")))
    return {"score": _scores(scheduler, cycle, "ImageLocality", ["n0"])["n0"]}


RUNNERS: Mapping[str, Runner] = {
    "host_ports": Runner(host_ports),
    "spread_filter": Runner(spread_filter),
    "spread_score": Runner(spread_score),
    "interpod_filter": Runner(interpod_filter),
    "interpod_score": Runner(interpod_score),
    "image_locality": Runner(image_locality),
}
