"""A pool of GPU nodes in memory, for the row of the scheduling benchmark that has CPUs, NUMA zones and devices dealt out."""

import json
import random
from collections.abc import Iterator
from typing import Final

from koordpolicy.cluster.events import Event
from koordpolicy.graph import RuleGraph
from koordpolicy.model.devices import Device, NodeDevices
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.node import Node
from koordpolicy.model.numa import read_zones
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import CPU_TOPOLOGY, QOS_CLASS
from koordpolicy.scheduler import Scheduler

GPUS: Final = 8
ZONES: Final = 2
CPUS: Final = 64
CORE: Final = "koordinator.sh/gpu-core"
RATIO: Final = "koordinator.sh/gpu-memory-ratio"
MEMORY: Final = "koordinator.sh/gpu-memory"
GPU: Final = "koordinator.sh/gpu"
CARD: Final = {CORE: 100, RATIO: 100, MEMORY: 80 << 30}


def gpu_scheduler(graph: RuleGraph, nodes: int, now: int) -> Scheduler:
    """A scheduler that knows so many nodes, each with eight cards at four switches, two NUMA zones, 64 CPUs, and a report."""
    chance = random.Random(1)
    made = Scheduler(graph, lambda: now, draw=chance.randrange, explained=0, refusals=False)
    offers = {name: GPUS * amount for name, amount in (*CARD.items(), (GPU, 100))}
    for at in range(nodes):
        name = f"node-{at}"
        amounts = {"cpu": CPUS * 1000, "memory": 512 << 30, "pods": 256, **offers}
        made.set_node(Node(name, labels={"kubernetes.io/hostname": name}, allocatable=amounts))
        usage = {"cpu": chance.randrange(20_000), "memory": chance.randrange(64) << 30}
        made.set_metric(NodeMetric(name, updated_at=now, node_usage=usage))
        _tell(made, name)
    return made


def _tell(made: Scheduler, node: str) -> None:
    """What its agent says of a node."""
    topology = _topology(node)
    zones = read_zones(topology)
    made.set_state(lambda state: state.set_devices(node, _cards(node)), Event.DEVICES_CHANGED)
    made.set_state(lambda state: state.set_zones(node, zones, topology), Event.CPUS_CHANGED)


def _cards(node: str) -> NodeDevices:
    per = GPUS // ZONES
    return NodeDevices(
        tuple(
            Device("gpu", True, CARD, minor=at, id=f"{node}-{at}", numa=at // per, pcie=str(at // 2))
            for at in range(GPUS)
        )
    )


def _topology(name: str) -> dict[str, object]:
    per = CPUS // ZONES
    detail = [{"id": cpu, "core": cpu // 2, "socket": cpu // per, "node": cpu // per} for cpu in range(CPUS)]
    zones = [
        {
            "name": f"node-{zone}",
            "type": "Node",
            "resources": [
                {"name": key, "capacity": amount, "allocatable": amount, "available": amount}
                for key, amount in (("cpu", str(per)), ("memory", "256Gi"))
            ],
        }
        for zone in range(ZONES)
    ]
    annotations = {CPU_TOPOLOGY: json.dumps({"detail": detail})}
    return {"metadata": {"name": name, "annotations": annotations}, "zones": zones}


def gpu_pods(series: str, count: int) -> Iterator[Pod]:
    """Pods that all differ: shares of a card, one card, two; every other one with CPUs of its own."""
    for at in range(count):
        percent = (1 + at % 99, 100, 200)[at % 3]
        owns = at % 2 == 0
        asked = {
            "cpu": 1000 * (1 + at % 7) if owns else 100 + at,
            "memory": (64 + at) << 20,
            CORE: percent,
            RATIO: percent,
        }
        yield Pod(
            f"{series}-{at}",
            uid=f"{series}-{at}",
            labels={"app": series, QOS_CLASS: "LSR" if owns else "LS"},
            priority=9500,
            scheduler_name="koord-scheduler",
            containers=(Container("main", requests=asked, limits=asked),),
        )
