"""Batch tasks as Alibaba's trace of 2017 tells them, each by the means of its instances: a pod an instance.

Rows have the columns `job_id, task_id, submit_s, duration_s, instances, cpu_cores_per_instance, mem_norm_per_instance` (seconds, CPUs, and memory
as a share of that of the largest machine, which is the largest node that is simulated). All instances of a task come at once.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from koordpolicy.model import protocol
from koordpolicy.simulator.traces.openb import BATCH_CLASS
from koordpolicy.simulator.traces.rows import MAX_ROWS, lasting, moment, number, table_rows, whole_number
from koordpolicy.simulator.workload import Arrival, Json, WorkloadError

COLUMNS: Final = (
    "job_id",
    "task_id",
    "submit_s",
    "duration_s",
    "instances",
    "cpu_cores_per_instance",
    "mem_norm_per_instance",
)


def read_tasks(file: Path, memory: int, taken: Callable[[int], int]) -> list[Arrival]:
    """Arrivals in order of their time, on nodes of which the largest has so many bytes of memory. `taken` says how many of so
    many instances there are to be. Raises WorkloadError.
    """
    found: list[Arrival] = []
    for at, row in table_rows(file, COLUMNS):
        found.extend(islice(_instances(row, at, memory, taken), MAX_ROWS + 1 - len(found)))
        if len(found) > MAX_ROWS:
            raise WorkloadError(
                f"{at}: more than {MAX_ROWS:,} instances by then; take a share of them, as `--sample 1%`"
            )
    return sorted(found, key=lambda arrival: arrival.time)


def _instances(
    row: Mapping[str, str], at: str, memory: int, taken: Callable[[int], int]
) -> Iterator[Arrival]:
    cpus, share = number(row, "cpu_cores_per_instance", at), number(row, "mem_norm_per_instance", at)
    if share > 1:
        raise WorkloadError(
            f"{at}: `{share:g}` in column `mem_norm_per_instance` is more than a whole machine"
        )
    asked = {protocol.CPU: f"{round(1000 * cpus)}m", protocol.MEMORY: str(round(share * memory))}
    container = {"name": "main", "image": "task", "resources": {"requests": asked, "limits": dict(asked)}}
    spec = {"priorityClassName": BATCH_CLASS, "containers": [container]}
    labels = {protocol.QOS_CLASS: "BE", "job": row["job_id"]}
    lasts = max(lasting(row, "duration_s", at), 1)
    for instance in range(taken(whole_number(row, "instances", at))):
        name = f"job-{row['job_id']}-task-{row['task_id']}-{instance}"
        metadata = {"name": name, "namespace": "default", "labels": labels}
        pod: Json = {"metadata": metadata, "spec": spec}
        yield Arrival(moment(row, "submit_s", at), pod, lasts)
