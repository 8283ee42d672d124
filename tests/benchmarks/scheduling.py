"""Scheduling decisions in memory: the whole built-in profile, every node looked at and scored.

A decision is all that follows from a pod being next: facts, estimate, filters, scores, choice, and the
change of the node that it is assumed on. Pods are submitted beforehand; that is a column of its own.
"""

import random
import time
from collections.abc import Iterable, Iterator

from koordpolicy import resources
from koordpolicy.graph import Layer, RuleGraph, compile_policies
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.scheduler import Scheduler
from koordpolicy.source import read_tree
from tests.benchmarks.gpu_nodes import gpu_pods, gpu_scheduler
from tests.benchmarks.measure import Row

SIZES = (1_000, 5_000, 20_000)
PODS = 400
ROUNDS = 10
GPU_NODES = 5_000
NOW = 1_700_000_000 * 10**9


def pack() -> RuleGraph:
    """The graph of the built-in pack."""
    files = read_tree([resources.policies()]).files
    compiled = compile_policies(Layer("koordinator", files))
    assert compiled.graph is not None
    return compiled.graph


def scheduler(graph: RuleGraph, nodes: int) -> Scheduler:
    """A scheduler that knows so many nodes, each with a report."""
    chance = random.Random(1)
    made = Scheduler(graph, lambda: NOW, draw=chance.randrange, explained=0, refusals=False)
    for at in range(nodes):
        name = f"node-{at}"
        made.set_node(
            Node(
                name,
                labels={"kubernetes.io/hostname": name, "pool": chance.choice(("a", "b", "c"))},
                allocatable={
                    "cpu": chance.choice((32, 64, 96)) * 1000,
                    "memory": chance.choice((128, 256, 512)) << 30,
                    "pods": 256,
                },
            )
        )
        usage = {"cpu": chance.randrange(20_000), "memory": chance.randrange(64) << 30}
        made.set_metric(NodeMetric(name, updated_at=NOW, node_usage=usage))
    return made


def pods(series: str, templates: int) -> Iterator[Pod]:
    """Pods of so many sizes; 0 for all of different size."""
    chance = random.Random(series)
    for at in range(PODS):
        size = at % templates if templates else 100 + at
        asked = {"cpu": 100 + size, "memory": (64 + size) << 20}
        yield Pod(
            f"{series}-{at}",
            uid=f"{series}-{at}",
            labels={"app": series},
            priority=chance.choice((9500, 5500)),
            scheduler_name="koord-scheduler",
            containers=(Container("main", requests=asked, limits=asked),),
        )


def run() -> Iterator[Row]:
    """Each number of nodes with pods that all differ, and with pods of five kinds; nodes with GPUs."""
    graph = pack()
    for nodes in SIZES:
        for kind, templates in (("all differ", 0), ("five kinds", 5)):
            made = scheduler(graph, nodes)
            keep_what_is_there()  # as the process does once it knows its cluster
            submitting, deciding = min(
                (_round(made, pods(f"r{at}", templates)) for at in range(ROUNDS)), key=lambda spent: spent[1]
            )
            yield {
                "nodes": nodes,
                "pods": kind,
                "submit µs": submitting * 1e6,
                "decide µs": deciding * 1e6,
                "decisions/s": round(1 / deciding),
            }
    made = gpu_scheduler(graph, GPU_NODES, NOW)
    keep_what_is_there()
    submitting, deciding = min(
        (_round(made, gpu_pods(f"g{at}", PODS)) for at in range(ROUNDS)), key=lambda spent: spent[1]
    )
    yield {
        "nodes": GPU_NODES,
        "pods": "all differ, GPUs and CPUs of their own",
        "submit µs": submitting * 1e6,
        "decide µs": deciding * 1e6,
        "decisions/s": round(1 / deciding),
    }


def _round(made: Scheduler, series: Iterable[Pod]) -> tuple[float, float]:
    begin = time.perf_counter()
    for pod in series:
        made.set_pod(pod)
    middle = time.perf_counter()
    placed = 0
    while (decision := made.schedule_one()) is not None:
        placed += decision.placed
    end = time.perf_counter()
    assert placed == PODS, f"only {placed} of {PODS} pods were placed"
    return (middle - begin) / PODS, (end - middle) / PODS
