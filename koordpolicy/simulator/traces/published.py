"""A workload drawn from published statistics, for who has no trace of their own: so many nodes, half services, half jobs.

Nodes have 96 CPUs, as the machines of Alibaba's trace of 2018; nothing absolute is published of their memory, so that there are
4 GiB for each CPU. Services request six tenths of the CPUs, and use 5 to 10 % of that at night and 25 to 45 % at their
peak, which is how online services are described before others join them. Jobs come evenly over the day; how
long they run follows the pods of Alibaba's openb trace of 2023 (`LIFETIMES`), between whose quantiles
logarithms are interpolated.

Beside them there may be batch work that fills what services leave: jobs as long as the training jobs of Microsoft's Philly trace
(M. Jeon et al., ATC 2019; `BATCH_LIFETIMES`), as steadily in the first minute as in the last.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from koordpolicy.model.protocol import CPU, MEMORY, PODS
from koordpolicy.simulator.chance import Chance
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.workload import Arrival, Json, Wave, Workload

DAY: Final = 86_400 * SECOND
PODS_A_NODE: Final = 10
NODE_CPUS: Final = 96
NODE_PODS: Final = 110
MEMORY_A_CPU: Final = 4
"""GiB of a node."""

SERVICE_SHARE: Final = 0.5
"""Of all pods, those that are services."""
SERVICE_CPUS: Final = (4, 8, 12, 16, 20)
"""What a service requests, each as often: 12 in the mean, six tenths of a node for five of them."""
SERVICE_MEMORY_A_CPU: Final = 3
SERVICE_BASE: Final = (0.05, 0.10)
SERVICE_PEAK: Final = (0.25, 0.45)
SERVICE_PEAK_HOUR: Final = 14.0

JOB_CPUS: Final = (1, 2, 4, 8)
JOB_MEMORY_A_CPU: Final = 2
JOB_LOAD: Final = 0.95
JOB_LABELS: Final = {"workload": "batch"}
"""What the profiles of the example ask for."""

LIFETIMES: Final = (
    (0.0, 10.0),
    (0.10, 79.0),
    (0.50, 540.0),
    (0.75, 1980.0),
    (0.90, 6480.0),
    (0.99, 100_800.0),
)
"""Seconds that a pod lives, by the share of pods that live no longer; beyond the last one nobody does."""


BATCH_LIFETIMES: Final = (
    (0.0, 10.0),
    (0.50, 1186.0),
    (0.90, 12_960.0),
    (0.99, 288_000.0),
)
"""As `LIFETIMES`, of batch work."""
BATCH_CPUS: Final = (8, 12, 16, 20)
MOST_BATCH: Final = 1.0


def published_workload(
    nodes: int, pods: int | None, chance: Chance, span: int = DAY, batch: float = 0.0
) -> Workload:
    """So many nodes and pods (None: `PODS_A_NODE` each) over `span` nanoseconds; equal chance gives equal workloads.

    `batch` is the share of all CPUs that batch work requests beside them, in the mean, from 0 to `MOST_BATCH`.
    """
    if pods is None:
        pods = PODS_A_NODE * nodes
    services = round(pods * SERVICE_SHARE)
    arrivals = [_service(number, chance) for number in range(services)]
    arrivals += [_job(number, span, chance) for number in range(pods - services)]
    arrivals += _batch(batch * nodes * NODE_CPUS * span, span, chance)
    arrivals.sort(key=lambda one: one.time)
    title = f"{nodes:,} nodes and {pods:,} pods as in published traces"
    return Workload(tuple(_node(number) for number in range(nodes)), tuple(arrivals), title, span=span)


def lifetime(share: float, lifetimes: Sequence[tuple[float, float]] = LIFETIMES) -> float:
    """The seconds that this share of pods live at most."""
    at = bisect_left(lifetimes, (share,))
    if at == 0:
        return lifetimes[0][1]
    if at == len(lifetimes):
        return lifetimes[-1][1]
    (low, short), (high, long) = lifetimes[at - 1], lifetimes[at]
    part = (share - low) / (high - low)
    return math.exp(math.log(short) + part * (math.log(long) - math.log(short)))


def _node(number: int) -> Json:
    name = f"node-{number:05}"
    resources = {CPU: str(NODE_CPUS), MEMORY: f"{MEMORY_A_CPU * NODE_CPUS}Gi", PODS: str(NODE_PODS)}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": dict(resources)},
    }


def _service(number: int, chance: Chance) -> Arrival:
    cpus = SERVICE_CPUS[int(chance.integers(0, len(SERVICE_CPUS)))]
    base, peak = _between(SERVICE_BASE, chance), _between(SERVICE_PEAK, chance)
    pod = _pod(f"service-{number:05}", cpus, SERVICE_MEMORY_A_CPU * cpus, {}, limited=False)
    return Arrival(0, pod, None, Wave(base, peak, SERVICE_PEAK_HOUR))


def _job(number: int, span: int, chance: Chance) -> Arrival:
    cpus = JOB_CPUS[int(chance.integers(0, len(JOB_CPUS)))]
    pod = _pod(f"job-{number:05}", cpus, JOB_MEMORY_A_CPU * cpus, JOB_LABELS, limited=True)
    begins = int(span * chance.random())
    return Arrival(begins, pod, int(lifetime(chance.random()) * SECOND), Wave(JOB_LOAD, JOB_LOAD))


def _batch(work: float, span: int, chance: Chance) -> Iterator[Arrival]:
    """Batch jobs until they request so many CPU nanoseconds within `span`. Those that began before and
    run yet are there at its beginning.
    """
    longest = int(BATCH_LIFETIMES[-1][1] * SECOND)
    number = 0
    while work > 0:
        cpus = BATCH_CPUS[int(chance.integers(0, len(BATCH_CPUS)))]
        begins = int((span + longest) * chance.random()) - longest
        runs = int(lifetime(chance.random(), BATCH_LIFETIMES) * SECOND)
        if begins + runs <= 0:
            continue
        left = begins + runs if begins < 0 else runs
        work -= cpus * min(left, span - max(begins, 0))
        pod = _pod(f"batch-{number:06}", cpus, JOB_MEMORY_A_CPU * cpus, JOB_LABELS, limited=True)
        yield Arrival(max(begins, 0), pod, left, Wave(JOB_LOAD, JOB_LOAD))
        number += 1


def _between(bounds: tuple[float, float], chance: Chance) -> float:
    low, high = bounds
    return low + (high - low) * chance.random()


def _pod(name: str, cpus: int, memory: int, labels: Json, *, limited: bool) -> Json:
    requests = {CPU: str(cpus), MEMORY: f"{memory}Gi"}
    resources = {"requests": requests, "limits": dict(requests)} if limited else {"requests": requests}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": dict(labels)},
        "spec": {"containers": [{"name": "main", "image": "simulated", "resources": resources}]},
    }
