"""One run: every pod of a trace arrives at the real scheduler, is placed or fails for good, and what is allocated is noted."""

import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from koordpolicy.cluster.events import Event
from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.model.devices import Device, NodeDevices
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.scheduler import Scheduler
from tests.benchmarks.gpu.published import CLASSES
from tests.benchmarks.gpu.trace import TraceNode, TracePod, arrivals

POLICIES: Final = Path(__file__).parent / "policies"
SCHEDULER: Final = "koord-scheduler"
MODEL: Final = "node.koordinator.sh/gpu-model"
TYPE: Final = "gpu"
CORE: Final = "koordinator.sh/gpu-core"
RATIO: Final = "koordinator.sh/gpu-memory-ratio"
ARRIVING: Final = 1.3
"""How much of the cluster's GPUs is asked for in the end."""

_HEAD: Final = {"apiVersion": "koordpolicy.io/v1alpha1"}
NOW: Final = 1_700_000_000 * 10**9


MEASURES: Final = ("allocated", "fragmented", "fragmented of idle")


class Point(NamedTuple):
    """After an arrival: what had been asked for by then, and what is allocated, in percent of all GPUs."""

    arrived: float
    allocated: float
    fragmented: float
    """What usual pods could not use of what is not allocated."""

    def value(self, measure: str) -> float:
        """What is `allocated`, `fragmented`, or `fragmented of idle`: the part of what is not allocated."""
        if measure == "allocated":
            return self.allocated
        return self.fragmented if measure == "fragmented" else 100 * self.fragmented / (100 - self.allocated)


@lru_cache(maxsize=64)
def compiled(policy: str, usual: str) -> RuleGraph:
    """The graph of a policy; `usual` are the usual pods, as JSON."""
    bundle = {**_HEAD, "kind": "PolicyBundle", "metadata": {"name": "trace"}, "spec": {"extends": [policy]}}
    spec = {"scheduling": {"usualPods": json.loads(usual)}}
    pods = {**_HEAD, "kind": "DeviceSharing", "metadata": {"name": "gpu"}, "spec": spec}
    files = {"bundle.yaml": json.dumps(bundle), "usual.yaml": json.dumps(pods)}
    layers = {
        file.stem: Layer(file.stem, {file.name: file.read_text(encoding="utf-8")})
        for file in sorted(POLICIES.glob("*.yaml"))
    }
    found = Compiler(layers.get).compile(Layer("trace", files))
    assert found.graph is not None, [f"{one.code} {one.span} {one.message}" for one in found.found]
    return found.graph


class Course(NamedTuple):
    """A run: what was allocated after each arrival, and how many pods of each class found no node."""

    points: list[Point]
    failed: Mapping[str, int]


def place_all(graph: RuleGraph, nodes: Sequence[TraceNode], pods: Sequence[TracePod], seed: int) -> Course:
    """What became of each pod."""
    chance = random.Random(seed)
    capacity = 1000 * sum(node.gpus for node in nodes)
    coming = arrivals(pods, int(ARRIVING * capacity), chance)
    ranks = list(range(len(nodes)))
    chance.shuffle(ranks)
    made = Scheduler(graph, lambda: NOW, draw=chance.randrange, explained=0, refusals=False)
    for rank, node in zip(ranks, nodes, strict=True):
        _set_node(made, f"node-{rank:05}", node)
    spare = np.array([node.cpu for node in nodes])
    row_of = {f"node-{rank:05}": row for row, rank in enumerate(ranks)}
    found: list[Point] = []
    failed = dict.fromkeys(CLASSES, 0)
    arrived = allocated = 0
    for at, one in enumerate(coming):
        pod = _pod(f"pod-{at}", one)
        made.set_pod(pod)
        decision = made.schedule_one()
        assert decision is not None and decision.pod == pod.key
        arrived += one.asked
        if decision.placed:
            allocated += one.asked
            spare[row_of[decision.node]] -= one.cpu
        else:
            made.remove_pod(pod.key)
            for which in ("all", _class(one)):
                failed[which] = failed.get(which, 0) + 1
        kept = made.cache.state.cards.fragmentation(TYPE)
        assert kept is not None
        fragmented = 10 * kept.fragmentation(spare)  # thousandths of percents of one
        found.append(Point(*(100 * each / capacity for each in (arrived, allocated, fragmented))))
    return Course(found, failed)


def _class(pod: TracePod) -> str:
    if not pod.gpus:
        return "none"
    return "share" if pod.milli < 1000 else str(pod.gpus)


def curve(points: Sequence[Point], measure: str, to: int) -> list[float]:
    """What is measured by percent arrived, from 0 to `to`: the mean over the arrivals that round to it, else over those next to it."""
    exactly: dict[int, list[float]] = {}
    for one in points:
        exactly.setdefault(round(one.arrived), []).append(one.value(measure))
    found = []
    for arrived in range(to + 1):
        near = exactly.get(arrived) or [
            one.value(measure) for one in points if abs(one.arrived - arrived) <= 1
        ]
        found.append(sum(near) / len(near))
    return found


def _set_node(made: Scheduler, name: str, node: TraceNode) -> None:
    percent = str(100 * node.gpus)
    amounts = {
        "cpu": f"{node.cpu}m",
        "memory": f"{node.memory}Mi",
        "pods": "1001",
        CORE: percent,
        RATIO: percent,
    }
    metadata = {"name": name, "labels": {MODEL: node.model}}
    made.set_node(read_node({"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}}))
    each = {CORE: 100, RATIO: 100}
    cards = tuple(Device(TYPE, True, each, minor=at, id=f"{name}-{at}") for at in range(node.gpus))
    devices = NodeDevices(cards, {MODEL: node.model})
    made.set_state(lambda state: state.set_devices(name, devices), Event.DEVICES_CHANGED)


def _pod(name: str, one: TracePod) -> Pod:
    requests = {"cpu": f"{one.cpu}m", "memory": f"{one.memory}Mi"}
    if one.gpus:
        requests |= dict.fromkeys((CORE, RATIO), str(one.asked // 10))
    spec: dict[str, Any] = {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
    }
    if one.models:
        term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": one.models.split("|")}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {"nodeAffinity": required}
    return read_pod({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})
