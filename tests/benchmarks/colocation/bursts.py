"""A service that is throttled by its limit although it asks for little on average: its requests come in bursts.

Forty requests of two milliseconds come at once, about once a second, to a pod with a limit of half a CPU.
"""

from typing import Final

from tests.benchmarks.colocation.latency import TASK
from tests.benchmarks.colocation.node import BenchNode
from tests.benchmarks.colocation.pods import BenchPod, result
from tests.benchmarks.colocation.spin import units_in
from tests.benchmarks.measure import Row

_SECONDS: Final = 20.0
_BURST: Final = 40
_PERIOD: Final = 100_000
_POLICY: Final = "kind: CPUBurst\nmetadata: {name: on}\nspec: {policy: auto}\n"


def rows(node: BenchNode) -> list[Row]:
    """Response times in milliseconds, and how often the pod was throttled: without a limit, with it, and with CPU burst."""
    return [
        _row(node, "bursts, no limit", limit=False, agent=False),
        _row(node, "bursts, throttled", limit=True, agent=False),
        _row(node, "bursts, with the agent", limit=True, agent=True),
    ]


def _row(node: BenchNode, trial: str, *, limit: bool, agent: bool) -> Row:
    resources = {"requests": {"cpu": "500m"}} | ({"limits": {"cpu": "500m"}} if limit else {})
    service = BenchPod(
        "service", "Burstable", 512, labels={"koordinator.sh/qosClass": "LS"}, resources=resources,
        quota=_PERIOD // 2 if limit else 0,
    )  # fmt: skip
    units = units_in(TASK)
    with node.with_agent(trial, [service], [_POLICY] if agent else None):
        served = node.groups.start(
            service, "tests.benchmarks.colocation.service", "--units", f"{units}", "--rate", "1", "--burst", f"{_BURST}",
            "--seconds", f"{_SECONDS}", "--seed", "1",
        )  # fmt: skip
        times = sorted(result(served, 3 * _SECONDS)["times"])
        throttled = node.groups.throttled(service)
    return {
        "trial": trial,
        "p50 ms": times[len(times) // 2] / 1e3,
        "p99 ms": times[int(len(times) * 0.99)] / 1e3,
        "throttled": throttled,
    }
