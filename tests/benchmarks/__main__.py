"""The command: `python -m tests.benchmarks [NAME...] [--output DIRECTORY] [--divide N]`.

Prints a table for each benchmark and writes it as JSON, with what it was measured on. Exit code 2 for
an unknown name.
"""

import argparse
import itertools
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import (
    access,
    agent,
    client,
    colocation,
    columns,
    compiling,
    console,
    descheduler,
    drain,
    engines,
    gpu,
    jobs,
    jobs_drain,
    manager,
    preemption,
    reloading,
    reservations,
    runtime,
    scheduling,
    simulator,
    starting,
    webhook,
    yarn,
)
from tests.benchmarks.colocation import sweep
from tests.benchmarks.measure import Row, table


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark by name: what it measures, and the function that gives its rows."""

    name: str
    measures: str
    run: Callable[..., Iterable[Row]]
    apart: bool = False
    """Whether rows of other columns are a table of their own."""
    divisible: bool = False
    """Whether it can be had with fewer nodes and pods, and takes `divide`."""


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark("start", "commands from call to end, schedulers to the first binding, seconds", starting.run),
    Benchmark("compile", "policies to a rule graph, seconds", compiling.run),
    Benchmark("reload", "commits to decisions, with 1,000 decisions a second meanwhile", reloading.run),
    Benchmark("columns", "a filter and a score of five terms, ns per node", columns.run),
    Benchmark("engines", "the same filter and score in all engines, ns per node", engines.run),
    Benchmark("scheduling", "decisions of the built-in profile in memory, every node scored", scheduling.run),
    Benchmark(
        "simulator",
        "a day of virtual time with all components: time, CPU, memory",
        simulator.run,
        divisible=True,
    ),
    Benchmark(
        "console",
        "frames a second of the console's map while panning, in a real Chromium, beside a page at rest",
        console.run,
        divisible=True,
    ),
    Benchmark("access", "an evaluation brought up to date about some nodes, beside one of all", access.run),
    Benchmark("preemption", "decisions on pods for which others have to go, in memory", preemption.run),
    Benchmark(
        "reservations", "pods beside 5,000 Reservations, and their owners, in memory", reservations.run
    ),
    Benchmark(
        "descheduler",
        "one pass over 5,000 nodes and 100,000 pods in memory, beside Kubernetes' own descheduler",
        descheduler.run,
        divisible=True,
    ),
    Benchmark(
        "jobs",
        "gangs, also planned in a network, and pods of 10,000 quotas, beside plain pods, in memory; gangs on a real API server",
        jobs.run,
        apart=True,
        divisible=True,
    ),
    Benchmark(
        "jobs-drain",
        "the last of these alone: a backlog of gangs on a real API server",
        jobs_drain.run,
        divisible=True,
    ),
    Benchmark(
        "gpu",
        "GPUs that stay unallocated on the openb trace, percent, beside what is published",
        gpu.run,
        apart=True,
    ),
    Benchmark("client", "lists, watches and bindings at a real API server, CPU of the client", client.run),
    Benchmark("webhook", "reviews of pods over TLS in an open loop, at a manager of its own", webhook.run),
    Benchmark(
        "manager",
        "5,000 nodes that report, on a real API server: CPU, memory, how soon nodes follow",
        manager.run,
    ),
    Benchmark(
        "yarn",
        "a YARN operator with 1,000 nodes, on a real API server: CPU, memory, requests to the ResourceManager",
        yarn.run,
        divisible=True,
    ),
    Benchmark(
        "colocation",
        "a service beside best-effort work in real control groups, with and without the agent",
        colocation.run,
        apart=True,
    ),
    Benchmark(
        "contention",
        "response times of a service at seven loads in three sorts of company, and what the model of simulations says of them",
        sweep.run,
        apart=True,
    ),
    Benchmark(
        "agent", "an agent of a node with 110 pods in real control groups: CPU, memory, new pods", agent.run
    ),
    Benchmark(
        "runtime",
        "calls of CRI, 300 a second, bare, through the proxy, and what NRI waits: milliseconds",
        runtime.run,
    ),
    Benchmark("drain", "a backlog on a real API server, beside kube-scheduler", drain.run),
    Benchmark("drain-profile", "where our scheduler's CPU goes in the largest backlog", drain.profile),
)
"""All benchmarks, in the order in which they run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(names)} (all)")
    parser.add_argument("--output", type=Path, default=Path("build/benchmarks"), help="where JSON is written")
    parser.add_argument("--divide", type=int, default=1, help="so many times fewer nodes and pods end to end")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(names):
        print(
            f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(names)}",
            file=sys.stderr,
        )
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    for benchmark in BENCHMARKS:
        if options.names and benchmark.name not in options.names:
            continue
        rows = list(benchmark.run(max(1, options.divide)) if benchmark.divisible else benchmark.run())
        print(f"\n{benchmark.name}: {benchmark.measures}")
        tables = itertools.groupby(rows, key=tuple) if benchmark.apart else [((), rows)]
        for _, alike in tables:
            print(table([*alike]))
        report = {
            "name": benchmark.name,
            "measures": benchmark.measures,
            "machine": _machine(),
            "rows": rows,
        }
        (options.output / f"{benchmark.name}.json").write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _machine() -> dict[str, object]:
    return {"python": platform.python_version(), "system": platform.platform(), "cpus": os.cpu_count()}


if __name__ == "__main__":
    sys.exit(main())
