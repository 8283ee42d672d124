"""Who gets how much CPU on a node, and how long work takes with it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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


@given(
    others=st.lists(st.integers(0, 8000), max_size=6),
    group=st.lists(st.integers(0, 8000), max_size=6),
    cpus=st.integers(0, 10),
)
def test_a_node_gives_no_more_than_it_has(others: list[int], group: list[int], cpus: int) -> None:
    node = machine()
    node.cpuset = frozenset(range(cpus))
    for slot in range(len(others) + len(group)):
        put(node, slot, best_effort=slot >= len(others))
    node.share(np.array([*others, *group], dtype=float))
    assert node.used <= node.cpu
    assert 0 <= node.shares.given <= min(node.shares.limit, node.shares.wished)
    assert node.shares.given + node.shares.withheld <= node.shares.wished
    assert sum(pod.cpu for pod in node.pods.values()) <= node.cpu - node.system_cpu
    assert sum(pod.cpu for pod in node.pods.values() if not pod.best_effort) <= node.shares.others


def test_others_come_before_the_best_effort_group() -> None:
    node = machine()
    service, job = put(node, 0, best_effort=False), put(node, 1, best_effort=True)
    node.share(np.array([7000.0, 7000.0]))
    assert (service.cpu, job.cpu) == (7000, 2800)
    assert node.shares.withheld == 0  # nobody kept it from the group: there was no more


def test_fewer_cpus_and_a_quota_hold_the_group_back() -> None:
    node = machine()
    job = put(node, 0, best_effort=True)
    node.cpuset = frozenset(range(4))
    node.share(np.array([7000.0]))
    assert (job.cpu, node.shares.withheld) == (4000, 3000)
    node.quota = 200_000
    node.share(np.array([7000.0]))
    assert (job.cpu, node.shares.withheld) == (2000, 5000)


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


def test_what_agents_report_adds_up() -> None:
    node = machine()
    put(node, 0, best_effort=False)
    put(node, 1, best_effort=True)
    node.share(np.array([3000.0, 2000.0]))
    metric = node.report(5)
    assert metric.node_usage is not None
    assert metric.node_usage["cpu"] == metric.system_usage["cpu"] + sum(
        pod.usage["cpu"] for pod in metric.pods
    )
