"""Who gets how much CPU on all nodes at once, and what reports say of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.node import Node
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.machines import Machine, RunningPod, machine_of
from koordpolicy.simulator.usage import SHAPE

amounts = st.integers(0, 8000)


def fleet(*cpus: int) -> Fleet:
    def machine(at: int, cpu: int) -> Machine:
        capacity = {"cpu": cpu, "memory": 1 << 35}
        return machine_of(Node(f"node-{at}", capacity=capacity, allocatable=capacity), SHAPE)

    return Fleet([machine(at, cpu) for at, cpu in enumerate(cpus)])


def put(on: Fleet, at: int, slot: int, *, best_effort: bool, memory: int = 0) -> RunningPod:
    machine = on.machines[at]
    pod = RunningPod(("default", str(slot)), machine, slot, best_effort, memory, "", "", 0)
    machine.pods[pod.key] = pod
    on.add(pod, "batch" if best_effort else "prod")
    return pod


def limited(on: Fleet, at: int, *, cpus: int | None = None, quota: int | None = None) -> None:
    machine = on.machines[at]
    if cpus is not None:
        machine.cpuset = frozenset(range(cpus))
    if quota is not None:
        machine.quota = quota
    on.limit[at] = machine.limit()


def used(on: Fleet, *pods: RunningPod) -> list[int]:
    on.measure(1)
    return [int(on.cpu_of(np.array([pod.slot]))[0]) for pod in pods]


@given(
    pods=st.lists(st.tuples(st.integers(0, 2), st.booleans(), amounts), max_size=20),
    cpus=st.lists(st.integers(0, 10), min_size=3, max_size=3),
)
def test_a_node_gives_no_more_than_it_has(pods: list[tuple[int, bool, int]], cpus: list[int]) -> None:
    nodes = fleet(10_000, 10_000, 10_000)
    for at, count in enumerate(cpus):
        limited(nodes, at, cpus=count)
    running = [put(nodes, at, slot, best_effort=group) for slot, (at, group, _) in enumerate(pods)]
    nodes.share(np.array([float(wish) for _, _, wish in pods]))
    assert (nodes.used <= nodes.cpu).all()
    assert (nodes.given <= np.minimum(nodes.limit, nodes.wished)).all()
    assert (nodes.given + nodes.withheld <= nodes.wished).all()
    shares = used(nodes, *running)
    for at, machine in enumerate(nodes.machines):
        mine = [share for share, pod in zip(shares, running, strict=True) if pod.machine is machine]
        assert sum(mine) <= machine.cpu - machine.system_cpu
        grouped = [
            share
            for share, pod in zip(shares, running, strict=True)
            if pod.machine is machine and pod.best_effort
        ]
        assert sum(grouped) <= nodes.given[at]
        metric = nodes.report(machine)
        assert metric.node_usage is not None
        assert sum(pod.usage["cpu"] for pod in metric.pods) == sum(mine)
        assert metric.node_usage["cpu"] >= metric.system_usage["cpu"] + sum(mine)


def test_others_come_before_the_best_effort_group() -> None:
    nodes = fleet(10_000)
    service, job = put(nodes, 0, 0, best_effort=False), put(nodes, 0, 1, best_effort=True)
    nodes.share(np.array([7000.0, 7000.0]))
    assert used(nodes, service, job) == [7000, 2800]
    assert nodes.withheld[0] == 0  # nobody kept it from the group: there was no more


def test_fewer_cpus_and_a_quota_hold_the_group_back() -> None:
    nodes = fleet(10_000)
    job = put(nodes, 0, 0, best_effort=True)
    limited(nodes, 0, cpus=4)
    nodes.share(np.array([7000.0]))
    assert (used(nodes, job), nodes.withheld[0]) == ([4000], 3000)
    limited(nodes, 0, quota=200_000)
    nodes.share(np.array([7000.0]))
    assert (used(nodes, job), nodes.withheld[0]) == ([2000], 5000)
    assert [(pod.key, round(rate, 3)) for pod, rate in nodes.turned()] == [(job.key, 0.286)]
    assert list(nodes.turned()) == []


def test_reports_are_as_of_the_last_moment_whatever_comes_and_goes() -> None:
    nodes = fleet(10_000, 20_000)
    put(nodes, 0, 0, best_effort=False, memory=5)
    gone = put(nodes, 1, 1, best_effort=True, memory=7)
    nodes.share(np.array([1000.0, 2000.0]))
    nodes.measure(9)
    put(nodes, 0, 2, best_effort=False, memory=11)
    del nodes.machines[1].pods[gone.key]
    nodes.remove(gone.slot)
    reports = nodes.over(np.arange(2))
    assert reports.usage["cpu"].tolist() == [1200, 2400]
    assert reports.measured.tolist() == [1, 0]
    assert reports.of_bands(frozenset({"prod"}))["cpu"].tolist() == [1000, 0]
    assert [pod.name for pod in nodes.report(nodes.machines[0]).pods] == ["0"]
    assert nodes.report(nodes.machines[0]).updated_at == 9
    assert nodes.over(np.array([1])).usage["cpu"].tolist() == [2400]
