"""Memory that runs short: a best-effort pod takes more and more of it, beside others that do not.

The class of best-effort pods has a limit here, which stands for the end of the node's memory: at it the kernel's OOM killer acts. The
agent's threshold lies well before. The pod to go is `greedy`: `precious` has a higher priority, `modest` the same and uses less.
"""

import time
from collections.abc import Mapping
from typing import Final

from koordpolicy.linux.host_root import HOST_TREES, HostRoot
from koordpolicy.linux.readings.processes import read_memory_info
from tests.benchmarks.colocation.node import BenchNode
from tests.benchmarks.colocation.pods import KUBEPODS, BenchPod
from tests.benchmarks.measure import Row

_MIB: Final = 1 << 20
_HELD: Final = {"precious": 512 * _MIB, "modest": 128 * _MIB}
_THRESHOLD: Final = 1024 * _MIB
"""Of best-effort work together, when the agent is to act; and the end of memory."""
_END: Final = 2560 * _MIB
_STEP, _EVERY = 8 * _MIB, 0.1
_LONGEST: Final = 45.0


def rows(node: BenchNode) -> list[Row]:
    """Without and with the agent: who was evicted, how soon after the threshold, and how often the OOM killer acted."""
    return [
        _row(node, "memory, without the agent", agent=False),
        _row(node, "memory, with the agent", agent=True),
    ]


def _row(node: BenchNode, trial: str, *, agent: bool) -> Row:
    pods = {name: node.create(_pod(name)) for name in ("greedy", "modest", "precious")}
    info = read_memory_info(HostRoot(HOST_TREES))
    used = info.total - info.available
    share = (used + _THRESHOLD) / info.total
    told = (
        "kind: MemoryEviction\nmetadata: {name: on}\n"
        f"spec: {{enabled: true, threshold: {share:.2%}, bestEffort: {{enabled: true}}}}\n"
    )
    with node.with_agent(trial, list(pods.values()), [told] if agent else None):
        node.groups.write(
            KUBEPODS.of_class("BestEffort"), "memory", {"memory.limit_in_bytes": _END, "memory.max": _END}
        )
        module, length = "tests.benchmarks.colocation.batch", ("--seconds", f"{_LONGEST}")
        works = [
            node.groups.start(pods[name], module, *length, "--memory", f"{held}", "--step", f"{held}")
            for name, held in _HELD.items()
        ]
        time.sleep(3.0)
        works.append(
            node.groups.start(
                pods["greedy"],
                module,
                *length,
                "--memory",
                f"{2 * _END}",
                "--step",
                f"{_STEP}",
                "--every",
                f"{_EVERY}",
            )
        )
        found = _watched(node, pods)
        for pod in pods.values():
            node.remove(pod)
        for work in works:
            work.wait(10)
    return {"trial": trial, **found}


def _watched(node: BenchNode, pods: Mapping[str, BenchPod]) -> Row:
    """Who has to go first, and how; what a kubelet does with a pod that was evicted is done here."""
    group = KUBEPODS.of_class("BestEffort")
    most, crossed, end = 0, 0.0, time.monotonic() + _LONGEST - 5
    while (now := time.monotonic()) < end:
        most = max(most, held := node.groups.memory_of(group))
        if held > _THRESHOLD and not crossed:
            crossed = now
        seen = {"after, s": now - crossed if crossed else 0.0, "best-effort memory, GiB": most / (1 << 30)}
        if kills := node.groups.oom_kills(group):
            return {"evicted": "nobody", **seen, "OOM kills": kills}
        for name, pod in pods.items():
            if node.is_leaving(pod):
                node.remove(pod)
                return {"evicted": name, **seen, "OOM kills": 0}
        time.sleep(0.1)
    return {"evicted": "nobody", "after, s": 0.0, "best-effort memory, GiB": 0.0, "OOM kills": 0}


def _pod(name: str) -> BenchPod:
    amount = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": f"{2 * _END}"}
    return BenchPod(
        name, "BestEffort", 2, labels={"koordinator.sh/qosClass": "BE"}, priority=5900 if name == "precious" else 5500,
        resources={"requests": amount, "limits": amount},
    )  # fmt: skip
