"""Decisions on pods for which others have to go: every node is full of pods of lower priority.

`room` is where only room is short, `ports` where every node has a victim on the port that is wanted, `apart` where
pods keep away from their like. Victims leave after each decision with preemption, or `stay`, so that promises pile up.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

from koordpolicy.graph import RuleGraph
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.scheduler import Scheduler
from tests.benchmarks.measure import Row
from tests.benchmarks.scheduling import NOW, pack

NODES = 200
VICTIMS = 10
PODS = 20
ROUNDS = 3
CASES = ("room", "ports", "apart")


def run() -> Iterator[Row]:
    """Each case with victims that leave at once, and with such that stay."""
    graph = pack()
    for case in CASES:
        for stay in (False, True):
            spent = min(_round(graph, case, stay=stay) for _ in range(ROUNDS))
            yield {
                "nodes": NODES,
                "case": case,
                "victims": "stay" if stay else "leave",
                "decide µs": spent * 1e6,
            }


def _round(graph: RuleGraph, case: str, *, stay: bool) -> float:
    made = _full(graph, case)
    keep_what_is_there()
    begin = time.perf_counter()
    preempted = 0
    for at in range(PODS):
        made.set_pod(_pod(f"urgent-{at}", case, 9_500, cpu=1_500 + 10 * (at % 7)))
        decision = made.schedule_one()
        assert decision is not None
        if decision.preemption is not None:
            preempted += 1
            for victim in () if stay else decision.preemption.victims:
                made.remove_pod(victim.pod)
    assert preempted > PODS // 2, f"only {preempted} of {PODS} pods displaced others"
    return (time.perf_counter() - begin) / PODS


def _full(graph: RuleGraph, case: str) -> Scheduler:
    chance = random.Random(1)
    made = Scheduler(graph, lambda: NOW, draw=chance.randrange, explained=0, refusals=False)
    for at in range(NODES):
        name = f"node-{at}"
        amounts = {"cpu": str(VICTIMS), "memory": "64Gi", "pods": "256"}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        made.set_node(
            read_node({"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}})
        )
        for number in range(VICTIMS):
            key = f"{name}-{number}"
            made.set_pod(_pod(key, case if number == 0 else "room", 5_500, node=name))
    return made


def _pod(name: str, case: str, priority: int, *, cpu: int = 1_000, node: str = "") -> Pod:
    container: dict[str, Any] = {
        "name": "main",
        "image": "x",
        "resources": {"requests": {"cpu": f"{cpu}m", "memory": "1Gi"}},
    }
    spec: dict[str, Any] = {
        "schedulerName": "koord-scheduler",
        "priority": priority,
        "containers": [container],
        **({"nodeName": node} if node else {}),
    }
    if case == "ports":
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if case == "apart":
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "shy"}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": {"app": "shy" if case == "apart" else "x"},
    }
    return read_pod(
        {"metadata": metadata, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}
    )
