"""How long work takes with the CPU that it gets."""

from koordpolicy.model.node import Node
from koordpolicy.simulator.machines import Machine, RunningPod, machine_of
from koordpolicy.simulator.usage import SHAPE


def machine(cpu: int = 10_000) -> Machine:
    capacity = {"cpu": cpu, "memory": 1 << 35}
    return machine_of(Node("node", capacity=capacity, allocatable=capacity), SHAPE)


def put(on: Machine, slot: int, *, best_effort: bool, remaining: float | None = None) -> RunningPod:
    pod = RunningPod(("default", str(slot)), on, slot, best_effort, 0, "", "", 0, remaining)
    on.pods[pod.key] = pod
    return pod


def test_work_that_gets_half_takes_twice_as_long() -> None:
    node = machine()
    job = put(node, 0, best_effort=True, remaining=1000.0)
    assert job.end() == 1000
    assert job.advance(200, 0.5)
    assert job.end() == 200 + 1600
    assert job.advance(1000, 1.0)
    assert job.end() == 1000 + 400


def test_work_that_gets_nothing_does_not_end() -> None:
    job = put(machine(), 0, best_effort=True, remaining=1000.0)
    job.advance(100, 0.0)
    assert job.end() is None
