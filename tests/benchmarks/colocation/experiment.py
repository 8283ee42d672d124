"""Co-location on this machine's kernel, with and without our agent: response times, memory that runs short, bursts.

All of it needs root, for the control groups are real.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.host_root import HOST_TREES, HostRoot
from tests.benchmarks.colocation import bursts, latency, memory
from tests.benchmarks.colocation.node import BenchNode
from tests.benchmarks.colocation.pods import Groups
from tests.benchmarks.measure import Row
from tests.parts import Missing
from tests.parts.apiserver import ApiServer


def run(charts: Path = Path("build/benchmarks")) -> Iterable[Row]:
    """The rows of the three experiments, one after the other; the chart of the first is written beside them."""
    if os.geteuid() != 0:
        return [{"trial": "skipped: control groups are made by root"}]
    groups = Groups(discover_hierarchy(HostRoot(HOST_TREES)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with ApiServer(Path(folder) / "server") as server:
                node = BenchNode(server.access, groups, Path(folder))
                rows = latency.rows(node)
                latency.draw(rows, charts / "colocation")
                return [*rows, *memory.rows(node), *bursts.rows(node)]
        except Missing as missing:
            return [{"trial": f"skipped: {missing}"}]
