"""The openb trace: nodes, pods, which pods are usual, and in which order pods arrive."""

import csv
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_USUAL_SHARE: Final = 0.95
"""Share of the pods that the usual sorts make up."""


class TraceNode(NamedTuple):
    """A node: CPU in millicores, memory in MiB, GPUs of one model."""

    cpu: int
    memory: int
    gpus: int
    model: str


class TracePod(NamedTuple):
    """A pod: CPU in millicores, memory in MiB, GPUs, thousandths of each, models that will do, joined by `|`."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: str

    @property
    def asked(self) -> int:
        """Thousandths of GPUs in all."""
        return self.gpus * self.milli


def read_nodes(folder: Path) -> list[TraceNode]:
    """The nodes with GPUs. Raises OSError."""
    return [
        TraceNode(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        for row in _rows(folder / "openb_node_list_gpu_node.csv")
    ]


def read_pods(folder: Path, workload: str) -> list[TracePod]:
    """The pods of a workload. Raises OSError."""
    return [_pod(row) for row in _rows(folder / f"openb_pod_list_{workload}.csv")]


def _pod(row: dict[str, str]) -> TracePod:
    gpus = int(row["num_gpu"])
    milli = min(int(row["gpu_milli"]), 1000) if gpus else 0
    return TracePod(int(row["cpu_milli"]), int(row["memory_mib"]), gpus, milli, row.get("gpu_spec") or "")


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


def usual_sorts(pods: Sequence[TracePod]) -> dict[str, int]:
    """The most frequent sorts of pods, as `usualPods` of DeviceSharing lists them, with how many there are of each."""
    counted = Counter((pod.cpu, pod.milli, pod.gpus, pod.models) for pod in pods)
    found: dict[str, int] = {}
    for (cpu, milli, gpus, models), count in sorted(
        counted.items(), key=lambda one: (one[1], one[0]), reverse=True
    ):
        if sum(found.values()) >= _USUAL_SHARE * len(pods):
            break
        text = f"{cpu}m" + (f" {gpus}x{milli // 10}" if gpus else "") + (f" {models}" if models else "")
        found[text] = found.get(text, 0) + count
    return found


def arrivals(pods: Sequence[TracePod], capacity: int, chance: random.Random) -> list[TracePod]:
    """The pods in random order, some of them again or not at all, until they ask for `capacity` thousandths of GPUs."""
    found = list(pods)
    chance.shuffle(found)
    asked = sum(pod.asked for pod in found)
    while asked > capacity:
        asked -= found.pop(chance.randrange(len(found))).asked
    while True:
        drawn = chance.choice(pods)
        if asked + drawn.milli > capacity:
            return found
        found.append(drawn)
        asked += drawn.asked
