"""Co-location on this machine's kernel: a service in its pod's control group, best-effort work beside it, and our agent.

The service answers requests of two milliseconds of work in an open loop, on every processor at 30 % load; beside it twice as many
busy loops as there are processors. The same is measured alone, together as Kubernetes sets requests, together with the agent, and
with each of the agent's strategies off in turn. Needs root, for the groups are real.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.host_root import HOST_TREES, HostRoot
from tests.benchmarks.colocation import kubelet
from tests.benchmarks.colocation.pods import BenchPod, Groups, result
from tests.benchmarks.colocation.spin import units_in
from tests.benchmarks.measure import Row, as_installed
from tests.conftest import REPOSITORY
from tests.parts import Missing
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import install
from tests.parts.processes import Running

TASK: Final = 0.002
LOAD: Final = 0.3
SECONDS: Final = 20.0
_NODE: Final = "bench"
_AGENT: Final = 51
"""Shares of the agent's own pod: the request of `deploy/agent`, 50m."""
_SETTLES: Final = 15.0
"""Seconds from an agent's start until its strategies have seen the pods at least once, at default intervals."""

_BUNDLE: Final = "kind: PolicyBundle\nmetadata: {name: bench}\nspec: {extends: [koordinator]}\n"
STRATEGIES: Final[Mapping[str, str]] = {
    "cpu.idle": "kind: Isolation\nmetadata: {name: idle}\nspec: {group: BE, cpu: {enabled: true, idle: true}}\n",
    "suppression": "kind: CPUSuppress\nmetadata: {name: on}\nspec: {enabled: true, minimumCPUs: 1}\n",
}
"""What the bundle of the experiment says beside the pack, by strategy."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One line of the table: whether there is batch work, as which pods, and what the agent is told; None without an agent."""

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


def run() -> Iterable[Row]:
    """A row a trial: response times in milliseconds, use of all processors, work of the best-effort pods."""
    if os.geteuid() != 0:
        return [{"trial": "skipped: control groups are made by root"}]
    groups = Groups(discover_hierarchy(HostRoot(HOST_TREES)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            with ApiServer(Path(folder) / "server") as server:
                install(server.access)
                _node(server.access)
                units = units_in(TASK)
                return [_row(server.access, groups, trial, units, Path(folder)) for trial in TRIALS]
        except Missing as missing:
            return [{"trial": f"skipped: {missing}"}]


def _row(access: Access, groups: Groups, trial: Trial, units: int, folder: Path) -> Row:
    cpus = os.cpu_count() or 1
    service = BenchPod(
        "service", "Burstable", 1024 * cpus, labels={"koordinator.sh/qosClass": "LS"},
        resources={"requests": {"cpu": str(cpus)}},
    )  # fmt: skip
    batch = [_batch(number, trial.batch) for number in range(2 * cpus)] if trial.batch else []
    agent = BenchPod("agent", "Burstable", _AGENT, labels={"koordinator.sh/qosClass": "SYSTEM"})
    pods = [service, agent, *batch]
    with groups.of(pods), _agent(access, groups, agent, trial, pods, folder / trial.name.replace(" ", "-")):
        lasts = SECONDS + (_SETTLES if trial.strategies is not None else 1.0)
        loops = [groups.start(pod, "tests.benchmarks.colocation.batch", "--seconds", f"{lasts}", "--counted", f"{SECONDS}") for pod in batch]
        time.sleep(lasts - SECONDS)
        before = _busy()
        served = groups.start(
            service, "tests.benchmarks.colocation.service", "--units", f"{units}", "--rate", f"{cpus * LOAD / TASK}",
            "--seconds", f"{SECONDS}", "--seed", "1",
        )  # fmt: skip
        times = sorted(result(served, 3 * SECONDS))
        use = (_busy() - before) / (SECONDS * cpus)
        work = sum(result(loop, 3 * SECONDS)["units"] for loop in loops)
    return {
        "trial": trial.name,
        "p50 ms": times[len(times) // 2] / 1e3,
        "p99 ms": times[int(len(times) * 0.99)] / 1e3,
        "CPU in use": f"{use:.0%}",
        "best-effort work, CPU s": work * TASK / units,
    }


def _batch(number: int, kubernetes_class: str) -> BenchPod:
    """A pod of one busy loop: with a request for a whole CPU of its own, or best effort with batch CPU."""
    if kubernetes_class == "Burstable":
        return BenchPod(f"batch-{number}", "Burstable", 1024, resources={"requests": {"cpu": "1"}})
    amount = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "128Mi"}
    return BenchPod(
        f"batch-{number}", "BestEffort", 2, labels={"koordinator.sh/qosClass": "BE"},
        resources={"requests": amount, "limits": amount},
    )  # fmt: skip


@contextmanager
def _agent(
    access: Access, groups: Groups, pod: BenchPod, trial: Trial, pods: Sequence[BenchPod], folder: Path
) -> Iterator[None]:
    if trial.strategies is None:
        yield
        return
    policies = folder / "policies"
    policies.mkdir(parents=True)
    for number, text in enumerate([_BUNDLE, *(STRATEGIES[name] for name in trial.strategies)]):
        name = "koordpolicy.yaml" if number == 0 else f"{number}.yaml"
        (policies / name).write_text(f"apiVersion: koordpolicy.io/v1alpha1\n{text}", "utf-8")
    with kubelet.serving(pods, _NODE) as url:
        command = [
            sys.executable, "-m", "koordpolicy.cli", "agent", "--policies", str(policies), "--node", _NODE,
            "--kubeconfig", str(access.kubeconfig("koordpolicy-agent")), "--http", "off", "--kubelet-url", url,
        ]  # fmt: skip
        with Running(groups.inside(pod, command), folder / "log", environment={**as_installed(), "PYTHONPATH": str(REPOSITORY)}):
            yield


def _node(access: Access) -> None:
    there = {"cpu": str(os.cpu_count()), "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')}"}
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _NODE},
        "status": {"capacity": {**there, "pods": "110"}, "allocatable": {**there, "pods": "110"}},
    }
    status, answer = access.request("POST", "/api/v1/nodes", body)
    assert status == 201, answer


def _busy() -> float:
    """Seconds of CPU that all processors have worked."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    ticks = [int(field) for field in fields]
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")
