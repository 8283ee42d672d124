"""Simulations of a day by `koordpolicy simulate --generate`, as processes of their own: time, CPU and memory.

The workload is drawn from published statistics by a seed (`koordpolicy/simulator/traces/published.py`), ten pods a node,
with agents' reports every two minutes, overcommitment, suppression and scheduling by the built-in pack. Of the largest
cluster a part of the day is simulated; its first minutes, in which all services are placed, cost most.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.benchmarks.measure import Row, as_installed

SIZES: Final = ((100, "24h"), (1_000, "24h"), (10_000, "2h"))
"""Nodes, and how much of the day."""
SEED: Final = "1"


def run(divide: int = 1) -> Iterator[Row]:
    """A row a size."""
    for nodes, until in SIZES:
        yield measured(max(nodes // divide, 1), until)


def measured(nodes: int, until: str) -> Row:
    """One simulation. Raises RuntimeError where the command fails."""
    command = [sys.executable, "-m", "koordpolicy.cli", "simulate", "--generate", str(nodes)]
    began = time.perf_counter()
    running = subprocess.Popen(
        [*command, "--until", until, "--seed", SEED, "-o", "json"],
        stdout=subprocess.PIPE,
        env=as_installed(),
    )
    assert running.stdout is not None
    with running.stdout as stream:
        said = stream.read()
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if running.returncode:
        raise RuntimeError(f"simulating {nodes} nodes ended with {running.returncode}")
    told = json.loads(said)
    return {
        "nodes": nodes,
        "pods": told["pods"]["total"],
        "simulated": until,
        "decisions": told["scheduling"]["attempts"],
        "wall s": round(wall, 1),
        "CPU s": round(used.ru_utime + used.ru_stime, 1),
        "MiB": round(used.ru_maxrss / 1024),
        "x real time": round(told["workload"]["seconds"] / wall),
    }
