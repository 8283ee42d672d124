"""How much of a pool of GPUs stays unallocated, policy by policy, on the openb trace, beside what is published.

The protocol is that of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023). KOORDPOLICY_OPENB names the folder with the
trace's files; KOORDPOLICY_GPU_SEEDS says how many seeds are run, from 42 on (1; the full run has 10), KOORDPOLICY_GPU_WORKLOADS
and KOORDPOLICY_GPU_POLICIES which, joined by commas (all). Charts are written to build/benchmarks/gpu. `balanced` is ours, published nowhere.

A run takes 10 to 20 s and is kept in build/benchmarks/gpu/runs as soon as it is done, so whoever calls again with the same code goes on
where it was stopped. KOORDPOLICY_GPU_PROCESSES (1) run at once, and after KOORDPOLICY_GPU_MINUTES (no limit) no more are begun: the tables
then have as many seeds as they say.
"""

import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.gpu.charts import draw_arrival, draw_unallocated
from tests.benchmarks.gpu.published import (
    CLASSES,
    DEVIATIONS,
    FAILED,
    OVER_ARRIVAL,
    SATURATED,
    UNALLOCATED,
    WORKLOADS,
)
from tests.benchmarks.gpu.runs import Outcome, Run, outcomes
from tests.benchmarks.measure import Row

FIRST_SEED: Final = 42
POLICIES: Final = (*UNALLOCATED, "balanced")
_CHARTS: Final = Path("build/benchmarks/gpu")
_RUNS: Final = _CHARTS / "runs"
_MINUTE: Final = 60.0


def run() -> Iterator[Row]:
    """Each policy on each workload; nothing where the trace is not there."""
    folder = Path(os.environ.get("KOORDPOLICY_OPENB", "."))
    if not (folder / "openb_node_list_gpu_node.csv").is_file():
        print("gpu: set KOORDPOLICY_OPENB to the folder with openb_node_list_gpu_node.csv", file=sys.stderr)
        return
    seeds = range(FIRST_SEED, FIRST_SEED + int(os.environ.get("KOORDPOLICY_GPU_SEEDS", "1")))
    minutes = os.environ.get("KOORDPOLICY_GPU_MINUTES")
    # All policies of a workload and seed together: where time runs out, they have seen the same pods.
    wanted = [
        Run(workload, policy, seed)
        for seed in seeds
        for workload in _chosen("KOORDPOLICY_GPU_WORKLOADS", WORKLOADS)
        for policy in _chosen("KOORDPOLICY_GPU_POLICIES", POLICIES)
    ]
    done = outcomes(
        wanted,
        folder,
        _RUNS,
        processes=int(os.environ.get("KOORDPOLICY_GPU_PROCESSES", "1")),
        until=None if minutes is None else time.monotonic() + _MINUTE * float(minutes),
    )
    if missing := len(wanted) - len(done):
        print(f"gpu: {missing} of {len(wanted)} runs are missing; call again to go on", file=sys.stderr)
    yield from _rows(done)


def _rows(done: dict[Run, Outcome]) -> Iterator[Row]:
    by: dict[tuple[str, str], list[Outcome]] = {}
    for one in sorted(done, key=lambda one: (_place(WORKLOADS, one.workload), _place(POLICIES, one.policy))):
        by.setdefault((one.workload, one.policy), []).append(done[one])
    rows = {which: _row(*which, runs) for which, runs in by.items()}
    yield from rows.values()
    unallocated: dict[str, dict[str, float]] = {}
    for (workload, policy), row in rows.items():
        unallocated.setdefault(policy, {})[workload] = float(str(row["unallocated % at 100"]))
    yield from _means(unallocated)
    first = {policy: runs for (workload, policy), runs in by.items() if workload == WORKLOADS[0]}
    for policy, runs in first.items():
        yield from _over_arrival(policy, runs)
    for policy, runs in first.items():
        yield _failed(policy, runs)
    draw_unallocated(unallocated, _CHARTS / "unallocated")
    if first:
        curves = {
            policy: [statistics.fmean(each) for each in zip(*_measured(runs, "allocated"), strict=True)]
            for policy, runs in first.items()
        }
        draw_arrival(curves, _CHARTS / "arrival")


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _row(workload: str, policy: str, runs: Sequence[Outcome]) -> Row:
    left = [100 - allocated[100] for allocated in _measured(runs, "allocated")]
    place = _place(WORKLOADS, workload)

    def told(table: Mapping[str, tuple[float, ...]]) -> float | str:
        return table[policy][place] if policy in table and place < len(WORKLOADS) else ""

    return {
        "workload": workload,
        "policy": policy,
        "seeds": len(runs),
        "unallocated % at 100": statistics.fmean(left),
        "published": told(UNALLOCATED),
        "deviation": statistics.stdev(left) if len(left) > 1 else "",
        "published deviation": told(DEVIATIONS),
        "allocated % at 130": _mean(runs, "allocated", 130),
        "published at 130": told(SATURATED),
        "decisions/s of CPU": round(sum(one.arrivals for one in runs) / sum(one.seconds for one in runs)),
    }


def _means(unallocated: dict[str, dict[str, float]]) -> Iterator[Row]:
    """Over all workloads, by policy; how much worse than FGD where it is worst."""
    every = {policy: values for policy, values in unallocated.items() if values.keys() >= set(WORKLOADS)}
    for policy, values in every.items():
        fgd = every.get("fgd")
        yield {
            "policy": policy,
            "unallocated % at 100, mean of the workloads": statistics.fmean(values[one] for one in WORKLOADS),
            "published": statistics.fmean(UNALLOCATED[policy]) if policy in UNALLOCATED else "",
            "furthest from what is published": max(
                (abs(values[one] - told) for one, told in zip(WORKLOADS, UNALLOCATED[policy], strict=True)),
            )
            if policy in UNALLOCATED
            else "",
            "worst beside fgd": "" if fgd is None else max(values[one] - fgd[one] for one in WORKLOADS),
        }


def _over_arrival(policy: str, runs: Sequence[Outcome]) -> Iterator[Row]:
    for (measure, arrived), published in OVER_ARRIVAL.items():
        yield {
            "policy": policy,
            "measure": measure,
            "arrived %": arrived,
            "%": _mean(runs, measure, arrived),
            "published %": published.get(policy, ""),
        }


def _failed(policy: str, runs: Sequence[Outcome]) -> Row:
    """The pods that found no node, of the whole run on the default workload, beside what others counted."""
    row: dict[str, object] = {"policy": policy}
    for place, which in enumerate(CLASSES):
        row[f"no node: {which}"] = statistics.fmean(one.failed.get(which, 0) for one in runs)
        row[f"told: {which}"] = FAILED[policy][place] if policy in FAILED else ""
    return row


def _measured(runs: Sequence[Outcome], measure: str) -> list[Sequence[float]]:
    return [one.measured[measure] for one in runs]


def _mean(runs: Sequence[Outcome], measure: str, arrived: int) -> float:
    return statistics.fmean(values[arrived] for values in _measured(runs, measure))


def _chosen(variable: str, every: Iterable[str]) -> list[str]:
    named = os.environ.get(variable, "")
    return named.split(",") if named else [*every]
