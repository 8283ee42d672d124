"""Runners of LowNodeLoad: the strategy of the built-in profile, over objects of a cluster."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.algorithms.descheduling.arbitration import WaitingMigration, arbitrate
from koordpolicy.algorithms.descheduling.overuse import LoadGroup
from koordpolicy.algorithms.descheduling.relief_score import relief_score
from koordpolicy.algorithms.records import pod_record
from koordpolicy.algorithms.work import finished
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.descheduler.low_node_load import LoadMemory, PoolReport, balance
from koordpolicy.descheduler.moves import Moves
from koordpolicy.descheduler.rules import LOW_NODE_LOAD, ProfileRules, StrategyRules
from koordpolicy.descheduler.snapshot import snapshot_of
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.movable_pod import movable_pod_facts
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Owner, Pod
from koordpolicy.model.protocol import (
    DELETION_COST,
    EVICTION_COST,
    PRIORITY_CLASS,
    QOS_CLASS,
    RAW_ALLOCATABLE,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.time import NANOSECONDS
from tests.vectors import policies
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

PROFILE: Final = "koord-descheduler"
_NOW: Final = 1_767_225_600 * NANOSECONDS
_MAY_GO: Final = "may-go"
_FOLDERS: Final = frozenset({"classes", "descheduling"})


def _low_node_load_classify(given: Given) -> Given:
    report, _, _ = _balanced(given)
    table = report.table

    def shown(amounts: Any, row: int) -> dict[str, int]:
        return dict(zip(table.resources, amounts[row].tolist(), strict=True))

    ignored = set(report.groups.get(LoadGroup.IGNORED, ()))
    return {
        "groups": _groups(report),
        "thresholds": {
            node["name"]: {
                "low": shown(table.thresholds.low, row),
                "high": shown(table.thresholds.high, row),
                "prod_low": shown(table.prod_thresholds.low, row),
                "prod_high": shown(table.prod_thresholds.high, row),
            }
            for row, node in enumerate(given["nodes"])
            if node["name"] not in ignored
        },
    }


def _low_node_load_balance(given: Given) -> Given:
    report, moves, sources = _balanced(given)
    answer: dict[str, Any] = {
        "groups": _groups(report),
        "evicted": [
            {
                "phase": "prod" if one.reason.startswith("node is overutilized, prod") else "node",
                "node": one.node,
                "pod": one.pod.name,
            }
            for one in moves.found
        ],
    }
    if report.stop is not None:
        answer["stop"] = str(report.stop)
    if report.budget is not None:
        table = report.table
        names = [node["name"] for node in given["nodes"]]
        pods = {node["name"]: len(node["pods"]) for node in given["nodes"]}
        answer["node_budget_before"] = dict(report.budget)
        answer["source_usage_after"] = {
            name: {
                "pods": pods[name],
                **dict(zip(table.resources, table.usage[names.index(name)].tolist(), strict=True)),
            }
            for name in sources
        }
    return answer


def _groups(report: PoolReport) -> dict[str, list[str]]:
    return {group.name.lower(): sorted(names) for group, names in report.groups.items()}


def _balanced(given: Given) -> tuple[PoolReport, Moves, Sequence[str]]:
    pool, options = given["pool"], given.get("options", {})
    anomalous = given.get("anomalous_nodes")
    rounds: Any = 1
    if anomalous is not None:
        rounds = {"cel": f"node.name in {json.dumps(list(anomalous))} ? 1 : 5"}
    graph = _graph(
        {
            "high": _shares(pool, "high"),
            "low": _shares(pool, "low"),
            "prodHigh": _shares(pool, "prod_high"),
            "prodLow": _shares(pool, "prod_low"),
            "deviation": pool.get("deviation", False),
            "leastTargets": options.get("number_of_nodes", 0),
            "fitsLoad": options.get("node_fit", True),
            "anomaly": {"rounds": rounds},
        }
    )
    rules = ProfileRules(graph, PROFILE)
    snapshot = finished(snapshot_of(_objects(given["nodes"]), graph.catalogue, _NOW))
    moves = Moves(rules, _NOW, lambda going, pod: None)
    (report,) = finished(balance(snapshot.nodes, _strategy(rules), moves, LoadMemory()))
    high = [
        name
        for group in (LoadGroup.HIGH, LoadGroup.PROD_HIGH)
        for name in report.groups.get(group, ())
        if anomalous is None or name in anomalous
    ]
    return report, moves, high


def _graph(load: Given) -> RuleGraph:
    strategy = {
        "name": LOW_NODE_LOAD,
        "enabled": True,
        "candidates": {"cel": f"pod.labels[?'{_MAY_GO}'].orValue('true') == 'true'"},
        "load": load,
    }
    document = policies.document("Descheduling", PROFILE, {"strategies": [strategy]})
    return policies.graph_of(_FOLDERS, document)


def _strategy(rules: ProfileRules) -> StrategyRules:
    return next(one for one in rules.strategies if one.name == LOW_NODE_LOAD)


def _shares(pool: Given, name: str) -> dict[str, str]:
    return {resource: f"{share}%" for resource, share in pool.get(name, {}).items()}


def _objects(nodes: Sequence[Given]) -> ClusterObjects:
    objects = ClusterObjects()
    for given in nodes:
        name, raw = given["name"], given.get("raw_allocatable")
        annotations = {}
        if raw is not None:
            annotations[RAW_ALLOCATABLE] = json.dumps(
                {key: amount_text(key, value) for key, value in raw.items()}
            )
        objects.set_node(
            Node(
                name,
                annotations=annotations,
                capacity=dict(given["allocatable"]),
                allocatable=dict(given["allocatable"]),
                unschedulable=given.get("unschedulable", False),
            )
        )
        pods = [pod_of(one, name) for one in given["pods"]]
        for pod in pods:
            objects.set_pod(pod)
        used = [(pod, one["usage"]) for pod, one in zip(pods, given["pods"], strict=True) if "usage" in one]
        objects.set_metric(
            NodeMetric(
                name,
                updated_at=_NOW - given.get("metric_age_seconds", 0) * NANOSECONDS,
                node_usage={},
                system_usage=dict(given.get("system_usage", {})),
                pods=tuple(PodMetric(pod.namespace, pod.name, dict(usage)) for pod, usage in used),
            )
        )
    return objects


def pod_of(given: Given, node: str = "") -> Pod:
    """A pod of the descheduler's vectors."""
    labels = {
        key: given[name]
        for name, key in (("koord_qos", QOS_CLASS), ("priority_class_label", PRIORITY_CLASS))
        if name in given
    }
    if not given.get("evictable", True):
        labels[_MAY_GO] = "false"
    annotations = {
        key: str(given[name])
        for name, key in (("deletion_cost", DELETION_COST), ("eviction_cost", EVICTION_COST))
        if name in given
    }
    return Pod(
        given["name"],
        namespace=given.get("namespace", "default"),
        labels=labels,
        annotations=annotations,
        owners=(Owner("ReplicaSet", "owner", "owner", controller=True),),
        node_name=node,
        priority=given.get("priority"),
        phase="Running",
        kubernetes_qos=given.get("k8s_qos", "BestEffort"),
        containers=(Container("main", requests=dict(given.get("request", {}))),),
        created_at=_NOW + given.get("created_at", 0) * NANOSECONDS,
    )


def _facts(graph: RuleGraph, given: Given) -> Record:
    pod = pod_of(given)
    return {**pod_record(pod, graph.catalogue, TIMES), **movable_pod_facts(pod)}


def _pod_order(given: Given) -> Given:
    graph = _graph({})
    strategy = _strategy(ProfileRules(graph, PROFILE))

    def key(pod: Given) -> Any:
        relief = -1.0
        if "usage" in pod:
            relief = relief_score(pod["usage"], given["excess"], dict(given["weights"].items()))
        return strategy.key(_facts(graph, pod), {}, _NOW, relief)

    return {"order": [pod["name"] for pod in sorted(given["pods"], key=key)]}


def _ranks(pods: Sequence[Given]) -> Iterator[tuple[Any, ...]]:
    """The places of pods in the order of the profile, whatever they use."""
    graph = _graph({})
    strategy = _strategy(ProfileRules(graph, PROFILE))
    return (strategy.key(_facts(graph, pod), {}, _NOW) for pod in pods)


def _arbitration_round(given: Given) -> Given:
    jobs = given["jobs"]
    by_name = {one["name"]: one for one in jobs}
    keys = _ranks([one["pod"] for one in jobs if "pod" in one])
    waiting = []
    for one in jobs:
        owner = one.get("owner", {})
        is_job = owner.get("kind") == "Job"
        waiting.append(
            WaitingMigration(
                one["name"],
                one["created_at"],
                next(keys) if "pod" in one else None,
                owner.get("uid", "") if is_job else "",
                owner.get("migrating", 0) if is_job else 0,
            )
        )
    decided = arbitrate(
        waiting,
        lambda one: by_name[one.name].get("non_retryable_ok", True),
        lambda one: by_name[one.name].get("retryable_ok", True),
    )
    return {
        "order": [one.name for one, _ in decided],
        "decisions": [{"job": one.name, "decision": str(what)} for one, what in decided],
    }


RUNNERS: Mapping[str, Runner] = {
    "low_node_load_classify": Runner(_low_node_load_classify),
    "low_node_load_balance": Runner(_low_node_load_balance),
    "pod_order": Runner(_pod_order),
    "arbitration_round": Runner(_arbitration_round),
}
