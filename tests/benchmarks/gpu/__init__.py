"""How much of a pool of GPUs stays unallocated, policy by policy, on the openb trace, beside what is published.

The protocol is that of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023). KOORDPOLICY_OPENB names the folder with the
trace's files; KOORDPOLICY_GPU_SEEDS says how many seeds are run, from 42 on (1; the full run has 10), KOORDPOLICY_GPU_WORKLOADS
and KOORDPOLICY_GPU_POLICIES which, joined by commas (all). Charts are written to build/benchmarks/gpu. `balanced` is ours, published nowhere.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.gpu.charts import draw_arrival, draw_unallocated
from tests.benchmarks.gpu.placing import Point, at, compiled, place_all
from tests.benchmarks.gpu.published import OVER_ARRIVAL, SATURATED, UNALLOCATED, WORKLOADS
from tests.benchmarks.gpu.trace import read_nodes, read_pods, usual_sorts
from tests.benchmarks.measure import Row

FIRST_SEED: Final = 42
POLICIES: Final = (*UNALLOCATED, "balanced")
_CHARTS: Final = Path("build/benchmarks/gpu")
_WHOLE: Final = range(131)

Runs = Sequence[Sequence[Point]]


def run() -> Iterator[Row]:
    """Each policy on each workload; nothing where the trace is not there."""
    folder = os.environ.get("KOORDPOLICY_OPENB", "")
    if not (Path(folder) / "openb_node_list_gpu_node.csv").is_file() or not folder:
        print("gpu: set KOORDPOLICY_OPENB to the folder with openb_node_list_gpu_node.csv", file=sys.stderr)
        return
    seeds = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("KOORDPOLICY_GPU_SEEDS", "1")))
    nodes = read_nodes(Path(folder))
    unallocated: dict[str, dict[str, float]] = {}
    curves: dict[str, list[float]] = {}
    over_arrival: list[Row] = []
    for workload in _chosen("KOORDPOLICY_GPU_WORKLOADS", WORKLOADS):
        pods = read_pods(Path(folder), workload)
        usual = json.dumps(usual_sorts(pods))
        for policy in _chosen("KOORDPOLICY_GPU_POLICIES", POLICIES):
            begin = time.perf_counter()
            runs = [place_all(compiled(policy, usual), nodes, pods, seed) for seed in seeds]
            spent = time.perf_counter() - begin
            row = _row(workload, policy, runs)
            yield {**row, "decisions/s": round(sum(map(len, runs)) / spent)}
            unallocated.setdefault(policy, {})[workload] = float(str(row["unallocated % at 100"]))
            if workload == WORKLOADS[0]:
                over_arrival += _over_arrival(policy, runs)
                curves[policy] = [_mean(runs, "allocated", one) for one in _WHOLE]
    yield from over_arrival
    draw_unallocated(unallocated, _CHARTS / "unallocated")
    if curves:
        draw_arrival(curves, _CHARTS / "arrival")


def _row(workload: str, policy: str, runs: Runs) -> Row:
    place = WORKLOADS.index(workload)
    left = [100 - at(points, "allocated", 100) for points in runs]
    return {
        "workload": workload,
        "policy": policy,
        "seeds": len(runs),
        "unallocated % at 100": statistics.fmean(left),
        "deviation": statistics.stdev(left) if len(left) > 1 else 0.0,
        "published": UNALLOCATED[policy][place] if policy in UNALLOCATED else "",
        "allocated % at 130": _mean(runs, "allocated", 130),
        "published at 130": SATURATED[policy][place] if policy in SATURATED else "",
    }


def _over_arrival(policy: str, runs: Runs) -> Iterator[Row]:
    for (measure, arrived), published in OVER_ARRIVAL.items():
        yield {
            "policy": policy,
            "measure": measure,
            "arrived %": arrived,
            "%": _mean(runs, measure, arrived),
            "published %": published.get(policy, ""),
        }


def _mean(runs: Runs, measure: str, arrived: int) -> float:
    return statistics.fmean(at(points, measure, arrived) for points in runs)


def _chosen(variable: str, every: Iterable[str]) -> list[str]:
    named = os.environ.get(variable, "")
    return named.split(",") if named else [*every]
