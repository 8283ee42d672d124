"""How much of a pool of GPUs stays unallocated, policy by policy, on the openb trace, beside what is published.

The protocol is that of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023). KOORDPOLICY_OPENB names the folder with the
trace's files; KOORDPOLICY_GPU_SEEDS says how many seeds are run, from 42 on (1; the full run has 10), KOORDPOLICY_GPU_WORKLOADS
and KOORDPOLICY_GPU_POLICIES which, joined by commas (all).
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks.gpu.placing import at, compiled, place_all
from tests.benchmarks.gpu.trace import read_nodes, read_pods, usual_sorts
from tests.benchmarks.measure import Row

FIRST_SEED: Final = 42
WORKLOADS: Final = ("default", "cpu100", "gpushare40", "gpushare100", "gpuspec10", "gpuspec33", "multigpu20")
PUBLISHED: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "random": {"unallocated": (13.70, 12.56, 15.14, 21.10, 13.74, 16.13, 13.08),
               "saturated": (87.47, 89.11, 86.00, 79.44, 87.43, 86.46, 88.69)},
    "clustering": {"unallocated": (8.35, 7.58, 10.24, 17.78, 8.04, 18.91, 6.66),
                   "saturated": (91.88, 92.64, 90.02, 82.65, 92.18, 92.12, 93.56)},
    "packing": {"unallocated": (8.22, 7.50, 10.23, 17.87, 7.76, 17.78, 6.50),
                "saturated": (92.00, 92.72, 90.03, 82.57, 92.46, 93.22, 93.71)},
    "dot-product": {"unallocated": (9.38, 8.27, 10.70, 18.02, 9.83, 20.18, 8.15),
                    "saturated": (90.85, 91.95, 89.56, 82.42, 90.39, 89.14, 92.06)},
    "best-fit": {"unallocated": (7.14, 6.74, 8.56, 15.38, 6.90, 19.61, 6.27),
                 "saturated": (93.08, 93.44, 91.69, 85.01, 93.30, 93.09, 93.93)},
    "fgd": {"unallocated": (4.77, 4.79, 6.04, 13.36, 5.34, 12.16, 4.47),
            "saturated": (95.39, 95.35, 94.15, 86.90, 94.95, 94.55, 95.65)},
}  # fmt: skip
"""Percent of the GPUs by policy, workload by workload: not allocated at 100 % arrival, allocated at 130 %."""


def run() -> Iterator[Row]:
    """Each policy on each workload; nothing where the trace is not there."""
    folder = os.environ.get("KOORDPOLICY_OPENB", "")
    if not (Path(folder) / "openb_node_list_gpu_node.csv").is_file() or not folder:
        print("gpu: set KOORDPOLICY_OPENB to the folder with openb_node_list_gpu_node.csv", file=sys.stderr)
        return
    seeds = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("KOORDPOLICY_GPU_SEEDS", "1")))
    nodes = read_nodes(Path(folder))
    for place, workload in enumerate(WORKLOADS):
        if workload not in _chosen("KOORDPOLICY_GPU_WORKLOADS", WORKLOADS):
            continue
        pods = read_pods(Path(folder), workload)
        usual = json.dumps(usual_sorts(pods))
        for policy, published in PUBLISHED.items():
            if policy not in _chosen("KOORDPOLICY_GPU_POLICIES", PUBLISHED):
                continue
            begin = time.perf_counter()
            runs = [place_all(compiled(policy, usual), nodes, pods, seed) for seed in seeds]
            spent = time.perf_counter() - begin
            yield {
                "workload": workload,
                "policy": policy,
                "seeds": len(seeds),
                "unallocated % at 100": statistics.fmean(100 - at(points, 100) for points in runs),
                "published": published["unallocated"][place],
                "allocated % at 130": statistics.fmean(at(points, 130) for points in runs),
                "published at 130": published["saturated"][place],
                "decisions/s": round(sum(map(len, runs)) / spent),
            }


def _chosen(variable: str, every: Iterable[str]) -> list[str]:
    named = os.environ.get(variable, "")
    return named.split(",") if named else [*every]
