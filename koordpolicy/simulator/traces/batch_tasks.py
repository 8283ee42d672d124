"""Batch tasks as Alibaba's trace of 2017 tells them, each by the means of its instances: a pod an instance.

Rows have the columns `job_id, task_id, submit_s, duration_s, instances, cpu_cores_per_instance, mem_norm_per_instance` (seconds, CPUs, and memory
as a share of that of the largest machine, which is the largest node that is simulated). All instances of a task come at once.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.formats import Format
from koordpolicy.simulator.traces.gpus import MOST_CPUS
from koordpolicy.simulator.traces.openb import BATCH_CLASS
from koordpolicy.simulator.traces.rows import MAX_ROWS, NumberColumn, Row, seconds
from koordpolicy.simulator.workload import Arrival, Json

TASKS: Final = Format(
    "batch tasks",
    "pods",
    ("job_id", "task_id"),
    (
        "job_id",
        "task_id",
        "submit_s",
        "duration_s",
        "instances",
        "cpu_cores_per_instance",
        "mem_norm_per_instance",
    ),
)
_SUBMITTED: Final = seconds("submit_s", may_be_empty=False)
_LASTS: Final = seconds("duration_s", may_be_empty=False)
_INSTANCES: Final = NumberColumn("instances", "of which `--sample` may take a share", 1_000_000_000)
_CPUS: Final = NumberColumn("cpu_cores_per_instance", "in CPUs", MOST_CPUS, whole=False)
_MEMORY: Final = NumberColumn(
    "mem_norm_per_instance", "as a share of the memory of the largest machine", 1, whole=False
)


def read_tasks(rows: Iterable[Row], memory: int, taken: Callable[[int], int]) -> list[Arrival]:
    """Arrivals in order of their time, on nodes of which the largest has so many bytes of memory. `taken` says how many of so
    many instances there are to be. Raises WorkloadError.
    """
    found: list[Arrival] = []
    for row in rows:
        found.extend(islice(_instances(row, memory, taken), MAX_ROWS + 1 - len(found)))
        if len(found) > MAX_ROWS:
            raise row.wrong(
                f"more than {MAX_ROWS:,} instances by then; take a share of them, as `--sample 1%`"
            )
    return sorted(found, key=lambda arrival: arrival.time)


def _instances(row: Row, memory: int, taken: Callable[[int], int]) -> Iterator[Arrival]:
    cpus, share = row.number(_CPUS), row.number(_MEMORY)
    asked = {protocol.CPU: f"{round(1000 * cpus)}m", protocol.MEMORY: str(round(share * memory))}
    container = {"name": "main", "image": "task", "resources": {"requests": asked, "limits": dict(asked)}}
    spec = {"priorityClassName": BATCH_CLASS, "containers": [container]}
    job = row.text("job_id")
    labels = {protocol.QOS_CLASS: "BE", "job": job}
    begins, lasts = row.moment(_SUBMITTED), max(row.lasting(_LASTS), 1)
    named = row.named("task_id", f"job-{job}-task-{row.text('task_id')}")
    for instance in range(taken(row.whole(_INSTANCES))):
        metadata = {"name": f"{named}-{instance}", "namespace": "default", "labels": labels}
        pod: Json = {"metadata": metadata, "spec": spec}
        yield Arrival(begins, pod, lasts)
