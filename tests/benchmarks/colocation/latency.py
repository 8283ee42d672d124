"""Response times of a service beside best-effort work.

The service answers requests of two milliseconds of work in an open loop, with one worker a processor, each at 30 % load; beside it
run twice as many busy loops as there are processors. The same is measured alone, together as Kubernetes sets requests, together
with the agent, and with each of the agent's strategies off in turn.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from tests.benchmarks.colocation.node import BenchNode
from tests.benchmarks.colocation.pods import BenchPod, result
from tests.benchmarks.colocation.spin import units_in
from tests.benchmarks.measure import Row

TASK: Final = 0.002
LOAD: Final = 0.3
SECONDS: Final = 20.0
_SETTLES: Final = 10.0
"""Seconds until the agent's strategies have seen the pods several times, at their own intervals."""
STRATEGIES: Final[Mapping[str, str]] = {
    "cpu.idle": "kind: Isolation\nmetadata: {name: idle}\nspec: {group: BE, cpu: {enabled: true, idle: true}}\n",
    "suppression": "kind: CPUSuppress\nmetadata: {name: on}\nspec: {enabled: true, minimumCPUs: 1}\n",
}
"""What the bundle of the experiment says beside the pack, by strategy."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One line of the table: as which pods batch work runs, empty for none, and what the agent is told; None without one."""

    name: str
    batch: str = ""
    strategies: tuple[str, ...] | None = None


TRIALS: Final = (
    Trial("alone"),
    Trial("together, by requests", "Burstable"),
    Trial("together, best effort", "BestEffort"),
    Trial("with the agent", "BestEffort", tuple(STRATEGIES)),
    *(
        Trial(f"without {off}", "BestEffort", tuple(name for name in STRATEGIES if name != off))
        for off in STRATEGIES
    ),
)


def rows(node: BenchNode) -> list[Row]:
    """A row a trial: response times in milliseconds, use of all processors, work of the best-effort pods."""
    units = units_in(TASK)
    return [_row(node, trial, units) for trial in TRIALS]


def _row(node: BenchNode, trial: Trial, units: int) -> Row:
    cpus = os.cpu_count() or 1
    service = BenchPod(
        "service", "Burstable", 1024 * cpus, labels={"koordinator.sh/qosClass": "LS"},
        resources={"requests": {"cpu": str(cpus)}},
    )  # fmt: skip
    batch = [batch_pod(number, trial.batch) for number in range(2 * cpus)] if trial.batch else []
    told = None if trial.strategies is None else [STRATEGIES[name] for name in trial.strategies]
    with node.with_agent(trial.name, [service, *batch], told):
        module, lasts = "tests.benchmarks.colocation.batch", _SETTLES + SECONDS
        loops = [
            node.groups.start(pod, module, "--seconds", f"{lasts}", "--counted", f"{SECONDS}")
            for pod in batch
        ]
        time.sleep(_SETTLES)
        before = busy()
        served = node.groups.start(
            service, "tests.benchmarks.colocation.service", "--units", f"{units}", "--rate", f"{cpus * LOAD / TASK}",
            "--seconds", f"{SECONDS}", "--seed", "1",
        )  # fmt: skip
        times = sorted(result(served, 3 * SECONDS)["times"])
        use = (busy() - before) / (SECONDS * cpus)
        work = sum(result(loop, 3 * SECONDS)["units"] for loop in loops)
    return {
        "trial": trial.name,
        "p50 ms": times[len(times) // 2] / 1e3,
        "p99 ms": times[int(len(times) * 0.99)] / 1e3,
        "CPU in use": f"{min(use, 1):.0%}",
        "best-effort work, CPU s": work * TASK / units,
    }


def batch_pod(number: int, kubernetes_class: str) -> BenchPod:
    """A pod of one busy loop: with a request for a whole CPU of its own, or best effort with batch CPU."""
    if kubernetes_class == "Burstable":
        return BenchPod(f"batch-{number}", "Burstable", 1024, resources={"requests": {"cpu": "1"}})
    amount = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "128Mi"}
    return BenchPod(
        f"batch-{number}", "BestEffort", 2, labels={"koordinator.sh/qosClass": "BE"},
        resources={"requests": amount, "limits": amount},
    )  # fmt: skip


def busy() -> float:
    """Seconds of CPU that all processors have worked."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    ticks = [int(field) for field in fields]
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")


def draw(found: Sequence[Mapping[str, Any]], target: Path) -> None:
    """Write `target`.png and `target`.svg: the slowest hundredth of requests, and work done beside them, by trial."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = [row["trial"] for row in found]
    for axes, column, title, colour in (
        (left, "p99 ms", "slowest hundredth of requests, ms", "#1a5fb4"),
        (right, "best-effort work, CPU s", f"best-effort work in {SECONDS:.0f} s, seconds of CPU", "#2f7d4f"),
    ):
        bars = axes.barh(names, [row[column] for row in found], color=colour)
        axes.bar_label(bars, fmt="%.3g", padding=3)
        axes.set_title(title, loc="left", fontsize=10)
        axes.margins(x=0.15)
        axes.spines[["top", "right"]].set_visible(False)
    left.invert_yaxis()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target.with_suffix(".png"), dpi=150)
    with rc_context({"svg.hashsalt": "colocation"}):  # the same chart has the same text
        figure.savefig(target.with_suffix(".svg"), metadata={"Date": None})
