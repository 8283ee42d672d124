"""A program: agents on this machine's control groups, each killed in a storm of writes, and what the last one makes of it.

What is compiled is compiled once: agents are forked, so that 20 of them take seconds.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.undoing import take_over, undo_journal
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.root import CGROUPS
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.runtime.clock import monotonic_ns, now_ns
from koordpolicy.runtime.process import Tasks
from tests.contract.kernel.kernels import make_group, remove_groups
from tests.unit.agent.frames import LIMITS
from tests.unit.agent.whole import pod_object, whole_agent
from tests.vectors.policies import document, graph

KILLS = 20
PODS = 8
PATIENCE = 20.0
QUOTA = 2000
POLICIES = (
    document(
        "CPUSuppress",
        "ours",
        {
            "enabled": True,
            "mechanism": "cfsQuota",
            "target": {"cel": "node.capacity.cpu * percent(1)"},
            "minimumQuota": "2ms",
            "interval": "100ms",
        },
    ),
    document("MetricCollection", "ours", {"interval": "100ms"}),
)


def main(state: str, parent: str) -> None:
    """Kill twenty agents and let one be; says in a line how it ended, or raises."""
    root = HostRoot()
    hierarchy = discover_hierarchy(root)
    best_effort = f"{parent}/kubepods/besteffort"
    groups = [f"{best_effort}/poduid-batch-{number}/{_container(number)}" for number in range(PODS)]
    try:
        for path in groups:
            parts = path.split("/")
            for depth in range(1, len(parts) + 1):
                make_group(root, hierarchy, "/".join(parts[:depth]))
        quota = Path(CGROUPS, "cpu", best_effort, "cpu.cfs_quota_us")
        shares = [Path(CGROUPS, "cpu", group, "cpu.shares") for group in groups]
        compiled, chance, cut = graph(*POLICIES), Random(16), 0
        for _ in range(KILLS):
            agent = _begun(compiled, state, parent, shares)
            _until(lambda: quota.read_text().strip() == str(QUOTA), agent)
            for file in shares:  # a storm: others write, and the agent writes against them
                file.write_text("7777")
            time.sleep(chance.random() * 0.15)
            os.kill(agent, signal.SIGKILL)
            os.waitpid(agent, 0)
            said = {file.read_text().strip() for file in shares}
            cut += "7777" in said
        assert cut > 0, "no agent was killed in the midst of its work"
        last = _begun(compiled, state, parent, shares)
        _until(lambda: quota.read_text().strip() == str(QUOTA), last)
        os.kill(last, signal.SIGTERM)
        os.waitpid(last, 0)
        assert quota.read_text().strip() == "-1", quota.read_text()
        sys.stdout.write(f"as policy says after {KILLS} kills, and given back at the stop\n")
    finally:
        for controller in ("cpu", "cpuset", "memory", "cpuacct"):
            remove_groups(root, hierarchy.directory(controller, parent))


def _begun(compiled: RuleGraph, state: str, parent: str, shares: Sequence[Path]) -> int:
    """An agent that has set all shares itself."""
    for file in shares:
        file.write_text("7777")
    agent = _fork(compiled, state, parent)
    _until(lambda: all(file.read_text().strip() == "512" for file in shares), agent)
    return agent


def _container(number: int) -> str:
    return f"{number:x}" * 64


def _fork(compiled: RuleGraph, state: str, parent: str) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        asyncio.run(_agent(compiled, state, parent))
        status = 0
    finally:
        os._exit(status)


async def _agent(compiled: RuleGraph, state: str, parent: str) -> None:
    """One agent as its process makes it: what was left is taken over, then all rounds run until it is told to stop."""
    root = HostRoot()
    hierarchy = discover_hierarchy(root)
    limits = replace(LIMITS, refresh=1)  # every round looks at every file
    door = KernelDoor(root, hierarchy, monotonic_ns, limits, WriteLog(100), journal=undo_journal(state, root))
    kernel = NodeKernel(root, hierarchy, door, parent)
    take_over(kernel, AuditLog(1 << 16, monotonic_ns, lambda: "t"), now_ns())
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    amounts = {"kubernetes.io/batch-cpu": "500"}
    pods = [
        pod_object(f"batch-{number}", "BE", _container(number), {"requests": amounts, "limits": amounts})
        for number in range(PODS)
    ]
    cluster = MemoryCluster(Store(time.time))
    capacity = {"cpu": str(os.cpu_count()), "memory": "8Gi", "pods": "110"}
    async with whole_agent(compiled, kernel, cluster, pods, capacity=capacity) as agent:
        async with Tasks() as tasks:
            agent.start(tasks)
            await stopped.wait()
        await agent.stop()


def _until(question: Callable[[], bool], agent: int) -> None:
    end = time.monotonic() + PATIENCE
    while not question():
        assert os.waitpid(agent, os.WNOHANG) == (0, 0), "the agent has ended by itself"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)
